// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wrappers that run code around each call of an element. A wrapper catches panics, or keeps a shared library loaded.

use super::raise;
use crate::build::InitCx;
use crate::class::{Action, AnyElement, Attached, Drive, Element, Level, Lifecycle, Object, Turn, Verdict};
use crate::cx::Cx;
use crate::error::ElementError;
use crate::handler::HandlerError;
use crate::run_loop::Internals as _;
use castanet_kernel::{Code, Lowered};
use castanet_packet::{Batch, Packet};
use castanet_spec::{Effects, HandlerFlags};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Code that runs around each call of an element.
///
/// The methods for calls that move packets run [`Wrap::call`] around the call of the element `inner`, unless a wrapper
/// overrides them because it has to know the packets.
pub trait Wrap: Send + 'static {
    /// Calls `f`, and runs the code of the wrapper around this call.
    fn call<R>(&self, f: impl FnOnce() -> R) -> R;
    /// Takes notice of packets that a call pushes to the element, pulls from it, or lets its task send. Called inside
    /// [`Wrap::call`].
    #[inline(always)]
    fn packets(&self, _: usize) {}

    /// Runs an action on a packet.
    #[inline]
    fn action(&mut self, inner: &mut (impl Action + ?Sized), p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        self.call(|| {
            self.packets(1);
            inner.action(p, cx)
        })
    }
    /// Runs an action on a batch.
    #[inline]
    fn action_batch(&mut self, inner: &mut (impl Action + ?Sized), batch: &mut Batch, cx: &mut Cx<'_>) {
        self.call(|| {
            self.packets(batch.len());
            inner.action_batch(batch, cx)
        })
    }
    /// Pushes a batch to an element.
    #[inline]
    fn push(&mut self, inner: &mut (impl Element + ?Sized), port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.call(|| {
            self.packets(batch.len());
            inner.push(port, batch, cx)
        })
    }
    /// Pushes a packet to an element.
    #[inline]
    fn push_one(&mut self, inner: &mut (impl Element + ?Sized), port: usize, p: Packet, cx: &mut Cx<'_>) {
        self.call(|| {
            self.packets(1);
            inner.push_one(port, p, cx)
        })
    }
    /// Pulls packets from an element.
    #[inline]
    fn pull(
        &mut self,
        inner: &mut (impl Element + ?Sized),
        port: usize,
        max: usize,
        into: &mut Batch,
        cx: &mut Cx<'_>,
    ) {
        let before = into.len();
        self.call(|| {
            inner.pull(port, max, into, cx);
            self.packets(into.len().saturating_sub(before));
        })
    }
    /// Pulls a packet from an element.
    #[inline]
    fn pull_one(
        &mut self,
        inner: &mut (impl Element + ?Sized),
        port: usize,
        cx: &mut Cx<'_>,
    ) -> Option<Packet> {
        self.call(|| {
            let p = inner.pull_one(port, cx);
            self.packets(usize::from(p.is_some()));
            p
        })
    }
    /// Gives the task of an element a turn.
    #[inline]
    fn task(&mut self, inner: &mut (impl Element + ?Sized), cx: &mut Cx<'_>) -> Turn {
        let before = cx.outputs().waiting();
        self.call(|| {
            let turn = inner.task(cx);
            self.packets(cx.outputs().waiting().saturating_sub(before));
            turn
        })
    }
    /// Runs `f`, which calls the element on behalf of a timer, a signal or a request to stop. The element may emit
    /// packets.
    #[inline]
    fn event<R>(&mut self, cx: &mut Cx<'_>, f: impl FnOnce(&mut Cx<'_>) -> R) -> R {
        self.call(|| f(cx))
    }
}

/// Catches a panic in a shared library and raises it again in the program that loaded the library.
pub struct Guard;

impl Wrap for Guard {
    #[inline]
    fn call<R>(&self, f: impl FnOnce() -> R) -> R {
        // `AssertUnwindSafe` is correct: `raise` passes the panic on to the main program. As for a built-in element, the
        // option `--on-panic` then decides whether the element is used again.
        catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|panic| raise(panic))
    }
}

/// An element, and a wrapper around each of its calls.
pub struct Wrapped<T: ?Sized, W> {
    // INVARIANT: `inner` comes first, because fields are dropped in order. The code of `inner` may be in a library that
    // stays loaded only while `wrap` exists.
    inner: Box<T>,
    wrap: W,
}

impl<T: ?Sized, W: Wrap> Wrapped<T, W> {
    /// Wraps an element.
    pub fn new(inner: Box<T>, wrap: W) -> Wrapped<T, W> {
        Wrapped { inner, wrap }
    }
    /// Returns the element without the wrapper.
    pub fn into_inner(self) -> Box<T> {
        self.inner
    }
}

/// Access to the concrete type of an element.
pub trait Inner: Object {
    /// Returns the element, to be downcast to its concrete type.
    fn any(&mut self) -> &mut dyn Any;
}

impl<T: Object> Inner for T {
    fn any(&mut self) -> &mut dyn Any {
        self
    }
}
impl Inner for dyn Action {
    fn any(&mut self) -> &mut dyn Any {
        self
    }
}
impl Inner for dyn AnyElement {
    fn any(&mut self) -> &mut dyn Any {
        self
    }
}

/// Calls `f` with the element inside `old`, if `old` is a `Wrapped<T, W>`. Otherwise, calls `f` with `old` itself.
fn inside<T: Inner + ?Sized + 'static, W: Wrap, R>(
    old: &mut dyn Any,
    f: impl FnOnce(&mut dyn Any) -> R,
) -> R {
    match old.downcast_mut::<Wrapped<T, W>>() {
        Some(wrapped) => f(wrapped.inner.any()),
        None => f(old),
    }
}

impl<T: Inner + ?Sized + 'static, W: Wrap> Object for Wrapped<T, W> {
    fn read_handler(
        &mut self,
        handler: &str,
        parameters: &str,
        cx: &mut Cx<'_>,
    ) -> Option<Result<String, HandlerError>> {
        self.wrap.call(|| self.inner.read_handler(handler, parameters, cx))
    }
    fn write_handler(
        &mut self,
        handler: &str,
        value: &str,
        cx: &mut Cx<'_>,
    ) -> Option<Result<(), HandlerError>> {
        self.wrap.call(|| self.inner.write_handler(handler, value, cx))
    }
    fn each_count(&mut self, visit: &mut crate::CountVisitor<'_>) {
        self.wrap.call(|| self.inner.each_count(visit))
    }
    fn take_over_from(&mut self, old: &mut dyn Any, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.wrap
            .call(|| inside::<T, W, _>(old, |old| self.inner.take_over_from(old, cx)))
            .map_err(ElementError::detached)
    }
    fn own_handlers(&self) -> Vec<(String, HandlerFlags)> {
        self.wrap.call(|| self.inner.own_handlers())
    }
    fn take_state_from(&mut self, old: &mut dyn Any, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.wrap
            .call(|| inside::<T, W, _>(old, |old| self.inner.take_state_from(old, cx)))
            .map_err(ElementError::detached)
    }
    fn lower(&self, input: u32, code: &mut Code<'_>) -> Lowered {
        self.wrap.call(|| self.inner.lower(input, code))
    }
    fn receives(&self) -> Option<&str> {
        self.inner.receives()
    }
    fn attach(&mut self, to: Attached) {
        self.wrap.call(|| self.inner.attach(to))
    }
    fn counted(&mut self, name: &str, more: u64, now: i64) {
        self.wrap.call(|| self.inner.counted(name, more, now))
    }
    fn finished(&self) -> u64 {
        self.wrap.call(|| self.inner.finished())
    }
    fn newly_lost(&mut self) -> u64 {
        self.wrap.call(|| self.inner.newly_lost())
    }
    fn discard_unread(&mut self) -> u64 {
        self.wrap.call(|| self.inner.discard_unread())
    }
}

impl<T: Inner + ?Sized + 'static, W: Wrap> Lifecycle for Wrapped<T, W> {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        self.wrap.call(|| self.inner.initialise(cx)).map_err(ElementError::detached)
    }
    fn cleanup(&mut self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.wrap.call(|| self.inner.cleanup(cx)).map_err(ElementError::detached)
    }
    fn dynamic_handlers(&self) -> Vec<(String, HandlerFlags)> {
        self.wrap.call(|| self.inner.dynamic_handlers())
    }
    fn read_dynamic(
        &mut self,
        handler: &str,
        parameters: &str,
        cx: &mut Cx<'_>,
    ) -> Result<String, HandlerError> {
        self.wrap.call(|| self.inner.read_dynamic(handler, parameters, cx))
    }
    fn write_dynamic(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), HandlerError> {
        self.wrap.call(|| self.inner.write_dynamic(handler, value, cx))
    }
    fn changed(&mut self, handler: &str, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.wrap.call(|| self.inner.changed(handler, cx)).map_err(ElementError::detached)
    }
    fn effects(&self, declared: Effects) -> Effects {
        self.wrap.call(|| self.inner.effects(declared))
    }
    fn holds(&self) -> Option<String> {
        self.wrap.call(|| self.inner.holds())
    }
    fn held(&self) -> u64 {
        self.wrap.call(|| self.inner.held())
    }
}

impl<T: Inner + Action + ?Sized + 'static, W: Wrap> Action for Wrapped<T, W> {
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        self.wrap.action(&mut *self.inner, p, cx)
    }
    fn action_batch(&mut self, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.wrap.action_batch(&mut *self.inner, batch, cx);
    }
}

impl<T: Inner + Element + ?Sized + 'static, W: Wrap> Element for Wrapped<T, W> {
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.wrap.push(&mut *self.inner, port, batch, cx);
    }
    fn push_one(&mut self, port: usize, p: Packet, cx: &mut Cx<'_>) {
        self.wrap.push_one(&mut *self.inner, port, p, cx);
    }
    fn pull(&mut self, port: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        self.wrap.pull(&mut *self.inner, port, max, into, cx);
    }
    fn pull_one(&mut self, port: usize, cx: &mut Cx<'_>) -> Option<Packet> {
        self.wrap.pull_one(&mut *self.inner, port, cx)
    }
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        self.wrap.task(&mut *self.inner, cx)
    }
    fn plain_turns(&self, cx: &Cx<'_>) -> usize {
        self.wrap.call(|| self.inner.plain_turns(cx))
    }
    fn level(&self) -> Option<Level> {
        self.wrap.call(|| self.inner.level())
    }
    fn timer(&mut self, id: u16, cx: &mut Cx<'_>) {
        self.wrap.event(cx, |cx| self.inner.timer(id, cx));
    }
    fn signal(&mut self, signal: i32, cx: &mut Cx<'_>) {
        self.wrap.event(cx, |cx| self.inner.signal(signal, cx));
    }
    fn drive(&mut self, cx: &mut Cx<'_>) -> Drive {
        self.wrap.event(cx, |cx| self.inner.drive(cx))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    struct Around;

    impl Wrap for Around {
        fn call<R>(&self, f: impl FnOnce() -> R) -> R {
            f()
        }
    }

    /// Counts packets.
    #[derive(crate::Class)]
    #[class(name = "Counts", ports = "1/1", processing = "a/a", packets = "any/same", workers = exclusive)]
    pub struct Counts {
        /// Packets seen.
        #[count(unit = "packets")]
        count: crate::Count,
    }

    impl Action for Counts {
        fn action(&mut self, _: &mut Packet, _: &mut Cx<'_>) -> Verdict {
            self.count.add(1);
            Verdict::Next
        }
    }

    #[test]
    fn state_goes_from_the_element_inside_to_the_element_inside() {
        let counts = |n| {
            let mut count = crate::Count::default();
            count.add(n);
            Counts { count }
        };
        // As in a router: the inner wrapper is that of the library, the outer one that of the program.
        let wrapped = |n| -> Wrapped<dyn Action, Around> {
            Wrapped::new(Box::new(Wrapped::new(Box::new(counts(n)), Guard)), Around)
        };
        let mut kit = crate::kit::Kit::<Counts>::new("").unwrap();
        let mut count = |e: &mut Wrapped<dyn Action, Around>| {
            kit.with(|_, cx| e.read_handler("count", "", cx)).unwrap().unwrap()
        };
        let (mut old, mut new) = (wrapped(7), wrapped(0));
        crate::count::move_counts(&mut old, &mut new);
        assert_eq!(count(&mut new), "7");
        assert_eq!(count(&mut old), "0");
    }

    /// Fails with an error whose code belongs to the library.
    #[derive(crate::Class)]
    #[class(name = "Fails", ports = "1/1", processing = "a/a", packets = "any/same", workers = exclusive, lifecycle)]
    pub struct Fails;

    impl Lifecycle for Fails {
        fn cleanup(&mut self, _: &mut Cx<'_>) -> Result<(), ElementError> {
            let own = ElementError::Incomplete("half".into());
            Err(ElementError::refused(std::io::Error::new(std::io::ErrorKind::TimedOut, own)))
        }
    }

    impl Action for Fails {
        fn action(&mut self, _: &mut Packet, _: &mut Cx<'_>) -> Verdict {
            Verdict::Next
        }
    }

    #[test]
    fn errors_hold_nothing_of_the_library() {
        let mut kit = crate::kit::Kit::<Fails>::new("").unwrap();
        let mut wrapped: Wrapped<dyn Action, Around> = Wrapped::new(Box::new(Fails), Around);
        match kit.with(|_, cx| wrapped.cleanup(cx)) {
            Err(ElementError::System { source, .. }) => {
                assert_eq!(
                    (source.kind(), source.to_string().as_str()),
                    (std::io::ErrorKind::TimedOut, "half")
                );
                assert!(source.get_ref().is_some_and(|e| !e.is::<ElementError>()));
            }
            other => panic!("{other:?}"),
        }
    }

    /// Checks that `Wrapped` forwards every method that has a default body. If it did not, the method would do
    /// nothing for classes from packages, and no other test would notice.
    #[test]
    fn every_method_is_passed_on() {
        let source = include_str!("../class.rs");
        let here = include_str!("wrapped.rs");
        let mut methods = 0;
        for name in ["Object", "Lifecycle", "Action", "Element"] {
            let (_, body) = source.split_once(&format!("pub trait {name}")).unwrap();
            let body = body.split("\n}\n").next().unwrap();
            let (_, wrapped) = here.split_once(&format!(" {name} for Wrapped")).unwrap();
            let wrapped = wrapped.split("\n}\n").next().unwrap();
            for line in body.lines().filter_map(|l| l.strip_prefix("    fn ")) {
                let method = line.split('(').next().unwrap();
                // `Object::take_over_from` and `Object::take_state_from` call these two, and are forwarded
                // themselves.
                if matches!(method, "take_over" | "take_state") {
                    continue;
                }
                let direct = wrapped.contains(&format!("self.inner.{method}("));
                let by_wrapper = wrapped.contains(&format!("self.wrap.{method}(&mut *self.inner"));
                assert!(direct || by_wrapper, "{name}::{method}");
                methods += 1;
            }
        }
        assert!(methods >= 23, "{methods}");
    }
}
