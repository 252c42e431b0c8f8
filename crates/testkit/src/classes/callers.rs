// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classes that stop the driver, keep workers busy, or call handlers.

use castanet_element::prelude::*;

/// Stops the driver after SECONDS. Simulated time jumps to that moment as soon as nothing else is left to do.
#[derive(Class)]
#[class(name = "Quit", ports = "0/0", processing = "a/a", packets = "/", workers = exclusive, lifecycle, effects(stops))]
pub struct Quit {
    args: QuitArgs,
}

/// Arguments of Quit.
#[derive(Args)]
pub struct QuitArgs {
    /// The number of seconds after which the driver is stopped.
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

/// Sets a timer every millisecond and keeps the worker busy. Counts how often the timer expired too early according to
/// `Cx::recent`. Stops the driver after N expiries.
#[derive(Class)]
#[class(name = "Busy", ports = "0/0", processing = "a/a", packets = "/", workers = exclusive, build, task, lifecycle, effects(stops))]
pub struct Busy {
    args: BusyArgs,
    /// The number of times that the timer expired too early.
    #[count(unit = "expiries")]
    early: Count,
    due: i64,
}

/// Arguments of Busy.
#[derive(Args)]
pub struct BusyArgs {
    /// The number of timer expiries after which the driver is stopped.
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

/// Whenever its timer expires, sets it to the earliest time, so that it expires again immediately.
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

/// Prints each text that is written to its handler, preceded by the simulated time in milliseconds since the start.
#[derive(Class)]
#[class(name = "Tell", ports = "0/0", processing = "a/a", packets = "/", workers = exclusive, handlers, effects(prints))]
pub struct Tell {}

#[handlers]
impl Tell {
    /// Prints a text.
    #[write]
    fn say(&mut self, text: &str, cx: &mut Cx<'_>) {
        let ms = (cx.now() - crate::START) / 1_000_000;
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
    /// The number of reads that have been answered.
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
