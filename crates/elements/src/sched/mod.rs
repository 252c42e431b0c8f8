// SPDX-License-Identifier: MIT OR Apache-2.0
//! Schedulers, which choose the input of the next packet, and switches, which choose its output.

use castanet_element::{ClassDef, InitCx, Signal, element};

pub mod bypass;
pub mod drr_sched;
pub mod hash_switch;
pub mod input_switch;
pub(crate) mod own_note;
pub mod paint_switch;
pub mod prio_sched;
pub mod pull_switch;
pub mod pull_tee;
pub mod random_switch;
pub mod round_robin_sched;
pub mod round_robin_switch;
mod selection;
mod shares;
pub mod static_pull_switch;
pub mod stride_sched;
pub mod stride_switch;
pub mod time_sorted_sched;

/// Returns the signal of each input, which says whether a notifier upstream is on. The element only reads the signals.
/// It does not subscribe to the notifiers, because it has neither a task nor a notifier of its own.
fn signals(inputs: usize, cx: &mut InitCx<'_>) -> Vec<Signal> {
    (0..inputs).map(|i| cx.signal_of(i)).collect()
}

/// The classes of this family.
pub const CLASSES: &[ClassDef] = &[
    element::<bypass::Bypass>(),
    element::<drr_sched::DrrSched>(),
    element::<hash_switch::HashSwitch>(),
    element::<input_switch::InputSwitch>(),
    element::<paint_switch::PaintSwitch>(),
    element::<prio_sched::PrioSched>(),
    element::<pull_switch::PullSwitch>(),
    element::<pull_tee::PullTee>(),
    element::<random_switch::RandomSwitch>(),
    element::<round_robin_sched::RoundRobinSched>(),
    element::<round_robin_switch::RoundRobinSwitch>(),
    element::<static_pull_switch::StaticPullSwitch>(),
    element::<stride_sched::StrideSched>(),
    element::<stride_switch::StrideSwitch>(),
    element::<time_sorted_sched::TimeSortedSched>(),
];
