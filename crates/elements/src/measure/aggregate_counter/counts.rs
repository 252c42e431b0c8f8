// SPDX-License-Identifier: MIT OR Apache-2.0
//! One count for each number (aggregate), and the files that the counts are written to.

use crate::measure::small_keys::SmallKeys;
use castanet_element::ElementError;
use castanet_spec::value::twelve_digits;
use std::collections::HashMap;
use std::io::{self, BufWriter, Write};
use std::net::Ipv4Addr;

/// At most this many distinct numbers are counted, which limits the memory to a few hundred megabytes.
pub const MOST: usize = 1 << 22;

/// The format of a file with counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `NUMBER COUNT`.
    Text,
    /// `ADDRESS COUNT`.
    Addresses,
    /// Each number and its count, four bytes each, after a text header.
    Binary,
    /// `COUNT SHARE`: a count, and the share of the counted numbers that have this count.
    Shares,
}

/// One count for each number. Only counts above zero are kept.
#[derive(Debug, Default)]
pub struct Counts {
    map: HashMap<u32, u64, SmallKeys>,
    total: u64,
}

impl Counts {
    /// Returns how many numbers have a count above zero.
    pub fn len(&self) -> usize {
        self.map.len()
    }
    /// The sum of all counts.
    pub fn total(&self) -> u64 {
        self.total
    }
    /// Adds `by` to the count of a number, and returns true. If the number has no count, creates one. But if `known` is
    /// true, or if `MOST` numbers already have counts, creates no count and returns false.
    #[inline]
    pub fn add(&mut self, number: u32, by: u64, known: bool) -> bool {
        if let Some(n) = self.map.get_mut(&number) {
            *n = n.saturating_add(by);
        } else {
            if known || self.map.len() >= MOST {
                return false;
            }
            if by > 0 {
                self.map.insert(number, by);
            }
        }
        self.total = self.total.saturating_add(by);
        true
    }
    /// Moves all counts of another table to this one. A count of a new number is added even if the table is full.
    pub fn take_from(&mut self, other: &mut Counts) {
        if self.map.is_empty() {
            self.map = std::mem::take(&mut other.map);
        }
        for (number, n) in other.map.drain() {
            let count = self.map.entry(number).or_default();
            *count = count.saturating_add(n);
        }
        self.total = self.total.saturating_add(std::mem::take(&mut other.total));
    }
    /// Removes all counts.
    pub fn clear(&mut self) {
        *self = Counts::default();
    }
    /// Replaces the counts by counts of counts. The keys of the new table are the old counts, and the value of each key
    /// is how many numbers had this old count.
    pub fn reaggregate(&mut self) {
        let mut new = Counts::default();
        for n in self.map.values() {
            new.add(u32::try_from(*n).unwrap_or(u32::MAX), 1, false);
        }
        *self = new;
    }
    /// Returns all pairs of number and count, sorted by number.
    fn sorted(&self) -> Vec<(u32, u64)> {
        let mut all: Vec<_> = self.map.iter().map(|(a, n)| (*a, *n)).collect();
        all.sort_unstable();
        all
    }

    /// Writes all counts to a file; `-` is standard output. The name must come from a `Filename` argument.
    #[allow(clippy::disallowed_methods)]
    pub fn write(&self, name: &str, banner: &str, format: Format) -> Result<(), ElementError> {
        let done = match name {
            "-" => self.write_to(&mut io::stdout().lock(), banner, format),
            _ => std::fs::File::create(name).and_then(|f| {
                let mut out = BufWriter::new(f);
                self.write_to(&mut out, banner, format)?;
                out.flush()
            }),
        };
        done.map_err(ElementError::system(name))
    }
    /// Writes all counts to `out`.
    pub fn write_to(&self, out: &mut impl Write, banner: &str, format: Format) -> io::Result<()> {
        writeln!(out, "!IPAggregate 1.0")?;
        if !banner.is_empty() {
            out.write_all(&castanet_lang::bytes::line(banner.trim_end_matches('\n')))?;
        }
        writeln!(out, "!num_nonzero {}", self.map.len())?;
        match format {
            Format::Text => {
                for (number, count) in self.sorted() {
                    writeln!(out, "{number} {count}")?;
                }
            }
            Format::Addresses => {
                writeln!(out, "!ip")?;
                for (number, count) in self.sorted() {
                    writeln!(out, "{} {count}", Ipv4Addr::from(number))?;
                }
            }
            Format::Binary => {
                writeln!(out, "!packed_be")?;
                for (number, count) in self.sorted() {
                    out.write_all(&number.to_be_bytes())?;
                    // A count too large for four bytes is written as the largest value.
                    out.write_all(&u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes())?;
                }
            }
            Format::Shares => {
                let mut counts: Vec<u64> = self.map.values().copied().collect();
                counts.sort_unstable();
                for same in counts.chunk_by(|a, b| a == b) {
                    let share = twelve_digits(same.len() as f64 / counts.len() as f64);
                    writeln!(out, "{} {share}", same.first().unwrap_or(&0))?;
                }
            }
        }
        Ok(())
    }
}
