// SPDX-License-Identifier: MIT OR Apache-2.0
//! Implements `#[derive(Args)]`.

mod choices;

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
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

/// Returns the `T` of `Option<T>` or `Vec<T>`, whichever `wrapper` names; `None` for any other type.
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

/// Declarations in the order of the fields, as a list of slices. Each flattened field gives a slice of its own. The
/// fields between two flattened fields give one slice together.
#[derive(Default)]
struct Lists {
    lists: Vec<TokenStream>,
    run: Vec<TokenStream>,
}

impl Lists {
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

/// The limits of an argument, as the last parameters of a call of `spec::within`. `None` if the argument has no
/// limits.
fn limits(field: &Field, attr: &Attr) -> syn::Result<Option<TokenStream>> {
    let limited = attr.min.is_some() || attr.max.is_some();
    if attr.rest && limited || attr.off.is_some() && !limited {
        return Err(Error::new_spanned(
            field,
            "min and max are for single arguments, and off for arguments that have one of them",
        ));
    }
    let limit = |e: &Option<Expr>| e.as_ref().map_or(quote!(None), |e| quote!(Some(#e)));
    let (min, max, off) = (limit(&attr.min), limit(&attr.max), limit(&attr.off));
    Ok(limited.then(|| quote!(#min, #max, #off)))
}

/// How the generated code takes an argument from the parser.
struct Taking<'a> {
    /// The type of one value.
    value: &'a Type,
    mandatory: bool,
    /// The expression that takes the argument.
    take: TokenStream,
}

impl<'a> Taking<'a> {
    fn new(
        ty: &'a Type,
        attr: &Attr,
        index: &TokenStream,
        limits: Option<&TokenStream>,
    ) -> syn::Result<Taking<'a>> {
        if attr.rest {
            let value =
                inner(ty, "Vec").ok_or_else(|| Error::new_spanned(ty, "the type of a rest is Vec<T>"))?;
            return Ok(Taking { value, mandatory: false, take: quote!(parser.rest::<#value>(#index)) });
        }
        // The field is an `Option` of the value if the argument may be left out and has no default.
        let option = inner(ty, "Option");
        let own = option.unwrap_or(ty);
        let value = if attr.default.is_some() { ty } else { own };
        let mandatory = attr.default.is_none() && option.is_none();
        let method = if mandatory { "required" } else { "optional" };
        let take = match limits {
            Some(limits) => {
                let method = format_ident!("{method}_if");
                let check = quote!(|v: &#own| ::castanet_element::spec::within(v, #limits));
                quote!(parser.#method::<#value>(#index, #check))
            }
            None => {
                let method = format_ident!("{method}");
                quote!(parser.#method::<#value>(#index))
            }
        };
        let take = match &attr.default {
            Some(default) => quote!(#take.map(|v| v.unwrap_or_else(|| #default))),
            None => take,
        };
        Ok(Taking { value, mandatory, take })
    }
}

/// Generates the declaration of an argument.
fn spec(name: &Ident, attr: &Attr, taking: &Taking<'_>, doc: &str) -> TokenStream {
    let keyword = attr.name.clone().unwrap_or_else(|| name.to_string().to_uppercase());
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
    let (aliases, deprecated, Taking { value, mandatory, .. }) = (&attr.aliases, &attr.deprecated, taking);
    quote!(::castanet_element::spec::ArgSpec {
        name: #keyword, aliases: &[#(#aliases),*], deprecated: &[#(#deprecated),*], kind: ::castanet_element::spec::ArgKind::#kind, mandatory: #mandatory,
        default: #shown, type_name: <#value as ::castanet_element::spec::ArgValue>::TYPE, doc: #doc,
    })
}

/// The parts of the implementation of `Args`, in the order of the fields.
#[derive(Default)]
struct Parts<'a> {
    specs: Lists,
    handlers: Lists,
    /// Statements that take each field from the parser, into a variable of the same name.
    takes: Vec<TokenStream>,
    names: Vec<&'a Ident>,
    /// The arguments that are not in flattened fields: name, type, and index as an expression.
    arguments: Vec<(&'a Ident, &'a Type, TokenStream)>,
    /// Match arms that read the handlers of arguments. `writes` has the arms that write them.
    reads: Vec<TokenStream>,
    writes: Vec<TokenStream>,
    /// Match arms that return warnings about values that were written to handlers.
    doubts: Vec<TokenStream>,
    /// Constants with the names of the write handlers. [`Lifecycle::changed`] compares its parameter with them.
    handler_names: Vec<TokenStream>,
    /// The flattened fields.
    nested: Vec<(&'a Ident, &'a Type)>,
    /// The number of arguments that are not in flattened fields.
    own: usize,
}

impl<'a> Parts<'a> {
    /// The index of the next argument, as an expression: it depends on the lengths of flattened structs.
    fn index(&self) -> TokenStream {
        let (own, types) = (self.own, self.nested.iter().map(|(_, ty)| ty));
        quote!(#own #(+ <#types as ::castanet_element::spec::Args>::SPECS.len())*)
    }

    /// Adds a flattened field.
    fn flatten(&mut self, name: &'a Ident, ty: &'a Type) {
        let index = self.index();
        self.takes.push(quote!(let #name = parser.nested::<#ty>(#index);));
        self.names.push(name);
        self.nested.push((name, ty));
        self.specs.nested(quote!(<#ty as ::castanet_element::spec::Args>::SPECS));
        self.handlers.nested(quote!(<#ty as ::castanet_element::spec::Args>::HANDLERS));
    }

    /// Adds a field that is one argument.
    fn argument(&mut self, name: &'a Ident, field: &'a Field, attr: &Attr) -> syn::Result<()> {
        let doc = crate::doc_line(&field.attrs);
        if doc.is_empty() {
            return Err(Error::new_spanned(field, "an argument needs a documentation comment"));
        }
        let limits = limits(field, attr)?;
        let index = self.index();
        let taking = Taking::new(&field.ty, attr, &index, limits.as_ref())?;
        self.arguments.push((name, &field.ty, index));
        self.own += 1;
        self.specs.push(spec(name, attr, &taking, &doc));
        let take = taking.take;
        self.takes.push(quote!(let #name = #take;));
        self.names.push(name);
        self.handler(name, &field.ty, attr, limits.as_ref(), &doc)
    }

    /// Adds the handler of an argument, if it has one.
    fn handler(
        &mut self,
        name: &Ident,
        ty: &Type,
        attr: &Attr,
        limits: Option<&TokenStream>,
        doc: &str,
    ) -> syn::Result<()> {
        let Some(flags) = &attr.handler else { return Ok(()) };
        let letters = crate::flags::of(flags).map_err(|text| Error::new_spanned(ty, text))?;
        let handler = attr.handler_name.clone().unwrap_or_else(|| name.to_string());
        let shows = match flags.contains('r') {
            true => quote!(<#ty as ::castanet_element::spec::Show>::KIND),
            false => quote!(::castanet_element::spec::ValueKind::Text),
        };
        self.handlers.push(quote!(::castanet_element::spec::HandlerSpec {
            // Every replica has the same arguments. So the handler returns the value of one replica, and never a
            // sum, even for a rate.
            merge: ::castanet_element::spec::Merge::First,
            ..::castanet_element::spec::HandlerSpec::new(#handler, #letters, #doc, #shows)
        }));
        if flags.contains('r') {
            self.reads.push(quote!(#handler => Some(::castanet_element::spec::Show::show(&self.#name)),));
        }
        if flags.contains('w') {
            let value = match limits {
                Some(limits) => {
                    let own = inner(ty, "Option").unwrap_or(ty);
                    quote! {
                        <#own as ::castanet_element::spec::ArgValue>::parse(text.trim(), cx)
                            .and_then(|v| ::castanet_element::spec::within(&v, #limits).map(|()| v))
                            .map(|v| self.#name = v.into())
                    }
                }
                None => quote! {
                    <#ty as ::castanet_element::spec::ArgValue>::parse(text.trim(), cx).map(|v| self.#name = v)
                },
            };
            self.writes.push(quote!(#handler => Some(#value),));
            let own = inner(ty, "Option").unwrap_or(ty);
            self.doubts.push(quote!(
                #handler => <#own as ::castanet_element::spec::ArgValue>::doubt(text.trim(), None)
                    .map(|d| d.under(#handler)),
            ));
            let constant = format_ident!("{}", handler.to_uppercase());
            let doc = format!("The name of the handler `{handler}`.");
            self.handler_names.push(quote!(#[doc = #doc] pub const #constant: &'static str = #handler;));
        }
        Ok(())
    }

    /// Writes the implementation.
    fn args_impl(self, ident: &Ident, choices: &[TokenStream]) -> TokenStream {
        let Parts { specs, handlers, takes, names, reads, writes, doubts, handler_names, nested, .. } = self;
        let types: Vec<_> = nested.iter().map(|n| n.1).collect();
        let nested: Vec<_> = nested.iter().map(|n| n.0).collect();
        let specs = specs.joined(&quote!(::castanet_element::spec::ArgSpec));
        let handlers = handlers.joined(&quote!(::castanet_element::spec::HandlerSpec));
        quote! {
            #[allow(dead_code)]
            impl #ident { #(#handler_names)* }
            impl ::castanet_element::spec::Args for #ident {
                const SPECS: &'static [::castanet_element::spec::ArgSpec] = #specs;
                const HANDLERS: &'static [::castanet_element::spec::HandlerSpec] = #handlers;
                fn take(parser: &mut ::castanet_element::spec::Parser<'_>) -> Option<Self> {
                    #(#takes)*
                    #(#choices)*
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
                #[allow(clippy::match_single_binding, unused_variables)]
                fn doubt(handler: &str, text: &str) -> Option<::castanet_element::spec::ValueError> {
                    match handler {
                        #(#doubts)*
                        _ => None #(.or_else(|| <#types as ::castanet_element::spec::Args>::doubt(handler, text)))*
                    }
                }
            }
        }
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
    let mut attrs = Vec::new();
    for field in &fields.named {
        attrs.push(attribute(field)?);
    }
    let mut parts = Parts::default();
    for (field, attr) in fields.named.iter().zip(&attrs) {
        let Some(name) = field.ident.as_ref() else { continue };
        match attr.flatten {
            true => parts.flatten(name, &field.ty),
            false => parts.argument(name, field, attr)?,
        }
    }
    let choices = choices::of(&input.attrs)?;
    let choices: Vec<_> = choices.iter().map(|c| c.check(&parts.arguments)).collect::<syn::Result<_>>()?;
    Ok(parts.args_impl(ident, &choices))
}
