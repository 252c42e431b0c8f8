// SPDX-License-Identifier: MIT OR Apache-2.0
//! Argument types: how the text of one argument becomes a value (language reference 1.10).

mod address;
mod measure;
mod mend;
mod number;
mod reference;

pub use address::{IpList, Prefix};
pub use measure::{Counted, Elapsed, Rate, Real, Seconds, Table, Timestamp, twelve_digits};
pub use number::{Bandwidth, Capacity, Data, Interval, Nanos, Word};
pub use reference::{ElementRef, Filename, HandlerRef};

use crate::arg::ArgCx;
use crate::handler::ValueKind;

/// The reason a text is not a valid value of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueError {
    text: String,
    whole: bool,
    help: String,
    replacement: Option<String>,
}

impl ValueError {
    /// An error whose text is complete without the name of the argument.
    pub fn whole(text: impl Into<String>) -> ValueError {
        ValueError { whole: true, ..text.into().into() }
    }
    /// The error for a number outside `low..=high`. The message names the limit that the number violates.
    pub fn out_of_range<N: PartialOrd + std::fmt::Display>(n: N, low: N, high: N) -> ValueError {
        let bound = if n < low { &low } else { &high };
        let text = format!("out of range, bound {bound}");
        ValueError::from(text).help(format!("write a number from {low} to {high}"))
    }
    /// The error for a text that is none of the allowed words. Suggests the nearest word, even if only the case
    /// differs.
    pub fn not_one_of(text: &str, words: &[&str]) -> ValueError {
        let list = match words {
            [all @ .., last] if !all.is_empty() => format!("{} or {last}", all.join(", ")),
            _ => words.concat(),
        };
        let error = ValueError::from(format!("expected {list}"));
        let all = || words.iter().copied();
        let same = all().find(|word| word.eq_ignore_ascii_case(text));
        let upper = text.to_ascii_uppercase();
        let near = || castanet_lang::nearest(text, all()).or_else(|| castanet_lang::nearest(&upper, all()));
        match same.or_else(near) {
            Some(near) => error.did_you_mean(near),
            None => error.help(format!("'{text}' is none of these")),
        }
    }
    /// Adds a help text that says how to fix the value.
    pub fn help(self, text: impl Into<String>) -> ValueError {
        ValueError { help: text.into(), ..self }
    }
    /// Adds the text that was probably meant, without changing the help text.
    pub fn replacement(self, text: impl Into<String>) -> ValueError {
        ValueError { replacement: Some(text.into()), ..self }
    }
    /// Suggests another text.
    pub fn did_you_mean(self, text: impl Into<String>) -> ValueError {
        let text = text.into();
        let help = format!("did you mean '{text}'?");
        self.replacement(text).help(help)
    }
    /// Returns the help text, and the text that was probably meant, if that is known.
    pub fn mend(&self) -> (&str, Option<&str>) {
        (&self.help, self.replacement.as_deref())
    }
    /// Returns the same error with a complete text, which names the argument `name`.
    pub fn under(self, name: &str) -> ValueError {
        ValueError { text: self.about(name), whole: true, ..self }
    }
    /// The message about the argument `name`: `NAME: text`, or only the text if it was made by [`ValueError::whole`].
    pub fn about(&self, name: &str) -> String {
        if self.whole { self.text.clone() } else { format!("{name}: {}", self.text) }
    }
}

impl std::fmt::Display for ValueError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for ValueError {}

impl From<String> for ValueError {
    fn from(text: String) -> ValueError {
        ValueError { text, whole: false, help: String::new(), replacement: None }
    }
}

impl From<&str> for ValueError {
    fn from(text: &str) -> ValueError {
        text.to_string().into()
    }
}

impl From<ValueError> for String {
    fn from(e: ValueError) -> String {
        e.text
    }
}

/// A type that arguments can have.
pub trait ArgValue: Sized {
    /// The name in the manual, such as `ip-prefix`.
    const TYPE: &'static str;
    /// Whether a value may be quoted as a whole. Words and patterns may, numbers and addresses may not. The
    /// quotes are removed before [`ArgValue::parse`].
    const WORD: bool = false;
    /// Whether a value may be any text. A keyword of the class inside such a value is probably a mistake.
    const TEXT: bool = false;
    /// The name that messages use for one of several arguments of this type, such as `input spec`. The number of the
    /// argument follows, from 0. Empty if messages do not number such arguments.
    const NUMBERED: &'static str = "";
    /// Reads the text of one argument, trimmed and free of comments.
    ///
    /// # Errors
    /// When the text is not a valid value of this type.
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Self, ValueError>;
    /// Returns a warning about a valid text. If the text is one of several values of a rest argument, `nth` is its
    /// number, from 1. Otherwise `nth` is none, and the message gets the name of the argument.
    fn doubt(_text: &str, _nth: Option<usize>) -> Option<ValueError> {
        None
    }
}

/// A value as handlers show it.
pub trait Show {
    /// The kind of the value.
    const KIND: ValueKind = ValueKind::Text;
    /// The text of the value, without a line end.
    fn show(&self) -> String;
}

macro_rules! show_by_display {
    ($($kind:ident: $($t:ty),+;)+) => { $($(impl Show for $t {
        const KIND: ValueKind = ValueKind::$kind;
        fn show(&self) -> String { self.to_string() }
    })+)+ };
}
show_by_display! {
    Flag: bool;
    Gauge: u8, u16, u32, u64, usize, i32, i64, f64;
    Text: str, String;
    Address: std::net::Ipv4Addr, std::net::Ipv6Addr;
}

impl<T: Show + ?Sized> Show for &T {
    const KIND: ValueKind = T::KIND;
    fn show(&self) -> String {
        (*self).show()
    }
}

impl<T: Show> Show for Option<T> {
    const KIND: ValueKind = T::KIND;
    fn show(&self) -> String {
        self.as_ref().map_or(String::new(), Show::show)
    }
}

impl<T: ArgValue> ArgValue for Option<T> {
    const TYPE: &'static str = T::TYPE;
    const WORD: bool = T::WORD;
    const NUMBERED: &'static str = T::NUMBERED;
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Self, ValueError> {
        T::parse(text, cx).map(Some)
    }
    fn doubt(text: &str, nth: Option<usize>) -> Option<ValueError> {
        T::doubt(text, nth)
    }
}

#[cfg(test)]
mod tests;
