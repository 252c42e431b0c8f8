// SPDX-License-Identifier: MIT OR Apache-2.0
use castanet_element::handlers;
use std::marker::PhantomData;

trait Kind {
    const LISTS: bool;
    const SHOWS: bool;
}

struct Engine<A>(PhantomData<A>);

#[handlers]
impl<A: Kind> Engine<A> {
    /// The list.
    #[read(only = A::LISTS)]
    fn list(&self) -> u32 {
        0
    }
    /// The value.
    #[read(only = A::SHOWS)]
    fn value(&self) -> u32 {
        0
    }
}

fn main() {}
