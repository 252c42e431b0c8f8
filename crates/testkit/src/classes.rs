// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classes for tests: a source of numbered packets, and elements that record, mark, select or loop packets by
//! number.

use castanet_classes::Registry;
use castanet_element::prelude::*;
use castanet_element::{action, element};

/// The annotation offsets of a packet's source, its number in that source, its trail, and its laps.
const SOURCE: usize = 18;
const NUMBER: usize = 36;
const TRAIL: usize = 40;
const LAPS: usize = 46;

pub fn add_to(r: &mut Registry) {
    for def in [
        element::<Numbers>(),
        action::<Stamp>(),
        element::<Sink>(),
        action::<Record>(),
        action::<Say>(),
        action::<Mark>(),
        action::<Edit>(),
        action::<Pick>(),
        action::<Copy>(),
        action::<Twice>(),
        action::<Lap>(),
        element::<Split>(),
        element::<Quit>(),
        element::<Tell>(),
        element::<Ask>(),
        element::<Busy>(),
        element::<Restless>(),
    ] {
        r.add(def);
    }
}

fn number(p: &Packet) -> u32 {
    p.anno_u32(NUMBER)
}

fn mix(n: u32) -> u32 {
    let n = (n ^ (n >> 15)).wrapping_mul(0x2c1b_3c6d);
    n ^ (n >> 12)
}

/// The 32-bit FNV-1a hash of some bytes.
fn hash(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |h, &b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193))
}

/// The record of a packet: `ID SOURCE TRAIL NUMBER` and its contents.
fn describe(id: u32, p: &Packet) -> String {
    let (trail, all) = (p.anno_u32(TRAIL), p.annotations());
    // Simulated time advances by 1 ns with each reading, and the number of readings may differ. So timestamps
    // are rounded down to 10 µs.
    let headers = (p.network_offset(), p.mac_offset(), p.timestamp() / 10_000 * 10_000);
    let sum = hash(p.data());
    format!(
        "{id} {} {trail:08x} {} len {} data {sum:08x} {} {headers:?}",
        p.anno_u8(SOURCE),
        number(p),
        p.len(),
        hash(&all)
    )
}

/// Emits TOTAL numbered packets, BURST per turn; sleeps while everything downstream is full.
#[derive(Class)]
#[class(name = "Numbers", ports = "0/1", processing = "a/h", packets = "/any", workers = exclusive, task, lifecycle)]
#[class(books(enters))]
pub struct Numbers {
    args: NumbersArgs,
    /// Packets emitted.
    #[count(unit = "packets")]
    count: Count,
    /// Packets left to emit in this turn.
    rest: u32,
    downstream: Signal,
}

/// Arguments of Numbers.
#[derive(Args)]
pub struct NumbersArgs {
    /// The source number that the packets carry.
    id: u8,
    /// The number of packets.
    total: u32,
    /// Packets per turn.
    #[arg(default = 1)]
    burst: u32,
    /// Stop the driver at the end.
    #[arg(keyword, default = false)]
    stop: bool,
}

impl Element for Numbers {
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        let left = self.args.total.saturating_sub(self.count.get() as u32);
        if left == 0 {
            if self.args.stop {
                cx.stop(1);
            }
            return Turn::Sleep;
        }
        if self.rest == 0 {
            let want = self.args.burst.min(left) as usize;
            match cx.room(&self.downstream, want, false) {
                Ok(room) => self.rest = room as u32,
                Err(turn) => return turn,
            }
        }
        for _ in 0..self.rest.min(cx.limit() as u32) {
            let n = self.count.get() as u32;
            let mut p = castanet_element::kit::packet(&vec![(n ^ 0x5a) as u8; 20 + (mix(n) % 60) as usize]);
            p.set_anno_u8(SOURCE, self.args.id);
            p.set_anno_u32(NUMBER, n);
            cx.entered(1);
            cx.emit(0, p);
            self.count.add(1);
            self.rest -= 1;
        }
        if self.rest > 0 { Turn::More } else { Turn::Again }
    }
}

impl Lifecycle for Numbers {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        self.downstream = cx.downstream(0);
        Ok(())
    }
}

/// Numbers the packets of another source in the same way as `Numbers` numbers its own packets.
#[derive(Class)]
#[class(name = "Stamp", ports = "1/1", processing = "a/a", packets = "any/same", workers = exclusive)]
pub struct Stamp {
    args: Id,
    next: u32,
}

impl Action for Stamp {
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        p.set_anno_u8(SOURCE, self.args.id as u8);
        p.set_anno_u32(NUMBER, self.next);
        self.next += 1;
        Verdict::Next
    }
}

/// Records packets and drops them.
#[derive(Class)]
#[class(name = "Sink", ports = "1/0", processing = "h/a", packets = "any/", workers = replicate, drops(Consumed), ends(Consumed))]
pub struct Sink {
    args: Id,
    /// Packets taken in.
    #[count(unit = "packets")]
    count: Count,
}

/// Arguments of classes that record.
#[derive(Args)]
pub struct Id {
    /// The number that records start with.
    id: u32,
}

impl Element for Sink {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.count.add(batch.len() as u64);
        for p in batch.iter() {
            cx.message(&describe(self.args.id, p));
        }
        cx.drop_all(batch, Reason::Consumed);
    }
}

/// Records packets and passes them on.
#[derive(Class)]
#[class(name = "Record", ports = "1/1", processing = "a/a", packets = "any/same", workers = replicate)]
pub struct Record {
    args: Id,
}

impl Action for Record {
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        cx.message(&describe(self.args.id, p));
        Verdict::Next
    }
}

/// Records packets and passes them on. Declares the recording as an outside effect.
#[derive(Class)]
#[class(name = "Say", ports = "1/1", processing = "a/a", packets = "any/same", workers = exclusive, effects(prints))]
pub struct Say {
    args: Id,
}

impl Action for Say {
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        cx.message(&format!("say {}", describe(self.args.id, p)));
        Verdict::Next
    }
}

/// Makes paths distinguishable: the trail annotation becomes a hash of the marks on the path.
#[derive(Class)]
#[class(name = "Mark", ports = "1/1", processing = "a/a", packets = "any/same", workers = replicate)]
pub struct Mark {
    args: Id,
}

impl Action for Mark {
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        let trail = p.anno_u32(TRAIL).wrapping_mul(0x0100_0193).wrapping_add(self.args.id + 1);
        p.set_anno_u32(TRAIL, trail);
        Verdict::Next
    }
}

/// Changes the first byte of a packet by an amount that depends on the packet's number.
#[derive(Class)]
#[class(name = "Edit", ports = "1/1", processing = "a/a", packets = "any/same", workers = replicate)]
pub struct Edit {
    args: Id,
}

impl Action for Edit {
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        let n = (number(p) as u8).wrapping_mul(3).wrapping_add(self.args.id as u8);
        if let Some(b) = p.data_mut().first_mut() {
            *b = b.wrapping_add(n);
        }
        Verdict::Next
    }
}

/// Sends packets whose number is REM modulo MOD to output 1.
#[derive(Class)]
#[class(name = "Pick", ports = "1/1-2", processing = "a/ah", packets = "any/same", workers = replicate)]
#[class(drops(OtherPaint))]
pub struct Pick {
    args: Modulo,
}

/// Arguments of Pick and Copy.
#[derive(Args)]
pub struct Modulo {
    /// Divisor.
    modulus: u32,
    /// Remainder.
    remainder: u32,
}

impl Modulo {
    fn has(&self, p: &Packet) -> bool {
        mix(number(p)).checked_rem(self.modulus) == Some(self.remainder)
    }
}

impl Action for Pick {
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        if self.args.has(p) { cx.out_or(1, Reason::OtherPaint) } else { Verdict::Next }
    }
}

/// Sends copies of packets whose number is REM modulo MOD to output 1.
#[derive(Class)]
#[class(name = "Copy", ports = "1/1-2", processing = "a/ah", packets = "any/same", workers = replicate, copies, books(makes))]
pub struct Copy {
    args: Modulo,
}

impl Action for Copy {
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        if self.args.has(p)
            && cx.has_output(1)
            && let Some(copy) = p.share()
        {
            cx.made(1);
            cx.emit(1, copy);
            return Verdict::Several;
        }
        Verdict::Next
    }
}

/// Sends packets whose number is REM modulo MOD twice, one copy after the other.
#[derive(Class)]
#[class(name = "Twice", ports = "1/1", processing = "h/h", packets = "any/same", workers = replicate, copies, books(makes))]
pub struct Twice {
    args: Modulo,
}

impl Action for Twice {
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        if self.args.has(p)
            && let Some(copy) = p.share()
        {
            cx.made(1);
            cx.behind(copy);
            return Verdict::Several;
        }
        Verdict::Next
    }
}

/// Sends a packet to output 0 N times, then to output 1. All Lap elements share one count in the packet.
#[derive(Class)]
#[class(name = "Lap", ports = "1/2", processing = "a/ah", packets = "any/same", workers = replicate)]
pub struct Lap {
    args: LapArgs,
}

/// Arguments of Lap.
#[derive(Args)]
pub struct LapArgs {
    /// The number of laps.
    n: u8,
}

impl Action for Lap {
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        let laps = p.anno_u8(LAPS).saturating_add(1);
        p.set_anno_u8(LAPS, laps);
        if laps > self.args.n { Verdict::Out(1) } else { Verdict::Next }
    }
}

/// Sends each packet to one of its outputs, which the packet's number determines.
#[derive(Class)]
#[class(name = "Split", ports = "1/1-", processing = "h/h", packets = "any/same", workers = replicate)]
pub struct Split {}

impl Element for Split {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let outputs = (0..).take_while(|&i| cx.has_output(i)).count().max(1);
        for p in batch.drain() {
            let port = (mix(number(&p)) >> 7) as usize % outputs;
            cx.emit(port, p);
        }
    }
}

/// Stops the driver after SECONDS; in simulated time, as soon as nothing else is left to do.
#[derive(Class)]
#[class(name = "Quit", ports = "0/0", processing = "a/a", packets = "/", workers = exclusive, lifecycle, effects(stops))]
pub struct Quit {
    args: QuitArgs,
}

/// Arguments of Quit.
#[derive(Args)]
pub struct QuitArgs {
    /// Seconds.
    seconds: Nanos,
}

impl Element for Quit {
    fn timer(&mut self, _: u16, cx: &mut Cx<'_>) {
        cx.stop(1);
    }
}

impl Lifecycle for Quit {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        let at = cx.now().saturating_add(self.args.seconds.0);
        cx.set_timer(0, at);
        Ok(())
    }
}

/// Sets a timer for every millisecond and keeps the worker busy. Counts how often the timer expired too early
/// according to `Cx::recent`. Stops the driver after N expiries.
#[derive(Class)]
#[class(name = "Busy", ports = "0/0", processing = "a/a", packets = "/", workers = exclusive, build, task, lifecycle, effects(stops))]
pub struct Busy {
    args: BusyArgs,
    /// Timers that expired too early.
    #[count(unit = "packets")]
    early: Count,
    due: i64,
}

/// Arguments of Busy.
#[derive(Args)]
pub struct BusyArgs {
    /// The number of timers.
    n: u32,
}

impl Build for Busy {
    fn build(args: BusyArgs, _: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(Busy { args, early: Count::default(), due: 0 })
    }
}

impl Element for Busy {
    fn task(&mut self, _: &mut Cx<'_>) -> Turn {
        let end = std::time::Instant::now() + std::time::Duration::from_micros(20);
        while std::time::Instant::now() < end {}
        Turn::Again
    }
    fn timer(&mut self, _: u16, cx: &mut Cx<'_>) {
        self.early.add(u64::from(cx.recent() < self.due));
        match self.args.n.checked_sub(1) {
            Some(n) => self.args.n = n,
            None => return cx.stop(1),
        }
        cx.schedule();
        self.due = cx.now() + 1_000_000;
        cx.set_timer(0, self.due);
    }
}

impl Lifecycle for Busy {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        let now = cx.now();
        cx.set_timer(0, now);
        Ok(())
    }
}

/// Whenever its timer expires, sets the timer to the current time.
#[derive(Class)]
#[class(name = "Restless", ports = "0/0", processing = "a/a", packets = "/", workers = exclusive, lifecycle)]
pub struct Restless {}

impl Element for Restless {
    fn timer(&mut self, _: u16, cx: &mut Cx<'_>) {
        cx.set_timer(0, i64::MIN);
    }
}

impl Lifecycle for Restless {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        cx.set_timer(0, i64::MIN);
        Ok(())
    }
}

/// Prints each text that is written to its handler, after the time in milliseconds since simulated time began.
#[derive(Class)]
#[class(name = "Tell", ports = "0/0", processing = "a/a", packets = "/", workers = exclusive, handlers, effects(prints))]
pub struct Tell {}

#[handlers]
impl Tell {
    /// Prints a text.
    #[write]
    fn say(&mut self, text: &str, cx: &mut Cx<'_>) {
        let ms = (cx.now() - super::START) / 1_000_000;
        cx.message(&format!("{ms} {text}"));
    }
}

impl Element for Tell {}

/// Reads a handler every millisecond, N times, then stops the driver. Has a task of its own, so that it is assigned
/// to a worker.
#[derive(Class)]
#[class(name = "Ask", ports = "0/1", processing = "a/h", packets = "/any", workers = exclusive, task, lifecycle)]
#[class(effects(calls, stops))]
pub struct Ask {
    args: AskArgs,
    /// Answers so far.
    #[count(unit = "packets")]
    answers: Count,
}

/// Arguments of Ask.
#[derive(Args)]
pub struct AskArgs {
    /// The handler to read.
    handler: HandlerRef,
    /// The number of reads.
    n: u32,
}

impl Element for Ask {
    fn timer(&mut self, _: u16, cx: &mut Cx<'_>) {
        let element = self.args.handler.element.and_then(|e| u32::try_from(e).ok());
        match cx.read_handler(element, &self.args.handler.handler, "") {
            Ok(v) => cx.message(&format!("answer {v}")),
            Err(e) => cx.message(&format!("error {e}")),
        }
        self.answers.add(1);
        if self.answers.get() == u64::from(self.args.n) {
            return cx.stop(1);
        }
        let at = cx.now() + 1_000_000;
        cx.set_timer(0, at);
    }
}

impl Lifecycle for Ask {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        let at = cx.now() + 1_000_000;
        cx.set_timer(0, at);
        Ok(())
    }
}
