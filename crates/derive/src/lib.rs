// SPDX-License-Identifier: MIT OR Apache-2.0
//! `#[derive(Class)]` and `#[derive(Args)]`: a class is declared in one place, on its struct.
//!
//! The attributes are documented with the traits, in the crate `castanet-element`.
#![forbid(unsafe_code)]

mod args;
mod class;
mod counts;
mod flags;
mod handlers;

use proc_macro::TokenStream;
use proc_macro2::TokenStream as TokenStream2;
use quote::quote;
use syn::{Attribute, DeriveInput, Expr, Lit, Meta, parse_macro_input};

/// Declares an element class: `#[class(name = "DecIPTTL", ports = "1/1-2", ...)]`, and `#[count(...)]` on fields.
#[proc_macro_derive(Class, attributes(class, count, counts, engine))]
pub fn derive_class(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    class::expand(&input).unwrap_or_else(|e| e.to_compile_error()).into()
}

/// Declares handlers of a class as methods of an `impl` block. The attribute `#[class(...)]` of the class must contain
/// `handlers`.
///
/// `#[read]` on a method declares a read handler. The method returns the value, or a `Result` of it. The
/// value may have any type that implements `Show`, which says what kind of value it is. `#[write]` declares a
/// write handler. The method returns `()`, or a `Result` of `()`.
///
/// After `self`, a method may take one more argument, then `cx: &mut Cx<'_>`. For a write, this argument is
/// the value that was written; for a read, it holds the parameters. Its type is `&str` or any type that
/// arguments of classes can have. A handler has the name of its method; a write handler drops the prefix
/// `set_`. A read and a write of the same name are one handler.
///
/// Both attributes take `name = "..."` and the flags `raw`, `calm`, `expensive`, `uncommon`, `deprecated`,
/// `button`, `checkbox`, `private` (hidden from lists) and `files` (only clients with the right to open files
/// may call it). A read takes `unit = "packets"` and `merge = sum`, `first` or `max`, which says how the
/// values of several workers are combined. Without `merge`, counters and rates are added, and all other
/// values are assumed to be the same for all workers.
///
/// `each = self.patterns.len()` declares numbered handlers (`pattern0`, `pattern1` and so on), as many as the
/// expression says. Their methods take the number of the handler as a `usize` right after `self`.
///
/// In a generic engine, `only = A::CONDITION` limits a handler to the classes for which the constant is true. All such
/// handlers of a block must have the same condition.
#[proc_macro_attribute]
pub fn handlers(arguments: TokenStream, block: TokenStream) -> TokenStream {
    if !arguments.is_empty() {
        let message = "#[handlers] takes no arguments";
        return syn::Error::new(proc_macro2::Span::call_site(), message).to_compile_error().into();
    }
    let block = parse_macro_input!(block as syn::ItemImpl);
    handlers::expand(block).into()
}

/// Declares the counts of an engine, or of another part of a class: `#[count(...)]` on fields, as in a class.
#[proc_macro_derive(Counts, attributes(count, counts))]
pub fn derive_counts(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    counts::expand(&input).unwrap_or_else(|e| e.to_compile_error()).into()
}

/// Declares the arguments of a class: one field each, with `#[arg(...)]`. The name of a handler that writes an
/// argument is also a constant: `Args::RATE`.
#[proc_macro_derive(Args, attributes(arg, args))]
pub fn derive_args(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    args::expand(&input).unwrap_or_else(|e| e.to_compile_error()).into()
}

/// Joins lists of declarations of type `ty` into one slice.
fn joined(ty: &TokenStream2, lists: &[TokenStream2]) -> TokenStream2 {
    if let [only] = lists {
        return only.clone();
    }
    quote! {{
        const LISTS: &[&[#ty]] = &[#(#lists),*];
        const COUNT: usize = ::castanet_element::spec::lists::count(LISTS);
        const ALL: [#ty; COUNT] = ::castanet_element::spec::lists::concat(LISTS, <#ty>::EMPTY);
        &ALL
    }}
}

/// The documentation comment: one line of text for each line of comment.
fn doc(attributes: &[Attribute]) -> String {
    let mut out = String::new();
    for a in attributes.iter().filter(|a| a.path().is_ident("doc")) {
        if let Meta::NameValue(nv) = &a.meta
            && let Expr::Lit(l) = &nv.value
            && let Lit::Str(s) = &l.lit
        {
            let line = s.value();
            out.push_str(line.strip_prefix(' ').unwrap_or(&line));
            out.push('\n');
        }
    }
    out.trim().to_string()
}

/// The documentation comment on one line.
fn doc_line(attributes: &[Attribute]) -> String {
    doc(attributes).split_whitespace().collect::<Vec<_>>().join(" ")
}
