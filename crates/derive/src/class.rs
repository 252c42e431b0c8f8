// SPDX-License-Identifier: MIT OR Apache-2.0
//! `#[derive(Class)]`.

use crate::counts::Counts;
use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::parse::Parse;
use syn::punctuated::Punctuated;
use syn::{Attribute, Data, DeriveInput, Error, Expr, Fields, Ident, LitStr, Token};

#[derive(Default)]
struct Attr {
    name: Option<LitStr>,
    text: std::collections::HashMap<String, LitStr>,
    aliases: Vec<LitStr>,
    workers: Option<Expr>,
    offload: Option<Ident>,
    reconfigure: Option<Ident>,
    effects: Vec<Ident>,
    drops: Vec<Ident>,
    books: Vec<Ident>,
    ends: Vec<Ident>,
    capabilities: Vec<Ident>,
    flags: Vec<String>,
}

fn list<T: Parse>(m: &syn::meta::ParseNestedMeta<'_>) -> syn::Result<Vec<T>> {
    let content;
    syn::parenthesized!(content in m.input);
    Ok(Punctuated::<T, Token![,]>::parse_terminated_with(&content, T::parse)?.into_iter().collect())
}

fn attribute(attributes: &[Attribute]) -> syn::Result<Attr> {
    let mut out = Attr::default();
    for a in attributes.iter().filter(|a| a.path().is_ident("class")) {
        a.parse_nested_meta(|m| {
            let key = m.path.get_ident().map(ToString::to_string).unwrap_or_default();
            match key.as_str() {
                "name" => out.name = Some(m.value()?.parse()?),
                "ports" | "processing" | "flow" | "packets" | "alignment" | "takes_state" => {
                    out.text.insert(key, m.value()?.parse()?);
                }
                "aliases" => out.aliases = list(&m)?,
                "workers" => out.workers = Some(m.value()?.parse()?),
                "offload" => out.offload = Some(m.value()?.parse()?),
                "reconfigure" => out.reconfigure = Some(m.value()?.parse()?),
                "effects" => out.effects = list(&m)?,
                "drops" => out.drops = list(&m)?,
                "books" => out.books = list(&m)?,
                "ends" => out.ends = list(&m)?,
                "capabilities" => out.capabilities = list(&m)?,
                "task" | "copies" | "descending" | "config_follows" | "information" | "build"
                | "lifecycle" | "handlers" => {
                    out.flags.push(key);
                }
                _ => return Err(m.error("unknown declaration of a class")),
            }
            Ok(())
        })?;
    }
    Ok(out)
}

/// Makes the compiler report malformed codes at their position.
fn code_checks(attr: &Attr) -> TokenStream {
    let one = |key: &str, check: &str| {
        let code = attr.text.get(key)?;
        let check = Ident::new(check, code.span());
        let message = format!("malformed code: {key} = {:?}", code.value());
        Some(
            quote_spanned!(code.span()=> const _: () = assert!(::castanet_element::spec::codes::#check(#code), #message);),
        )
    };
    let all = [
        one("ports", "ports_are_valid"),
        one("processing", "processing_is_valid"),
        one("flow", "flow_is_valid"),
    ];
    all.into_iter().flatten().collect()
}

/// Delegates the whole lifecycle to the engine.
fn engine_lifecycle(ident: &Ident, e: &Ident) -> TokenStream {
    quote! {
        impl ::castanet_element::Lifecycle for #ident {
            fn initialise(&mut self, cx: &mut ::castanet_element::InitCx<'_>) -> Result<(), ::castanet_element::ElementError> {
                ::castanet_element::Lifecycle::initialise(&mut self.#e, cx)
            }
            fn cleanup(&mut self, cx: &mut ::castanet_element::Cx<'_>) -> Result<(), ::castanet_element::ElementError> {
                ::castanet_element::Lifecycle::cleanup(&mut self.#e, cx)
            }
            fn read(&mut self, handler: &str, parameters: &str, cx: &mut ::castanet_element::Cx<'_>)
                -> Result<String, ::castanet_element::HandlerError>
            {
                ::castanet_element::Lifecycle::read(&mut self.#e, handler, parameters, cx)
            }
            fn write(&mut self, handler: &str, value: &str, cx: &mut ::castanet_element::Cx<'_>) -> Result<(), ::castanet_element::HandlerError> {
                ::castanet_element::Lifecycle::write(&mut self.#e, handler, value, cx)
            }
            fn changed(&mut self, handler: &str, cx: &mut ::castanet_element::Cx<'_>) -> Result<(), ::castanet_element::ElementError> {
                ::castanet_element::Lifecycle::changed(&mut self.#e, handler, cx)
            }
            fn own_handlers(&self) -> Vec<(String, &'static str)> {
                ::castanet_element::Lifecycle::own_handlers(&self.#e)
            }
            fn effects(&self, declared: ::castanet_element::spec::Effects) -> ::castanet_element::spec::Effects {
                ::castanet_element::Lifecycle::effects(&self.#e, declared)
            }
            fn holds(&self) -> Option<String> {
                ::castanet_element::Lifecycle::holds(&self.#e)
            }
            fn held(&self) -> u64 {
                ::castanet_element::Lifecycle::held(&self.#e)
            }
            fn take_over(&mut self, old: &mut Self, cx: &mut ::castanet_element::Cx<'_>) -> Result<(), ::castanet_element::ElementError> {
                ::castanet_element::Lifecycle::take_over(&mut self.#e, &mut old.#e, cx)
            }
            fn take_state(&mut self, old: &mut Self, cx: &mut ::castanet_element::Cx<'_>) -> Result<(), ::castanet_element::ElementError> {
                ::castanet_element::Lifecycle::take_state(&mut self.#e, &mut old.#e, cx)
            }
        }
    }
}

pub fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    let ident = &input.ident;
    let attr = attribute(&input.attrs)?;
    let Some(name) = &attr.name else {
        return Err(Error::new_spanned(ident, "a class needs #[class(name = \"...\")]"));
    };
    let text = |key: &str| attr.text.get(key).map(LitStr::value);
    let need = |key: &str| {
        text(key).ok_or_else(|| Error::new_spanned(ident, format!("a class needs {key} = \"...\"")))
    };
    let ports = need("ports")?;
    let processing = need("processing")?;
    let flow = text("flow").unwrap_or_else(|| "x/x".into());
    let packets = need("packets")?;
    let alignment = text("alignment").unwrap_or_default();
    let takes_state = text("takes_state").unwrap_or_default();
    let doc = crate::doc(&input.attrs);
    if doc.is_empty() {
        return Err(Error::new_spanned(ident, "a class needs a documentation comment"));
    }
    let aliases = &attr.aliases;
    let workers = match &attr.workers {
        Some(Expr::Path(p)) if p.path.is_ident("replicate") => quote!(Replicate),
        Some(Expr::Path(p)) if p.path.is_ident("share") => quote!(Share),
        Some(Expr::Path(p)) if p.path.is_ident("exclusive") => quote!(Exclusive),
        _ => {
            return Err(Error::new_spanned(ident, "a class needs workers = replicate, share or exclusive"));
        }
    };
    let offload = match attr.offload.as_ref().map(ToString::to_string).as_deref() {
        None | Some("transparent") => quote!(Transparent),
        Some("aware") => quote!(Aware),
        Some("none") => quote!(None),
        _ => return Err(Error::new_spanned(&attr.offload, "expected transparent, aware or none")),
    };
    let reconfigure = match attr.reconfigure.as_ref().map(ToString::to_string).as_deref() {
        None => quote!(Refused),
        Some("keeps") => quote!(Keeps),
        Some("restarts") => quote!(Restarts),
        _ => return Err(Error::new_spanned(&attr.reconfigure, "expected keeps or restarts")),
    };
    let effects = attr.effects.iter().map(|e| {
        let upper = Ident::new(&e.to_string().to_uppercase(), e.span());
        quote!(.union(::castanet_element::spec::Effects::#upper))
    });
    let books = attr.books.iter().map(|b| {
        let upper = Ident::new(&b.to_string().to_uppercase(), b.span());
        quote!(.union(::castanet_element::spec::Books::#upper))
    });
    // Packets that end at an element for a reason in `ends` are counted as having left the router. So the class
    // also declares `leaves`.
    let leaves = (!attr.ends.is_empty()).then(|| quote!(.union(::castanet_element::spec::Books::LEAVES)));
    let (drops, ends) = (&attr.drops, &attr.ends);
    let capabilities = &attr.capabilities;
    let flag = |f: &str| attr.flags.iter().any(|x| x == f);
    let (task, copies, information) = (flag("task"), flag("copies"), flag("information"));
    let (descending, config_follows) = (flag("descending"), flag("config_follows"));

    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(ident, "a class is a struct"));
    };
    let mut counts = Counts::default();
    let mut args_ty = quote!(::castanet_element::spec::NoArgs);
    let mut has_args = false;
    let mut engine = None;
    let mut rest = Vec::new();
    let named = match &data.fields {
        Fields::Named(f) => f.named.iter().collect::<Vec<_>>(),
        Fields::Unit => Vec::new(),
        Fields::Unnamed(_) => return Err(Error::new_spanned(ident, "a class has named fields")),
    };
    for f in &named {
        let Some(id) = &f.ident else { continue };
        if f.attrs.iter().any(|a| a.path().is_ident("engine")) {
            if engine.replace((id, &f.ty)).is_some() {
                return Err(Error::new_spanned(f, "a class has one engine"));
            }
        } else if id == "args" {
            let ty = &f.ty;
            args_ty = quote!(#ty);
            has_args = true;
        } else {
            rest.push(id);
        }
        counts.add(f)?;
    }
    if has_args && engine.is_some() {
        return Err(Error::new_spanned(
            ident,
            "the engine has the arguments: the class has no field args beside it",
        ));
    }
    // The arguments are read and written through a field of their own or through the engine.
    let (args_field, args) = match (&engine, has_args) {
        (Some((e, ty)), _) => {
            args_ty = quote!(<#ty as ::castanet_element::Engine>::Args);
            (quote!(#e: <#ty as ::castanet_element::Engine>::build(args, cx)?,), Some(quote!(self.#e.args())))
        }
        (None, true) => (quote!(args,), Some(quote!(&mut self.args))),
        (None, false) => (quote!(), None),
    };
    let (read_args, write_args) = match &args {
        Some(args) => (
            quote!(::castanet_element::spec::Args::read(#args, handler).map(Ok)),
            quote! {
                let written = cx.with_args(|a| ::castanet_element::spec::Args::write(#args, handler, value, a))?;
                let changed = match written {
                    Ok(()) => ::castanet_element::Lifecycle::changed(self, handler, cx).map_err(Into::into),
                    Err(e) => Err(::castanet_element::HandlerError::from(e)),
                };
                Some(changed)
            },
        ),
        None => (quote!(None), quote!(None)),
    };
    let (read_engine_count, visit_engine) = match &engine {
        Some((e, _)) => (
            quote!(if let Some(value) = self.#e.read_count(handler) { return Some(Ok(value)); }),
            quote!(::castanet_element::Counts::own_counts(&mut self.#e, visit);),
        ),
        None => (quote!(), quote!()),
    };
    // The declarations of the engine and of the class itself, in the order of the manual. Counts come first.
    // So they are last in the `handlers` listing, which begins with the handler that was declared last.
    let of = |ty: TokenStream, of_trait: &str, item: &str| {
        let (of_trait, item) = (format_ident!("{of_trait}"), format_ident!("{item}"));
        quote!(<#ty as ::castanet_element::#of_trait>::#item)
    };
    let (own, engine_type) = (quote!(#ident), engine.as_ref().map(|(_, ty)| quote!(#ty)));
    let of_engine = |of_trait: &str, item: &str| engine_type.clone().map(|ty| of(ty, of_trait, item));
    let all: Vec<_> = [
        of_engine("Counts", "COUNT_HANDLERS"),
        Some(of(own.clone(), "Counts", "COUNT_HANDLERS")),
        Some(of(own.clone(), "Handlers", "METHODS")),
        of_engine("Handlers", "METHODS"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let handlers = crate::joined(&quote!(::castanet_element::spec::HandlerSpec), &all);
    let all: Vec<_> =
        of_engine("Counts", "COUNTS").into_iter().chain([of(own, "Counts", "COUNTS")]).collect();
    let all_counts = crate::joined(&quote!(::castanet_element::spec::CountSpec), &all);
    let (read_engine, write_engine) = match &engine {
        Some((e, _)) => (
            quote!(if let Some(value) = self.#e.read_method(handler, parameters, cx) { return Some(value); }),
            quote!(if let Some(done) = self.#e.write_method(handler, value, cx) { return Some(done); }),
        ),
        None => (quote!(), quote!()),
    };
    let build = if flag("build") {
        quote!()
    } else {
        let args_name = if has_args || engine.is_some() { quote!(args) } else { quote!(_) };
        let cx_name = if engine.is_some() { quote!(cx) } else { quote!(_) };
        quote! {
            impl ::castanet_element::Build for #ident {
                fn build(#args_name: #args_ty, #cx_name: &mut ::castanet_element::BuildCx<'_>)
                    -> Result<Self, ::castanet_element::ConfigError>
                {
                    Ok(Self { #args_field #(#rest: Default::default()),* })
                }
            }
        }
    };
    let lifecycle = match &engine {
        _ if flag("lifecycle") => quote!(),
        None => quote!(impl ::castanet_element::Lifecycle for #ident {}),
        Some((e, _)) => engine_lifecycle(ident, e),
    };
    let methods = match flag("handlers") {
        true => quote!(),
        false => quote!(impl ::castanet_element::Handlers for #ident {}),
    };
    let codes = code_checks(&attr);
    let count_items = counts.items(false)?;
    Ok(quote! {
        #codes
        impl ::castanet_element::Class for #ident {
            type Args = #args_ty;
            const SPEC: &'static ::castanet_element::spec::ClassSpec = &::castanet_element::spec::ClassSpec {
                name: #name,
                aliases: &[#(#aliases),*],
                module: module_path!(),
                doc: #doc,
                ports: #ports,
                processing: #processing,
                flow: #flow,
                packets: #packets,
                alignment: #alignment,
                args: <#args_ty as ::castanet_element::spec::Args>::SPECS,
                handlers: #handlers,
                arg_handlers: <#args_ty as ::castanet_element::spec::Args>::HANDLERS,
                workers: ::castanet_element::spec::Workers::#workers,
                offload: ::castanet_element::spec::Offload::#offload,
                effects: ::castanet_element::spec::Effects::empty() #(#effects)*,
                reconfigure: ::castanet_element::spec::Reconfigure::#reconfigure,
                config_follows: #config_follows,
                takes_state: #takes_state,
                counts: #all_counts,
                drops: &[#(::castanet_element::spec::Reason::#drops),*],
                books: ::castanet_element::spec::Books::empty() #(#books)* #leaves,
                ends: &[#(::castanet_element::spec::Reason::#ends),*],
                capabilities: &[#(::castanet_element::spec::Capability::#capabilities),*],
                task: #task,
                copies: #copies,
                descending: #descending,
                information: #information,
            };
        }
        impl ::castanet_element::Object for #ident {
            #[allow(clippy::match_single_binding, unused_imports)]
            fn read_handler(&mut self, handler: &str, parameters: &str, cx: &mut ::castanet_element::Cx<'_>)
                -> Option<Result<String, ::castanet_element::HandlerError>>
            {
                use ::castanet_element::{Counts as _, Engine as _, Handlers as _};
                if let Some(value) = self.read_method(handler, parameters, cx) {
                    return Some(value);
                }
                #read_engine
                #read_engine_count
                if let Some(value) = self.read_count(handler) {
                    return Some(Ok(value));
                }
                #read_args
            }
            #[allow(unused_imports)]
            fn write_handler(&mut self, handler: &str, value: &str, cx: &mut ::castanet_element::Cx<'_>)
                -> Option<Result<(), ::castanet_element::HandlerError>>
            {
                use ::castanet_element::{Engine as _, Handlers as _};
                if let Some(done) = self.write_method(handler, value, cx) {
                    return Some(done);
                }
                #write_engine
                #write_args
            }
            fn each_count(&mut self, visit: &mut ::castanet_element::CountVisitor<'_>) {
                #visit_engine
                ::castanet_element::Counts::own_counts(self, visit);
            }
            fn take_over_from(&mut self, old: &mut dyn ::core::any::Any, cx: &mut ::castanet_element::Cx<'_>)
                -> Result<(), ::castanet_element::ElementError>
            {
                match old.downcast_mut::<Self>() {
                    Some(old) => ::castanet_element::Lifecycle::take_over(self, old, cx),
                    None => Ok(()),
                }
            }
            fn take_state_from(&mut self, old: &mut dyn ::core::any::Any, cx: &mut ::castanet_element::Cx<'_>)
                -> Result<(), ::castanet_element::ElementError>
            {
                match old.downcast_mut::<Self>() {
                    Some(old) => ::castanet_element::Lifecycle::take_state(self, old, cx),
                    None => Ok(()),
                }
            }
        }
        impl ::castanet_element::Counts for #ident { #count_items }
        #methods
        #build
        #lifecycle
    })
}
