// SPDX-License-Identifier: MIT OR Apache-2.0
//! Boxed elements with their type, for a downcast without a virtual call.
//!
//! `Any::downcast_mut` asks a trait object for its type by a virtual call. Compiled code downcasts for every packet and
//! element, so a virtual call there would undo its gain. A [`Typed`] box keeps the type beside the trait object, so that
//! a downcast costs a comparison.

use castanet_element::{Action, AnyElement};
use std::any::{Any, TypeId};
use std::ops::{Deref, DerefMut};

mod sealed {
    use std::any::Any;

    /// A trait object that can be viewed as `Any`. Sealed, because [`Typed`](super::Typed) relies on `any` to return
    /// the object itself.
    pub trait Object {
        fn any(&self) -> &dyn Any;
    }
}

impl sealed::Object for dyn Action {
    fn any(&self) -> &dyn Any {
        self
    }
}

impl sealed::Object for dyn AnyElement {
    fn any(&self) -> &dyn Any {
        self
    }
}

/// A box of a trait object, with the type of the value inside.
pub struct Typed<T: ?Sized> {
    // INVARIANT: `id` is the type of the value in `value`. The box is never replaced, and safe code cannot change the
    // type of a value behind a reference to a trait object.
    value: Box<T>,
    id: TypeId,
}

/// An element that can be part of a chain.
pub type TypedAction = Typed<dyn Action>;
/// Any other element.
pub type TypedElement = Typed<dyn AnyElement>;

impl<T: ?Sized + sealed::Object> Typed<T> {
    /// Makes a typed box.
    pub fn new(value: Box<T>) -> Typed<T> {
        // The receiver must be the trait object, not the box, which has a type of its own.
        let id = T::any(&value).type_id();
        Typed { value, id }
    }
    /// Returns the value, if it is of type `U`.
    #[inline(always)]
    pub fn downcast_mut<U: Any>(&mut self) -> Option<&mut U> {
        if self.id != TypeId::of::<U>() {
            return None;
        }
        let value: *mut T = &mut *self.value;
        // SAFETY: `id` is the type of the value, so a `U` is at this address, and `self` is borrowed as long as the
        // reference lives.
        Some(unsafe { &mut *value.cast::<U>() })
    }
    /// Returns the box without the type.
    pub fn into_inner(self) -> Box<T> {
        self.value
    }
}

impl<T: ?Sized> Deref for Typed<T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: ?Sized> DerefMut for Typed<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::prelude::*;

    /// Passes packets.
    #[derive(Class)]
    #[class(name = "One", ports = "1/1", processing = "a/a", packets = "any/same", workers = replicate)]
    struct One {
        args: OneArgs,
    }
    /// Arguments of One.
    #[derive(Args)]
    struct OneArgs {
        /// A number.
        #[arg(keyword, default = 7)]
        number: u32,
    }
    impl Action for One {
        fn action(&mut self, _: &mut Packet, _: &mut Cx<'_>) -> Verdict {
            Verdict::Next
        }
    }

    /// Passes packets.
    #[derive(Class)]
    #[class(name = "Other", ports = "1/1", processing = "a/a", packets = "any/same", workers = replicate)]
    struct Other;
    impl Element for Other {}

    #[test]
    fn only_the_class_inside_is_found() {
        let mut action: TypedAction = Typed::new(Box::new(One { args: OneArgs { number: 5 } }));
        assert_eq!(action.downcast_mut::<One>().unwrap().args.number, 5);
        assert!(action.downcast_mut::<Other>().is_none());
        assert!(action.downcast_mut::<Box<dyn Action>>().is_none());
        let mut element: TypedElement = Typed::new(Box::new(Other));
        assert!(element.downcast_mut::<Other>().is_some());
        assert!(element.downcast_mut::<One>().is_none());
        let (a, b): (&dyn Any, &dyn Any) = (&*action.into_inner(), &*element.into_inner());
        assert!(a.is::<One>() && b.is::<Other>());
    }
}
