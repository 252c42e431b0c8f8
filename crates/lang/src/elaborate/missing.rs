// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classes that other routers have and Castanet does not. The error for such a class says that the class is
//! missing, instead of suggesting another name.

use crate::diagnostic::Diagnostic;
use crate::source::Span;

/// One class per line: the router it comes from, and its name. A test checks that Castanet has none of these classes.
const LIST: &str = include_str!("missing.txt");

/// The other router that has the class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MissingFrom {
    /// Click.
    Click,
    /// FastClick, and not Click.
    FastClick,
    /// The wifi, radio and grid packages of Click.
    Radio,
}

impl MissingFrom {
    /// The name of the router, in the form that follows the words `a class of` in a message.
    pub fn words(self) -> &'static str {
        match self {
            MissingFrom::Click => "Click",
            MissingFrom::FastClick => "FastClick",
            MissingFrom::Radio => "Click's radio packages",
        }
    }
}

/// Every class that Click or FastClick has and Castanet lacks, with the router that the class comes from.
pub fn missing_classes() -> impl Iterator<Item = (MissingFrom, &'static str)> {
    LIST.lines().filter_map(|line| {
        let (from, name) = line.split_once(' ')?;
        let from = match from {
            "click" => MissingFrom::Click,
            "fastclick" => MissingFrom::FastClick,
            "radio" => MissingFrom::Radio,
            _ => return None,
        };
        Some((from, name))
    })
}

/// The message for a class of Click or of a related project that Castanet does not have yet; `None` for any other name.
pub fn missing_class(name: &str) -> Option<String> {
    let (from, _) = missing_classes().find(|m| m.1 == name)?;
    Some(format!("'{name}' is a class of {} that Castanet does not have yet", from.words()))
}

/// The error for a class that does not exist. It says that the class is missing here, or suggests a similar
/// name.
pub fn unknown_class<'a>(name: &str, span: Span, near: impl FnOnce() -> Option<&'a str>) -> Diagnostic {
    if let Some(text) = missing_class(name) {
        return Diagnostic::error(text, span)
            .help("'castanet doc' lists the classes that exist")
            .keeps_flat();
    }
    let error = Diagnostic::error(format!("unknown element class '{name}'"), span).keeps_flat();
    match near() {
        Some(near) => error.did_you_mean(near),
        None => error.help("'castanet doc' lists the classes that exist; 'elementclass' defines others"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_in_order() {
        let key = |m: &(MissingFrom, &'static str)| (m.0, m.1.to_lowercase(), m.1);
        assert!(missing_classes().is_sorted_by(|a, b| key(a) < key(b)), "sorted, no name twice");
        let lines = LIST.lines().filter(|l| !l.starts_with('#')).count();
        assert_eq!(missing_classes().count(), lines, "every line has an origin and a name");
    }

    #[test]
    fn only_missing_classes_are_told_apart() {
        let text = missing_class("CheckIP6Header").unwrap_or_default();
        assert_eq!(text, "'CheckIP6Header' is a class of Click that Castanet does not have yet");
        assert_eq!(missing_class("CheckIP6Heade"), None);
        assert_eq!(missing_class("# SPDX-License-Identifier:"), None);
        assert_eq!(missing_class(""), None);
    }
}
