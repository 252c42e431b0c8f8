// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine of RatedSplitter and BandwidthRatedSplitter: separates packets within a rate from those beyond
//! it.

use super::rate::{Burst, BurstArgs, Unit};
use castanet_element::prelude::*;
use castanet_tables::TokenBucket;

/// Sends packets within a rate to output 0 and the others to output 1.
#[derive(Counts)]
pub struct Splitting<A> {
    args: A,
    burst: Burst,
    bucket: TokenBucket,
    /// A full bucket for the current rate and burst. A hot swap compares `new` of the old and of the new element, to
    /// detect a change of rate or burst.
    new: TokenBucket,
}

impl<A: BurstArgs> Splitting<A> {
    /// Installs a new bucket with no more than `before` tokens, so that a change of the rate allows no burst.
    fn fill(&mut self, before: u64, now: i64) {
        self.bucket = self.new;
        let surplus = self.bucket.available(now).saturating_sub(before);
        self.bucket.remove(surplus, now);
    }
}

#[handlers]
impl<A: BurstArgs> Element for Splitting<A> {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let now = cx.peek();
        // All packets of a batch arrive at the same time, so no tokens are added between them. Packets pass until the
        // tokens are used up.
        let mut good = usize::try_from(self.bucket.available(now)).unwrap_or(usize::MAX).min(batch.len());
        if A::Unit::PACKETS {
            self.bucket.remove(good as u64, now);
        } else {
            good = 0;
            for p in batch.iter() {
                if self.bucket.available(now) == 0 {
                    break;
                }
                self.bucket.remove(A::Unit::cost(p), now);
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
}

impl<A: BurstArgs> Lifecycle for Splitting<A> {
    fn changed(&mut self, _: &str, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        let now = cx.peek();
        let before = self.bucket.available(now);
        self.new = self.burst.bucket::<A::Unit>(self.args.rate());
        self.fill(before, now);
        Ok(())
    }
    fn take_state(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        if self.new == old.new {
            self.bucket = old.bucket;
        } else {
            let now = cx.peek();
            self.fill(old.bucket.available(now), now);
        }
        Ok(())
    }
}

impl<A: BurstArgs> Engine for Splitting<A> {
    type Args = A;
    fn build(args: A, _: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let burst = args.burst();
        let bucket = burst.bucket::<A::Unit>(args.rate());
        Ok(Splitting { args, burst, bucket, new: bucket })
    }
    fn args(&mut self) -> &mut A {
        &mut self.args
    }
}
