// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records which element of a router uses which device. It is a configuration error if two elements claim the same
//! use of a device.

use castanet_element::prelude::*;
use parking_lot::Mutex;
use std::collections::HashMap;

/// The key under which all elements of a router share data. Other keys are element numbers.
pub(super) const ROUTER: u32 = u32::MAX;

/// The claims: for each claimed use of a device, the number and the name of the element that claimed it.
#[derive(Default)]
struct Claims(Mutex<HashMap<String, (u32, String)>>);

/// For each device from which elements receive, whether they do so by METHOD XDP, and the first of the elements.
#[derive(Default)]
struct Methods(Mutex<HashMap<String, (bool, String)>>);

/// Records how an element receives from a device. It is an error if another element receives in the other way, because
/// XDP takes the frames before packet sockets see them.
pub(super) fn claim_method(device: &str, xdp: bool, cx: &mut BuildCx<'_>) -> Result<(), ConfigError> {
    let methods = cx.share_as(ROUTER, Methods::default);
    let name = format!("{} :: {}", cx.name, cx.written_class);
    let mut methods = methods.0.lock();
    let (other, owner) = methods.entry(device.to_string()).or_insert((xdp, name));
    if *other == xdp {
        return Ok(());
    }
    let with = if *other { "with" } else { "without" };
    let error = format!("device '{device}' is already used by '{owner}' {with} METHOD XDP");
    Err(ArgError::new(error, 0..usize::MAX).help("give both the same METHOD").into())
}

/// Claims a use of a device for the element that is being built. The text `what` describes the use. If another element
/// has claimed the same text already, the error names that element.
pub(super) fn claim(what: &str, cx: &mut BuildCx<'_>) -> Result<(), ConfigError> {
    let claims = cx.share_as(ROUTER, Claims::default);
    let mut claims = claims.0.lock();
    let (me, name) = (cx.me, format!("{} :: {}", cx.name, cx.written_class));
    let (owner, owned_by) = claims.entry(what.to_string()).or_insert((me, name));
    if *owner == me {
        return Ok(());
    }
    let error = ArgError::new(format!("{what} is already used by '{owned_by}'"), 0..usize::MAX);
    Err(error.help("give each device to one element, and its packets to others by Tee or Classifier").into())
}
