// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sorts the fields of a class by purpose: engine, arguments, other fields.

use crate::counts::Counts;
use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Fields, Ident, Type};

pub struct Parts<'a> {
    /// The name and the type of the field with `#[engine]`.
    pub engine: Option<(&'a Ident, &'a Type)>,
    /// Whether the handlers of the engine precede those of the class.
    pub engine_first: bool,
    /// Whether the engine processes the packets of the class.
    pub engine_processes: bool,
    /// The type of the field `args`.
    args: Option<&'a Type>,
    /// The other fields.
    rest: Vec<&'a Ident>,
    pub counts: Counts,
}

impl<'a> Parts<'a> {
    pub fn new(input: &'a DeriveInput) -> syn::Result<Parts<'a>> {
        let ident = &input.ident;
        let Data::Struct(data) = &input.data else {
            return Err(Error::new_spanned(ident, "a class is a struct"));
        };
        if let Fields::Unnamed(_) = &data.fields {
            return Err(Error::new_spanned(ident, "a class has named fields"));
        }
        let mut parts = Parts {
            engine: None,
            engine_first: false,
            engine_processes: false,
            args: None,
            rest: Vec::new(),
            counts: Counts::default(),
        };
        for f in &data.fields {
            let Some(id) = &f.ident else { continue };
            if let Some(a) = f.attrs.iter().find(|a| a.path().is_ident("engine")) {
                if let syn::Meta::List(_) = a.meta {
                    a.parse_nested_meta(|m| {
                        match m.path.get_ident().map(ToString::to_string).as_deref() {
                            Some("handlers_first") => parts.engine_first = true,
                            Some("element") => parts.engine_processes = true,
                            _ => return Err(m.error("expected handlers_first or element")),
                        }
                        Ok(())
                    })?;
                }
                if parts.engine.replace((id, &f.ty)).is_some() {
                    return Err(Error::new_spanned(f, "a class has one engine"));
                }
            } else if id == "args" {
                parts.args = Some(&f.ty);
            } else {
                parts.rest.push(id);
            }
            parts.counts.add(f)?;
        }
        if parts.args.is_some() && parts.engine.is_some() {
            return Err(Error::new_spanned(
                ident,
                "the engine has the arguments: the class has no field args beside it",
            ));
        }
        Ok(parts)
    }

    /// Returns the type of the arguments, which belong to the engine or to the class itself.
    pub fn args_type(&self) -> TokenStream {
        match (self.engine, self.args) {
            (Some((_, ty)), _) => quote!(<#ty as ::castanet_element::Engine>::Args),
            (None, Some(ty)) => quote!(#ty),
            (None, None) => quote!(::castanet_element::spec::NoArgs),
        }
    }

    /// The expression through which handlers read and write arguments; `None` for a class without arguments.
    pub fn args(&self) -> Option<TokenStream> {
        match (self.engine, self.args) {
            (Some((e, _)), _) => Some(quote!(self.#e.args())),
            (None, Some(_)) => Some(quote!(&mut self.args)),
            (None, None) => None,
        }
    }

    /// Generates the implementation of `Build`, which fills in the arguments or builds the engine, and gives all other
    /// fields their defaults.
    pub fn build_impl(&self, ident: &Ident) -> TokenStream {
        let (args, cx, field) = match (self.engine, self.args) {
            (Some((e, ty)), _) => {
                (quote!(args), quote!(cx), quote!(#e: <#ty as ::castanet_element::Engine>::build(args, cx)?,))
            }
            (None, Some(_)) => (quote!(args), quote!(_), quote!(args,)),
            (None, None) => (quote!(_), quote!(_), quote!()),
        };
        let (args_ty, rest) = (self.args_type(), &self.rest);
        quote! {
            impl ::castanet_element::Build for #ident {
                fn build(#args: #args_ty, #cx: &mut ::castanet_element::BuildCx<'_>)
                    -> Result<Self, ::castanet_element::ConfigError>
                {
                    Ok(Self { #field #(#rest: Default::default()),* })
                }
            }
        }
    }
}
