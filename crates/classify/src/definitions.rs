// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classes that stand for programs, as an archive holds them.
//!
//! The text has a line `class NAME` for each class, and below it the lines of the program ([`Program::disassemble`]). A line
//! `merged NAME into NAME` says that an element of the original configuration is part of the program of another
//! element. Empty lines are ignored.

use std::collections::BTreeMap;
use std::fmt;

use crate::error::{AssemblyError, Fault};
use crate::program::Program;

/// The name of the member of the archive that holds the text.
pub const MEMBER: &str = "fastclassifier";
/// The names of the classes begin with this text.
pub const PREFIX: &str = "FastClassifier@@";

/// Limit on the length of the text, in bytes.
const MAX_TEXT: usize = 64 << 20;

/// The classes, by name, and which elements were merged.
#[derive(Clone, Debug, Default)]
pub struct Definitions {
    /// The program of each class.
    pub classes: BTreeMap<String, Program>,
    /// Elements of the original configuration that have been merged into others: by name, the name of the element whose
    /// program they are part of.
    pub merged: BTreeMap<String, String>,
}

impl Definitions {
    /// Reads the text of an archive's member, and checks it completely.
    ///
    /// # Errors
    /// The first line that is wrong.
    pub fn parse(bytes: &[u8]) -> Result<Definitions, AssemblyError> {
        let whole = |message: String| Fault::new(0..0, message).in_line(0);
        if bytes.len() > MAX_TEXT {
            return Err(whole(format!("the text is longer than {MAX_TEXT} bytes")));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| whole("the text is not UTF-8".into()))?;
        let mut definitions = Definitions::default();
        // The name of the class at hand, and the numbers and texts of its lines.
        let mut class: Option<(&str, usize)> = None;
        let mut body: Vec<(usize, &str)> = Vec::new();
        let lines: Vec<(usize, &str)> = text.lines().enumerate().filter(|l| !l.1.trim().is_empty()).collect();
        for &(at, line) in &lines {
            let words: Vec<&str> = line.split_ascii_whitespace().take(5).collect();
            let fault = |message: &str| Fault::new(0..line.len(), message);
            match words.as_slice() {
                ["class", name] => {
                    definitions.add(class.take(), &body)?;
                    body.clear();
                    if !name.starts_with(PREFIX) {
                        let fault = fault("bad name of a class");
                        return Err(fault
                            .expected(format!("a name that begins with '{PREFIX}'"))
                            .in_line(at));
                    }
                    if definitions.classes.contains_key(*name) {
                        return Err(fault("the class is defined twice").in_line(at));
                    }
                    class = Some((name, at));
                }
                ["merged", name, "into", head] => {
                    if definitions.merged.insert((*name).to_string(), (*head).to_string()).is_some() {
                        return Err(fault("the element is merged twice").in_line(at));
                    }
                }
                _ if class.is_some() => body.push((at, line)),
                _ => return Err(fault("no class").expected("'class NAME'").in_line(at)),
            }
        }
        definitions.add(class, &body)?;
        Ok(definitions)
    }

    /// Adds the class whose program is in `body`.
    fn add(&mut self, class: Option<(&str, usize)>, body: &[(usize, &str)]) -> Result<(), AssemblyError> {
        let Some((name, line)) = class else { return Ok(()) };
        let program = Program::assemble(body.iter().map(|l| l.1)).map_err(|e| {
            // The error counts the lines of the body. A line that is missing would follow the last one.
            let last = body.last().map_or(line, |l| l.0);
            AssemblyError { line: body.get(e.line).map_or(last + 1, |l| l.0), ..e }
        })?;
        self.classes.insert(name.to_string(), program);
        Ok(())
    }
}

impl fmt::Display for Definitions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, head) in &self.merged {
            writeln!(f, "merged {name} into {head}")?;
        }
        for (name, program) in &self.classes {
            writeln!(f, "class {name}")?;
            program.disassemble().iter().try_for_each(|line| writeln!(f, "{line}"))?;
        }
        Ok(())
    }
}
