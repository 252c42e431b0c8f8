// SPDX-License-Identifier: MIT OR Apache-2.0
//! Implements `#[derive(Class)]`.

mod object;
mod parts;

use parts::Parts;
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::parse::Parse;
use syn::punctuated::Punctuated;
use syn::{Attribute, DeriveInput, Error, Expr, Ident, LitStr, Token};

#[derive(Default)]
struct Attr {
    name: Option<LitStr>,
    text: std::collections::HashMap<String, LitStr>,
    aliases: Vec<LitStr>,
    packets_if: Vec<(LitStr, LitStr)>,
    workers: Option<Expr>,
    offload: Option<Ident>,
    reconfigure: Option<Ident>,
    depends: Option<Ident>,
    effects: Vec<Ident>,
    drops: Vec<Ident>,
    ledger_role: Vec<Ident>,
    ends: Vec<Ident>,
    capabilities: Vec<Ident>,
    host: Vec<Ident>,
    flags: Vec<String>,
}

impl Attr {
    fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|f| f == flag)
    }
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
                "packets_if" => match list(&m)?.as_slice() {
                    [condition, code] => out.packets_if.push((LitStr::clone(condition), LitStr::clone(code))),
                    _ => return Err(m.error("expected a condition and a packet type code")),
                },
                "aliases" => out.aliases = list(&m)?,
                "workers" => out.workers = Some(m.value()?.parse()?),
                "offload" => out.offload = Some(m.value()?.parse()?),
                "depends" => out.depends = Some(m.value()?.parse()?),
                "reconfigure" => out.reconfigure = Some(m.value()?.parse()?),
                "effects" => out.effects = list(&m)?,
                "drops" => out.drops = list(&m)?,
                "ledger" => out.ledger_role = list(&m)?,
                "ends" => out.ends = list(&m)?,
                "capabilities" => out.capabilities = list(&m)?,
                "host" => out.host = list(&m)?,
                "task" | "kernel" | "copies" | "descending" | "fifo" | "clock" | "config_follows"
                | "information" | "build" | "lifecycle" | "handlers" => {
                    out.flags.push(key);
                }
                _ => return Err(m.error("unknown declaration of a class")),
            }
            Ok(())
        })?;
    }
    Ok(out)
}

/// Generates assertions on the port, processing, flow and packet type codes, so that the compiler reports a malformed code at its
/// position.
fn code_checks(attr: &Attr) -> TokenStream {
    let one = |key: &str, module: &str, check: &str, code: &LitStr| {
        let (module, check) = (Ident::new(module, code.span()), Ident::new(check, code.span()));
        let message = format!("malformed code: {key} = {:?}", code.value());
        quote_spanned!(code.span()=> const _: () = assert!(::castanet_element::spec::#module::#check(#code), #message);)
    };
    let declared = |key: &str, module: &str, check: &str| Some(one(key, module, check, attr.text.get(key)?));
    let all = [
        declared("ports", "codes", "ports_are_valid"),
        declared("processing", "codes", "processing_is_valid"),
        declared("flow", "codes", "flow_is_valid"),
        declared("packets", "packets", "packets_are_valid"),
    ];
    let others =
        attr.packets_if.iter().map(|(_, code)| one("packets_if", "packets", "packets_are_valid", code));
    all.into_iter().flatten().chain(others).collect()
}

/// The parts of a declaration that have to be present, or whose values have to be checked.
struct Checked<'a> {
    name: &'a LitStr,
    ports: String,
    processing: String,
    packets: String,
    doc: String,
    workers: TokenStream,
    offload: TokenStream,
    reconfigure: TokenStream,
    depends: TokenStream,
}

impl<'a> Checked<'a> {
    fn new(input: &DeriveInput, attr: &'a Attr) -> syn::Result<Checked<'a>> {
        let ident = &input.ident;
        let Some(name) = &attr.name else {
            return Err(Error::new_spanned(ident, "a class needs #[class(name = \"...\")]"));
        };
        let need = |key: &str| {
            let text = attr.text.get(key).map(LitStr::value);
            text.ok_or_else(|| Error::new_spanned(ident, format!("a class needs {key} = \"...\"")))
        };
        let (ports, processing, packets) = (need("ports")?, need("processing")?, need("packets")?);
        let doc = crate::doc(&input.attrs);
        if doc.is_empty() {
            return Err(Error::new_spanned(ident, "a class needs a documentation comment"));
        }
        let (workers, offload, reconfigure) = (workers(ident, attr)?, offload(attr)?, reconfigure(attr)?);
        let depends = depends(attr)?;
        Ok(Checked { name, ports, processing, packets, doc, workers, offload, reconfigure, depends })
    }
}

/// Generates the variant of `Workers` that the class declares.
fn workers(ident: &Ident, attr: &Attr) -> syn::Result<TokenStream> {
    match &attr.workers {
        Some(Expr::Path(p)) if p.path.is_ident("replicate") => Ok(quote!(Replicate)),
        Some(Expr::Path(p)) if p.path.is_ident("share") => Ok(quote!(Share)),
        Some(Expr::Path(p)) if p.path.is_ident("exclusive") => Ok(quote!(Exclusive)),
        _ => Err(Error::new_spanned(ident, "a class needs workers = replicate, share or exclusive")),
    }
}

/// Generates the variant of `Offload` that the class declares.
fn offload(attr: &Attr) -> syn::Result<TokenStream> {
    match attr.offload.as_ref().map(ToString::to_string).as_deref() {
        None | Some("transparent") => Ok(quote!(Transparent)),
        Some("aware") => Ok(quote!(Aware)),
        Some("none") => Ok(quote!(None)),
        _ => Err(Error::new_spanned(&attr.offload, "expected transparent, aware or none")),
    }
}

/// Generates the variant of `Reconfigure` that the class declares.
fn reconfigure(attr: &Attr) -> syn::Result<TokenStream> {
    match attr.reconfigure.as_ref().map(ToString::to_string).as_deref() {
        None => Ok(quote!(Refused)),
        Some("keeps") => Ok(quote!(Keeps)),
        Some("restarts") => Ok(quote!(Restarts)),
        _ => Err(Error::new_spanned(&attr.reconfigure, "expected keeps or restarts")),
    }
}

/// Generates the variant of `Depends` that the class declares.
fn depends(attr: &Attr) -> syn::Result<TokenStream> {
    match attr.depends.as_ref().map(ToString::to_string).as_deref() {
        None => Ok(quote!(Anything)),
        Some("order") => Ok(quote!(Order)),
        Some("packet") => Ok(quote!(Packet)),
        _ => Err(Error::new_spanned(&attr.depends, "expected packet or order")),
    }
}

/// The union of flags of type `ty`. `flags` has their names in lower case.
fn union(ty: &TokenStream, flags: &[Ident]) -> TokenStream {
    let upper = flags.iter().map(|f| Ident::new(&f.to_string().to_uppercase(), f.span()));
    quote!(#ty::empty() #(.union(#ty::#upper))*)
}

/// Joins the handlers of the engine and of the class itself, in the order of the manual, with the counts first. The
/// `handlers` listing has the reverse order, so the counts are last there.
fn handlers(ident: &Ident, parts: &Parts<'_>) -> TokenStream {
    let engine = parts.engine.map(|(_, ty)| ty);
    let mut lists = Vec::new();
    lists.extend(engine.map(|ty| quote!(<#ty as ::castanet_element::Counts>::COUNT_HANDLERS)));
    lists.push(quote!(<#ident as ::castanet_element::Counts>::COUNT_HANDLERS));
    let own = quote!(<#ident as ::castanet_element::Handlers>::METHODS);
    let of_engine = engine.map(|ty| quote!(<#ty as ::castanet_element::Handlers>::METHODS));
    match parts.engine_first {
        true => lists.extend(of_engine.into_iter().chain([own])),
        false => lists.extend([own].into_iter().chain(of_engine)),
    }
    crate::joined(&quote!(::castanet_element::spec::HandlerSpec), &lists)
}

/// Joins the indexed handlers of the engine and of the class itself.
fn indexed(ident: &Ident, parts: &Parts<'_>) -> TokenStream {
    let mut lists = Vec::new();
    lists.extend(parts.engine.map(|(_, ty)| quote!(<#ty as ::castanet_element::Handlers>::INDEXED)));
    lists.push(quote!(<#ident as ::castanet_element::Handlers>::INDEXED));
    crate::joined(&quote!(::castanet_element::spec::HandlerSpec), &lists)
}

/// Generates the list of the class's counts: those of its engine (the field with `#[engine]`), then its own.
fn counts(ident: &Ident, parts: &Parts<'_>) -> TokenStream {
    let mut lists = Vec::new();
    lists.extend(parts.engine.map(|(_, ty)| quote!(<#ty as ::castanet_element::Counts>::COUNTS)));
    lists.push(quote!(<#ident as ::castanet_element::Counts>::COUNTS));
    crate::joined(&quote!(::castanet_element::spec::CountSpec), &lists)
}

/// Generates the implementation of `Class`, which contains the declaration of the class.
fn class_impl(ident: &Ident, attr: &Attr, checked: &Checked<'_>, parts: &Parts<'_>) -> TokenStream {
    let Checked { name, ports, processing, packets, doc, workers, offload, reconfigure, depends } = checked;
    let Attr { aliases, drops, ends, capabilities, host, .. } = attr;
    let text = |key: &str| attr.text.get(key).map(LitStr::value);
    let flow = text("flow").unwrap_or_else(|| "x/x".into());
    let (alignment, takes_state) =
        (text("alignment").unwrap_or_default(), text("takes_state").unwrap_or_default());
    let (task, copies, information) = (attr.has("task"), attr.has("copies"), attr.has("information"));
    let (descending, config_follows) = (attr.has("descending"), attr.has("config_follows"));
    let (fifo, clock) = (attr.has("fifo"), attr.has("clock"));
    let packets_if = attr.packets_if.iter().map(|(condition, code)| quote!((#condition, #code)));
    let effects = union(&quote!(::castanet_element::spec::Effects), &attr.effects);
    let ledger_role = union(&quote!(::castanet_element::spec::LedgerRole), &attr.ledger_role);
    // `ends` lists reasons for which packets end at an element and count as having left the router. So a class with
    // such reasons also gets the ledger role `leaves`.
    let leaves = (!ends.is_empty()).then(|| quote!(.union(::castanet_element::spec::LedgerRole::LEAVES)));
    let (args_ty, all_counts) = (parts.args_type(), counts(ident, parts));
    let (handlers, indexed) = (handlers(ident, parts), indexed(ident, parts));
    quote! {
        impl ::castanet_element::Class for #ident {
            type Args = #args_ty;
            const SPEC: &'static ::castanet_element::spec::ClassSpec = &::castanet_element::spec::ClassSpec {
                name: #name,
                aliases: &[#(#aliases),*],
                module: module_path!(),
                type_name: stringify!(#ident),
                doc: #doc,
                ports: #ports,
                processing: #processing,
                flow: #flow,
                packets: #packets,
                packets_if: &[#(#packets_if),*],
                alignment: #alignment,
                args: <#args_ty as ::castanet_element::spec::Args>::SPECS,
                handlers: #handlers,
                arg_handlers: <#args_ty as ::castanet_element::spec::Args>::HANDLERS,
                indexed: #indexed,
                workers: ::castanet_element::spec::Workers::#workers,
                offload: ::castanet_element::spec::Offload::#offload,
                effects: #effects,
                reconfigure: ::castanet_element::spec::Reconfigure::#reconfigure,
                config_follows: #config_follows,
                takes_state: #takes_state,
                counts: #all_counts,
                drops: &[#(::castanet_element::spec::Reason::#drops),*],
                ledger_role: #ledger_role #leaves,
                ends: &[#(::castanet_element::spec::Reason::#ends),*],
                capabilities: &[#(::castanet_element::spec::Capability::#capabilities),*],
                host: &[#(::castanet_element::spec::HostUse::#host),*],
                task: #task,
                copies: #copies,
                descending: #descending,
                fifo: #fifo,
                clock: #clock,
                depends: ::castanet_element::spec::Depends::#depends,
                information: #information,
            };
        }
    }
}

pub fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    let ident = &input.ident;
    let attr = attribute(&input.attrs)?;
    let checked = Checked::new(input, &attr)?;
    let parts = Parts::new(input)?;
    let codes = code_checks(&attr);
    let class = class_impl(ident, &attr, &checked, &parts);
    let object = object::object_impl(ident, &parts, attr.has("kernel"));
    let counts = parts.counts.items(false)?;
    let handlers = (!attr.has("handlers")).then(|| quote!(impl ::castanet_element::Handlers for #ident {}));
    let build = (!attr.has("build")).then(|| parts.build_impl(ident));
    let element = object::element_impl(ident, &parts);
    let lifecycle = (!attr.has("lifecycle")).then(|| object::lifecycle_impl(ident, &parts));
    Ok(quote! {
        #codes
        #class
        #object
        impl ::castanet_element::Counts for #ident { #counts }
        #handlers
        #build
        #lifecycle
        #element
    })
}
