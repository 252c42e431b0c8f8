// SPDX-License-Identifier: MIT OR Apache-2.0
//! Suggests fixes for invalid arguments. A fix for a mistake around a keyword takes precedence over the fix that the
//! argument's type suggests.

use super::{ArgError, ArgKind, Parser};
use crate::value::ValueError;
use castanet_lang::args as text;

impl Parser<'_> {
    /// Returns the help text and the replacement for a text `KEYWORD=value`; none for any other text.
    pub(super) fn equals_sign(&self, text: &str) -> Option<(String, String)> {
        let (word, value) = text.split_once('=')?;
        let (word, value) = (word.trim(), value.trim());
        let known = self.specs.iter().any(|s| s.kind != ArgKind::Rest && s.name == word);
        let meant = format!("{word} {value}");
        known.then(|| (format!("a keyword and its value have a space between them: '{meant}'"), meant))
    }

    /// Returns the help text and the replacement for a value that contains a keyword without a comma before it; none
    /// for any other value.
    pub(super) fn missing_comma(&self, value: &str) -> Option<(String, String)> {
        let is_keyword = |word: &str| self.specs.iter().any(|s| s.kind != ArgKind::Rest && s.name == word);
        let words = text::words(value);
        let at = words.into_iter().skip(1).find(|r| value.get(r.clone()).is_some_and(is_keyword))?;
        let (before, after) = (value.get(..at.start)?.trim_end(), value.get(at.start..)?);
        let help = format!("a comma is missing before '{}'", value.get(at)?);
        Some((help, format!("{before}, {after}")))
    }

    /// Adds a suggested fix to an error. If a comma is missing before a keyword, or an equals sign follows a keyword,
    /// the fix corrects that mistake. Otherwise the type of the argument suggests the fix.
    pub(super) fn mended(
        &self,
        error: ArgError,
        text: &str,
        type_name: &str,
        wrong: &ValueError,
    ) -> ArgError {
        if let Some((help, meant)) = self.missing_comma(text).or_else(|| self.equals_sign(text)) {
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
            (
                "a LIMIT 5",
                ["a: unknown argument", "a LIMIT 5", "a comma is missing before 'LIMIT'", "a, LIMIT 5"],
            ),
            (
                "5 LIMIT 5",
                [
                    "'5 LIMIT 5' is taken as DATA",
                    "5 LIMIT 5",
                    "a comma is missing before 'LIMIT'",
                    "5, LIMIT 5",
                ],
            ),
            ("a b", ["a: unknown argument", "a", "the arguments are DATA, LIMIT", ""]),
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
        for right in ["x=5, LIMIT 5", "\"a LIMIT\", LIMIT 5"] {
            assert_eq!(errors(right), [[""; 4]; 0], "{right}");
        }
    }
}
