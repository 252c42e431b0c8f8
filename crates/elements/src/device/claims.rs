// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which element of a router uses which device. Two elements that claim the same thing are a configuration
//! error.

use castanet_element::prelude::*;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The key of data that belongs to the whole router and to no single element.
pub(super) const ROUTER: u32 = u32::MAX;

/// The claims: for each claimed thing, the number and the name of the element.
#[derive(Default)]
struct Claims(Mutex<HashMap<String, (u32, String)>>);

/// Claims something for the element that is being built. The error names the element that has it already.
pub(super) fn claim(what: &str, cx: &mut BuildCx<'_>) -> Result<(), ConfigError> {
    let claims = cx.share_as(ROUTER, Claims::default);
    let mut claims = claims.0.lock().unwrap_or_else(PoisonError::into_inner);
    let (me, name) = (cx.me, format!("{} :: {}", cx.name, cx.written_class));
    let (owner, owned_by) = claims.entry(what.to_string()).or_insert((me, name));
    if *owner == me {
        return Ok(());
    }
    let error = ArgError::new(format!("{what} is already used by '{owned_by}'"), 0..usize::MAX);
    Err(error.help("give each device to one element, and its packets to others by Tee or Classifier").into())
}
