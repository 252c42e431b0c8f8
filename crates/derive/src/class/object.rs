// SPDX-License-Identifier: MIT OR Apache-2.0
//! Generates the implementations of `Object` and `Lifecycle`, by which the runtime calls an element.

use super::parts::Parts;
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::Ident;
use syn::spanned::Spanned;

/// Returns the expressions that end the generated `read_handler` and `write_handler`. These expressions read and write
/// the handlers of arguments.
fn args_access(parts: &Parts<'_>) -> (TokenStream, TokenStream) {
    let Some(args) = parts.args() else { return (quote!(None), quote!(None)) };
    let read = quote!(::castanet_element::spec::Args::read(#args, handler).map(Ok));
    let ty = parts.args_type();
    let write = quote! {
        let written = cx.with_args(|a| ::castanet_element::spec::Args::write(#args, handler, value, a))?;
        let changed = match written {
            Ok(()) => {
                if let Some(doubt) = <#ty as ::castanet_element::spec::Args>::doubt(handler, value) {
                    cx.message(&format!("{}: warning: {doubt}", cx.declaration()));
                }
                ::castanet_element::Lifecycle::changed(self, handler, cx).map_err(Into::into)
            }
            Err(e) => Err(::castanet_element::HandlerError::from(e)),
        };
        Some(changed)
    };
    (read, write)
}

/// The statements of `read_handler`, `write_handler`, `each_count` and `own_handlers` that call the engine.
fn engine_access(parts: &Parts<'_>) -> [TokenStream; 4] {
    let Some((e, _)) = parts.engine else { return [quote!(), quote!(), quote!(), quote!()] };
    [
        quote! {
            if let Some(value) = self.#e.read_method(handler, parameters, cx) { return Some(value); }
            if let Some(value) = self.#e.read_count(handler) { return Some(Ok(value)); }
        },
        quote!(if let Some(done) = self.#e.write_method(handler, value, cx) { return Some(done); }),
        quote!(::castanet_element::Counts::own_counts(&mut self.#e, visit);),
        quote!(::castanet_element::handler::list_indexed(&self.#e, &mut all);),
    ]
}

/// Generates the implementation of `Object`.
pub fn object_impl(ident: &Ident, parts: &Parts<'_>, kernel: bool) -> TokenStream {
    let kernel = kernel.then(|| {
        let own = match parts.engine.filter(|_| parts.engine_processes) {
            Some((e, _)) => quote!(self.#e),
            None => quote!(*self),
        };
        quote! {
            fn lower(&self, input: u32, code: &mut ::castanet_element::kernel::Code<'_>)
                -> ::castanet_element::kernel::Lowered
            {
                ::castanet_element::InKernel::lower(&#own, input, code)
            }
            fn receives(&self) -> Option<&str> {
                ::castanet_element::InKernel::receives(&#own)
            }
            fn attach(&mut self, to: ::castanet_element::Attached) {
                ::castanet_element::InKernel::attach(&mut #own, to)
            }
            fn counted(&mut self, name: &str, more: u64, now: i64) {
                ::castanet_element::InKernel::counted(&mut #own, name, more, now)
            }
            fn finished(&self) -> u64 {
                ::castanet_element::InKernel::finished(&#own)
            }
            fn newly_lost(&mut self) -> u64 {
                ::castanet_element::InKernel::newly_lost(&mut #own)
            }
            fn discard_unread(&mut self) -> u64 {
                ::castanet_element::InKernel::discard_unread(&mut #own)
            }
        }
    });
    let (read_args, write_args) = args_access(parts);
    let [read_engine, write_engine, visit_engine, list_engine] = engine_access(parts);
    quote! {
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
            fn own_handlers(&self) -> Vec<(String, ::castanet_element::spec::HandlerFlags)> {
                let mut all = ::castanet_element::Lifecycle::dynamic_handlers(self);
                #list_engine
                ::castanet_element::handler::list_indexed(self, &mut all);
                all
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
            #kernel
        }
    }
}

/// Generates the implementation of `Lifecycle`: empty, or all of it delegated to the engine.
pub fn lifecycle_impl(ident: &Ident, parts: &Parts<'_>) -> TokenStream {
    let Some((e, _)) = parts.engine else {
        return quote!(impl ::castanet_element::Lifecycle for #ident {});
    };
    quote! {
        impl ::castanet_element::Lifecycle for #ident {
            fn initialise(&mut self, cx: &mut ::castanet_element::InitCx<'_>) -> Result<(), ::castanet_element::ElementError> {
                ::castanet_element::Lifecycle::initialise(&mut self.#e, cx)
            }
            fn cleanup(&mut self, cx: &mut ::castanet_element::Cx<'_>) -> Result<(), ::castanet_element::ElementError> {
                ::castanet_element::Lifecycle::cleanup(&mut self.#e, cx)
            }
            fn dynamic_handlers(&self) -> Vec<(String, ::castanet_element::spec::HandlerFlags)> {
                ::castanet_element::Lifecycle::dynamic_handlers(&self.#e)
            }
            fn read_dynamic(&mut self, handler: &str, parameters: &str, cx: &mut ::castanet_element::Cx<'_>)
                -> Result<String, ::castanet_element::HandlerError>
            {
                ::castanet_element::Lifecycle::read_dynamic(&mut self.#e, handler, parameters, cx)
            }
            fn write_dynamic(&mut self, handler: &str, value: &str, cx: &mut ::castanet_element::Cx<'_>) -> Result<(), ::castanet_element::HandlerError> {
                ::castanet_element::Lifecycle::write_dynamic(&mut self.#e, handler, value, cx)
            }
            fn changed(&mut self, handler: &str, cx: &mut ::castanet_element::Cx<'_>) -> Result<(), ::castanet_element::ElementError> {
                ::castanet_element::Lifecycle::changed(&mut self.#e, handler, cx)
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

/// Generates the implementation of `Element` that delegates to the engine, if the engine processes the packets.
pub fn element_impl(ident: &Ident, parts: &Parts<'_>) -> Option<TokenStream> {
    let (e, ty) = parts.engine.filter(|_| parts.engine_processes)?;
    let engine = quote_spanned!(ty.span()=> <#ty as ::castanet_element::Element>);
    Some(quote! {
        impl ::castanet_element::Element for #ident {
            #[inline]
            fn push(&mut self, port: usize, batch: &mut ::castanet_element::packet::Batch, cx: &mut ::castanet_element::Cx<'_>) {
                #engine::push(&mut self.#e, port, batch, cx);
            }
            #[inline]
            fn push_one(&mut self, port: usize, p: ::castanet_element::packet::Packet, cx: &mut ::castanet_element::Cx<'_>) {
                #engine::push_one(&mut self.#e, port, p, cx);
            }
            #[inline]
            fn pull(&mut self, port: usize, max: usize, into: &mut ::castanet_element::packet::Batch, cx: &mut ::castanet_element::Cx<'_>) {
                #engine::pull(&mut self.#e, port, max, into, cx);
            }
            #[inline]
            fn pull_one(&mut self, port: usize, cx: &mut ::castanet_element::Cx<'_>) -> Option<::castanet_element::packet::Packet> {
                #engine::pull_one(&mut self.#e, port, cx)
            }
            fn task(&mut self, cx: &mut ::castanet_element::Cx<'_>) -> ::castanet_element::Turn {
                #engine::task(&mut self.#e, cx)
            }
            fn plain_turns(&self, cx: &::castanet_element::Cx<'_>) -> usize {
                #engine::plain_turns(&self.#e, cx)
            }
            fn level(&self) -> Option<::castanet_element::Level> {
                #engine::level(&self.#e)
            }
            fn timer(&mut self, id: u16, cx: &mut ::castanet_element::Cx<'_>) {
                #engine::timer(&mut self.#e, id, cx);
            }
            fn signal(&mut self, signal: i32, cx: &mut ::castanet_element::Cx<'_>) {
                #engine::signal(&mut self.#e, signal, cx);
            }
            fn drive(&mut self, cx: &mut ::castanet_element::Cx<'_>) -> ::castanet_element::Drive {
                #engine::drive(&mut self.#e, cx)
            }
        }
    })
}
