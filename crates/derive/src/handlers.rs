// SPDX-License-Identifier: MIT OR Apache-2.0
//! Implements `#[handlers]`, which declares handlers of a class as methods of an `impl` block.

use crate::flags::{self, FLAGS};
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, FnArg, Ident, ImplItem, ImplItemFn, ItemImpl, LitStr, ReturnType, Type};

/// One attribute `#[read]` or `#[write]`.
struct Attr {
    write: bool,
    name: Option<LitStr>,
    unit: String,
    merge: Option<Ident>,
    each: Option<Expr>,
    only: Option<Expr>,
    flags: Vec<char>,
}

fn attribute(a: &Attribute) -> syn::Result<Attr> {
    let write = a.path().is_ident("write");
    let (name, unit, merge) = (None, String::new(), None);
    let mut out = Attr { write, name, unit, merge, each: None, only: None, flags: Vec::new() };
    if matches!(a.meta, syn::Meta::Path(_)) {
        return Ok(out);
    }
    a.parse_nested_meta(|m| {
        let word = m.path.get_ident().map(ToString::to_string).unwrap_or_default();
        match word.as_str() {
            "name" => out.name = Some(m.value()?.parse()?),
            "each" => out.each = Some(m.value()?.parse()?),
            "only" => out.only = Some(m.value()?.parse()?),
            "unit" if !write => out.unit = m.value()?.parse::<LitStr>()?.value(),
            "merge" if !write => out.merge = Some(m.value()?.parse()?),
            _ => match FLAGS.iter().find(|f| !f.word.is_empty() && f.word == word) {
                Some(f) => out.flags.push(f.letter),
                None => {
                    let words: Vec<_> = FLAGS.iter().map(|f| f.word).filter(|w| !w.is_empty()).collect();
                    let values = if write { "name, each, only" } else { "name, each, only, unit, merge" };
                    return Err(m.error(format!("expected {values} or one of {}", words.join(", "))));
                }
            },
        }
        Ok(())
    })?;
    Ok(out)
}

/// A handler, declared by a read method, a write method, or both.
struct Handler {
    name: String,
    /// The position of the name of the handler's first method, for errors.
    at: Span,
    read: Option<Read>,
    write: Option<TokenStream>,
    flags: Vec<char>,
    doc: String,
    /// For an indexed handler: the expression for the number of handlers that an element has.
    each: Option<Expr>,
    /// For a handler of a generic engine: a constant that is true for the classes that have the handler. `None` if all
    /// have it.
    only: Option<Expr>,
}

struct Read {
    call: TokenStream,
    kind: Type,
    unit: String,
    merge: TokenStream,
    parameters: bool,
}

/// Whether a type is called `name`.
fn is(ty: &Type, name: &str) -> bool {
    matches!(ty, Type::Path(p) if p.path.segments.last().is_some_and(|s| s.ident == name))
}

/// Whether a type is a reference to a type called `name`.
fn refers_to(ty: &Type, name: &str) -> bool {
    matches!(ty, Type::Reference(r) if is(&r.elem, name))
}

/// Returns the type of the text or value that a method takes (`None` if it takes neither), and whether the method takes
/// a context. The method of an `indexed` handler must first take the number of the handler.
fn inputs(f: &ImplItemFn, indexed: bool) -> syn::Result<(Option<Type>, bool)> {
    let wrong = |at: &dyn quote::ToTokens| {
        Error::new_spanned(
            at,
            "a handler takes &self or &mut self, then perhaps a value, then perhaps cx: &mut Cx<'_>",
        )
    };
    let by_reference = |r: &syn::Receiver| matches!(r.kind, syn::ReceiverKind::Reference(..));
    if !f.sig.receiver().is_some_and(by_reference) {
        return Err(wrong(&f.sig));
    }
    if indexed && !matches!(f.sig.inputs.iter().nth(1), Some(FnArg::Typed(p)) if is(&p.ty, "usize")) {
        return Err(Error::new_spanned(
            &f.sig,
            "a handler with `each` takes its number after self, as a usize",
        ));
    }
    let (mut value, mut context) = (None, false);
    for input in f.sig.inputs.iter().skip(if indexed { 2 } else { 1 }) {
        let FnArg::Typed(p) = input else { return Err(wrong(input)) };
        if context {
            return Err(wrong(input));
        }
        if refers_to(&p.ty, "Cx") {
            context = true;
        } else if value.replace((*p.ty).clone()).is_some() {
            return Err(wrong(input));
        }
    }
    Ok((value, context))
}

/// Returns the type of the value that a method returns (`None` without a return type), and whether the method returns a
/// `Result` of this type.
fn output(f: &ImplItemFn) -> (Option<Type>, bool) {
    let ReturnType::Type(_, ty) = &f.sig.output else { return (None, false) };
    let bare = |t: &Type| match t {
        // For a reference, the declaration uses the type that it points to. Values of both types are shown alike, and
        // the lifetime of the reference cannot be named in a constant.
        Type::Reference(r) => (*r.elem).clone(),
        t => t.clone(),
    };
    if let Type::Path(p) = &**ty
        && let Some(last) = p.path.segments.last()
        && last.ident == "Result"
        && let syn::PathArguments::AngleBracketed(args) = &last.arguments
        && let Some(syn::GenericArgument::Type(t)) = args.args.first()
    {
        return (Some(bare(t)), true);
    }
    (Some(bare(ty)), false)
}

/// Generates the call of a method, with the value parsed from `text` if the method takes one. The method of an
/// `indexed` handler also takes the number of the handler.
fn call(f: &ImplItemFn, text: &Ident, indexed: bool) -> syn::Result<(TokenStream, bool)> {
    let (value, context) = inputs(f, indexed)?;
    let method = &f.sig.ident;
    let number = indexed.then(|| quote!(number,));
    let cx = context.then(|| quote!(cx));
    // Call the method by its path (`Self::method`), which selects the method of this block. `self.method()` could
    // select a method of a trait, such as `Element::signal`.
    Ok(match value {
        None => (quote!(Self::#method(self, #number #cx)), false),
        Some(ty) if refers_to(&ty, "str") => (quote!(Self::#method(self, #number #text, #cx)), true),
        Some(ty) => (
            quote_spanned! {ty.span()=> {
                let value = match ::castanet_element::handler::parse::<#ty>(#text, cx) {
                    Ok(value) => value,
                    Err(e) => return Some(Err(e)),
                };
                Self::#method(self, #number value, #cx)
            }},
            true,
        ),
    })
}

fn read(f: &ImplItemFn, a: &Attr, indexed: bool) -> syn::Result<Read> {
    let (Some(kind), result) = output(f) else {
        return Err(Error::new_spanned(&f.sig, "a read handler returns its value"));
    };
    let (call, parameters) = call(f, &format_ident!("parameters"), indexed)?;
    let show = quote!(::castanet_element::spec::Show::show);
    let call = match result {
        true => quote!(match #call {
            Ok(value) => Ok(#show(&value)),
            Err(e) => Err(::castanet_element::HandlerError::from(e)),
        }),
        false => quote!(Ok(#show(&#call))),
    };
    let merge = match a.merge.as_ref().map(ToString::to_string).as_deref() {
        None => quote!(<#kind as ::castanet_element::spec::Show>::KIND.merge()),
        Some("sum") => quote!(::castanet_element::spec::Merge::Sum),
        Some("first") => quote!(::castanet_element::spec::Merge::First),
        Some("max") => quote!(::castanet_element::spec::Merge::Max),
        _ => return Err(Error::new_spanned(&a.merge, "expected sum, first or max")),
    };
    Ok(Read { call, kind, unit: a.unit.clone(), merge, parameters })
}

fn write(f: &ImplItemFn, indexed: bool) -> syn::Result<TokenStream> {
    let (call, takes) = call(f, &format_ident!("value"), indexed)?;
    let ignored = (!takes).then(|| quote!(let _ = value;));
    Ok(match output(f) {
        (None, _) => quote!({ #ignored #call; Ok(()) }),
        (Some(_), true) => quote!({ #ignored #call.map_err(::castanet_element::HandlerError::from) }),
        (Some(ty), false) => {
            return Err(Error::new_spanned(ty, "a write handler returns nothing, or a Result of nothing"));
        }
    })
}

fn add(all: &mut Vec<Handler>, f: &ImplItemFn, a: &Attr, doc: &str) -> syn::Result<()> {
    let method = f.sig.ident.to_string();
    let plain = if a.write { method.strip_prefix("set_").unwrap_or(&method) } else { &method };
    let name = a.name.as_ref().map_or_else(|| plain.to_string(), LitStr::value);
    let at = match all.iter().position(|h| h.name == name) {
        Some(i) => i,
        None => {
            all.push(Handler {
                name: name.clone(),
                at: f.sig.ident.span(),
                read: None,
                write: None,
                flags: Vec::new(),
                doc: String::new(),
                each: None,
                only: None,
            });
            all.len() - 1
        }
    };
    let h = &mut all[at];
    if a.write && h.write.is_some() || !a.write && h.read.is_some() {
        let which = if a.write { "write" } else { "read" };
        return Err(Error::new_spanned(&f.sig.ident, format!("there are two {which} handlers {name}")));
    }
    h.each = a.each.clone().or(h.each.take());
    h.only = a.only.clone().or(h.only.take());
    let indexed = h.each.is_some();
    if a.write {
        h.write = Some(write(f, indexed)?);
    } else {
        h.read = Some(read(f, a, indexed)?);
    }
    h.flags.extend(&a.flags);
    if !h.doc.is_empty() && !doc.is_empty() {
        h.doc.push(' ');
    }
    h.doc.push_str(doc);
    Ok(())
}

impl Handler {
    /// Generates the flags.
    fn flags(&self) -> TokenStream {
        let mut letters: String = self.flags.iter().collect();
        let mut put = |c, on| letters.extend(Some(c).filter(|_| on));
        put('r', self.read.is_some());
        put('w', self.write.is_some());
        put('+', self.read.as_ref().is_some_and(|r| r.parameters));
        // Every letter comes from the list of flags, so `of` returns no error.
        flags::of(&letters).unwrap_or_default()
    }
    fn spec(&self) -> TokenStream {
        let (name, flags, doc) = (&self.name, self.flags(), &self.doc);
        let (kind, unit, merge) = match &self.read {
            Some(r) => {
                let (kind, unit, merge) = (&r.kind, &r.unit, &r.merge);
                (quote!(<#kind as ::castanet_element::spec::Show>::KIND), unit.as_str(), quote!(#merge))
            }
            None => {
                let merge = quote!(::castanet_element::spec::Merge::First);
                (quote!(::castanet_element::spec::ValueKind::Text), "", merge)
            }
        };
        quote!(::castanet_element::spec::HandlerSpec {
            name: #name, flags: #flags, doc: #doc, kind: #kind, unit: #unit, merge: #merge,
        })
    }
}

/// Returns the block without the handler attributes, and an implementation of `Handlers`. After an error, the
/// implementation is empty, so that the compiler reports only this error.
pub fn expand(mut block: ItemImpl) -> TokenStream {
    let implementation =
        declared(&mut block).and_then(|all| implementation(&block, &all)).unwrap_or_else(|e| {
            let mut out = e.to_compile_error();
            out.extend(implementation(&block, &[]).unwrap_or_default());
            out
        });
    quote!(#block #implementation)
}

/// Collects the handlers that the methods of a block declare, and removes their attributes.
fn declared(block: &mut ItemImpl) -> syn::Result<Vec<Handler>> {
    let (mut all, mut result) = (Vec::new(), Ok(()));
    for item in &mut block.items {
        let ImplItem::Fn(f) = item else { continue };
        let of_handlers = |a: &Attribute| a.path().is_ident("read") || a.path().is_ident("write");
        let (found, kept) = std::mem::take(&mut f.attrs).into_iter().partition(of_handlers);
        f.attrs = kept;
        let found: Vec<Attribute> = found;
        for a in found {
            let added = attribute(&a).and_then(|a| add(&mut all, f, &a, &crate::doc_line(&f.attrs)));
            // Continues after an error, because all attributes must be removed.
            result = result.and(added);
        }
    }
    result.map(|()| all)
}

fn implementation(block: &ItemImpl, all: &[Handler]) -> syn::Result<TokenStream> {
    if let Some(h) = all.iter().find(|h| h.doc.is_empty()) {
        let message = format!("the handler {} needs a documentation comment", h.name);
        return Err(Error::new(h.at, message));
    }
    let (indexed, plain): (Vec<_>, Vec<_>) = all.iter().partition(|h| h.each.is_some());
    let methods = methods(&plain)?;
    let (reads, reads_of_many) = cases(&plain, &indexed, &|h| h.read.as_ref().map(|r| r.call.clone()));
    let (writes, writes_of_many) = cases(&plain, &indexed, &|h| h.write.clone());
    let (generics, _, bounds) = block.generics.split_for_impl();
    let ty = &block.self_ty;
    let many = (!indexed.is_empty()).then(|| {
        let specs = indexed.iter().map(|h| h.spec());
        let counts = indexed.iter().enumerate().map(|(i, h)| {
            let each = &h.each;
            quote!(#i => #each,)
        });
        quote! {
            const INDEXED: &'static [::castanet_element::spec::HandlerSpec] = &[#(#specs),*];
            fn count_of(&self, i: usize) -> usize {
                match i { #(#counts)* _ => 0 }
            }
        }
    });
    Ok(quote! {
        impl #generics ::castanet_element::Handlers for #ty #bounds {
            const METHODS: &'static [::castanet_element::spec::HandlerSpec] = #methods;
            #many
            #[allow(unused_variables, unreachable_code, clippy::match_single_binding)]
            fn read_method(&mut self, handler: &str, parameters: &str, cx: &mut ::castanet_element::Cx<'_>)
                -> Option<Result<String, ::castanet_element::HandlerError>>
            {
                #(#reads_of_many)*
                Some(match handler { #(#reads)* _ => return None })
            }
            #[allow(unused_variables, unreachable_code, clippy::match_single_binding)]
            fn write_method(&mut self, handler: &str, value: &str, cx: &mut ::castanet_element::Cx<'_>)
                -> Option<Result<(), ::castanet_element::HandlerError>>
            {
                #(#writes_of_many)*
                Some(match handler { #(#writes)* _ => return None })
            }
        }
    })
}

/// Generates the list of plain handlers. Handlers with a condition (`only`) are in the list only if the condition is
/// true. All these handlers must have the same condition: the generated code can only choose between two complete
/// lists, because a constant of a generic type cannot be put together from parts.
fn methods(plain: &[&Handler]) -> syn::Result<TokenStream> {
    let list = |of: &dyn Fn(&Handler) -> bool| {
        let specs = plain.iter().filter(|h| of(h)).map(|h| h.spec());
        quote!(&[#(#specs),*])
    };
    let mut conditions = plain.iter().filter_map(|h| Some((h.at, h.only.as_ref()?)));
    let Some((_, only)) = conditions.next() else { return Ok(list(&|_| true)) };
    let same = |other: &Expr| quote!(#other).to_string() == quote!(#only).to_string();
    if let Some((at, _)) = conditions.find(|(_, other)| !same(other)) {
        return Err(Error::new(at, "the handlers of one block have one condition `only`"));
    }
    let (all, others) = (list(&|_| true), list(&|h| h.only.is_none()));
    Ok(quote!(if #only { #all } else { #others }))
}

/// Generates the match arms that call the methods of plain handlers, and the statements that call those of indexed
/// handlers. `call` returns the code that calls the read (or write) method of a handler. It returns `None` if the
/// handler has no such method.
fn cases(
    plain: &[&Handler],
    indexed: &[&Handler],
    call: &dyn Fn(&Handler) -> Option<TokenStream>,
) -> (Vec<TokenStream>, Vec<TokenStream>) {
    let arm = |h: &&Handler| {
        let (name, call) = (&h.name, call(h)?);
        let guard = h.only.as_ref().map(|only| quote!(if #only));
        Some(quote!(#name #guard => #call,))
    };
    let statement = |h: &&Handler| {
        let (name, call, each) = (&h.name, call(h)?, h.each.as_ref()?);
        Some(quote! {
            if let Some(number) = ::castanet_element::spec::class::index(handler, #name).filter(|n| *n < #each) {
                return Some(#call);
            }
        })
    };
    (plain.iter().filter_map(arm).collect(), indexed.iter().filter_map(statement).collect())
}
