// SPDX-License-Identifier: MIT OR Apache-2.0
//! Warns about names in scripts: misspelt variables, and handler calls whose element or handler does not exist. At run
//! time, such a call fails only when the script executes it, which may be long after the start.

use crate::load::is_script;
use castanet_graph::Graph;
use castanet_lang::args::{cleaned, split, unquote, words};
use castanet_lang::{Diagnostic, Element, nearest};
use castanet_runtime::{global_handlers, handlers::provided};
use castanet_spec::value::Nanos;
use castanet_spec::{ArgCx, ArgValue, ClassSpec, HandlerSpec, Names, Origin};
use std::ops::Range;

/// A call of a handler in a script: its range in the configuration string, and whether it writes the handler.
struct Call {
    place: Range<usize>,
    write: bool,
}

/// Warns about each call in a script that cannot succeed. Calls whose names are computed at run time are not
/// checked.
pub fn calls(graph: &Graph) -> Vec<Diagnostic> {
    let scripts = (0..graph.len()).filter(|&e| graph.spec(e).is_some_and(is_script));
    scripts.flat_map(|e| of_script(graph, e)).collect()
}

fn of_script(graph: &Graph, e: usize) -> Vec<Diagnostic> {
    let Some(element) = graph.element(e) else { return Vec::new() };
    let config = element.config.as_str();
    let found = split(config).into_iter().flat_map(|argument| calls_of(config, argument));
    let wrong = found.filter_map(|call| warning(graph, e, &call));
    let waits = split(config).into_iter().filter_map(|argument| wrong_wait(element, argument));
    wrong.chain(waits).chain(misspelt_variables(element)).collect()
}

/// Warns about a `wait` whose argument is not a time, and about a `pause` whose argument is not a number.
fn wrong_wait(script: &Element, argument: Range<usize>) -> Option<Diagnostic> {
    let text = script.config.get(argument.clone())?;
    let words = words(text);
    let instruction = text.get(words.first()?.clone())?;
    let value = words.get(1)?.start..text.len();
    let written = unquote(&cleaned(text, value.clone()));
    if written.contains('$') {
        return None;
    }
    let cx = ArgCx { scope: "", names: &Names::new(), origin: Origin::Operator };
    let (wanted, right) = match instruction {
        "wait" | "wait_time" | "wait_for" => {
            ("a time, such as 1.5 or 100ms", Nanos::parse(written.trim(), &cx).is_ok())
        }
        "pause" | "wait_step" | "wait_stop" => ("a number", u32::parse(written.trim(), &cx).is_ok()),
        _ => return None,
    };
    let span = script.config_place(argument.start + value.start..argument.end);
    let warning = Diagnostic::warning(format!("'{}' is not {wanted}", written.trim()), span);
    let help = format!("write {wanted}, after '{instruction}'");
    (!right).then(|| warning.at("the script will not wait here").help(help))
}

/// Warns about variables that the script never sets, if their name is similar to a variable that the script does set.
/// Other variables are not reported, because other elements may set them through the handler `set`.
fn misspelt_variables(script: &Element) -> Vec<Diagnostic> {
    let config = script.config.as_str();
    let set = variables(config, &["set", "setq", "init", "initq", "export", "exportq"]);
    let mut found = Vec::new();
    for (at, _) in config.match_indices('$') {
        let rest = config.get(at + 1..).unwrap_or("");
        let (rest, start) = rest.strip_prefix('{').map_or((rest, at + 1), |r| (r, at + 2));
        let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let name = rest.get(..length).unwrap_or("");
        let escaped = config.get(..at).is_some_and(|before| before.ends_with('\\'));
        let given = name.starts_with(|c: char| !c.is_ascii_alphabetic())
            || matches!(name, "args" | "input" | "write");
        if name.is_empty() || escaped || given || set.contains(&name) {
            continue;
        }
        if let Some(near) = nearest(name, set.iter().copied()) {
            let span = script.config_place(start..start + length);
            let message = format!("the script does not set variable '{name}'");
            found.push(Diagnostic::warning(message, span).at("left as written").did_you_mean(near));
        }
    }
    found
}

/// Returns the calls of one instruction: its own call, and those in substitutions `$(ELEMENT.HANDLER ...)`.
fn calls_of(config: &str, argument: Range<usize>) -> Vec<Call> {
    let text = config.get(argument.clone()).unwrap_or("");
    let at = |r: Range<usize>| argument.start + r.start..argument.start + r.end;
    let mut words = words(text).into_iter();
    let instruction = words.next().and_then(|r| text.get(r)).unwrap_or("");
    let mut calls = Vec::new();
    let mut own = words.next();
    if instruction.starts_with("print")
        && own.as_ref().is_some_and(|r| text.get(r.clone()).is_some_and(|w| w.starts_with('>')))
    {
        own = words.next();
    }
    let write = matches!(instruction, "write" | "writeq");
    let calls_handler = write
        || matches!(
            instruction,
            "print" | "printq" | "printn" | "printnq" | "read" | "readq" | "save" | "append"
        );
    calls.extend(own.filter(|_| calls_handler).map(|r| Call { place: at(r), write }));
    for (start, _) in text.match_indices("$(") {
        let rest = text.get(start + 2..).unwrap_or("");
        let length =
            rest.find(|c: char| c.is_whitespace() || matches!(c, ')' | '$' | '"')).unwrap_or(rest.len());
        let computed = rest.get(length..).is_some_and(|r| r.starts_with(['$', '"']));
        if !computed {
            calls.push(Call { place: at(start + 2..start + 2 + length), write: false });
        }
    }
    calls
}

fn warning(graph: &Graph, e: usize, call: &Call) -> Option<Diagnostic> {
    let script = graph.element(e)?;
    let text = script.config.get(call.place.clone())?;
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_@/.".contains(c));
    let span = script.config_place(call.place.clone());
    let told = |message: String| {
        Diagnostic::warning(message, span).at("this call fails when the script comes to it")
    };
    let named = text.find(|c: char| !(c.is_ascii_alphanumeric() || "_@/.".contains(c)));
    if let Some((before, after)) = named.and_then(|n| text.split_at_checked(n)).filter(|t| !t.0.is_empty()) {
        let help = match after {
            ";" => "instructions are separated by commas: write ',' for ';'".to_string(),
            "()" => format!("a handler is called without parentheses: {before}"),
            _ => return None,
        };
        return Some(told(format!("'{text}' is not the name of a handler")).help(help));
    }
    if plain && !text.contains('.') {
        return global(graph, e, text, call.write).map(|(message, help)| told(message).help(help));
    }
    let (name, handler) = text.rsplit_once('.').filter(|_| plain)?;
    let Some(callee) = graph.flat.find_from(script.scope(), name) else {
        let d = told(format!("no element named '{name}'"));
        let names = graph.flat.elements.iter().map(|e| e.name.as_str());
        return Some(match nearest(name, names) {
            Some(near) => d.did_you_mean(&format!("{near}.{handler}")),
            None => d.help("write ELEMENT.HANDLER, with the name of an element as it is declared"),
        });
    };
    // Handlers of scripts are not checked, because each script defines its own.
    let spec = graph.spec(callee).filter(|s| !is_script(s))?;
    let base = handler.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = handler.strip_prefix(base).unwrap_or_default();
    let names = handlers(spec, call.write, digits);
    if names.iter().any(|n| n == handler) {
        return None;
    }
    let kind = if call.write { "write" } else { "read" };
    let d = told(format!("'{}' has no {kind} handler '{handler}'", graph.declaration(callee)));
    Some(match nearest(handler, names.iter().map(String::as_str)) {
        Some(near) => d.did_you_mean(&format!("{name}.{near}")),
        None if names.is_empty() => d.help(format!("{} has no {kind} handlers", spec.name)),
        None => d.help(format!("its {kind} handlers are {}", names.join(", "))),
    })
}

/// Returns the variables that the given instructions set: the first word after each instruction.
fn variables<'a>(config: &'a str, instructions: &[&str]) -> Vec<&'a str> {
    let first_two = split(config).into_iter().filter_map(|argument| {
        let text = config.get(argument)?;
        let mut words = words(text).into_iter().filter_map(|r| text.get(r));
        Some((words.next()?, words.next()?))
    });
    first_two.filter(|(word, _)| instructions.contains(word)).map(|(_, variable)| variable).collect()
}

/// Checks a call that names no element. Such a call is for a handler of the script itself, or for a global handler.
/// Returns a message and a help text if there is neither.
fn global(graph: &Graph, e: usize, handler: &str, write: bool) -> Option<(String, String)> {
    let (script, spec) = (graph.element(e)?, graph.spec(e)?);
    let exported = variables(&script.config, &["export", "exportq"]).contains(&handler);
    let of_proxy = variables(&script.config, &["TYPE"]).iter().any(|kind| kind.eq_ignore_ascii_case("PROXY"));
    let given = global_handlers::global(true).any(|h| h.name == handler);
    if exported || of_proxy || given || handlers(spec, write, "").iter().any(|h| h == handler) {
        return None;
    }
    let kind = if write { "write" } else { "read" };
    let variable = variables(&script.config, &["set", "setq", "init", "initq"]).contains(&handler);
    let help = match graph.flat.find_from(script.scope(), handler) {
        _ if variable => format!("'{handler}' is a variable: write '${handler}'"),
        Some(_) => format!("'{handler}' is an element: write '{handler}.HANDLER'"),
        None if write => "write ELEMENT.HANDLER, or the name of a global handler".to_string(),
        None => format!("a text stands in quotes: \"{handler}\""),
    };
    Some((format!("there is no global {kind} handler '{handler}'"), help))
}

/// Returns the names of the write handlers (if `write`) or read handlers of a class. In the names of numbered handlers
/// such as `patternN`, `digits` replaces the `N`, unless `digits` is empty.
fn handlers(spec: &ClassSpec, write: bool, digits: &str) -> Vec<String> {
    let right = |h: &&HandlerSpec| if write { h.writable() } else { h.readable() };
    let number = if digits.is_empty() { "N" } else { digits };
    let all = spec
        .all_handlers()
        .chain(provided(spec.task, !spec.drops.is_empty()))
        .filter(right)
        .map(|h| h.name.to_string());
    all.chain(spec.indexed.iter().filter(right).map(|h| format!("{}{number}", h.name))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Source, load};
    use castanet_lang::Unknown;

    fn warnings(script: &str) -> Vec<String> {
        let text = format!(
            "Idle -> c :: Counter -> counter :: Counter -> r :: StrideSwitch(1) -> Discard; s :: Script(TYPE PASSIVE, return 5); Script({script});"
        );
        let loaded = load(&Source::text("test", &text, Vec::new()), None, Unknown::Error);
        assert!(!loaded.failed(), "{script}: {:?}", loaded.diagnostics);
        let shown = |d: Diagnostic| {
            format!(
                "{}: {} {}",
                loaded.sources.snippet(d.span.unwrap_or_default()),
                d.message,
                d.helps.join("")
            )
        };
        calls(&loaded.graph).into_iter().map(shown).collect()
    }

    #[test]
    fn calls_that_cannot_succeed() {
        for (script, want) in [
            ("print c.cout", "c.cout: 'c :: Counter' has no read handler 'cout' did you mean 'c.count'?"),
            (
                "print >x.txt c.cout",
                "c.cout: 'c :: Counter' has no read handler 'cout' did you mean 'c.count'?",
            ),
            (
                "write r.ticket0 5",
                "r.ticket0: 'r :: StrideSwitch' has no write handler 'ticket0' did you mean 'r.tickets0'?",
            ),
            (
                "print c.active0",
                "c.active0: 'c :: Counter' has no read handler 'active0' its read handlers are count, byte_count, rate, bit_rate, byte_rate, count_call, handlers, ports, config, class, name",
            ),
            (
                "write counter1.reset",
                "counter1.reset: no element named 'counter1' did you mean 'counter.reset'?",
            ),
            (
                "set x $(add 1 $(c.cout))",
                "c.cout: 'c :: Counter' has no read handler 'cout' did you mean 'c.count'?",
            ),
            ("init x 5, print x", "x: there is no global read handler 'x' 'x' is a variable: write '$x'"),
            (
                "print \"TYPE PROXY\", print prxy",
                "prxy: there is no global read handler 'prxy' a text stands in quotes: \"prxy\"",
            ),
            (
                "goto end $(gt $(nix.length) 5)",
                "nix.length: no element named 'nix' write ELEMENT.HANDLER, with the name of an element as it is declared",
            ),
        ] {
            assert_eq!(warnings(script)[..1], [want.to_string()], "{script}");
        }
        assert!(
            warnings("write c.count 0")[0].contains("no write handler 'count'"),
            "{:?}",
            warnings("write c.count 0")
        );
    }

    #[test]
    fn habits_of_other_languages() {
        let semicolon = "c.count;: 'c.count;' is not the name of a handler instructions are separated by commas: write ',' for ';'";
        let parentheses = "c.reset(): 'c.reset()' is not the name of a handler a handler is called without parentheses: c.reset";
        let time =
            "abc: 'abc' is not a time, such as 1.5 or 100ms write a time, such as 1.5 or 100ms, after 'wait'";
        for (script, want) in [
            ("print c.count; stop", semicolon),
            ("write c.reset()", parentheses),
            ("wait abc", time),
            (
                "wait 1s; stop",
                "1s; stop: '1s; stop' is not a time, such as 1.5 or 100ms write a time, such as 1.5 or 100ms, after 'wait'",
            ),
            ("write c reset", "c: there is no global write handler 'c' 'c' is an element: write 'c.HANDLER'"),
            ("print foo", "foo: there is no global read handler 'foo' a text stands in quotes: \"foo\""),
            ("pause 1s", "1s: '1s' is not a number write a number, after 'pause'"),
        ] {
            assert_eq!(warnings(script), [want], "{script}");
        }
        for script in
            ["wait 100ms", "wait $x", "wait", "pause 3", "wait_stop", "wait $(add 1 2)s", "wait \"1.5\""]
        {
            assert_eq!(warnings(script), [""; 0], "{script}");
        }
    }

    #[test]
    fn misspelt_variables_are_near_others() {
        let want = "cuont: the script does not set variable 'cuont' did you mean 'count'?".to_string();
        assert_eq!(warnings("set count 5, print $cuont"), std::slice::from_ref(&want));
        assert_eq!(warnings("print ${cuont}, init count 5"), [want]);
        for script in [
            "set count 5, print $count",
            "set count 5, print $other",
            "set arg 5, print $args $? $1",
            "print $cuont",
        ] {
            assert_eq!(warnings(script), [""; 0], "{script}");
        }
    }

    #[test]
    fn calls_that_may_succeed() {
        for script in [
            "print c.count",
            "print \"c.cout\"",
            "set x c.cout",
            "print $(c.count)",
            "print s.anything",
            "print list",
            "write stop",
            "write hotconfig x",
            "print now",
            "export x 1, print x",
            "write c.reset",
            "print r.tickets0",
            "write r.tickets12 5",
            "print $x.count",
            "print $($x.count)",
            "print c.config",
            "print 1.5",
            "wait 0.5",
        ] {
            assert_eq!(warnings(script), [""; 0], "{script}");
        }
    }
}
