// SPDX-License-Identifier: MIT OR Apache-2.0
//! The attributes `#[args(at_most_one(...))]` and `#[args(exactly_one(...))]`: arguments that exclude each other.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::punctuated::Punctuated;
use syn::{Attribute, Error, Ident, Token, Type, parenthesized};

/// Arguments of which only one may be given.
pub struct Choice {
    fields: Vec<Ident>,
    /// Whether one of the arguments must be given.
    mandatory: bool,
}

/// Returns the choices that the attributes of a struct declare.
pub fn of(attrs: &[Attribute]) -> syn::Result<Vec<Choice>> {
    let mut out = Vec::new();
    for a in attrs.iter().filter(|a| a.path().is_ident("args")) {
        a.parse_nested_meta(|m| {
            let mandatory = m.path.is_ident("exactly_one");
            if !mandatory && !m.path.is_ident("at_most_one") {
                return Err(m.error("expected at_most_one(...) or exactly_one(...)"));
            }
            let list;
            parenthesized!(list in m.input);
            let fields = Punctuated::<Ident, Token![,]>::parse_terminated(&list)?;
            if fields.len() < 2 {
                return Err(m.error("a choice needs two arguments or more"));
            }
            out.push(Choice { fields: fields.into_iter().collect(), mandatory });
            Ok(())
        })?;
    }
    Ok(out)
}

impl Choice {
    /// Generates the statement that checks the choice. An argument of type `bool` counts as given only if it is true.
    pub fn check(&self, arguments: &[(&Ident, &Type, TokenStream)]) -> syn::Result<TokenStream> {
        let mut given = Vec::new();
        for field in &self.fields {
            let Some((name, ty, index)) = arguments.iter().find(|(name, ..)| *name == field) else {
                return Err(Error::new_spanned(field, format!("there is no argument {field}")));
            };
            let off = match ty.to_token_stream().to_string() == "bool" {
                true => quote!(#name == Some(false)),
                false => quote!(false),
            };
            given.push(quote!((#index, #off)));
        }
        let mandatory = self.mandatory;
        Ok(quote!(parser.choose(&[#(#given),*], #mandatory)?;))
    }
}
