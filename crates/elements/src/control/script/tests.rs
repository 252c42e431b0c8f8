// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of scripts as elements.
#![allow(clippy::unwrap_used)]

mod functions;

use super::*;
use crate::control::script::output::Output;
use castanet_element::kit::{Kit, packet};
use castanet_element::spec::Names;
use parking_lot::Mutex;
use std::sync::Arc;

/// Collects what a script has printed.
#[derive(Clone, Default)]
pub(crate) struct Printed(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Printed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Printed {
    pub(crate) fn output(&self) -> Output {
        Output::to(self.clone())
    }
    pub(crate) fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut *self.0.lock())).unwrap()
    }
}

fn ported(config: &str, inputs: usize, outputs: usize) -> (Kit<Script>, Printed) {
    let mut names = Names::new();
    names.define_element("e", 0, "Script");
    names.define_element("c", 3, "Counter");
    let (mut kit, printed) =
        (Kit::<Script>::with_names(config, inputs, outputs, names).unwrap(), Printed::default());
    kit.element.script.machine.print_to(printed.output());
    (kit, printed)
}

fn script(config: &str) -> (Kit<Script>, Printed) {
    ported(config, 0, 0)
}

/// Runs an ACTIVE script until it waits or ends. Returns what it printed, and its messages.
fn run(config: &str) -> (String, Vec<String>) {
    let (mut kit, printed) = script(config);
    kit.answer("count", "42");
    kit.answer("table", "a\nb\n");
    kit.answer("quoted", "\"a b\"");
    kit.answer("empty", "");
    kit.expire().unwrap();
    (printed.take(), kit.messages())
}

#[test]
fn printing() {
    for (config, text) in [
        ("print c.count", "42\n"),
        ("print c.table", "a\nb\n"),
        ("print c.empty", "\n"),
        ("print", "\n"),
        ("printn c.count, print \"x\"", "42x\n"),
        ("print c.quoted, printq c.quoted, printnq c.quoted", "\"a b\"\na b\na b"),
        ("print \"a, b\\n\"", "a, b\n"),
        ("print $(c.count) $undefined ${x-none} \"$(c.count)\"", "42 $undefined none 42\n"),
        ("set x 5, print $x, set x $(add $x 1), print $x${x}", "5\n66\n"),
        ("set x \"a b\", print $x, print \"$x\", setq y \"a b\", print \"$y\"", "a b\n\"a b\"\na b\n"),
        ("print '$x' \"\\$x\"", "$x $x\n"),
        ("print $(div 6 2) $(div 7 2) $(mul 1.5 2) $(eq 1 1.0)", "3 3.5 3 true\n"),
        ("print $(sprintf \"%05d|%x|%s\" 42 255 hi)", "00042|ff|hi\n"),
        ("print \"$(first \"a b c\")\"", "\"a b c\"\n"),
        ("print $(now)", "1000.000000002\n"),
        ("print $? $#, write c.reset, print $?", "0 $#\n0\n"),
        ("print $(if $(gt 2 1) yes no)", "yes\n"),
        (
            "print $(readable c.count c.empty) $(readable c.nope) $(writable c.reset e.step) $(readable e.step add)",
            "true false true false\n",
        ),
        ("save c.count, save c.table -", "42a\nb\n"),
        ("set x a b, print $(shift x) $x, print $(length a  b) $(e.add 1 2) $(in b $x)", "a b\n4 3 true\n"),
        ("print /* a comment */ 1 // another", "1\n"),
        ("print \"$(catq /nonexistent)\"", "\n"),
    ] {
        assert_eq!(run(config).0, text, "{config}");
    }
    assert!(run("print $$").0.trim_end().parse::<u32>().is_ok());
}

#[test]
fn writes_leave_a_status() {
    let failed = || Err(CallError::Refused("bad".into()));
    for (handler, done, status) in [
        ("q.reset", Ok(()), 0),
        ("q.nope", Err(CallError::Missing(castanet_element::Missing::Read("no".into()))), 0),
        ("r.add", Err(CallError::Refused(HandlerError::Exists("conflict".into()))), -17),
        ("r.add", failed(), -1),
        ("hotconfig", failed(), -22),
        ("hotconfig", Err(CallError::Denied("no".into())), -1),
        ("q.hotconfig", failed(), -1),
    ] {
        assert_eq!(call::status(handler, &done), status, "{handler}");
    }
}

#[test]
fn what_goes_wrong_is_shown_and_the_script_goes_on() {
    for (config, text, messages) in [
        ("print a, print 1", "1\n", &["While executing 'e :: Script':\n  no 'a' read handler"][..]),
        (
            "print $(nope), print 1",
            "$(nope)\n1\n",
            &["While executing 'e :: Script':\n  no 'nope' read handler"],
        ),
        ("print x.count", "", &["While executing 'e :: Script':\n  no element named 'x'"]),
        (
            "write nosuch.reset, print $?",
            "0\n",
            &["While executing 'e :: Script':\n  no element named 'nosuch'"],
        ),
        ("write add 1 2", "", &["While executing 'e :: Script':\n  no 'add' write handler"]),
        ("print step", "", &["While executing 'e :: Script':\n  no 'step' read handler"]),
        ("print $(div x)", "$(div x)\n", &["While executing 'e :: Script':\n  expected list of numbers"]),
        (
            "write goto nowhere, print $?",
            "-1\n",
            &["While executing 'e :: Script':\n  While calling 'goto nowhere':\n    no such label 'nowhere'"],
        ),
        ("print $(cat /nonexistent)!", "!\n", &["/nonexistent: No such file or directory"]),
        ("print >/nonexistent/x 1", "", &["/nonexistent/x: No such file or directory"]),
        ("wait soon, print 1", "1\n", &["e :: Script: 'wait soon': expected time in seconds"]),
        ("pause many, print 1", "1\n", &["e :: Script: 'pause many': invalid number"]),
        (
            "goto end perhaps, print 1",
            "1\n",
            &["e :: Script: 'goto end': 'perhaps' is neither true nor false"],
        ),
        ("set l nowhere, goto $l, print 1", "1\n", &["e :: Script: no such label 'nowhere'"]),
        ("error \"bad thing\", print 1", "", &["While executing 'e :: Script':\n  \"bad thing\""]),
        ("label a, goto a", "", &["e :: Script: too many jumps, giving up"]),
    ] {
        let (printed, shown) = run(config);
        assert_eq!(
            (printed.as_str(), shown.iter().map(String::as_str).collect::<Vec<_>>()),
            (text, messages.to_vec()),
            "{config}"
        );
    }
    assert_eq!(
        run("export x 1, read c.count, read c.table, read length abc, readq length \"\\<0a 09 01>\", read x")
            .1,
        ["c.count:\n42", "c.table:\na\nb\n", "e.length:\n3", "e.length:\n3", "e.x:\n1"]
    );
}

#[test]
fn text_that_doubles_is_bounded() {
    let (printed, messages) =
        run("set x 0123456789, label a, set x $x$x, set n $(add 0 ${n-0} 1), goto a $(lt $n 40), print $n");
    assert_eq!(printed, "40\n");
    assert_eq!(messages[0], "e :: Script: text longer than 1048576 bytes, instruction skipped");
}

#[test]
fn loops_and_labels() {
    let counting = "set n 0, label again, set n $(add $n 1), goto again $(lt $n 5), print $n";
    assert_eq!(run(counting).0, "5\n");
    let thousand = "set n 0, label again, set n $(add $n 1), goto again $(le $n 1000), print $n";
    assert_eq!(run(thousand).0, "1001\n", "a thousand jumps are allowed");
    assert_eq!(run("goto skip, print 1, label skip, print 2, goto end, print 3").0, "2\n");
    assert_eq!(run("label end, print 1, goto exit, print 2").0, "1\n");
    assert_eq!(run("print 1, write goto over, print 2, label over, print 3").0, "1\n3\n");
    let (mut kit, printed) = script("print 1, wait 1, loop");
    for _ in 0..1500 {
        kit.expire().unwrap();
    }
    assert_eq!(printed.take().len(), 3000, "a wait lets jumps count anew");
}

#[test]
fn files() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out");
    let file = path.to_str().unwrap();
    let text = format!(
        "set f {file}, print >$f 1, print >$f 2, print >> $f c.count, append c.count $f, print $(cat $f)"
    );
    assert_eq!(run(&text).0, "2\n42\n42\n");
    assert_eq!(run(&format!("save c.table {file}, print $(catq {file})")).0, "a\nb\n");
}

#[test]
fn variables_and_handlers() {
    let (mut kit, _) = script(
        "TYPE PASSIVE, init a $(add 1 2), export b \"x y\", exportq c \"x y\", export d $(c.count), export n",
    );
    assert_eq!(
        kit.element.own_handlers().iter().map(|h| h.0.as_str()).collect::<Vec<_>>(),
        ["b", "c", "d", "n"]
    );
    kit.answer("count", "7");
    for (name, parameters, value) in [
        ("get", "a", "3"),
        ("b", "", "\"x y\""),
        ("c", "", "x y"),
        ("d", "", "7"),
        ("n", "", ""),
        ("add", "1 2.5", "3.5"),
        ("unquote", "\"a\"", "a"),
    ] {
        assert_eq!(kit.read_with(name, parameters).as_deref(), Ok(value), "{name}");
    }
    kit.write("set", "b new text").unwrap();
    assert_eq!(kit.read("b").unwrap(), "new text");
    assert!(kit.write("set", "b-c 1").is_err() && kit.write("set", "").is_err());
    assert!(kit.read_with("get", "zz").is_err() && kit.read("zz").is_err() && kit.write("b", "1").is_err());
    let with_parameters = kit.with(|e, cx| e.script.machine.own_read("now", "x", cx));
    assert_eq!(with_parameters, Err(CallError::Parameters("now".into())));
    assert_eq!(kit.messages(), [""; 0]);
}

#[test]
fn initial_values_are_computed_once_and_in_order() {
    let (mut kit, printed) =
        script("init a 1, init b $(c.count), init e $b$a, set a 2, print $a $b $e, wait 1, loop");
    kit.answer("count", "5");
    kit.expire().unwrap();
    kit.expire().unwrap();
    assert_eq!(printed.take(), "2 5 51\n2 5 51\n");
    assert_eq!(kit.calls().len(), 1);
}

#[test]
fn random_numbers_stay_in_range() {
    let (mut kit, _) = script("TYPE PASSIVE");
    let mut seen = [0u32; 7];
    for _ in 0..2000 {
        let n: i64 = kit.read_with("random", "-3 3").unwrap().parse().unwrap();
        seen[usize::try_from(n + 3).unwrap()] += 1;
        assert!(kit.read_with("random", "10").unwrap().parse::<u8>().unwrap() < 10);
        assert!(kit.read("random").unwrap().parse::<i32>().unwrap() >= 0);
    }
    assert!(seen.iter().all(|&n| n > 200), "{seen:?}");
    assert!(kit.read_with("random", "-9223372036854775808 9223372036854775807").is_ok());
    for bad in ["0", "2 1", "x", "1 2 3", "-9223372036854775808"] {
        assert!(kit.read_with("random", bad).is_err(), "{bad}");
    }
}

#[test]
fn passive_scripts_run_when_called() {
    let (mut kit, printed) = script("TYPE PASSIVE, print $0 $# $1 $2 ${3-none} $write, return $(add $1 $2)");
    assert_eq!(kit.next_timer(), None);
    assert_eq!(kit.read_with("run", "3 4").unwrap(), "7");
    kit.write("run", "1 2 5").unwrap();
    assert_eq!(printed.take(), "run 2 3 4 none false\nrun 3 1 2 5 true\n");

    let (mut kit, _) = script(
        "TYPE PASSIVE, goto base $(le $1 1), return $(mul $1 $(e.run $(sub $1 1))), label base, return 1",
    );
    assert_eq!(kit.read_with("run", "20").unwrap(), "2432902008176640000");
    assert_eq!(kit.messages(), [""; 0]);
    let _ = kit.read_with("run", "1000");
    assert!(kit.messages()[0].contains("'e' calls itself more than 32 deep"));

    let (mut kit, _) = script("TYPE PASSIVE, set x $(run), set y $(run)");
    kit.read("run").unwrap();
    assert!(kit.messages().len() <= 2100, "runs within runs are counted");

    let (mut kit, _) = script("TYPE PASSIVE, set a $(shift) $(shift), returnq \"$a|$args|$#\"");
    assert_eq!(kit.read_with("run", "1 2 3").unwrap(), "1 2|3|1");
    let (mut kit, _) = script("TYPE PASSIVE, errorq \"no $1\"");
    assert_eq!(kit.read_with("run", "x").unwrap_err().to_string(), "no x");
    let (mut kit, printed) = script("TYPE PASSIVE, wait 1, print 1");
    assert_eq!(kit.read("run").unwrap(), "");
    kit.expire().unwrap();
    assert_eq!(printed.take(), "1\n");
}

#[test]
fn proxies_answer_to_any_name() {
    let (mut kit, printed) = script(
        "TYPE PROXY, print \"$0 $write $args\", goto bad $(eq $0 bad), returnq \"<$0>\", label bad, error no, wait 1",
    );
    assert_eq!(
        kit.element.own_handlers(),
        [(
            "*".to_string(),
            castanet_spec::HandlerFlags::READ_WRITE | castanet_spec::HandlerFlags::PARAMETERS
        )]
    );
    assert_eq!(kit.read_with("any", "1 2").unwrap(), "<any>");
    kit.write("other", "x y").unwrap();
    assert_eq!(kit.read("bad").unwrap_err().to_string(), "no");
    assert_eq!(printed.take(), "any false 1 2\nother true x y\nbad false \n");
    assert_eq!(kit.read_with("add", "1 2").unwrap(), "3", "functions are not proxied");
}

#[test]
fn packets_go_where_the_script_says() {
    for (body, out) in [
        ("return 1", Some(1)),
        ("return \"0\"", Some(0)),
        ("return", Some(0)),
        ("end", Some(0)),
        ("", Some(0)),
        ("set x 1", Some(0)),
        ("return 2", None),
        ("return -1", None),
        ("return x", None),
        ("exit", None),
        ("error", None),
        ("pause", None),
        ("wait 1", None),
        ("label a, goto a", None),
        ("return $input", Some(1)),
    ] {
        let (mut kit, _) = ported(&format!("TYPE PACKET, {body}"), 2, 2);
        let sent = kit.push(1, [packet(&[1]), packet(&[2]), packet(&[3])]);
        let expected: Vec<_> = out.into_iter().flat_map(|o| [(o, 1), (o, 2), (o, 3)]).collect();
        assert_eq!(sent.iter().map(|(o, p)| (*o, p.data()[0])).collect::<Vec<_>>(), expected, "{body}");
        assert_eq!(kit.dropped(Reason::Script) as usize + sent.len(), 3, "{body}");
        assert_eq!((kit.all_dropped(), kit.next_timer()), (kit.dropped(Reason::Script), None), "{body}");
    }
    for size in [1, 2, 3, 32] {
        let (mut kit, _) = ported("init n 0, set n $(add $n 1), return $(mod $n 2)", 1, 2);
        let packets: Vec<_> = (0..32u8).collect();
        let mut odd = Vec::new();
        for chunk in packets.chunks(size) {
            odd.extend(
                kit.push(0, chunk.iter().map(|&b| packet(&[b])))
                    .into_iter()
                    .filter(|s| s.0 == 1)
                    .map(|s| s.1.data()[0]),
            );
        }
        assert_eq!(odd, (0..32).step_by(2).collect::<Vec<u8>>());
    }
    let (mut kit, _) = ported("return 0", 1, 1);
    for b in 0..5u8 {
        kit.supply(0, packet(&[b]));
    }
    assert_eq!(kit.pull(0, 3).len(), 3);
    assert_eq!(kit.pull(0, 32).len(), 2);
    let (mut kit, _) = ported("stop", 1, 1);
    kit.push(0, [packet(&[1])]);
    assert_eq!((kit.stops(), kit.dropped(Reason::Script)), (1, 1));
}

#[test]
fn active_scripts() {
    let (mut kit, printed) = script("print 1, stop, print 2");
    kit.expire().unwrap();
    assert_eq!((printed.take().as_str(), kit.stops()), ("1\n", 1));
    assert!(kit.expire().is_none());

    let (mut kit, printed) = script("pause 2, print 1, wait, print 2, wait 1ms, print 3");
    kit.expire().unwrap();
    kit.write("step", "").unwrap();
    assert_eq!(printed.take(), "");
    kit.write("step", "").unwrap();
    assert_eq!(printed.take(), "1\n");
    kit.write("step", "1").unwrap();
    kit.expire().unwrap();
    assert_eq!((printed.take().as_str(), kit.stops()), ("2\n3\n", 0));

    let (mut kit, printed) = script("print 1, wait 1, print 2, exit, label here, print 3, wait 1, print 4");
    kit.expire().unwrap();
    kit.write("goto", "here true").unwrap();
    kit.write("goto", "here false").unwrap();
    assert!(kit.write("goto", "nowhere").is_err() && kit.write("goto", "here x").is_err());
    kit.expire().unwrap();
    assert_eq!(printed.take(), "1\n3\n4\n");
    assert!(kit.expire().is_none());
}

#[test]
fn signals_start_scripts_again_after_the_end() {
    let (mut kit, printed) = script("TYPE SIGNAL USR1, print 1, wait 1, print 2");
    assert_eq!(kit.next_timer(), None);
    kit.signal(10);
    kit.signal(10);
    assert_eq!(printed.take(), "1\n");
    kit.expire().unwrap();
    kit.signal(10);
    assert_eq!(printed.take(), "2\n1\n");
    let (mut kit, printed) = script("TYPE SIGNAL INT WINCH, print 1, exit");
    kit.signal(2);
    // By default, SIGWINCH has no effect.
    kit.signal(28);
    assert_eq!((printed.take().as_str(), kit.stops()), ("1\n", 0));
    kit.signal(2);
    assert_eq!(kit.stops(), 1, "an interrupt that no script takes stops the driver");
}

#[test]
fn configuration_errors() {
    for (config, inputs, outputs, errors) in [
        ("foo", 0, 0, &["syntax error at 'foo'"][..]),
        ("TYPE PASSIVE, foo, goto nowhere", 0, 0, &["syntax error at 'foo'", "no such label 'nowhere'"]),
        ("TYPE LAZY", 0, 0, &["TYPE: expected ACTIVE, PASSIVE, PACKET, PROXY, DRIVER or SIGNAL"]),
        ("TYPE SIGNAL", 0, 0, &["TYPE: SIGNAL is followed by one signal or more"]),
        ("TYPE PACKET", 0, 0, &["a script of type PACKET needs an input"]),
        ("TYPE ACTIVE", 1, 1, &["only scripts of type PACKET have ports"]),
        ("", 0, 1, &["a script of type PACKET needs an input"]),
    ] {
        assert_eq!(Kit::<Script>::with_ports(config, inputs, outputs).err().unwrap(), errors, "{config}");
    }
}
