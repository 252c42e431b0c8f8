// SPDX-License-Identifier: MIT OR Apache-2.0
//! The classes that the measurement needs: one that counts packets and time, and one that does an adjustable amount of
//! work under a lock.

use castanet_element::prelude::*;
use rustix::time::{ClockId, clock_gettime};

/// Counts packets, and reads the clocks of the thread that processes them.
///
/// # Ports
/// One input, one output.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 5, STOP true) -> PacketMeter -> Discard;
/// ```
#[derive(Class)]
#[class(name = "PacketMeter", ports = "1/1", processing = "a/a", packets = "any/same", workers = exclusive, handlers)]
pub struct PacketMeter {
    args: MeterArgs,
    /// Packets so far.
    #[count(unit = "packets", hidden)]
    count: Count,
}

/// Arguments of PacketMeter.
#[derive(Args)]
pub struct MeterArgs {
    /// Whether packets count as delivered here; if not, the element only reads the clocks.
    #[arg(default = true)]
    delivers: bool,
}

#[handlers]
impl PacketMeter {
    /// The ID of the worker's thread, packets delivered, and nanoseconds of real time, processor time, and waiting for
    /// a processor.
    #[read]
    fn sample(&self) -> String {
        let packets = if self.args.delivers { self.count.show().to_string() } else { "0".to_string() };
        let [real, processor] = [ClockId::Monotonic, ClockId::ThreadCPUTime].map(nanoseconds);
        // The second field is the time that the thread waited in the run queue. Some kernels lack this file.
        let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let waited = statistics.split_whitespace().nth(1).unwrap_or("0");
        let thread = format!("{:?}", std::thread::current().id());
        let thread: String = thread.chars().filter(char::is_ascii_digit).collect();
        format!("{thread} {packets} {real} {processor} {waited}")
    }
}

fn nanoseconds(clock: ClockId) -> i64 {
    let t = clock_gettime(clock);
    t.tv_sec.wrapping_mul(1_000_000_000).wrapping_add(t.tv_nsec)
}

impl Action for PacketMeter {
    fn action(&mut self, _: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        self.count.add(1);
        Verdict::Next
    }
}

/// Does the same amount of computation for each packet. Workers that share the element run it under a lock.
///
/// # Ports
/// One input, one output.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 5, STOP true) -> LockedWork(20) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "LockedWork", ports = "1/1", processing = "a/a", packets = "any/same", workers = exclusive)]
pub struct LockedWork {
    args: WorkArgs,
    state: u64,
}

/// Arguments of LockedWork.
#[derive(Args)]
pub struct WorkArgs {
    /// The number of multiplications per packet. Each needs the result of the one before.
    steps: u32,
}

impl Action for LockedWork {
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        let byte = p.data().first().copied().unwrap_or_default();
        for _ in 0..self.args.steps {
            self.state = self.state.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(byte);
        }
        // The result is used, so that the compiler cannot leave the computation out.
        std::hint::black_box(self.state);
        Verdict::Next
    }
}
