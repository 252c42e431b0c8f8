// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wrappers around elements: puts them on while a router runs, and takes them off.

use crate::disabled::{idle_action, idle_element};
use crate::node::InstanceMut;
use castanet_element::package::{Inner, Wrap, Wrapped};
use castanet_element::{Action, AnyElement};
use castanet_typed::Typed;
use std::any::Any;

/// Puts a wrapper around an element.
pub(crate) fn wrap<W: Wrap>(place: InstanceMut<'_>, wrapper: W) {
    match place {
        InstanceMut::Element(place) => {
            let e = std::mem::replace(place, idle_element()).into_inner();
            *place = Typed::new(Box::new(Wrapped::<dyn AnyElement, W>::new(e, wrapper)));
        }
        InstanceMut::Action(place) => {
            let a = std::mem::replace(place, idle_action()).into_inner();
            *place = Typed::new(Box::new(Wrapped::<dyn Action, W>::new(a, wrapper)));
        }
    }
}

/// Takes the wrapper off an element, if it has one of type `W`.
pub(crate) fn unwrap<W: Wrap>(place: InstanceMut<'_>) {
    match place {
        InstanceMut::Element(place) => {
            if place.any().is::<Wrapped<dyn AnyElement, W>>() {
                let e: Box<dyn Any> = std::mem::replace(place, idle_element()).into_inner();
                if let Ok(wrapped) = e.downcast::<Wrapped<dyn AnyElement, W>>() {
                    *place = Typed::new(wrapped.into_inner());
                }
            }
        }
        InstanceMut::Action(place) => {
            if place.any().is::<Wrapped<dyn Action, W>>() {
                let a: Box<dyn Any> = std::mem::replace(place, idle_action()).into_inner();
                if let Ok(wrapped) = a.downcast::<Wrapped<dyn Action, W>>() {
                    *place = Typed::new(wrapped.into_inner());
                }
            }
        }
    }
}
