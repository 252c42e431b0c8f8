// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the classic tools have in common: which configuration, where to write, how to complain.

use super::options::Wrong;
use crate::load::{Source, definition};
use castanet_lang::{Diagnostic, Sources};
use std::io::Write;

/// Prints a line on standard error.
pub fn say(text: &str) {
    // Nobody is left to tell when standard error is closed.
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Prints text on standard output; false when that cannot be done.
pub fn print(tool: &str, text: &str) -> bool {
    write(tool, None, text.as_bytes())
}

/// Writes to a file, or to standard output for none or `-`; false when that cannot be done.
pub fn write(tool: &str, output: Option<&str>, bytes: &[u8]) -> bool {
    match crate::load::write_bytes(output.map(std::path::Path::new), bytes) {
        Ok(()) => true,
        Err(e) => {
            say(&format!("{tool}: {e}"));
            false
        }
    }
}

/// Shows diagnostics as scripts know them.
pub fn show(sources: &Sources, diagnostics: &[Diagnostic]) {
    let text = castanet_lang::render::render_classic(sources, diagnostics);
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Where the configuration comes from.
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
    /// Takes the text of `-e`.
    pub fn text(&mut self, text: Option<String>) -> Result<(), Wrong> {
        self.set(From::Text(text.unwrap_or_default()))
    }
    /// Takes the file of `-f`.
    pub fn file(&mut self, file: Option<String>) -> Result<(), Wrong> {
        self.set(From::File(file.unwrap_or_default()))
    }
    /// Takes a word that is no option.
    pub fn word(&mut self, word: String) -> Result<(), Wrong> {
        match definition(&word) {
            Some(d) => {
                self.defines.push(d);
                Ok(())
            }
            None => self.set(From::File(word)),
        }
    }
    /// The configuration; from standard input when none was named.
    pub fn read(&mut self) -> Result<Source, String> {
        let defines = std::mem::take(&mut self.defines);
        match self.from.take() {
            Some(From::Text(text)) => Ok(Source::text("config", text, defines)),
            Some(From::File(file)) => Source::file(&file, defines),
            None => Source::file("-", defines),
        }
    }
}
