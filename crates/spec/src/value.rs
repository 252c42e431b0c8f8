// SPDX-License-Identifier: MIT OR Apache-2.0
//! Argument types: how the text of one argument becomes a value (language reference 1.10).

mod address;
mod measure;
mod number;
mod reference;

pub use address::{IpList, Prefix};
pub use measure::{Counted, Rate, Real, Seconds, Table, twelve_digits};
pub use number::{Bandwidth, Capacity, Data, Nanos, Word};
pub use reference::{ElementRef, Filename, HandlerRef};

use crate::arg::ArgCx;
use crate::handler::ValueKind;

/// A type that arguments can have.
pub trait ArgValue: Sized {
    /// The name in the manual: `ip-prefix`.
    const TYPE: &'static str;
    /// Reads the text of one argument, trimmed and free of comments. The error is what follows `NAME: `; it starts with
    /// a NUL byte when the name is not to be put before it.
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Self, String>;
}

/// A value as handlers show it.
pub trait Show {
    /// What it is.
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
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Self, String> {
        T::parse(text, cx).map(Some)
    }
}

#[cfg(test)]
mod tests;
