// SPDX-License-Identifier: MIT OR Apache-2.0
//! IPRateMonitor: measures rates by address prefix.

#[cfg(test)]
mod tests;

use castanet_element::prelude::*;
use castanet_spec::anno;
use castanet_tables::Ewma;
use std::collections::HashMap;
use std::fmt::Write as _;

/// Measures packets or bytes per second by address prefix, with longer prefixes where there is more traffic.
///
/// Rates are kept first for prefixes of one byte. When the rate of a prefix reaches THRESH, rates are also kept for
/// prefixes that are one byte longer, up to whole addresses. Packets on input 0 are counted by source address, as
/// forward traffic; packets on input 1 by destination address, as reverse traffic. Each packet is counted with the
/// probability RATIO, and a counted packet stands for 1/RATIO packets. With ANNO, the forward and reverse rate
/// annotations of a packet are set to the rates of the longest stored prefix of its address. Prefixes take at most
/// MEMORY kilobytes, or 65536 if MEMORY is 0. When this memory is used up, prefixes without traffic are removed, at
/// most once a second.
///
/// # Ports
/// Input 0: IP packets, counted by source. Input 1 (optional): IP packets, counted by destination. Outputs 0
/// and 1: the same packets. Packets of input 1 leave by output 1, or by output 0 if there is no output 1.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true) -> MarkIPHeader -> IPRateMonitor(PACKETS, 1, 100) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "IPRateMonitor", offload = none, ports = "1-2/1-2", processing = "a/a", packets = "ip optional/same", workers = exclusive)]
#[class(takes_state = "the rates, when they count the same")]
#[class(build, lifecycle, handlers)]
pub struct IpRateMonitor {
    args: Args,
    cells: HashMap<Prefix4, Cell>,
    most: usize,
    random: Random,
    since: i64,
    /// The time at which prefixes were last removed, in nanoseconds.
    swept: i64,
    levels: Vec<AnnoLevel>,
    passes: bool,
}

/// Arguments of IPRateMonitor.
#[derive(Args)]
pub struct Args {
    /// The unit of the rates: PACKETS or BYTES.
    #[arg(name = "TYPE")]
    unit: Unit,
    /// The probability that a packet is counted.
    ratio: crate::trace::Probability,
    /// When the rate of a prefix reaches this value, the prefixes in it that are one byte longer are also measured.
    #[arg(handler = "r")]
    thresh: u32,
    /// The memory that prefixes may take, in kilobytes; 0 for 65536.
    #[arg(default = 0)]
    memory: u32,
    /// Whether to set the rate annotations of packets.
    #[arg(default = true)]
    anno: bool,
}

/// The unit of the rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Packets a second.
    Packets,
    /// Bytes a second.
    Bytes,
}

impl ArgValue for Unit {
    const TYPE: &'static str = "PACKETS or BYTES";
    const WORD: bool = true;
    fn parse(text: &str, _: &ArgCx<'_>) -> Result<Unit, ValueError> {
        match text {
            "PACKETS" => Ok(Unit::Packets),
            "BYTES" => Ok(Unit::Bytes),
            _ => Err(ValueError::not_one_of(text, &["PACKETS", "BYTES"])),
        }
    }
}

/// The first bytes of an address, and their number.
type Prefix4 = (u32, u8);

fn prefix(address: u32, bytes: u8) -> Prefix4 {
    let kept = u32::MAX.checked_shl(32 - 8 * u32::from(bytes.min(4))).unwrap_or(0);
    (address & kept, bytes)
}

/// The forward and the reverse rate of a prefix.
struct Cell {
    rates: [Ewma; 2],
    last: i64,
}

/// A prefix whose packets get its rates as annotations until a given time (handler `anno_level`).
struct AnnoLevel {
    prefix: Prefix4,
    /// The time, in nanoseconds, from which packets no longer get the rates of this prefix. `parse` stores the
    /// duration, and the handler adds the current time.
    until: i64,
}

impl ArgValue for AnnoLevel {
    const TYPE: &'static str = "address, level and seconds";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Self, ValueError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [address, level, seconds] = words[..] else {
            return Err("expected 'ADDRESS LEVEL SECONDS'".into());
        };
        let address = std::net::Ipv4Addr::parse(address, cx)?;
        let (level, seconds) = (u8::parse(level, cx)?, Nanos::parse(seconds, cx)?);
        if !(1..=4).contains(&level) {
            return Err("LEVEL must be 1 to 4".into());
        }
        Ok(AnnoLevel { prefix: prefix(address.into(), level), until: seconds.0 })
    }
}

/// Memory that a prefix takes, in bytes. The factor 2 allows for free slots in the hash table.
const EACH: usize = 2 * (size_of::<Prefix4>() + size_of::<Cell>());
/// Memory that prefixes may take at most, in kilobytes; also the default.
const MOST_KILOBYTES: usize = 65_536;
/// Largest number of [`AnnoLevel`]s that are stored.
const MOST_LEVELS: usize = 64;
/// The time without packets, in nanoseconds, after which a prefix counts as a prefix without traffic.
const IDLE: i64 = 1_000_000_000;

/// Returns the number of prefixes that fit into `kilobytes` of memory.
fn room(kilobytes: u32) -> usize {
    let kilobytes = match kilobytes as usize {
        0 => MOST_KILOBYTES,
        n => n.min(MOST_KILOBYTES),
    };
    kilobytes * 1024 / EACH
}

impl Build for IpRateMonitor {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(IpRateMonitor {
            cells: HashMap::new(),
            most: room(args.memory),
            random: cx.random(),
            since: 0,
            swept: 0,
            levels: Vec::new(),
            passes: cx.outputs < 2,
            args,
        })
    }
}

impl IpRateMonitor {
    fn rates(cell: &Cell, now: i64) -> [f64; 2] {
        let [forward, reverse] = &cell.rates;
        [forward.rate(now), reverse.rate(now)]
    }

    /// Counts a packet. Returns the forward and the reverse rate for the packet's annotations.
    fn measure(&mut self, address: u32, port: usize, amount: u64, now: i64) -> [f64; 2] {
        let mut found = [0.0; 2];
        let fresh = || match self.args.unit {
            Unit::Packets => Ewma::packets(),
            Unit::Bytes => Ewma::bytes(),
        };
        for bytes in 1..=4 {
            let key = prefix(address, bytes);
            if self.cells.len() >= self.most && !self.cells.contains_key(&key) {
                if now.saturating_sub(self.swept) >= IDLE {
                    self.swept = now;
                    self.cells.retain(|_, c| now.saturating_sub(c.last) < IDLE);
                }
                if self.cells.len() >= self.most {
                    break;
                }
            }
            let cell = self.cells.entry(key).or_insert_with(|| Cell { rates: [fresh(), fresh()], last: now });
            cell.last = now;
            if let Some(rate) = cell.rates.get_mut(port) {
                rate.update(amount, now);
            }
            found = IpRateMonitor::rates(cell, now);
            if found.iter().all(|r| *r < f64::from(self.args.thresh)) {
                break;
            }
        }
        found
    }

    /// Returns the forward and the reverse rate of the longest stored prefix of an address; zeros if no prefix of the
    /// address is stored.
    fn known(&self, address: u32, now: i64) -> [f64; 2] {
        let cells = (1..=4).rev().find_map(|n| self.cells.get(&prefix(address, n)));
        cells.map_or([0.0; 2], |c| IpRateMonitor::rates(c, now))
    }

    fn look_at(&mut self, port: usize, p: &mut Packet, cx: &mut Cx<'_>) {
        let Some(ip) = p.ip_header() else { return };
        let at = if port == 0 { 12 } else { 16 };
        let Some(address) = ip.get(at..).and_then(|a| a.first_chunk()).map(|a| u32::from_be_bytes(*a)) else {
            return;
        };
        let now = cx.recent();
        if self.since == 0 {
            self.since = now;
        }
        let ratio = self.args.ratio.0;
        let mut rates = if ratio >= 1.0 || self.random.unit() < ratio {
            let one = if self.args.unit == Unit::Packets { 1.0 } else { p.len() as f64 };
            // A counted packet also stands for the packets that are not counted, so multiply by 1/RATIO.
            self.measure(address, port, (one / ratio).round() as u64, now)
        } else {
            self.known(address, now)
        };
        if !self.levels.is_empty() {
            self.levels.retain(|l| l.until > now);
            let level = self.levels.iter().rev().find(|l| prefix(address, l.prefix.1) == l.prefix);
            if let Some(cell) = level.and_then(|l| self.cells.get(&l.prefix)) {
                rates = IpRateMonitor::rates(cell, now);
            }
        }
        if self.args.anno {
            let [forward, reverse] = rates.map(|r| r.clamp(0.0, f64::from(i32::MAX)) as u32);
            p.set_anno_u32(anno::FWD_RATE, forward);
            p.set_anno_u32(anno::REV_RATE, reverse);
        }
    }
}

impl Element for IpRateMonitor {
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        for p in batch.iter_mut() {
            self.look_at(port, p, cx);
        }
        cx.forward(if self.passes { 0 } else { port }, batch);
    }
    fn pull(&mut self, port: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        let before = into.len();
        cx.pull(port, max, into);
        for p in into.as_mut_slice().get_mut(before..).unwrap_or_default() {
            self.look_at(port, p, cx);
        }
    }
}

#[handlers]
impl IpRateMonitor {
    /// Milliseconds since the last reset, then a line `PREFIX FORWARD REVERSE` for each prefix.
    #[read]
    fn look(&self, cx: &mut Cx<'_>) -> Table {
        let now = cx.recent();
        let since = if self.since == 0 { now } else { self.since };
        let mut out = (now.saturating_sub(since) / 1_000_000).to_string();
        let mut all: Vec<_> = self.cells.iter().collect();
        all.sort_unstable_by_key(|c| *c.0);
        for ((address, bytes), cell) in all {
            let octets = address.to_be_bytes();
            let name: Vec<String> = octets.iter().take(usize::from(*bytes)).map(u8::to_string).collect();
            let [forward, reverse] = IpRateMonitor::rates(cell, now).map(|r| Rate(r).show());
            let _ = write!(out, "\n{}\t{forward}\t{reverse}", name.join("."));
        }
        Table(out)
    }
    /// The memory that prefixes take, in bytes.
    #[read(unit = "bytes")]
    fn mem(&self) -> usize {
        self.cells.len() * EACH
    }
    /// The memory that prefixes may take, in kilobytes; 0 for 65536.
    #[read(unit = "kilobytes")]
    fn memmax(&self) -> u32 {
        self.args.memory
    }
    #[write]
    fn set_memmax(&mut self, kilobytes: u32) {
        self.args.memory = kilobytes;
        self.most = room(kilobytes);
        if self.cells.len() > self.most {
            self.cells.clear();
        }
    }
    /// Takes `ADDRESS LEVEL SECONDS`: for SECONDS, packets whose address begins with the first LEVEL bytes of ADDRESS
    /// get the rates of that prefix as annotations.
    #[write]
    fn set_anno_level(&mut self, level: AnnoLevel, cx: &mut Cx<'_>) {
        if self.levels.len() >= MOST_LEVELS {
            self.levels.remove(0);
        }
        let until = cx.recent().saturating_add(level.until);
        self.levels.push(AnnoLevel { until, ..level });
    }
    /// Forgets all prefixes.
    #[write(button)]
    fn reset(&mut self, cx: &mut Cx<'_>) {
        self.cells.clear();
        self.since = cx.recent();
    }
}

impl Lifecycle for IpRateMonitor {
    fn take_state(&mut self, old: &mut Self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        // Start anew if the old rates have another unit, or if the old prefixes do not fit into the memory.
        if self.args.unit != old.args.unit || old.cells.len() > self.most {
            return Ok(());
        }
        std::mem::swap(&mut self.cells, &mut old.cells);
        std::mem::swap(&mut self.levels, &mut old.levels);
        (self.since, self.swept) = (old.since, old.swept);
        Ok(())
    }
}
