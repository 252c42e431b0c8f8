// SPDX-License-Identifier: MIT OR Apache-2.0
//! A real browser: headless Chromium, driven by WebDriver (<https://www.w3.org/TR/webdriver2/>).
#![allow(clippy::unwrap_used, dead_code)]

use super::Live;
use super::web::ask;
use castanet_testkit::until;
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// The key of an element in WebDriver's answers.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";
/// Keys that have no character.
pub const ENTER: &str = "\u{e007}";
pub const TAB: &str = "\u{e004}";
pub const UP: &str = "\u{e013}";
pub const DOWN: &str = "\u{e015}";

/// A browser with one window.
pub struct Browser {
    driver: Live,
    port: u16,
    session: String,
    _home: TempDir,
}

/// Whether Chromium and its driver are there. Prints why not.
pub fn has_browser() -> bool {
    let there =
        |program: &str| Command::new(program).arg("--version").output().is_ok_and(|o| o.status.success());
    let all = there("chromedriver") && there("chromium");
    if !all {
        println!("SKIP: chromium and chromedriver are not installed");
    }
    all
}

impl Browser {
    /// Starts a browser with a light or a dark colour scheme.
    pub fn new(dark: bool) -> Browser {
        let home = tempfile::tempdir().unwrap();
        let log = home.path().join("driver");
        let mut c = Command::new("chromedriver");
        c.args(["--port=0"]).env("HOME", home.path()).stdin(Stdio::null()).stderr(Stdio::null());
        let driver = Live(c.stdout(std::fs::File::create(&log).unwrap()).spawn().unwrap());
        let port = || {
            let text = std::fs::read_to_string(&log).unwrap();
            let (_, rest) = text.split_once("started successfully on port ")?;
            rest.split_once('.')?.0.trim().parse().ok()
        };
        until("the driver listens", || port().is_some());
        let mut browser = Browser { driver, port: port().unwrap(), session: String::new(), _home: home };
        let profile = format!("--user-data-dir={}", browser._home.path().join("profile").display());
        let scheme = format!("--blink-settings=preferredColorScheme={}", u8::from(!dark));
        // The sandbox needs privileges that not every user has; the only page here is that of the router. The browser reaches
        // nothing but this host.
        let args = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--hide-scrollbars",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
            "--window-size=1280,880",
            &profile,
            &scheme,
        ];
        let options = json!({ "args": args, "binary": "/usr/bin/chromium" });
        let wanted = json!({ "browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": { "browser": "ALL" } });
        let answer = browser.call("POST", "/session", &json!({ "capabilities": { "alwaysMatch": wanted } }));
        browser.session = format!("/session/{}", answer["sessionId"].as_str().unwrap());
        browser
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let (status, answer) = ask(self.port, method, path, &[("Content-Type", "application/json")], &text);
        assert_eq!(status, 200, "{method} {path} {body}: {answer}");
        let mut answer: Value = serde_json::from_str(&answer).unwrap();
        answer["value"].take()
    }
    fn post(&self, path: &str, body: &Value) -> Value {
        self.call("POST", &format!("{}{path}", self.session), body)
    }

    /// Opens a page.
    pub fn open(&self, url: &str) {
        self.post("/url", &json!({ "url": url }));
    }
    /// Runs a script, and returns what it returns.
    pub fn run(&self, script: &str) -> Value {
        self.post("/execute/sync", &json!({ "script": script, "args": [] }))
    }
    /// Runs a script until it returns something true.
    pub fn until(&self, what: &str, script: &str) {
        until(what, || {
            let value = self.run(script);
            value != Value::Bool(false) && !value.is_null()
        });
    }
    /// The text of an element of the page.
    pub fn text(&self, selector: &str) -> String {
        let found = self.run(&format!("return document.querySelector({selector:?})?.textContent ?? ''"));
        found.as_str().unwrap().to_string()
    }
    fn find(&self, selector: &str) -> String {
        let found = self.post("/element", &json!({ "using": "css selector", "value": selector }));
        found[ELEMENT].as_str().unwrap().to_string()
    }
    /// Clicks on an element of the page, as the pointer would: it must be visible, and nothing may lie above it.
    pub fn click(&self, selector: &str) {
        self.post(&format!("/element/{}/click", self.find(selector)), &json!({}));
    }
    /// Types into an element of the page.
    pub fn type_into(&self, selector: &str, text: &str) {
        self.post(&format!("/element/{}/value", self.find(selector)), &json!({ "text": text }));
    }
    /// Removes the text of an element of the page.
    pub fn clear(&self, selector: &str) {
        self.post(&format!("/element/{}/clear", self.find(selector)), &json!({}));
    }
    /// Presses keys, one after the other, wherever the focus is.
    pub fn press(&self, keys: &[&str]) {
        let each = keys
            .iter()
            .flat_map(|k| [json!({ "type": "keyDown", "value": k }), json!({ "type": "keyUp", "value": k })]);
        let actions: Vec<Value> = each.collect();
        self.post(
            "/actions",
            &json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": actions }] }),
        );
    }
    /// The role and the name that a screen reader gets for an element of the page.
    pub fn spoken(&self, selector: &str) -> (String, String) {
        let id = self.find(selector);
        let get = |what: &str| {
            let value = self.call("GET", &format!("{}/element/{id}/{what}", self.session), &Value::Null);
            value.as_str().unwrap_or_default().to_string()
        };
        (get("computedrole"), get("computedlabel"))
    }
    /// A picture of the window, as a PNG in base64.
    pub fn picture(&self) -> String {
        let value = self.call("GET", &format!("{}/screenshot", self.session), &Value::Null);
        value.as_str().unwrap().to_string()
    }
    /// The messages in the console: errors of scripts, and what the policy of the page has refused.
    pub fn messages(&self) -> Vec<String> {
        let all = self.post("/se/log", &json!({ "type": "browser" }));
        all.as_array().unwrap().iter().map(|m| m["message"].to_string()).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver ends the browser. An answer is not needed.
        if !self.session.is_empty() {
            let _ = std::panic::catch_unwind(|| ask(self.port, "DELETE", &self.session, &[], ""));
        }
    }
}
