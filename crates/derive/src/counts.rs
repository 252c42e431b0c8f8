// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads `#[count]` and `#[counts]` on fields, and generates the counts of a struct.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Data, DeriveInput, Error, Expr, Field, Fields, Ident, LitStr, Type};

/// The counts of a struct: its own fields, and its parts that have counts.
#[derive(Default)]
pub struct Counts {
    own: Vec<Own>,
    parts: Vec<(Ident, Type)>,
}

/// A field of type `Count` or `SharedCount`, or an array of `Count`.
struct Own {
    field: Ident,
    name: String,
    unit: String,
    doc: String,
    hidden: bool,
    shared: bool,
    /// For an array: the name of the label, and an expression for the label's values (`&'static [&'static str]`).
    label: Option<(String, TokenStream)>,
}

/// The kinds of types that hold counts.
#[derive(PartialEq)]
enum Shape<'a> {
    One,
    Shared,
    /// An array of counts, with the expression for its length.
    Array(&'a Expr),
}

/// Returns the kind of a type; none for other types than `Count`, `SharedCount` and `[Count; N]`.
fn count_type(ty: &Type) -> Option<Shape<'_>> {
    match ty {
        Type::Path(p) => match p.path.segments.last()?.ident.to_string().as_str() {
            "Count" => Some(Shape::One),
            "SharedCount" => Some(Shape::Shared),
            _ => None,
        },
        Type::Array(a) if count_type(&a.elem) == Some(Shape::One) => Some(Shape::Array(&a.len)),
        _ => None,
    }
}

impl Counts {
    /// Reads the attributes of a field.
    pub fn add(&mut self, f: &Field) -> syn::Result<()> {
        let Some(field) = f.ident.clone() else { return Ok(()) };
        if f.attrs.iter().any(|a| a.path().is_ident("counts")) {
            self.parts.push((field, f.ty.clone()));
            return Ok(());
        }
        let attribute = f.attrs.iter().find(|a| a.path().is_ident("count"));
        let (Some(shape), Some(attribute)) = (count_type(&f.ty), attribute) else {
            return match (count_type(&f.ty), attribute) {
                (None, Some(a)) => Err(Error::new_spanned(
                    a,
                    "#[count] stands on a field of type Count, SharedCount or [Count; N]",
                )),
                (Some(_), None) => {
                    Err(Error::new_spanned(f, "a count needs #[count(unit = \"...\")], such as \"packets\""))
                }
                _ => Ok(()),
            };
        };
        let doc = crate::doc_line(&f.attrs);
        let (name, unit, shared) = (field.to_string(), String::new(), shape == Shape::Shared);
        let array = if let Shape::Array(n) = shape { Some(n) } else { None };
        let mut own = Own { name, field, unit, doc, hidden: false, shared, label: None };
        attribute.parse_nested_meta(|m| {
            match m.path.get_ident().map(ToString::to_string).as_deref() {
                Some("name") => own.name = m.value()?.parse::<LitStr>()?.value(),
                Some("unit") => own.unit = m.value()?.parse::<LitStr>()?.value(),
                Some("hidden") => own.hidden = true,
                Some("label") => {
                    let content;
                    syn::parenthesized!(content in m.input);
                    let name = content.parse::<Ident>()?.to_string();
                    content.parse::<syn::Token![=]>()?;
                    let values: Expr = content.parse()?;
                    // The generated code compiles only if there are as many values as counts.
                    own.label = Some((
                        name,
                        quote!({
                            let values: &'static [&'static str; #array] = #values;
                            values
                        }),
                    ));
                }
                _ => return Err(m.error("expected unit, name, label or hidden")),
            }
            Ok(())
        })?;
        let missing = if own.unit.is_empty() {
            Some("a count needs #[count(unit = \"...\")], such as \"packets\"")
        } else if own.doc.is_empty() {
            Some("a count needs a documentation comment")
        } else if array.is_some() && own.label.is_none() {
            Some("several counts need label(NAME = VALUES), which says what each of them counts")
        } else if array.is_none() && own.label.is_some() {
            Some("label is for several counts: a field of type [Count; N]")
        } else {
            None
        };
        match missing {
            Some(message) => Err(Error::new_spanned(attribute, message)),
            None => {
                self.own.push(own);
                Ok(())
            }
        }
    }

    /// The body of `impl Counts`. The struct's own counts come first, then the counts of its parts.
    pub fn items(&self, generic: bool) -> syn::Result<TokenStream> {
        if self.own.is_empty() && self.parts.is_empty() {
            return Ok(quote!());
        }
        if let (true, Some((field, _))) = (generic, self.parts.first()) {
            return Err(Error::new(field.span(), "a generic type has no parts with counts"));
        }
        let (specs, handlers): (Vec<_>, Vec<_>) = self.own.iter().map(|c| (c.spec(), c.handler())).unzip();
        let list = |ty: TokenStream, item: TokenStream, own: &[TokenStream]| {
            let parts = self.parts.iter().map(|(_, ty)| quote!(<#ty as ::castanet_element::Counts>::#item));
            let lists: Vec<_> = std::iter::once(quote!(&[#(#own),*])).chain(parts).collect();
            crate::joined(&ty, &lists)
        };
        let specs = list(quote!(::castanet_element::spec::CountSpec), quote!(COUNTS), &specs);
        let handlers: Vec<_> = handlers.into_iter().flatten().collect();
        let handlers = list(quote!(::castanet_element::spec::HandlerSpec), quote!(COUNT_HANDLERS), &handlers);
        let visits = self.own.iter().enumerate().map(|(i, c)| {
            let field = &c.field;
            let spec = quote!(&<Self as ::castanet_element::Counts>::COUNTS[#i]);
            match (c.shared, &c.label) {
                (true, _) => quote!(self.#field.with(|count| visit(#spec, ::core::slice::from_mut(count)));),
                (_, None) => quote!(visit(#spec, ::core::slice::from_mut(&mut self.#field));),
                (_, Some(_)) => quote!(visit(#spec, &mut self.#field);),
            }
        });
        let visit_parts = self
            .parts
            .iter()
            .map(|(field, _)| quote!(::castanet_element::Counts::own_counts(&mut self.#field, visit);));
        let reads = self.own.iter().filter(|c| !c.hidden).map(|c| {
            let (name, field) = (&c.name, &c.field);
            match &c.label {
                None => quote!(#name => return Some(::castanet_element::spec::Show::show(&self.#field)),),
                Some((_, values)) => {
                    quote!(#name => return Some(::castanet_element::count::table(&self.#field, #values)),)
                }
            }
        });
        let read_parts = self.parts.iter().map(|(field, _)| {
            quote!(if let Some(value) = ::castanet_element::Counts::read_count(&self.#field, handler) { return Some(value); })
        });
        Ok(quote! {
            const COUNTS: &'static [::castanet_element::spec::CountSpec] = #specs;
            const COUNT_HANDLERS: &'static [::castanet_element::spec::HandlerSpec] = #handlers;
            fn own_counts(&mut self, visit: &mut ::castanet_element::CountVisitor<'_>) {
                #(#visits)*
                #(#visit_parts)*
            }
            #[allow(clippy::match_single_binding)]
            fn read_count(&self, handler: &str) -> Option<String> {
                match handler { #(#reads)* _ => {} }
                #(#read_parts)*
                None
            }
        })
    }
}

impl Own {
    fn spec(&self) -> TokenStream {
        let Own { name, unit, doc, .. } = self;
        let (label, values) = match &self.label {
            Some((label, values)) => (label.as_str(), quote!(#values)),
            None => ("", quote!(&[])),
        };
        quote!(::castanet_element::spec::CountSpec {
            name: #name, unit: #unit, doc: #doc, label: #label, values: #values,
        })
    }
    /// The read handler that shows the count; none if the count is hidden.
    fn handler(&self) -> Option<TokenStream> {
        let Own { name, unit, doc, .. } = self;
        let kind = Ident::new(if self.label.is_some() { "Table" } else { "Counter" }, Span::call_site());
        // All replicas see the same value of a shared count, so the values are not added.
        let merge = Ident::new(if self.shared { "First" } else { "Sum" }, Span::call_site());
        (!self.hidden).then(|| {
            quote!(::castanet_element::spec::HandlerSpec {
                unit: #unit,
                merge: ::castanet_element::spec::Merge::#merge,
                ..::castanet_element::spec::HandlerSpec::new(
                    #name, ::castanet_element::spec::HandlerFlags::READ, #doc, ::castanet_element::spec::ValueKind::#kind,
                )
            })
        })
    }
}

/// Implements `#[derive(Counts)]`, for engines and other parts of classes.
pub fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    let ident = &input.ident;
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(ident, "only a struct has counts"));
    };
    let mut counts = Counts::default();
    if let Fields::Named(fields) = &data.fields {
        for f in &fields.named {
            counts.add(f)?;
        }
    }
    let items = counts.items(!input.generics.params.is_empty())?;
    let (generics, arguments, bounds) = input.generics.split_for_impl();
    Ok(quote! {
        impl #generics ::castanet_element::Counts for #ident #arguments #bounds { #items }
    })
}
