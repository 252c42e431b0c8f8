// SPDX-License-Identifier: MIT OR Apache-2.0
//! The traces that conf/ip-router-trace.click routes, generated from a seed.
use std::path::Path;

use castanet_io::{CaptureError, CaptureWriter, WriterOptions};

mod build;
mod cases;
mod hosts;
mod traffic;

pub use build::{Ipv4, arp, checksum, ether};

/// The seed of the traces in conf/traces.
pub const SEED: u64 = 2000;

/// A frame of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceFrame {
    /// Time of arrival in nanoseconds since 1970.
    pub time_ns: i64,
    /// The bytes captured.
    pub data: Vec<u8>,
    /// Length on the link, in bytes.
    pub original_len: u32,
}

/// The frames that arrive on the router's two interfaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traces {
    /// The frames by interface: eth0, eth1.
    pub interfaces: [Vec<TraceFrame>; 2],
}

/// The file name of an interface's trace.
pub fn file_name(interface: usize) -> String {
    format!("ip-router-eth{interface}.pcap")
}

/// Generates the traces of the IP router.
pub fn ip_router(seed: u64) -> Traces {
    let mut random = Random::new(seed);
    let mut ids = 0;
    let interfaces = [0, 1].map(|interface| {
        let frames = traffic::frames(interface, &mut random, &mut ids);
        // One frame every 500 us, plus a random delay that is shorter than the interval, so that frames keep
        // their order. eth1 starts half an interval after eth0.
        let start = 1_735_689_600_000_000_000 + 250_000 * i64::try_from(interface).unwrap_or(0);
        let times = (0i64..).map(|n| start + 500_000 * n);
        let timed = frames.into_iter().zip(times).map(|(wire, time)| {
            let captured = wire.captured.min(wire.data.len());
            TraceFrame {
                time_ns: time + i64::try_from(random.below(200_000)).unwrap_or(0),
                original_len: u32::try_from(wire.data.len()).unwrap_or(u32::MAX),
                data: wire.data.get(..captured).unwrap_or_default().to_vec(),
            }
        });
        timed.collect()
    });
    Traces { interfaces }
}

/// Writes the traces into a directory.
pub fn write(traces: &Traces, folder: &Path) -> Result<(), CaptureError> {
    for (interface, frames) in traces.interfaces.iter().enumerate() {
        let options = WriterOptions { snaplen: 0, ..WriterOptions::default() };
        let mut writer = CaptureWriter::create(folder.join(file_name(interface)), options)?;
        for frame in frames {
            writer.write(frame.time_ns, &frame.data, frame.original_len)?;
        }
        writer.close()?;
    }
    Ok(())
}

/// A frame on the link, and the number of bytes captured.
#[derive(Clone, Debug)]
struct Wire {
    data: Vec<u8>,
    captured: usize,
}

impl From<Vec<u8>> for Wire {
    fn from(data: Vec<u8>) -> Wire {
        Wire { data, captured: usize::MAX }
    }
}

/// SplitMix64: small, and the same on every platform.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a random number below `limit` (0 for a limit of 0).
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next() % limit).unwrap_or(0)
    }

    /// Picks a random item; the default value if there are none.
    pub(crate) fn pick<T: Copy + Default>(&mut self, items: &[T]) -> T {
        items.get(self.below(items.len())).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
