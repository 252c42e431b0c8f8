// SPDX-License-Identifier: MIT OR Apache-2.0
//! Summary dumps of IP packets: a line or a binary record per packet, with the fields that the header lists.
//!
//! - [`FIELDS`] is the table of fields.
//! - [`View`] reads fields of a packet; [`SummaryRecords`] formats these fields, and [`SummaryWriter`] writes them.
//! - [`SummaryReader`] reads fields into a [`Draft`], from which a packet is made.

mod draft;
mod field;
mod field_type;
mod flow;
mod md5;
mod options;
mod reader;
mod tcpdump;
#[cfg(test)]
mod tests;
mod view;
mod words;
mod writer;

pub use draft::{Defaults, Draft, Made, Making};
pub use field::{FIELDS, Field};
pub use field_type::{FieldType, Value};
pub use flow::Flow;
pub use options::TcpOptions;
pub use reader::{Item, SummaryReader};
pub use view::{Bad, Ip, View};
pub use words::{print_time, protocol};
pub use writer::{SummaryHeader, SummaryRecords, SummaryWriter};

/// The newest supported version of the format, which is also the version written.
const VERSION: (u32, u32) = (1, 3);

/// Formats a time as the C function `ctime` does, but in UTC: `Sat Nov 21 10:13:12 2026`.
fn calendar(ns: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let seconds = ns.div_euclid(1_000_000_000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Count years from March, so that a leap day is the last day of its year. 400 years have 146,097 days.
    let since = days + 719_468;
    let (era, day) = (since.div_euclid(146_097), since.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let date = of_year - (153 * month + 2) / 5 + 1;
    let number = (month + 2) % 12;
    let year = era * 400 + year + i64::from(number < 2);
    let name = |list: &[&'static str], i: i64| usize::try_from(i).ok().and_then(|i| list.get(i).copied());
    format!(
        "{} {} {date:2} {:02}:{:02}:{:02} {year}",
        name(&DAYS, days.rem_euclid(7)).unwrap_or(""),
        name(&MONTHS, number).unwrap_or(""),
        second / 3600,
        second / 60 % 60,
        second % 60,
    )
}
