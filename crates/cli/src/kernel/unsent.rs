// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames that programs have passed on, and that were not sent.

use castanet_element::kernel::{Counter, Sender};
use castanet_io::device::DeviceError;
use castanet_io::device::xdp::{ProgramMap, SendFailures, Watched};
use castanet_spec::Reason;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Counts frames that devices have not sent although programs have passed them on.
#[derive(Default)]
pub(super) struct Unsent {
    failures: Option<Arc<SendFailures>>,
    watched: Vec<(Sender, Watched)>,
}

impl Unsent {
    /// `map` has the devices of these names.
    pub fn new(
        failures: Arc<SendFailures>,
        senders: &[Sender],
        map: &ProgramMap,
        names: &[String],
    ) -> Result<Unsent, DeviceError> {
        let watched = failures.watch(map, names)?;
        // If several elements send by a device, the first one counts for all.
        let first = |device: usize| senders.iter().find(|s| s.device as usize == device).cloned();
        let watched = watched.into_iter().enumerate().filter_map(|(device, w)| Some((first(device)?, w)));
        Ok(Unsent { watched: watched.collect(), failures: Some(failures) })
    }
    /// Makes frames that were not sent drops.
    pub fn correct(&self, counts: Vec<(Counter, u64)>) -> Vec<(Counter, u64)> {
        let Some(failures) = &self.failures else { return counts };
        let mut all: BTreeMap<Counter, u64> = counts.into_iter().collect();
        for (sender, watched) in &self.watched {
            let unsent = failures.of(watched);
            if unsent == 0 {
                continue;
            }
            let e = sender.element;
            let mut add = |counter, more: u64| {
                let count = all.entry(counter).or_default();
                *count = count.wrapping_add(more);
            };
            add(Counter::Dropped(e, Reason::SendFailed as u16), unsent);
            add(Counter::Own(e, sender.unsent, 0), unsent);
            add(Counter::Own(e, sender.sent, 0), unsent.wrapping_neg());
            add(Counter::Left(e), unsent.wrapping_neg());
        }
        all.into_iter().collect()
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        if let Some(failures) = &self.failures {
            self.watched.iter().for_each(|(_, w)| failures.forget(w));
        }
    }
}
