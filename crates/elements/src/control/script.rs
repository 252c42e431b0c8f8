// SPDX-License-Identifier: MIT OR Apache-2.0
//! Script: runs a program written in the configuration.

mod call;
pub(super) mod class;
mod function;
mod handlers;
mod instruction;
mod kill;
pub(super) mod machine;
mod number;
mod output;
mod program;
mod report;
pub(super) mod script_type;
mod sprintf;
mod substitute;
#[cfg(test)]
pub(crate) mod tests;

use castanet_element::prelude::*;

/// Runs a script.
///
/// Each argument is an instruction; instructions run in order. TYPE says when the script starts: ACTIVE (the default
/// without ports) when the router starts; PASSIVE when the script's handler `run` is called; PACKET (with ports) for
/// each packet; PROXY when any handler of the script is called; DRIVER before any task runs; SIGNAL when a signal
/// arrives.
///
/// | instruction | what it does |
/// |---|---|
/// | `set V TEXT`, `init`, `export` | sets a variable; `init` does it at the start; `export` also makes a handler |
/// | `print [>FILE] TEXT`, `printn` | prints a text, or the value of a handler; `printn` prints no line end |
/// | `save HANDLER [FILE]`, `append` | writes the value of a handler to a file |
/// | `read HANDLER`, `write HANDLER [VALUE]` | shows the value of a handler as a message; calls a write handler |
/// | `pause [N]`, `wait [TIME]` | `pause` waits for N steps; `wait` waits until TIME has passed or the next step is granted |
/// | `label L`, `goto L [CONDITION]`, `loop` | mark a label, jump to a label, jump to the start; see below |
/// | `return [VALUE]`, `error [TEXT]`, `end`, `exit`, `stop` | end the script; `stop` requests a stop of the router |
///
/// Every script also has the labels `begin`, `end`, `exit`, `stop` and `error`. The forms with a `q` at the end
/// (`setq`, `printq`...) unquote the text. In texts, `$x`, `${x}`, `${x-default}` and `${x[N]}` stand for variables,
/// and `$(handler parameters)` for the value of a handler. A handler name without an element stands for a handler of
/// the script itself, or, if it has none of that name, for a global handler. `$?` is the status of the last `write`.
/// `$args`, `$1`... and `$#` are the arguments of `run`. `$0` is the name of the handler that started the run (`run`,
/// or any handler of a PROXY), and `$write` is true if it was called as a write handler. `$input` is the port of a
/// packet, and `$$` the process ID. A step is a call of the handler `step`; for a DRIVER script, a request to stop is
/// also a step. After 1000 jumps without a waiting instruction between them, the script is ended; 32 KiB of substituted
/// text count as a jump.
///
/// # Ports
/// Only scripts of TYPE PACKET have ports. A packet of any input leaves on the output whose number the script returns,
/// or on output 0 after `end`. It is dropped after `exit`, or if there is no such output.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 4) -> c :: Counter
///     -> odd :: Script(TYPE PACKET, return $(mod $(add $(c.count) $input) 2)) -> Discard;
/// odd [1] -> d :: Discard;
/// Script(wait 0.01, print $(d.count), write stop);
/// ```
#[derive(Class)]
#[class(name = "Script", ports = "-/-", processing = "ah/ah", packets = "any/same", workers = exclusive)]
#[class(effects(prints, files, calls, stops), drops(Script), capabilities(EmptyNotifier))]
pub struct Script {
    #[engine(element)]
    script: class::Scripted<false>,
}
