// SPDX-License-Identifier: MIT OR Apache-2.0
//! The routes of the HTTP server: which request gets which answer. The OpenAPI document is made from this table.

use super::problem::Problem;
use super::router::Session;
use super::{Api, answers, traces};
use hyper::Method;
use serde_json::Value;

/// One request, once it is admitted and its body has been read.
pub struct Call<'a> {
    /// The router.
    pub router: &'a mut Session,
    /// The parameters of the path: name and value.
    pub path: Vec<(&'static str, String)>,
    /// The parameters of the query.
    pub query: Vec<(String, String)>,
    /// The body.
    pub body: Value,
    /// Whether the client may write.
    pub may_write: bool,
}

impl Call<'_> {
    /// A parameter of the path.
    ///
    /// # Errors
    /// When the route does not have it.
    pub fn parameter(&self, name: &str) -> Result<String, Problem> {
        let found = self.path.iter().find(|p| p.0 == name);
        found.map(|p| p.1.clone()).ok_or_else(|| Problem::new(404, format!("no {name}")))
    }
    /// The values of a parameter of the query.
    pub fn query<'b>(&'b self, name: &'b str) -> impl Iterator<Item = &'b str> {
        self.query.iter().filter(move |q| q.0 == name).map(|q| q.1.as_str())
    }
    /// A text of the body.
    ///
    /// # Errors
    /// When the body does not have it.
    pub fn text(&self, name: &str) -> Result<&str, Problem> {
        let found = self.body.get(name).and_then(Value::as_str);
        found.ok_or_else(|| Problem::new(400, format!("expected an object with the text '{name}'")))
    }
}

/// The kind of answer to a request.
#[derive(Clone, Copy)]
pub enum Answer {
    /// JSON with this schema.
    Json(&'static str, fn(&Api, &mut Call<'_>) -> Result<Value, Problem>),
    /// The OpenAPI document.
    Document,
    /// A stream of readings, as Server-Sent Events.
    Events,
    /// The metrics of the router.
    Metrics,
    /// A file of the page: its media type and its contents.
    File(&'static str, &'static str),
}

/// A route.
#[derive(Clone, Copy)]
pub struct Route {
    /// The method. A route for GET also answers HEAD.
    pub method: &'static str,
    /// The path; `{NAME}` stands for one segment.
    pub path: &'static str,
    /// The name of the operation in the OpenAPI document.
    pub id: &'static str,
    /// One line on what it does.
    pub summary: &'static str,
    /// The parameters of the query: name, whether it may be repeated, and one line on what it does.
    pub query: &'static [(&'static str, bool, &'static str)],
    /// The schema of the body.
    pub body: Option<&'static str>,
    /// Whether it needs the token.
    pub guarded: bool,
    /// The answer.
    pub answer: Answer,
}

const fn get(path: &'static str, id: &'static str, summary: &'static str, answer: Answer) -> Route {
    Route { method: "GET", path, id, summary, query: &[], body: None, guarded: false, answer }
}

const fn guarded(
    method: &'static str,
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    body: &'static str,
    answer: Answer,
) -> Route {
    Route { method, path, id, summary, query: &[], body: Some(body), guarded: true, answer }
}

const fn asking(route: Route, query: &'static [(&'static str, bool, &'static str)]) -> Route {
    Route { query, ..route }
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";
const PARAMETERS: &[(&str, bool, &str)] = &[("parameters", false, "Parameters of the handler.")];
const FOLD: &[(&str, bool, &str)] = &[(
    "fold",
    true,
    "The full name of a compound to draw as one box; * for all. Unknown names are ignored.",
)];

/// A file of the page, from the folder `page`.
macro_rules! file {
    ($name:literal, $kind:expr) => {
        get(
            concat!("/page/", $name),
            concat!("page/", $name),
            "A file of the page.",
            Answer::File($kind, include_str!(concat!("../page/", $name))),
        )
    };
}

/// All routes.
pub static ROUTES: &[Route] = &[
    get("/", "page", "The page.", Answer::File(HTML, include_str!("../page/index.html"))),
    file!("style.css", CSS),
    file!("main.js", SCRIPT),
    file!("api.js", SCRIPT),
    file!("graph.js", SCRIPT),
    file!("element.js", SCRIPT),
    file!("editor.js", SCRIPT),
    file!("tables.js", SCRIPT),
    file!("trace.js", SCRIPT),
    file!("text.js", SCRIPT),
    file!("icon.svg", SVG),
    get("/metrics", "metrics", "The metrics of the router, in the OpenMetrics format.", Answer::Metrics),
    get("/api/openapi.json", "openapi", "This document.", Answer::Document),
    get(
        "/api/router",
        "router",
        "The router, and what this client may do.",
        Answer::Json("Router", answers::router),
    ),
    get("/api/elements", "elements", "The elements.", Answer::Json("Elements", answers::elements)),
    get(
        "/api/elements/{element}",
        "element",
        "An element and its handlers.",
        Answer::Json("Element", answers::element),
    ),
    asking(
        get(
            "/api/elements/{element}/handlers/{handler}",
            "read",
            "Reads a handler of an element.",
            Answer::Json("HandlerValue", answers::read),
        ),
        PARAMETERS,
    ),
    guarded(
        "PUT",
        "/api/elements/{element}/handlers/{handler}",
        "write",
        "Writes a handler of an element.",
        "Write",
        Answer::Json("Written", answers::write),
    ),
    get(
        "/api/handlers",
        "globals",
        "The global handlers.",
        Answer::Json("Handlers", answers::global_handlers),
    ),
    asking(
        get(
            "/api/handlers/{handler}",
            "readGlobal",
            "Reads a global handler.",
            Answer::Json("HandlerValue", answers::read),
        ),
        PARAMETERS,
    ),
    guarded(
        "PUT",
        "/api/handlers/{handler}",
        "writeGlobal",
        "Writes a global handler.",
        "Write",
        Answer::Json("Written", answers::write),
    ),
    get(
        "/api/drops",
        "drops",
        "The packets that elements dropped, by reason.",
        Answer::Json("DropList", answers::drops),
    ),
    get(
        "/api/queues",
        "queues",
        "The queues, and packets held elsewhere.",
        Answer::Json("QueueList", answers::queues),
    ),
    get(
        "/api/workers",
        "workers",
        "The workers and their load since the start.",
        Answer::Json("WorkerList", answers::loads),
    ),
    asking(
        get(
            "/api/graph",
            "graph",
            "The graph, and the positions of its drawing.",
            Answer::Json("Graph", answers::graph),
        ),
        FOLD,
    ),
    get(
        "/api/events",
        "events",
        "A reading of the router each second, as Server-Sent Events.",
        Answer::Events,
    ),
    get(
        "/api/configuration",
        "configuration",
        "The configuration as it was read, and with compounds expanded.",
        Answer::Json("Configuration", answers::configuration),
    ),
    guarded(
        "POST",
        "/api/check",
        "check",
        "The diagnostics of a configuration.",
        "NewConfiguration",
        Answer::Json("Checked", answers::check),
    ),
    guarded(
        "POST",
        "/api/plan",
        "plan",
        "The changes that a hot swap to a configuration would make.",
        "NewConfiguration",
        Answer::Json("Plan", answers::plan),
    ),
    guarded(
        "POST",
        "/api/swap",
        "swap",
        "Replaces the configuration (hot swap).",
        "NewConfiguration",
        Answer::Json("Swapped", answers::swap),
    ),
    guarded(
        "POST",
        "/api/traces",
        "beginTrace",
        "Follows packets through the router.",
        "NewTrace",
        Answer::Json("TraceName", traces::begin),
    ),
    Route {
        guarded: true,
        ..get(
            "/api/traces/{trace}",
            "trace",
            "The packets that a trace has followed so far, and what elements did with them.",
            Answer::Json("Trace", traces::read),
        )
    },
    Route {
        method: "DELETE",
        guarded: true,
        ..get("/api/traces/{trace}", "endTrace", "Ends a trace.", Answer::Json("TraceEnded", traces::end))
    },
];

/// The route of a request.
pub enum Found {
    /// There is one, with these parameters of the path.
    Route(&'static Route, Vec<(&'static str, String)>),
    /// The path allows only these methods.
    Methods(Vec<&'static str>),
    /// There is no such path.
    None,
}

/// Decodes `%xx`. `None` if the text is not valid.
fn decoded(text: &str, plus: bool) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(b) = bytes.next() {
        match b {
            b'%' => {
                let pair = [bytes.next()?, bytes.next()?];
                let digits =
                    std::str::from_utf8(&pair).ok().filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))?;
                out.push(u8::from_str_radix(digits, 16).ok()?);
            }
            b'+' if plus => out.push(b' '),
            b => out.push(b),
        }
    }
    String::from_utf8(out).ok()
}

/// Compares a path with that of a route. Returns the parameters.
fn matched(route: &'static str, path: &str) -> Option<Vec<(&'static str, String)>> {
    let mut out = Vec::new();
    let (mut wanted, mut given) = (route.split('/'), path.split('/'));
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return Some(out),
            (Some(w), Some(g)) => match w.strip_prefix('{').and_then(|w| w.strip_suffix('}')) {
                Some(name) => out.push((name, decoded(g, false)?)),
                None if w == g => {}
                None => return None,
            },
            _ => return None,
        }
    }
}

/// Finds the route of a request.
pub fn find(method: &Method, path: &str) -> Found {
    let mut methods = Vec::new();
    let method = if method == Method::HEAD { "GET" } else { method.as_str() };
    for route in ROUTES {
        let Some(parameters) = matched(route.path, path) else { continue };
        if route.method == method {
            return Found::Route(route, parameters);
        }
        let head = (route.method == "GET").then_some("HEAD");
        methods.extend([Some(route.method), head].into_iter().flatten());
    }
    if methods.is_empty() { Found::None } else { Found::Methods(methods) }
}

/// Splits a query into names and values.
///
/// # Errors
/// When it is not valid.
pub fn queries(query: &str) -> Result<Vec<(String, String)>, Problem> {
    let pair = |part: &str| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        Some((decoded(name, true)?, decoded(value, true)?))
    };
    let all: Option<Vec<_>> = query.split('&').filter(|p| !p.is_empty()).map(pair).collect();
    all.ok_or_else(|| Problem::new(400, "the query is not valid"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Returns the name of a route and its parameters, or the methods that are allowed.
    fn found(method: Method, path: &str) -> String {
        match find(&method, path) {
            Found::Route(r, p) => {
                let p: Vec<String> = p.into_iter().map(|(n, v)| format!("{n}={v}")).collect();
                format!("{} {}", r.id, p.join(" ")).trim_end().to_string()
            }
            Found::Methods(m) => m.join(", "),
            Found::None => "none".into(),
        }
    }

    #[test]
    fn paths_lead_to_routes() {
        for (method, path, want) in [
            (Method::GET, "/", "page"),
            (Method::GET, "/metrics", "metrics"),
            (Method::HEAD, "/metrics", "metrics"),
            (Method::GET, "/metrics/", "none"),
            (Method::GET, "/../metrics", "none"),
            (Method::POST, "/metrics", "GET, HEAD"),
            (Method::OPTIONS, "/api/check", "POST"),
            (Method::GET, "/api/elements/a%2Fb%40c", "element element=a/b@c"),
            (Method::GET, "/api/elements/a+b/handlers/count", "read element=a+b handler=count"),
            (Method::DELETE, "/api/elements/a/handlers/count", "GET, HEAD, PUT"),
            (Method::GET, "/api/elements/a%2", "none"),
            (Method::GET, "/api/elements/%ff", "none"),
            (Method::GET, "/api/elements/%+1", "none"),
            (Method::GET, "/api/elements/a/b", "none"),
        ] {
            assert_eq!(found(method, path), want, "{path}");
        }
        let pair = |n: &str, v: &str| (n.to_string(), v.to_string());
        let want = vec![pair("fold", "a/b c"), pair("fold", ""), pair("x", "")];
        assert_eq!(queries("fold=a%2Fb+c&&fold=&x").unwrap(), want);
        assert!(queries("a=%").is_err());
    }
}
