// SPDX-License-Identifier: MIT OR Apache-2.0
//! The flags of handlers, in attributes and in generated code.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::Ident;

/// A flag of a handler.
pub struct Flag {
    /// The letter in a `handlers` listing.
    pub letter: char,
    /// The word in `#[read(...)]` and `#[write(...)]`. Empty for flags that follow from the method.
    pub word: &'static str,
    /// The name of the constant of `HandlerFlags`.
    constant: &'static str,
}

const fn flag(letter: char, word: &'static str, constant: &'static str) -> Flag {
    Flag { letter, word, constant }
}

/// All flags that a class can give a handler.
pub const FLAGS: &[Flag] = &[
    flag('r', "", "READ"),
    flag('w', "", "WRITE"),
    flag('+', "", "PARAMETERS"),
    flag('%', "raw", "RAW"),
    flag('.', "calm", "CALM"),
    flag('$', "expensive", "EXPENSIVE"),
    flag('U', "uncommon", "UNCOMMON"),
    flag('D', "deprecated", "DEPRECATED"),
    flag('b', "button", "BUTTON"),
    flag('c', "checkbox", "CHECKBOX"),
    flag('p', "private", "PRIVATE"),
    flag('F', "files", "OPENS_FILES"),
];

/// Generates the flags with these letters. Returns an error text if a letter is unknown.
pub fn of(letters: &str) -> Result<TokenStream, String> {
    let mut out = quote!(::castanet_element::spec::HandlerFlags::empty());
    for letter in letters.chars() {
        let Some(flag) = FLAGS.iter().find(|f| f.letter == letter) else {
            let known: String = FLAGS.iter().map(|f| f.letter).collect();
            return Err(format!("'{letter}' is not a flag of handlers; expected letters of {known}"));
        };
        let constant = Ident::new(flag.constant, Span::call_site());
        out.extend(quote!(.union(::castanet_element::spec::HandlerFlags::#constant)));
    }
    Ok(out)
}
