// SPDX-License-Identifier: MIT OR Apache-2.0
//! `#[derive(Class)]` and `#[derive(Args)]`: a class is declared once, on its struct, and read by everybody.
//!
//! The attributes are documented with the traits, in the crate `castanet-element`.
#![forbid(unsafe_code)]

mod args;
mod class;

use proc_macro::TokenStream;
use syn::{Attribute, DeriveInput, Expr, Lit, Meta, parse_macro_input};

/// Declares an element class: `#[class(name = "DecIPTTL", ports = "1/1-2", ...)]`, `#[handler(...)]`.
#[proc_macro_derive(Class, attributes(class, handler))]
pub fn derive_class(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    class::expand(&input).unwrap_or_else(|e| e.to_compile_error()).into()
}

/// Declares the arguments of a class: one field each, with `#[arg(...)]`.
#[proc_macro_derive(Args, attributes(arg))]
pub fn derive_args(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    args::expand(&input).unwrap_or_else(|e| e.to_compile_error()).into()
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

/// The same on one line.
fn doc_line(attributes: &[Attribute]) -> String {
    doc(attributes).split_whitespace().collect::<Vec<_>>().join(" ")
}
