// SPDX-License-Identifier: MIT OR Apache-2.0
//! Common code of the classic tools: reads configurations, and writes output and messages.

use super::options::Wrong;
use crate::load::{Source, definition};
use castanet_lang::{Diagnostic, Sources, bytes};
use std::io::Write;

/// Prints a line on standard error.
pub fn say(text: &str) {
    // A failed write is ignored, because it could only be reported on standard error itself.
    let _ = std::io::stderr().lock().write_all(&bytes::line(text));
}

/// Prints text on standard output. Returns false after an error.
pub fn print(tool: &str, text: &str) -> bool {
    write(tool, None, &bytes::encode(text))
}

/// Writes to a file, or to standard output for `None` or `-`. Returns false after an error.
pub fn write(tool: &str, output: Option<&str>, content: &[u8]) -> bool {
    match crate::load::write_bytes(output.map(std::path::Path::new), content) {
        Ok(()) => true,
        Err(e) => {
            say(&format!("{tool}: {e}"));
            false
        }
    }
}

/// Prints diagnostics in the format of Click.
pub fn show(sources: &Sources, diagnostics: &[Diagnostic]) {
    let text = castanet_lang::render::render_classic(sources, diagnostics);
    let _ = std::io::stderr().lock().write_all(&bytes::encode(&text));
}

/// The source of the configuration.
#[derive(Default)]
pub struct Input {
    from: Option<From>,
    defines: Vec<(String, String)>,
    /// The search path for libraries.
    pub clickpath: Option<String>,
}

enum From {
    Text(String),
    File(String),
}

impl Input {
    fn set(&mut self, from: From) -> Result<(), Wrong> {
        match self.from.replace(from) {
            None => Ok(()),
            Some(_) => Err(Wrong::Usage("router configuration specified twice".into())),
        }
    }
    /// Sets the text of `-e`.
    pub fn text(&mut self, text: Option<String>) -> Result<(), Wrong> {
        self.set(From::Text(text.unwrap_or_default()))
    }
    /// Sets the file of `-f`.
    pub fn file(&mut self, file: Option<String>) -> Result<(), Wrong> {
        self.set(From::File(file.unwrap_or_default()))
    }
    /// Handles a word that is not an option: a definition or a file.
    pub fn word(&mut self, word: String) -> Result<(), Wrong> {
        match definition(&word) {
            Some(d) => {
                self.defines.push(d);
                Ok(())
            }
            None => self.set(From::File(word)),
        }
    }
    /// Reads the configuration, from standard input by default.
    pub fn read(&mut self) -> Result<Source, String> {
        let defines = std::mem::take(&mut self.defines);
        match self.from.take() {
            Some(From::Text(text)) => Ok(Source::text("config", &text, defines)),
            Some(From::File(file)) => Source::file(&file, defines),
            None => Source::file("-", defines),
        }
    }
}
