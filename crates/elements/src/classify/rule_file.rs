// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads rules of IPFilter from files. An argument `file NAME` names such a file.

use super::patterns::Written;
use castanet_element::error::reason;
use castanet_element::prelude::*;
use castanet_lang::args as text;
use std::fs::File;
use std::io::Read;

/// The maximum length of a file of rules, in bytes.
const MOST_BYTES: u64 = 1 << 20;
/// The maximum number of rules of one element.
const MOST_RULES: usize = 100_000;

/// Why the rules of a file cannot be used. A place is `FILE:LINE`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum RuleFileError {
    /// The name is not valid, or the configuration may not name the file.
    #[error("file: {0}")]
    Name(ValueError),
    /// The file of this name cannot be read.
    #[error("{0}: {1}")]
    File(String, BadFile),
    /// A rule names another file.
    #[error("{0}: a file of rules cannot name another file")]
    Nested(String),
    /// The element has too many rules, from this place on.
    #[error("{0}: more than {MOST_RULES} rules")]
    TooMany(String),
}

/// Why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadFile {
    /// The error of the system.
    #[error("{0}")]
    System(String),
    /// The file is a directory, a pipe or a device.
    #[error("not a regular file")]
    NotRegular,
    /// It is too long.
    #[error("longer than {MOST_BYTES} bytes")]
    TooLong,
    /// Its bytes are not UTF-8.
    #[error("not a text file in UTF-8")]
    NotText,
}

/// A rule, and the index of the argument that it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) text: String,
    argument: usize,
    /// `FILE:LINE` if the rule comes from a file.
    line: Option<String>,
}

impl Rule {
    pub(super) fn written(&self) -> Written {
        Written { argument: self.argument, line: self.line.clone() }
    }
}

/// Returns NAME if the rule is `file NAME`.
pub(super) fn file_name(rule: &str) -> Option<&str> {
    let name = rule.trim().strip_prefix("file")?;
    name.starts_with(char::is_whitespace).then(|| name.trim())
}

/// Returns the rules of all arguments. An argument `file NAME` stands for the rules in that file.
pub(super) fn rules<'a>(
    arguments: impl Iterator<Item = &'a str>,
    cx: &ArgCx<'_>,
) -> Result<Vec<Rule>, (usize, RuleFileError)> {
    let mut rules = Vec::new();
    for (argument, rule) in arguments.enumerate() {
        let Some(name) = file_name(rule) else {
            rules.push(Rule { text: rule.to_string(), argument, line: None });
            continue;
        };
        let mut add = || {
            let name = Filename::of_file(name, cx).map_err(RuleFileError::Name)?.0;
            let text = read(&name)?;
            of_file(&name, &text, argument, &mut rules)
        };
        add().map_err(|error| (argument, error))?;
    }
    Ok(rules)
}

/// Reads a file of rules. The name must come from a `Filename`, which checks the rights of the configuration.
#[allow(clippy::disallowed_methods)]
fn read(name: &str) -> Result<String, RuleFileError> {
    let wrong = |what| RuleFileError::File(name.to_string(), what);
    let system = |e: std::io::Error| wrong(BadFile::System(reason(&e)));
    // A pipe or a device could block the router, or have no end.
    if !std::fs::metadata(name).map_err(system)?.is_file() {
        return Err(wrong(BadFile::NotRegular));
    }
    let mut bytes = Vec::new();
    let file = File::open(name).map_err(system)?;
    file.take(MOST_BYTES.saturating_add(1)).read_to_end(&mut bytes).map_err(system)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(wrong(BadFile::TooLong));
    }
    String::from_utf8(bytes).map_err(|_| wrong(BadFile::NotText))
}

/// Adds the rules of a file: one a line. Comments and empty lines are left out.
fn of_file(name: &str, content: &str, argument: usize, rules: &mut Vec<Rule>) -> Result<(), RuleFileError> {
    for (number, line) in content.lines().enumerate() {
        let rule = line.split("//").next().unwrap_or("").trim();
        if rule.is_empty() || rule.starts_with('#') {
            continue;
        }
        let place = format!("{name}:{}", number.saturating_add(1));
        // A rule may be quoted, as an argument may.
        let rule = if rule.starts_with(['"', '\'']) { text::unquote(rule) } else { rule.to_string() };
        if file_name(&rule).is_some() {
            return Err(RuleFileError::Nested(place));
        }
        if rules.len() >= MOST_RULES {
            return Err(RuleFileError::TooMany(place));
        }
        rules.push(Rule { text: rule, argument, line: Some(place) });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn lines_of_a_file() {
        let mut rules = Vec::new();
        let text = "# comment\n\nallow tcp // web\r\n  // deny all\n  \"deny all\"\n0 src 1.2.3.4";
        of_file("f", text, 3, &mut rules).unwrap();
        let got: Vec<_> = rules.iter().map(|r| (r.text.as_str(), r.line.as_deref(), r.argument)).collect();
        assert_eq!(
            got,
            [("allow tcp", Some("f:3"), 3), ("deny all", Some("f:5"), 3), ("0 src 1.2.3.4", Some("f:6"), 3)]
        );
    }

    #[test]
    fn limits_and_nesting() {
        let of = |text: &str| of_file("f", text, 0, &mut Vec::new()).err().map(|e| e.to_string());
        assert_eq!(of("allow all\nfile g"), Some("f:2: a file of rules cannot name another file".into()));
        assert_eq!(of("filer g"), None);
        assert_eq!(of(&"deny all\n".repeat(MOST_RULES)), None);
        let most = "deny all\n".repeat(MOST_RULES + 1);
        assert_eq!(of(&most), Some("f:100001: more than 100000 rules".into()));
        assert_eq!(file_name("file  a b "), Some("a b"));
        assert_eq!((file_name("file"), file_name("files x"), file_name("allow file")), (None, None, None));
    }

    #[test]
    fn only_those_who_may_name_files_get_rules_from_them() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rules");
        std::fs::write(&path, "allow all\n").unwrap();
        let rule = format!("file {}", path.display());
        let names = Names::new();
        for (origin, allowed) in [
            (Origin::Operator, true),
            (Origin::User, true),
            // A client with the token may name only files in the operator's folder, and this test sets no folder.
            (Origin::Authorised, false),
            (Origin::Anonymous, false),
            (Origin::Network, false),
        ] {
            let got =
                rules(["deny src 1.2.3.4", &rule].into_iter(), &ArgCx { scope: "", names: &names, origin });
            assert_eq!(got.as_ref().map_or_else(|e| e.0, Vec::len), if allowed { 2 } else { 1 }, "{got:?}");
            assert_eq!(got.is_ok(), allowed, "{origin:?}");
        }
    }

    #[test]
    fn what_is_no_text_of_at_most_a_mebibyte_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rules");
        let name = path.to_str().unwrap();
        let refused = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            read(name).err().map(|e| e.to_string().trim_start_matches(name).to_string())
        };
        assert_eq!(refused(&[b' '; 1 << 20]), None);
        assert_eq!(refused(&[b' '; (1 << 20) + 1]), Some(": longer than 1048576 bytes".into()));
        assert_eq!(refused(b"\xff"), Some(": not a text file in UTF-8".into()));
        assert!(
            read(dir.path().to_str().unwrap()).unwrap_err().to_string().ends_with(": not a regular file")
        );
        assert!(read("/nonexistent").unwrap_err().to_string().ends_with(": No such file or directory"));
    }
}
