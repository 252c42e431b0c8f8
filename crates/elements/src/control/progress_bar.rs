// SPDX-License-Identifier: MIT OR Apache-2.0
//! ProgressBar: shows the progress of a long run.

use castanet_element::prelude::*;
use std::io::{IsTerminal as _, Write};

/// Draws a bar on standard error that shows the progress of a run.
///
/// The position is the value of POSHANDLER, and the end position is the value of SIZEHANDLER or FIXED_SIZE. If several
/// handlers are given, separated by spaces, their values are added. The line is redrawn at intervals of UPDATE. It also
/// shows the percentage, the position, and the remaining time. When the handler `mark_done` or `mark_stopped` is
/// written, or the router stops, a last line shows the time that was needed. If standard error is not a terminal, the
/// bar is drawn only if CHECK_STDERR is false.
///
/// # Ports
/// None.
///
/// # Example
/// ```click
/// f :: FromDump(conf/traces/ip-router-eth0.pcap, STOP true) -> Discard;
/// ProgressBar(f.filepos, f.filesize, BANNER "eth0");
/// ```
#[derive(Class)]
#[class(name = "ProgressBar", ports = "0/0", processing = "a/a", packets = "/", workers = exclusive)]
#[class(build, lifecycle, handlers, effects(prints, calls), takes_state = "when it began, what was marked")]
pub struct ProgressBar {
    args: Args,
    /// The time when the run began, in nanoseconds.
    start: i64,
    state: State,
    /// Whether the bar is drawn: false if the check by CHECK_STDERR or CHECK_STDOUT forbids it.
    drawn: bool,
    /// The length of the last drawn line, in characters; 0 if the line was ended.
    width: usize,
    out: Box<dyn Write + Send>,
}

/// Arguments of ProgressBar.
#[derive(Args)]
#[args(at_most_one(sizehandler, fixed_size))]
pub struct Args {
    /// Read handlers whose values add up to the position.
    #[arg(handler = "rw")]
    poshandler: Sum,
    /// Read handlers whose values add up to the end position.
    #[arg(handler = "rw")]
    sizehandler: Option<Sum>,
    /// Text in front of the bar.
    #[arg(keyword, default = String::new(), handler = "rw")]
    banner: String,
    /// The end position, in place of SIZEHANDLER.
    #[arg(keyword)]
    fixed_size: Option<f64>,
    /// Interval at which the bar is drawn.
    #[arg(keyword, default = Nanos(250_000_000), min = Nanos(10_000_000), show = "0.25")]
    update: Nanos,
    /// When false, nothing is drawn.
    #[arg(keyword, default = true, handler = "rw")]
    active: bool,
    /// When true, nothing is drawn if standard error is not a terminal.
    #[arg(keyword, default = true)]
    check_stderr: bool,
    /// When true, nothing is drawn if standard output is a terminal.
    #[arg(keyword, default = false)]
    check_stdout: bool,
}

/// State of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    Done,
    Stopped,
}

/// Read handlers whose values are added.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sum(Vec<HandlerRef>);

impl ArgValue for Sum {
    const TYPE: &'static str = "handlers";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Sum, ValueError> {
        let text = castanet_lang::args::unquote(text);
        let all: Result<Vec<_>, _> = text.split_whitespace().map(|t| HandlerRef::parse(t, cx)).collect();
        match all {
            Ok(all) if all.is_empty() => Err("expected handlers".into()),
            all => all.map(Sum),
        }
    }
}

impl Show for Sum {
    fn show(&self) -> String {
        self.0.iter().map(Show::show).collect::<Vec<_>>().join(" ")
    }
}

impl Sum {
    /// Returns the sum of the handlers' values, or `None` if a value is not a number.
    fn value(&self, cx: &mut Cx<'_>) -> Option<f64> {
        self.0.iter().try_fold(0.0, |sum, h| {
            let element = h.element.and_then(|e| u32::try_from(e).ok());
            let value = cx.read_handler(element, &h.handler, &h.value).ok()?;
            Some(sum + value.trim().parse::<f64>().ok().filter(|v| v.is_finite() && *v >= 0.0)?)
        })
    }
}

impl Build for ProgressBar {
    fn build(args: Args, _: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let out = Box::new(std::io::stderr());
        Ok(ProgressBar { args, start: 0, state: State::Running, drawn: false, width: 0, out })
    }
}

/// Formats a time as hours, minutes and seconds.
fn clock(seconds: f64) -> String {
    let s = seconds as u64;
    match (s / 3600, s / 60 % 60, s % 60) {
        (0, m, s) => format!("{m:02}:{s:02}"),
        (h, m, s) => format!("{h}:{m:02}:{s:02}"),
    }
}

/// Formats a number as up to four digits and a unit letter.
fn short(value: f64) -> String {
    let mut rest = value;
    for unit in ["", "k", "M", "G", "T"] {
        if rest < 10_000.0 {
            return format!("{rest:.0}{unit}");
        }
        rest /= 1000.0;
    }
    format!("{rest:.0}P")
}

/// The width of the bar, in characters.
const BAR: usize = 40;

/// Returns the line for a position, `seconds` after the start.
fn line(banner: &str, state: State, pos: Option<f64>, size: Option<f64>, seconds: f64) -> String {
    let part = match (pos, size) {
        _ if state == State::Done => Some(1.0),
        (Some(pos), Some(size)) if size > 0.0 => Some((pos / size).min(1.0)),
        _ => None,
    };
    let filled = (part.unwrap_or(0.0) * BAR as f64) as usize;
    let percent = part.map_or("  -%".into(), |p| format!("{:3.0}%", (100.0 * p).floor()));
    let time = match (state, part) {
        (State::Running, Some(p)) if p > 0.0 => format!("{} left", clock(seconds * (1.0 - p) / p)),
        (State::Running, _) => "--:-- left".into(),
        (State::Done, _) => clock(seconds),
        (State::Stopped, _) => format!("{} stopped", clock(seconds)),
    };
    let space = if banner.is_empty() { "" } else { " " };
    let at = pos.map_or("-".into(), short);
    format!("{banner}{space}{percent} |{:BAR$}| {at:>6} {time}", "*".repeat(filled))
}

impl ProgressBar {
    fn size_now(&self, cx: &mut Cx<'_>) -> Option<f64> {
        self.args.fixed_size.or_else(|| self.args.sizehandler.as_ref()?.value(cx))
    }
    fn draw(&mut self, cx: &mut Cx<'_>) {
        if !self.drawn || !self.args.active {
            return;
        }
        let (pos, size) = (self.args.poshandler.value(cx), self.size_now(cx));
        let seconds = Nanos(cx.peek().saturating_sub(self.start)).seconds();
        let text = line(&self.args.banner, self.state, pos, size, seconds);
        let end = if self.state == State::Running { "" } else { "\n" };
        // A failed write to standard error does not stop the router.
        let _ = write!(self.out, "\r{text:width$}{end}", width = self.width).and_then(|()| self.out.flush());
        self.width = if end.is_empty() { text.chars().count() } else { 0 };
    }
    /// Draws the bar, and sets the timer for the next drawing.
    fn go_on(&mut self, cx: &mut Cx<'_>) {
        if self.state == State::Running && self.drawn && self.args.active {
            self.draw(cx);
            let next = cx.peek().saturating_add(self.args.update.0);
            cx.set_timer(0, next);
        }
    }
    /// If the run has not ended yet, ends it and draws the last line.
    fn end(&mut self, state: State, cx: &mut Cx<'_>) {
        if std::mem::replace(&mut self.state, state) == State::Running {
            cx.clear_timer(0);
            self.draw(cx);
        }
    }
}

impl Element for ProgressBar {
    fn timer(&mut self, _: u16, cx: &mut Cx<'_>) {
        self.go_on(cx);
    }
}

#[handlers]
impl ProgressBar {
    /// The position; empty when it is unknown.
    #[read(expensive)]
    fn pos(&mut self, cx: &mut Cx<'_>) -> Option<Real> {
        self.args.poshandler.value(cx).map(Real)
    }
    /// The end position; empty when it is unknown. A write sets it, in place of SIZEHANDLER.
    #[read(expensive)]
    fn size(&mut self, cx: &mut Cx<'_>) -> Option<Real> {
        self.size_now(cx).map(Real)
    }
    #[write]
    fn set_size(&mut self, size: f64) {
        self.args.fixed_size = Some(size);
    }
    /// Declares the run complete.
    #[write(button)]
    fn mark_done(&mut self, cx: &mut Cx<'_>) {
        self.end(State::Done, cx);
    }
    /// Declares that the run stopped before its end.
    #[write(button)]
    fn mark_stopped(&mut self, cx: &mut Cx<'_>) {
        self.end(State::Stopped, cx);
    }
    /// Restarts the bar. The run counts as begun at this moment.
    #[write(button)]
    fn reset(&mut self, cx: &mut Cx<'_>) {
        (self.state, self.start) = (State::Running, cx.peek());
        self.go_on(cx);
    }
}

impl Lifecycle for ProgressBar {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        self.start = cx.now();
        self.drawn = !(self.args.check_stderr && !std::io::stderr().is_terminal()
            || self.args.check_stdout && std::io::stdout().is_terminal());
        if self.drawn && self.args.active {
            cx.set_timer(0, self.start.saturating_add(self.args.update.0));
        }
        Ok(())
    }
    fn changed(&mut self, handler: &str, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        match handler {
            Args::ACTIVE => self.go_on(cx),
            Args::SIZEHANDLER => self.args.fixed_size = None,
            _ => {}
        }
        Ok(())
    }
    fn cleanup(&mut self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        let (pos, size) = (self.args.poshandler.value(cx), self.size_now(cx));
        let done = pos.zip(size).is_some_and(|(pos, size)| pos >= size);
        self.end(if done { State::Done } else { State::Stopped }, cx);
        Ok(())
    }
    fn take_state(&mut self, old: &mut Self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        (self.start, self.state, self.width) = (old.start, old.state, old.width);
        // The new element continues the line that the old element draws, so the old element must not draw a last line.
        old.state = State::Stopped;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::script::tests::Printed;
    use super::*;
    use castanet_element::kit::Kit;

    fn kit_of(config: &str) -> Result<Kit<ProgressBar>, Vec<String>> {
        let mut names = Names::new();
        names.define_element("e", 5, "FromDump");
        Kit::with_names(config, 0, 0, names)
    }
    /// Returns an element that draws, and what it has drawn.
    fn kit(config: &str) -> (Kit<ProgressBar>, Printed) {
        let config = format!("e.at, {config}, CHECK_STDERR false");
        let (mut kit, printed) = (kit_of(&config).unwrap(), Printed::default());
        kit.element.out = Box::new(printed.clone());
        (kit, printed)
    }
    fn bar(stars: usize) -> String {
        format!("|{:BAR$}|", "*".repeat(stars))
    }

    #[test]
    fn lines() {
        use State::{Done, Running, Stopped};
        for (state, pos, size, seconds, want) in [
            (Running, Some(0.0), Some(200.0), 0.0, format!("  0% {}      0 --:-- left", bar(0))),
            (Running, Some(50.0), Some(200.0), 10.0, format!(" 25% {}     50 00:30 left", bar(10))),
            (Running, Some(9_999.0), None, 10.0, format!("  -% {}   9999 --:-- left", bar(0))),
            (Running, None, Some(0.0), 10.0, format!("  -% {}      - --:-- left", bar(0))),
            (Running, Some(1.0), Some(7201.0), 1.0, format!("  0% {}      1 2:00:00 left", bar(0))),
            (Done, Some(12_345.0), None, 61.9, format!("100% {}    12k 01:01", bar(40))),
            (Stopped, Some(3e9), Some(4e9), 3600.0, format!(" 75% {}  3000M 1:00:00 stopped", bar(30))),
            (Running, Some(1e30), Some(1.0), 5.0, format!("100% {} 1000000000000000P 00:00 left", bar(40))),
        ] {
            assert_eq!(line("", state, pos, size, seconds), want);
        }
        assert!(line("of x", Running, None, None, 0.0).starts_with("of x   -% |"));
    }

    #[test]
    fn draws_every_so_often_and_ends_once() {
        let (mut kit, printed) = kit("FIXED_SIZE 200, BANNER b, UPDATE 2");
        let start = kit.next_timer().unwrap() - 2_000_000_000;
        kit.answer("at", "50");
        kit.expire().unwrap();
        assert_eq!(printed.take(), format!("\rb  25% {}     50 00:06 left", bar(10)));
        assert_eq!(kit.next_timer(), Some(start + 4_000_000_000));
        kit.write("mark_done", "").unwrap();
        assert_eq!(printed.take(), format!("\rb 100% {}     50 00:02     \n", bar(40)));
        assert_eq!(kit.next_timer(), None);
        kit.write("mark_stopped", "").unwrap();
        kit.cleanup().unwrap();
        assert_eq!(printed.take(), "", "the last line is there already");
        kit.write("reset", "").unwrap();
        assert!(printed.take().ends_with("--:-- left") || kit.next_timer().is_some());
        kit.cleanup().unwrap();
        assert!(printed.take().ends_with("stopped\n"));
    }

    #[test]
    fn a_swap_goes_on_with_the_line() {
        let ((mut old, before), (mut new, after)) =
            (kit("FIXED_SIZE 200, UPDATE 2"), kit("FIXED_SIZE 200, UPDATE 2"));
        old.answer("at", "50");
        new.answer("at", "50");
        old.expire().unwrap();
        let width = old.element.width;
        assert!(!before.take().is_empty() && width > 0);
        let start = old.element.start - 5_000_000_000;
        old.element.start = start;
        new.take_state_of(&mut old).unwrap();
        assert_eq!((new.element.start, new.element.width), (start, width));
        old.cleanup().unwrap();
        assert_eq!(before.take(), "", "the old element draws no last line");
        // The swap fails: the old element takes its state back.
        old.take_state_of(&mut new).unwrap();
        new.cleanup().unwrap();
        old.cleanup().unwrap();
        assert!(after.take().is_empty() && before.take().ends_with("stopped\n"));
    }

    #[test]
    fn sums_of_handlers() {
        let (mut kit, _) = kit("\"e.all e.all\"");
        assert_eq!((kit.read("pos").unwrap(), kit.read("size").unwrap()), (String::new(), String::new()));
        kit.answer("at", "7");
        kit.answer("all", "50");
        assert_eq!((kit.read("pos").unwrap().as_str(), kit.read("size").unwrap().as_str()), ("7", "100"));
        kit.write("size", "30").unwrap();
        assert_eq!(kit.read("size").unwrap(), "30");
        kit.write("sizehandler", "e.at").unwrap();
        assert_eq!(
            (kit.read("size").unwrap(), kit.read("sizehandler").unwrap()),
            ("7".into(), "e.at".into())
        );
        kit.answer("none", "-");
        kit.write("poshandler", "e.at e.none").unwrap();
        assert_eq!(kit.read("pos").unwrap(), "");
    }

    #[test]
    fn draws_nothing_while_it_is_not_active() {
        let (mut kit, printed) = kit("ACTIVE false");
        assert_eq!(kit.next_timer(), None);
        kit.write("active", "true").unwrap();
        assert!(kit.next_timer().is_some() && printed.take().starts_with('\r'));
        kit.write("active", "false").unwrap();
        kit.expire().unwrap();
        kit.cleanup().unwrap();
        assert_eq!((printed.take().as_str(), kit.next_timer()), ("", None));
    }

    #[test]
    fn errors() {
        for (config, error) in [
            ("", "POSHANDLER: required argument missing"),
            ("\"\"", "POSHANDLER: expected handlers"),
            ("f.x", "POSHANDLER: no element named 'f'"),
            ("e.x, e.y, FIXED_SIZE 3", "specify at most one of SIZEHANDLER and FIXED_SIZE"),
            ("e.x, UPDATE 0", "UPDATE: must be at least 0.01"),
        ] {
            assert_eq!(kit_of(config).err().unwrap(), [error], "{config}");
        }
    }
}
