// SPDX-License-Identifier: MIT OR Apache-2.0
//! Suggested fixes for invalid arguments: first for mistakes around keywords, then those of the argument's
//! type.

use super::{ArgError, ArgKind, Parser};
use crate::value::ValueError;

impl Parser<'_> {
    /// Returns the help and the replacement for `KEYWORD=value`.
    pub(super) fn equals_sign(&self, text: &str) -> Option<(String, String)> {
        let (word, value) = text.split_once('=')?;
        let (word, value) = (word.trim(), value.trim());
        let known = self.specs.iter().any(|s| s.kind != ArgKind::Rest && s.name == word);
        let meant = format!("{word} {value}");
        known.then(|| (format!("a keyword and its value have a space between them: '{meant}'"), meant))
    }

    /// Adds a suggested fix to an error: for a missing comma before a keyword, for an equals sign after a
    /// keyword, or the fix that the type of the argument suggests.
    pub(super) fn mended(
        &self,
        error: ArgError,
        text: &str,
        type_name: &str,
        wrong: &ValueError,
    ) -> ArgError {
        let is_keyword = |word: &str| self.specs.iter().any(|s| s.kind != ArgKind::Rest && s.name == word);
        let more = text.split_whitespace().skip(1).find(|word| is_keyword(word));
        if let Some((before, at)) = more.and_then(|word| Some((text.split_once(word)?.0.trim_end(), word))) {
            let after = text.get(before.len()..).unwrap_or("").trim_start();
            let help = format!("a comma is missing before '{at}'");
            return ArgError { replacement: Some(format!("{before}, {after}")), ..error.help(help) };
        }
        if let Some((help, meant)) = self.equals_sign(text) {
            return ArgError { replacement: Some(meant), ..error.help(help) };
        }
        match wrong.mend() {
            ("", _) => error.help(format!("'{text}' is not a valid {type_name}")),
            (help, meant) => ArgError { replacement: meant.map(String::from), ..error.help(help) },
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::arg::{ArgCx, ArgKind, ArgSpec, Parser};
    use crate::names::Names;
    use crate::origin::Origin;

    const fn spec(name: &'static str, kind: ArgKind) -> ArgSpec {
        ArgSpec { name, kind, ..ArgSpec::EMPTY }
    }
    const SPECS: &[ArgSpec] = &[spec("DATA", ArgKind::Positional), spec("LIMIT", ArgKind::Keyword)];

    /// The message, the faulty text, the help and the replacement of each error.
    fn errors(config: &str) -> Vec<[String; 4]> {
        let names = Names::new();
        let mut p = Parser::new(config, SPECS, ArgCx { scope: "", names: &names, origin: Origin::Operator });
        let _ = p.optional::<String>(0);
        let _ = p.optional::<u32>(1);
        let shown = |e: crate::arg::ArgError| {
            let at = config.get(e.range).unwrap_or("").to_string();
            [e.message, at, e.help, e.replacement.unwrap_or_default()]
        };
        p.errors.into_iter().map(shown).collect()
    }

    #[test]
    fn mistakes_around_keywords() {
        for (config, want) in [
            (
                "LIMIT 5 DATA x",
                ["LIMIT: invalid number", "5 DATA x", "a comma is missing before 'DATA'", "5, DATA x"],
            ),
            (
                "LIMIT=5",
                [
                    "'LIMIT=5' is taken as DATA",
                    "LIMIT=5",
                    "a keyword and its value have a space between them: 'LIMIT 5'",
                    "LIMIT 5",
                ],
            ),
            ("LIMIT 5, LIMIT 6", ["LIMIT: given twice", "5", "the last value counts; remove the others", ""]),
            ("LIMTI 5", ["LIMTI: unknown argument", "LIMTI", "did you mean 'LIMIT'?", "LIMIT"]),
            (
                "LIMIT 5k",
                [
                    "LIMIT: invalid number",
                    "5k",
                    "write a whole number without a unit, such as 10 or 0x0a",
                    "",
                ],
            ),
        ] {
            assert_eq!(errors(config), [want.map(String::from)], "{config}");
        }
        assert_eq!(errors("x=5, LIMIT 5"), [[""; 4]; 0]);
    }
}
