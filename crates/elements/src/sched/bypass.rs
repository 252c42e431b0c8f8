// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bypass: switches a detour on and off.

use super::selection::Selection;
use castanet_element::prelude::*;

/// Passes packets straight on or through a detour, as the handler `active` says.
///
/// On a push path, packets from input 0 leave on output 0 while the element is inactive, and on output 1 while it is
/// active. Packets that come back on input 1 always leave on output 0. On a pull path, output 0 pulls from input 0
/// while the element is inactive, and from input 1 while it is active. Output 1 always pulls from input 0. A write to
/// `active` takes effect immediately.
///
/// On a pull path, the packets for input 1 must come from another source. A detour from output 1 back to input 1 cannot
/// be switched on there, because an element that is being pulled from cannot be pulled from again.
///
/// # Ports
/// Input 0: packets. Input 1 (optional): packets that come back. Output 0: packets. Output 1 (optional): the detour.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 5, STOP true) -> b :: Bypass(true) -> Discard;
/// b [1] -> Paint(1) -> [1] b;
/// ```
#[derive(Class)]
#[class(name = "Bypass", ports = "1-2/1-2", processing = "a/a", flow = "xy/[xy]x", packets = "any/same")]
#[class(workers = replicate, build, lifecycle, capabilities(EmptyNotifier))]
pub struct Bypass {
    args: Args,
    pulls: bool,
    /// On a pull path, whether the detour from output 1 leads back to input 1.
    returns: bool,
    /// On a pull path, the input from which output 0 pulls.
    selection: Selection,
}

/// Arguments of Bypass.
#[derive(Args)]
pub struct Args {
    /// Whether packets take the detour.
    #[arg(default = false, handler = "rw")]
    active: bool,
    /// Accepted for old configurations and ignored; the element is never removed from the path.
    #[arg(keyword, default = false, name = "INLINE")]
    _inline: bool,
}

/// The error for an active element on a pull path whose detour leads from output 1 back to input 1.
const RETURNS: &str =
    "a detour of a pull path cannot lead from output 1 back to input 1; put the Bypass on a push path";

/// Returns the port on the other side of the element: 1 for port 0 while active, otherwise 0.
#[inline]
fn other(port: usize, active: bool) -> usize {
    usize::from(port == 0 && active)
}

impl Build for Bypass {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let pulls = !cx.is_push_input(0);
        let aside = (cx.outputs > 1).then_some(0);
        let selection = Selection::new(args.active.into(), cx.inputs).also(aside);
        Ok(Bypass { args, pulls, returns: false, selection })
    }
}

impl Element for Bypass {
    #[inline]
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        cx.forward(other(port, self.args.active), batch);
    }
    #[inline]
    fn push_one(&mut self, port: usize, p: Packet, cx: &mut Cx<'_>) {
        cx.emit(other(port, self.args.active), p);
    }
    #[inline]
    fn pull(&mut self, port: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        self.selection.pull_from(Some(other(port, self.args.active)), max, into, cx);
    }
    // When a notifier upstream turns on, it schedules every element that subscribed to it. So `task` is called although
    // the class has no task.
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        self.selection.woken(cx);
        Turn::Sleep
    }
}

impl Lifecycle for Bypass {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        if self.pulls {
            self.returns = self.selection.initialise(cx);
        }
        if self.returns && self.args.active { Err(RETURNS.into()) } else { Ok(()) }
    }
    fn changed(&mut self, _: &str, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        if self.returns && self.args.active {
            self.args.active = false;
            return Err(RETURNS.into());
        }
        self.selection.choose(self.args.active.into(), cx);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    /// Which ports belong together. Columns: whether the bypass is active, a port on one side, its port on the other
    /// side.
    const OTHER: [(bool, usize, usize); 4] = [(false, 0, 0), (false, 1, 0), (true, 0, 1), (true, 1, 0)];

    #[test]
    fn pushes() {
        for n in [1, 2, 3, 32, 256usize] {
            let mut kit = Kit::<Bypass>::with_ports("", 2, 2).unwrap();
            for (active, input, output) in OTHER {
                kit.write("active", &active.to_string()).unwrap();
                assert_eq!(kit.read("active").unwrap(), active.to_string());
                let got = kit.push(input, (0..n).map(|i| packet(&i.to_be_bytes())));
                let want: Vec<_> = (0..n).map(|i| (output, i.to_be_bytes().to_vec())).collect();
                assert_eq!(got.iter().map(|(o, p)| (*o, p.data().to_vec())).collect::<Vec<_>>(), want);
                kit.with(|e, cx| e.push_one(input, packet(b"one"), cx));
                assert_eq!(kit.push(input, [])[0].0, output);
            }
            assert_eq!(kit.all_dropped(), 0);
        }
    }

    #[test]
    fn pulls() {
        for n in [1, 2, 3, 32, 256] {
            let mut kit = Kit::<Bypass>::with_ports("", 2, 2).unwrap();
            for (active, output, input) in OTHER {
                kit.write("active", &active.to_string()).unwrap();
                (0..4u8).for_each(|i| kit.supply(usize::from(i % 2), packet(&[i % 2])));
                let got = kit.pull(output, n);
                assert_eq!(got.len(), n.min(2));
                assert!(got.iter().all(|p| usize::from(p.data()[0]) == input));
                (0..2).for_each(|i| while kit.with(|_, cx| cx.pull_one(i)).is_some() {});
            }
        }
    }

    #[test]
    fn a_detour_that_leads_nowhere() {
        let mut kit = Kit::<Bypass>::new("true").unwrap();
        assert!(kit.push(0, [packet(b"x"), packet(b"y")]).is_empty());
        assert_eq!(kit.dropped(Reason::NoPort), 2);
        kit.supply(0, packet(b"z"));
        assert!(kit.pull(0, 9).is_empty());
        kit.write("active", "false").unwrap();
        assert_eq!(kit.pull(0, 9).len(), 1);
        assert!(Kit::<Bypass>::new("perhaps").is_err() && kit.write("active", "perhaps").is_err());
        assert!(Kit::<Bypass>::new("true, INLINE true").is_ok());
    }
}
