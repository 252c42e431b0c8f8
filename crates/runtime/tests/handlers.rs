// SPDX-License-Identifier: MIT OR Apache-2.0
//! The handlers that the runtime provides: global handlers, and handlers of every element.
#![allow(clippy::unwrap_used, missing_docs)]

use castanet_classes::Registry;
use castanet_element::remote::Remote;
use castanet_element::{CallError, Messages as _, Missing};
use castanet_lang::ClassNames as _;
use castanet_runtime::global_handlers::global;
use castanet_runtime::handlers::standard;
use castanet_spec::HandlerFlags;
use castanet_spec::Origin;
use castanet_testkit::{real, router, run, simulated, try_router, value};

const TEXT: &str = "s :: Numbers(1, 3, 3, STOP true) -> c :: Counter -> q :: Queue(1) -> i :: Idle;";

/// A `handlers` listing as pairs of name and flags.
fn pairs(listing: &str) -> Vec<(&str, &str)> {
    listing.lines().map(|l| l.split_once('\t').unwrap()).collect()
}

#[test]
fn global_handlers_describe_the_router() {
    let (mut r, _) = run(TEXT, 32);
    let running = r.running().clone();
    let registry = Registry::new();
    let classes = registry.names();
    for remote in [false, true] {
        let mut read = |h: &str| if remote { running.read(None, h, "") } else { r.read(None, h, "") };
        let mut get = |h: &str| read(h).unwrap();
        assert_eq!((get("version").as_str(), get("driver").as_str()), ("2.1", "userlevel"));
        assert!(get("flatconfig").contains("c :: Counter"), "{}", get("flatconfig"));
        assert_eq!(get("list"), "4\ns\nc\nq\ni\n");
        assert_eq!((get("requirements"), get("packages")), (String::new(), String::new()));
        let known = get("classes");
        let known: Vec<&str> = known.lines().collect();
        assert!(classes.iter().all(|c| known.contains(c)) && known.contains(&"Sink"), "{known:?}");
        assert!(
            pairs(&get("handlers"))
                .into_iter()
                .map(|(n, f)| (n, HandlerFlags::parse(f)))
                .eq(global(false).map(|h| (h.name, h.flags)))
        );
        assert!(matches!(read("nothing"), Err(CallError::Missing(_))));
    }
    assert_eq!(r.read(None, "drop_reasons", "").unwrap(), "q\tqueue-full\t2\n");
}

#[test]
fn elements_list_their_handlers() {
    let (mut r, _) = run(TEXT, 32);
    let listing = |e: &str, r: &mut _| value(r, e, "handlers");
    // An element with a task has additional handlers, and so has one whose class may drop packets. The
    // standard handlers come last, and only once.
    for (element, task, drops) in [("s", true, false), ("c", false, false), ("q", false, true)] {
        let text = listing(element, &mut r);
        let all = pairs(&text);
        let count = |name: &str| all.iter().filter(|h| h.0 == name).count();
        for name in ["home_thread", "tickets", "scheduled"] {
            assert_eq!(count(name), usize::from(task), "{element}.{name}");
        }
        assert_eq!(count("drop_reasons"), usize::from(drops), "{element}");
        let names: Vec<&str> = all.iter().map(|h| h.0).collect();
        assert!(names.ends_with(&standard().map(|h| h.name).collect::<Vec<_>>()), "{text}");
        assert!(standard().all(|h| count(h.name) == 1), "{text}");
    }
    assert!(pairs(&listing("c", &mut r)).contains(&("count", "r")));
}

#[test]
fn handlers_of_an_element_of_its_own_are_those_that_it_names() {
    let mut r = router("Idle -> s :: StrideSched(2) -> Idle;", simulated(32).0);
    let s = r.find("s");
    assert_eq!(value(&mut r, "s", "tickets0"), "2");
    let name = || "s.nothing".to_string();
    for parameters in ["", "1"] {
        assert_eq!(r.read(s, "nothing", parameters), Err(Missing::Read(name()).into()));
    }
    assert_eq!(r.write(s, "nothing", "1"), Err(Missing::Write(name()).into()));
}

#[test]
fn tasks_have_tickets_and_other_elements_have_none() {
    let (mut r, _) = run(TEXT, 32);
    let (s, c, q) = (r.find("s"), r.find("c"), r.find("q"));
    let task =
        |r: &mut castanet_runtime::Router| ["tickets", "scheduled", "home_thread"].map(|h| value(r, "s", h));
    assert_eq!(task(&mut r), ["1024", "false", "0"]);
    r.write(s, "tickets", " 2048 ").unwrap();
    assert_eq!(task(&mut r), ["2048", "false", "0"]);
    for (handler, value) in [("tickets", "x"), ("tickets", "-1"), ("tickets", ""), ("home_thread", "1")] {
        assert!(matches!(r.write(s, handler, value), Err(CallError::Refused(_))), "{handler} {value}");
    }
    for handler in ["tickets", "scheduled", "home_thread", "drop_reasons"] {
        assert!(matches!(r.read(c, handler, ""), Err(CallError::Missing(_))), "{handler}");
        assert!(matches!(r.write(c, handler, "1"), Err(CallError::Missing(_))), "{handler}");
    }
    assert_eq!(r.read(q, "drop_reasons", "").unwrap(), "queue-full\t2\n");
    assert!(matches!(r.read(c, "count", "x"), Err(CallError::Parameters(_))));
    assert_eq!(r.shared().requests(), 0, "the driver has answered the request to stop");
}

#[test]
fn elements_without_the_task_of_their_class_show_so() {
    let mut r = router("Idle -> q :: Queue -> d :: Discard; Idle -> e :: Discard;", simulated(32).0);
    for (element, tickets, scheduled) in [("d", "1024", "true"), ("e", "-1", "false")] {
        let of = |r: &mut _| ["tickets", "scheduled", "home_thread"].map(|h| value(r, element, h));
        assert_eq!(of(&mut r), [tickets, scheduled, "0"], "{element}");
    }
    let (d, e) = (r.find("d"), r.find("e"));
    assert_eq!(r.write(d, "home_thread", "0"), Ok(()));
    for handler in ["tickets", "home_thread"] {
        assert!(
            matches!(r.write(e, handler, "0"), Err(CallError::Refused(e)) if e.to_string().contains("no task"))
        );
    }
}

#[test]
fn handlers_of_the_runtime_take_no_parameters() {
    let mut r = router("Idle -> q :: Queue -> d :: Discard;", simulated(32).0);
    let q = r.find("q");
    for handler in ["class", "config", "ports", "handlers", "drop_reasons"] {
        assert!(r.read(q, handler, "").is_ok(), "{handler}");
        assert_eq!(r.read(q, handler, "3"), Err(CallError::Parameters(format!("q.{handler}"))));
    }
    for handler in ["driver", "list", "timewarp", "drop_reasons"] {
        assert!(r.read(None, handler, "").is_ok(), "{handler}");
        assert!(matches!(r.read(None, handler, "3"), Err(CallError::Parameters(_))), "{handler}");
    }
}

#[test]
fn time_is_warped_only_by_positive_factors_and_never_if_simulated() {
    const BAD: [&str; 6] = ["0", "-1", "inf", "nan", "x", ""];
    let (options, _) = real(1);
    let mut r = router("Idle -> c :: Counter -> Discard", options);
    let running = r.running().clone();
    std::thread::scope(|scope| {
        scope.spawn(|| r.run().unwrap());
        let write = |h: &str, v: &str| running.write(Origin::Operator, None, h, v);
        let read = || running.read(None, "timewarp", "");
        let good = (write("timewarp", " 2 "), read());
        let bad = BAD.map(|v| write("timewarp", v));
        let after = read();
        // Stop the router before the assertions, so that a failure does not make the test hang.
        write("stop", "").unwrap();
        assert_eq!(good, (Ok(String::new()), Ok("2".into())));
        assert!(bad.iter().all(|b| matches!(b, Err(CallError::Refused(_)))), "{bad:?}");
        assert_eq!(after, Ok("2".into()));
    });
    // Handlers that need no worker still answer after the router has ended.
    let read = |h: &str| running.read(Some("c"), h, "");
    assert_eq!((read("class"), read("name")), (Ok("Counter".into()), Ok("c".into())));
    assert!(matches!(read("count"), Err(CallError::Missing(Missing::Router))));
    let (mut r, _) = run(TEXT, 32);
    for value in BAD.iter().chain(&["2"]) {
        assert!(matches!(r.write(None, "timewarp", value), Err(CallError::Refused(_))), "{value}");
    }
}

#[test]
fn devices_change_nothing_where_the_configuration_cannot_be_read_again() {
    let (options, _) = simulated(1);
    assert!(
        !router("Idle -> Discard", options).shared().device_changed("lo"),
        "a device that no argument names"
    );
    let (options, _) = simulated(1);
    match try_router("Idle -> SetIPAddress(lo:ip) -> Discard", options) {
        Ok(r) => assert!(!r.shared().device_changed("lo"), "no loader"),
        Err(e) => println!("SKIP: the device 'lo' has no address: {e}"),
    }
}

#[test]
fn unknown_classes_are_explained_by_known_ones() {
    let (options, _) = simulated(1);
    let error = try_router("Idle -> Countr -> Discard", options).map(drop).unwrap_err();
    assert!(error.contains("Counter"), "{error}");
}

#[test]
fn any_text_asks_for_a_stop() {
    for (value, requests) in [("", 1), ("true", 1), ("-1", 1), ("now 3", 1), ("0", 0), (" 2 ", 2)] {
        let mut r = router("Idle -> Discard; DriverManager(pause)", simulated(32).0);
        let before = r.shared().requests();
        r.write(None, "stop", value).unwrap();
        assert_eq!(r.shared().requests() - before, requests, "{value}");
    }
}

#[test]
fn a_task_is_scheduled_as_soon_as_it_is_woken() {
    let (_, lines) = run(
        "s :: InfiniteSource(LIMIT 2, ACTIVE false) -> Discard;
         DriverManager(wait 0.1s, read s.scheduled, write s.active true, read s.scheduled, wait 0.1s, read s.scheduled)",
        32,
    );
    assert_eq!(lines, ["s.scheduled:\nfalse", "s.scheduled:\ntrue", "s.scheduled:\nfalse"]);
}
