// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies class declarations out of a library.
//!
//! Graphs, names and messages keep `&'static` references to declarations for an unlimited time. These
//! references point to a copy that is never freed. One copy is made for each content of a library, however
//! often that content is loaded.

use castanet_spec::{ArgSpec, ClassSpec, HandlerSpec};

fn text(s: &str) -> &'static str {
    String::leak(s.to_string())
}

fn list<T, U>(all: &[T], f: impl FnMut(&T) -> U) -> &'static [U] {
    Vec::leak(all.iter().map(f).collect())
}

fn argument(a: &ArgSpec) -> ArgSpec {
    // All fields are named, so that the compiler reports an error here when a field is added.
    let ArgSpec { name, aliases, deprecated, kind, mandatory, default, type_name, doc } = *a;
    ArgSpec {
        name: text(name),
        aliases: list(aliases, |a| text(a)),
        deprecated: list(deprecated, |a| text(a)),
        kind,
        mandatory,
        default: text(default),
        type_name: text(type_name),
        doc: text(doc),
    }
}

fn handler(h: &HandlerSpec) -> HandlerSpec {
    let HandlerSpec { name, flags, doc, kind, unit, merge } = *h;
    HandlerSpec { name: text(name), flags, doc: text(doc), kind, unit: text(unit), merge }
}

/// Copies a declaration. The copy is never freed.
pub fn spec(s: &ClassSpec) -> &'static ClassSpec {
    let ClassSpec {
        name,
        aliases,
        module,
        type_name,
        doc,
        ports,
        processing,
        flow,
        packets,
        packets_if,
        alignment,
        args,
        handlers,
        arg_handlers,
        indexed,
        workers,
        offload,
        effects,
        reconfigure,
        config_follows,
        takes_state,
        counts,
        drops,
        ledger_role,
        ends,
        capabilities,
        host,
        task,
        copies,
        descending,
        fifo,
        depends,
        clock,
        information,
    } = *s;
    Box::leak(Box::new(ClassSpec {
        name: text(name),
        aliases: list(aliases, |a| text(a)),
        module: text(module),
        type_name: text(type_name),
        doc: text(doc),
        ports: text(ports),
        processing: text(processing),
        flow: text(flow),
        packets: text(packets),
        packets_if: list(packets_if, |(condition, code)| (text(condition), text(code))),
        alignment: text(alignment),
        args: list(args, argument),
        handlers: list(handlers, handler),
        arg_handlers: list(arg_handlers, handler),
        indexed: list(indexed, handler),
        workers,
        offload,
        effects,
        reconfigure,
        config_follows,
        takes_state: text(takes_state),
        counts,
        drops: list(drops, |d| *d),
        ledger_role,
        ends: list(ends, |d| *d),
        capabilities: list(capabilities, |c| *c),
        host: list(host, |h| *h),
        task,
        copies,
        descending,
        fifo,
        depends,
        clock,
        information,
    }))
}
