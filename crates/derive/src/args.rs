// SPDX-License-Identifier: MIT OR Apache-2.0
//! `#[derive(Args)]`.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Data, DeriveInput, Error, Expr, Field, Fields, Ident, LitStr, Type};

#[derive(Default)]
struct Attr {
    keyword: bool,
    rest: bool,
    flatten: bool,
    default: Option<Expr>,
    show: Option<String>,
    name: Option<String>,
    aliases: Vec<String>,
    deprecated: Vec<String>,
    handler: Option<String>,
    handler_name: Option<String>,
    min: Option<Expr>,
    max: Option<Expr>,
    off: Option<Expr>,
}

fn attribute(field: &Field) -> syn::Result<Attr> {
    let mut out = Attr::default();
    for a in field.attrs.iter().filter(|a| a.path().is_ident("arg")) {
        if matches!(a.meta, syn::Meta::Path(_)) {
            continue;
        }
        a.parse_nested_meta(|m| {
            let text = |m: &syn::meta::ParseNestedMeta<'_>| m.value()?.parse::<LitStr>().map(|s| s.value());
            if m.path.is_ident("keyword") {
                out.keyword = true;
            } else if m.path.is_ident("rest") {
                out.rest = true;
            } else if m.path.is_ident("flatten") {
                out.flatten = true;
            } else if m.path.is_ident("default") {
                out.default = Some(m.value()?.parse()?);
            } else if m.path.is_ident("show") {
                out.show = Some(text(&m)?);
            } else if m.path.is_ident("name") {
                out.name = Some(text(&m)?);
            } else if m.path.is_ident("alias") {
                out.aliases.push(text(&m)?);
            } else if m.path.is_ident("deprecated") {
                let keyword = text(&m)?;
                out.aliases.push(keyword.clone());
                out.deprecated.push(keyword);
            } else if m.path.is_ident("handler") {
                out.handler = Some(text(&m)?);
            } else if m.path.is_ident("handler_name") {
                out.handler_name = Some(text(&m)?);
            } else if m.path.is_ident("min") {
                out.min = Some(m.value()?.parse()?);
            } else if m.path.is_ident("max") {
                out.max = Some(m.value()?.parse()?);
            } else if m.path.is_ident("off") {
                out.off = Some(m.value()?.parse()?);
            } else {
                return Err(m.error(
                    "expected keyword, rest, flatten, default, show, name, alias, deprecated, handler, handler_name, min, max or off",
                ));
            }
            Ok(())
        })?;
    }
    Ok(out)
}

/// The `T` of `Option<T>` or `Vec<T>`.
fn inner<'a>(ty: &'a Type, wrapper: &str) -> Option<&'a Type> {
    let Type::Path(p) = ty else { return None };
    let last = p.path.segments.last()?;
    if last.ident != wrapper {
        return None;
    }
    let syn::PathArguments::AngleBracketed(a) = &last.arguments else { return None };
    match a.args.first()? {
        syn::GenericArgument::Type(t) => Some(t),
        _ => None,
    }
}

/// Declarations in the order of the fields, as a list of slices: each run of consecutive fields of the struct
/// itself makes one slice, and each flattened field brings its own slice.
struct Lists {
    lists: Vec<TokenStream>,
    run: Vec<TokenStream>,
}

impl Lists {
    fn new() -> Lists {
        Lists { lists: Vec::new(), run: Vec::new() }
    }
    fn push(&mut self, one: TokenStream) {
        self.run.push(one);
    }
    fn nested(&mut self, list: TokenStream) {
        let run = std::mem::take(&mut self.run);
        self.lists.push(quote!(&[#(#run),*]));
        self.lists.push(list);
    }
    /// Joins all declarations into one slice of `ty`.
    fn joined(self, ty: &TokenStream) -> TokenStream {
        let Lists { mut lists, run } = self;
        lists.push(quote!(&[#(#run),*]));
        crate::joined(ty, &lists)
    }
}

pub fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    let ident = &input.ident;
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(ident, "Args is for structs"));
    };
    let Fields::Named(fields) = &data.fields else {
        return Err(Error::new_spanned(ident, "Args is for structs with named fields"));
    };
    let mut parsed = Vec::new();
    for f in &fields.named {
        parsed.push((f, attribute(f)?));
    }
    // Positional arguments are declared in the order of the fields. A rest argument comes after the other
    // positional ones.
    let (mut specs, mut takes, mut names) = (Lists::new(), Vec::new(), Vec::<&Ident>::new());
    let (mut handlers, mut reads, mut writes) = (Lists::new(), Vec::new(), Vec::new());
    let (mut nested, mut own_args) = (Vec::<(&Ident, &Type)>::new(), 0usize);
    for (field, attr) in &parsed {
        let Some(name) = field.ident.as_ref() else { continue };
        let before =
            nested.iter().map(|(_, ty)| quote!(<#ty as ::castanet_element::spec::Args>::SPECS.len()));
        let index = quote!(#own_args #(+ #before)*);
        if attr.flatten {
            let ty = &field.ty;
            takes.push(quote!(let #name = parser.nested::<#ty>(#index);));
            names.push(name);
            nested.push((name, ty));
            specs.nested(quote!(<#ty as ::castanet_element::spec::Args>::SPECS));
            handlers.nested(quote!(<#ty as ::castanet_element::spec::Args>::HANDLERS));
            continue;
        }
        own_args += 1;
        let keyword = attr.name.clone().unwrap_or_else(|| name.to_string().to_uppercase());
        let doc = crate::doc_line(&field.attrs);
        if doc.is_empty() {
            return Err(Error::new_spanned(field, "an argument needs a documentation comment"));
        }
        let ty = &field.ty;
        let limited = attr.min.is_some() || attr.max.is_some();
        if attr.rest && limited || attr.off.is_some() && !limited {
            return Err(Error::new_spanned(
                field,
                "min and max are for single arguments, and off for arguments that have one of them",
            ));
        }
        // The type of the value itself. The field is an `Option` of it if the argument may be left out and
        // has no default.
        let own = inner(ty, "Option").unwrap_or(ty);
        let limit = |e: &Option<Expr>| match e {
            Some(e) => quote!(Some(#e)),
            None => quote!(None),
        };
        let limits = [&attr.min, &attr.max, &attr.off].map(limit);
        let [min, max, off] = &limits;
        let check = if limited {
            quote!(|v: &#own| ::castanet_element::spec::within(v, #min, #max, #off))
        } else {
            quote!(|_: &#own| Ok(()))
        };
        let (value, mandatory, take) = if attr.rest {
            let t = inner(ty, "Vec").ok_or_else(|| Error::new_spanned(ty, "the type of a rest is Vec<T>"))?;
            (t, false, quote!(parser.rest::<#t>(#index)))
        } else if let Some(default) = &attr.default {
            let take = match limited {
                true => quote!(parser.optional_if::<#ty>(#index, #check)),
                false => quote!(parser.optional::<#ty>(#index)),
            };
            (ty, false, quote!(#take.map(|v| v.unwrap_or_else(|| #default))))
        } else if let Some(t) = inner(ty, "Option") {
            let take = match limited {
                true => quote!(parser.optional_if::<#t>(#index, #check)),
                false => quote!(parser.optional::<#t>(#index)),
            };
            (t, false, take)
        } else {
            let take = match limited {
                true => quote!(parser.required_if::<#ty>(#index, #check)),
                false => quote!(parser.required::<#ty>(#index)),
            };
            (ty, true, take)
        };
        let kind = match (attr.rest, attr.keyword) {
            (true, _) => quote!(Rest),
            (_, true) => quote!(Keyword),
            _ => quote!(Positional),
        };
        let shown = match (&attr.show, &attr.default) {
            (Some(s), _) => s.clone(),
            (None, Some(e)) => e.to_token_stream().to_string().replace(' ', ""),
            _ => String::new(),
        };
        let (aliases, deprecated) = (&attr.aliases, &attr.deprecated);
        specs.push(quote!(::castanet_element::spec::ArgSpec {
            name: #keyword, aliases: &[#(#aliases),*], deprecated: &[#(#deprecated),*], kind: ::castanet_element::spec::ArgKind::#kind, mandatory: #mandatory,
            default: #shown, type_name: <#value as ::castanet_element::spec::ArgValue>::TYPE, doc: #doc,
        }));
        takes.push(quote!(let #name = #take;));
        names.push(name);
        if let Some(flags) = &attr.handler {
            let shows = match flags.contains('r') {
                true => quote!(<#ty as ::castanet_element::spec::Show>::KIND),
                false => quote!(::castanet_element::spec::ValueKind::Text),
            };
            let h = attr.handler_name.clone().unwrap_or_else(|| name.to_string());
            handlers.push(quote!(::castanet_element::spec::HandlerSpec::new(#h, #flags, #doc, #shows)));
            if flags.contains('r') {
                reads.push(quote!(#h => Some(::castanet_element::spec::Show::show(&self.#name)),));
            }
            if flags.contains('w') {
                writes.push(if limited {
                    quote!(#h => Some(
                        <#own as ::castanet_element::spec::ArgValue>::parse(text.trim(), cx)
                            .and_then(|v| ::castanet_element::spec::within(&v, #min, #max, #off).map(|()| v))
                            .map(|v| self.#name = v.into())
                    ),)
                } else {
                    quote!(#h => Some(
                        <#ty as ::castanet_element::spec::ArgValue>::parse(text.trim(), cx).map(|v| self.#name = v)
                    ),)
                });
            }
        }
    }
    let specs = specs.joined(&quote!(::castanet_element::spec::ArgSpec));
    let handlers = handlers.joined(&quote!(::castanet_element::spec::HandlerSpec));
    let nested: Vec<_> = nested.into_iter().map(|n| n.0).collect();
    Ok(quote! {
        impl ::castanet_element::spec::Args for #ident {
            const SPECS: &'static [::castanet_element::spec::ArgSpec] = #specs;
            const HANDLERS: &'static [::castanet_element::spec::HandlerSpec] = #handlers;
            fn take(parser: &mut ::castanet_element::spec::Parser<'_>) -> Option<Self> {
                #(#takes)*
                Some(Self { #(#names: #names?),* })
            }
            #[allow(clippy::match_single_binding)]
            fn read(&self, handler: &str) -> Option<String> {
                match handler {
                    #(#reads)*
                    _ => None #(.or_else(|| ::castanet_element::spec::Args::read(&self.#nested, handler)))*
                }
            }
            #[allow(clippy::match_single_binding, unused_variables)]
            fn write(&mut self, handler: &str, text: &str, cx: &::castanet_element::spec::ArgCx<'_>)
                -> Option<Result<(), ::castanet_element::spec::ValueError>>
            {
                match handler {
                    #(#writes)*
                    _ => None #(.or_else(|| ::castanet_element::spec::Args::write(&mut self.#nested, handler, text, cx)))*
                }
            }
        }
    })
}
