// SPDX-License-Identifier: MIT OR Apache-2.0
//! DriverManager: the script that decides when the router stops.

use super::script::class;
use castanet_element::prelude::*;

/// Decides when the router stops.
///
/// This is a `Script` of type DRIVER. It starts before any task. Each request to stop is one step of the script: it
/// ends a `pause` or cuts a `wait` short. When the script ends, the router stops. Without instructions, the script
/// ends at the first request. A router has at most one script of this type.
///
/// # Ports
/// None.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true) -> c :: Counter -> Discard;
/// DriverManager(print "before", pause, print $(c.count), wait 0.01, stop);
/// ```
#[derive(Class)]
#[class(name = "DriverManager", ports = "-/-", processing = "ah/ah", packets = "any/same", workers = exclusive)]
#[class(effects(prints, files, calls, stops), drops(Script), capabilities(EmptyNotifier))]
pub struct DriverManager {
    #[engine(element)]
    script: class::Scripted<true>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::script::tests::Printed;
    use super::*;
    use castanet_element::kit::Kit;

    fn kit(config: &str) -> (Kit<DriverManager>, Printed) {
        let (mut kit, printed) = (Kit::<DriverManager>::new(config).unwrap(), Printed::default());
        kit.element.script.machine.print_to(printed.output());
        (kit, printed)
    }

    #[test]
    fn each_request_is_one_step_and_the_end_stops() {
        let (mut kit, printed) = kit("print 1, pause, print 2, wait 2, print 3, pause 2, print 4");
        assert_eq!(kit.stops(), 1, "the request that starts the script");
        for (text, answer) in [
            ("1\n", Drive::Continue),
            ("2\n", Drive::Continue),
            ("3\n", Drive::Continue),
            ("", Drive::Continue),
            ("4\n", Drive::Stop),
            ("", Drive::Stop),
        ] {
            assert_eq!((kit.drive(), printed.take().as_str()), (answer, text));
        }
        assert_eq!(kit.stops(), 1, "the end is the answer to a request, not a request");
        assert_eq!(kit.next_timer(), None, "the wait that was cut short");
    }

    #[test]
    fn an_end_without_request_asks_for_a_stop() {
        let (mut kit, printed) = kit("wait 2, print 1");
        assert_eq!(kit.drive(), Drive::Continue);
        assert!((2_000_000_000..2_000_001_000).contains(&kit.next_timer().unwrap()));
        kit.expire().unwrap();
        assert_eq!((printed.take().as_str(), kit.stops()), ("1\n", 2));
        assert_eq!(kit.drive(), Drive::Stop);
    }

    #[test]
    fn a_wait_cut_short_uses_its_request_up_and_the_next_one_is_full() {
        let (mut kit, printed) = kit("wait 2, print 1, wait 2, print 2");
        assert_eq!((kit.drive(), kit.drive()), (Drive::Continue, Drive::Continue));
        assert_eq!(printed.take(), "1\n");
        assert!(kit.next_timer().unwrap() >= 2_000_000_000);
        kit.expire().unwrap();
        assert_eq!((printed.take().as_str(), kit.drive()), ("2\n", Drive::Stop));
    }

    #[test]
    fn every_kind_of_end_stops() {
        for (config, text) in [
            ("", ""),
            ("pause, stop, print 1", ""),
            ("pause, end", ""),
            ("pause, exit", ""),
            ("pause, return 1", ""),
            ("pause, error \"bad thing\"", "While executing 'e :: DriverManager':\n  \"bad thing\""),
            ("pause, errorq \"bad thing\"", "While executing 'e :: DriverManager':\n  bad thing"),
            ("pause, goto stop true", ""),
        ] {
            let (mut kit, _) = kit(config);
            assert_eq!(
                (kit.drive(), kit.drive(), kit.drive()),
                (Drive::Continue, Drive::Stop, Drive::Stop),
                "{config}"
            );
            assert_eq!(kit.messages().join("|"), text, "{config}");
        }
        let (mut kit, printed) = kit("print 1");
        assert_eq!((kit.drive(), printed.take().as_str()), (Drive::Stop, "1\n"));
    }

    #[test]
    fn the_end_behind_a_hot_swap_does_not_stop_the_new_router() {
        for (config, first) in [("write hotconfig Idle", 0), ("wait 1, write hotconfig Idle", 1)] {
            let (mut kit, _) = kit(config);
            assert_eq!(kit.drive(), Drive::Continue, "{config}");
            if first == 1 {
                kit.expire().unwrap();
            }
            // The only stop request is the one by which the script starts itself.
            assert_eq!((kit.stops(), kit.drive()), (1, Drive::Stop), "a request that came later: {config}");
        }
        let (mut kit, _) = kit("write hotconfig Idle, stop");
        assert_eq!(kit.drive(), Drive::Stop);
    }

    #[test]
    fn steps_by_handler_count_as_requests() {
        let (mut kit, printed) = kit("pause, print 1, pause, print 2, pause 2, print 3");
        kit.drive();
        kit.write("step", "2").unwrap();
        assert_eq!(printed.take(), "1\n2\n");
        kit.write("step", "router").unwrap();
        kit.write("step", "").unwrap();
        assert_eq!((printed.take().as_str(), kit.stops(), kit.drive()), ("3\n", 2, Drive::Stop));
        assert!(kit.write("step", "x").is_err());
    }

    #[test]
    fn an_endless_loop_is_given_up_and_the_router_runs_on() {
        let (mut kit, printed) = kit("set x 0, label a, set x $(add $x 1), goto a");
        assert_eq!((kit.drive(), kit.stops()), (Drive::Continue, 1));
        assert_eq!(kit.messages(), ["e :: DriverManager: too many jumps, giving up"]);
        assert_eq!(kit.read_with("get", "x").unwrap(), "1001");
        assert_eq!((kit.drive(), printed.take().as_str()), (Drive::Stop, ""));
    }

    #[test]
    fn a_loop_over_long_texts_is_given_up_sooner() {
        let (mut kit, _) = kit("set n 0, set x 0123456789, label a, set n $(add $n 1), set x $x$x, goto a");
        assert_eq!(kit.drive(), Drive::Continue);
        assert_eq!(kit.messages().pop().as_deref(), Some("e :: DriverManager: too many jumps, giving up"));
        let rounds: u32 = kit.read_with("get", "n").unwrap().parse().unwrap();
        assert!((20..100).contains(&rounds), "{rounds}");
    }

    #[test]
    fn calls_of_others_and_of_itself() {
        let (mut kit, printed) =
            kit("write stop 2, print version, pause, write step, pause, print $(add 1 2) x, pause");
        kit.answer("version", "9");
        kit.drive();
        assert_eq!(printed.take(), "9\n");
        let calls = kit.calls();
        assert_eq!(calls[0], (None, "stop".into(), "2".into()));
        assert_eq!(kit.drive(), Drive::Continue);
        assert_eq!(printed.take(), "3 x\n", "the step that it gave itself passed the second pause");
    }
}
