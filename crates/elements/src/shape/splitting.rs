// SPDX-License-Identifier: MIT OR Apache-2.0
//! What keeps to a rate, and what does not.

use super::rate::{Burst, Unit};
use castanet_element::prelude::*;
use castanet_tables::TokenBucket;

/// What RatedSplitter and BandwidthRatedSplitter do; they differ in what their rates count.
pub(super) struct Splitting {
    unit: Unit,
    burst: Burst,
    bucket: TokenBucket,
    /// The same when it was new: what tells rates and bursts apart.
    new: TokenBucket,
}

impl Splitting {
    pub(super) fn new(rate: u64, unit: Unit, burst: Burst) -> Splitting {
        let bucket = burst.bucket(rate, unit);
        Splitting { unit, burst, bucket, new: bucket }
    }

    pub(super) fn push(&mut self, batch: &mut Batch, cx: &mut Cx<'_>) {
        let now = cx.core().clock.peek();
        // At one moment tokens only become fewer, so the first packets go and the others do not.
        let mut good = usize::try_from(self.bucket.available(now)).unwrap_or(usize::MAX).min(batch.len());
        if self.unit == Unit::Packets {
            self.bucket.remove(good as u64, now);
        } else {
            good = 0;
            for p in batch.iter() {
                if self.bucket.available(now) == 0 {
                    break;
                }
                self.bucket.remove(self.unit.cost(p), now);
                good += 1;
            }
        }
        if good < batch.len() {
            let mut over = cx.spare_batch();
            over.extend(batch.as_mut_vec().drain(good..));
            if cx.has_output(1) {
                cx.forward(1, &mut over);
            } else {
                cx.drop_all(&mut over, Reason::OverRate);
            }
            cx.return_batch(over);
        }
        if !batch.is_empty() {
            cx.forward(0, batch);
        }
    }

    /// Goes on at another rate, with no more tokens than there are.
    pub(super) fn set_rate(&mut self, rate: u64, cx: &mut Cx<'_>) {
        let now = cx.core().clock.peek();
        let before = self.bucket.available(now);
        self.new = self.burst.bucket(rate, self.unit);
        self.fill(before, now);
    }
    /// A new bucket with no more tokens than there were.
    fn fill(&mut self, before: u64, now: i64) {
        self.bucket = self.new;
        let surplus = self.bucket.available(now).saturating_sub(before);
        self.bucket.remove(surplus, now);
    }
    /// Goes on where another one is (hot swap). At another rate no more tokens are there than there were.
    pub(super) fn go_on_from(&mut self, old: &mut Splitting, cx: &mut Cx<'_>) {
        if self.new == old.new {
            self.bucket = old.bucket;
        } else {
            let now = cx.core().clock.peek();
            self.fill(old.bucket.available(now), now);
        }
    }
}
