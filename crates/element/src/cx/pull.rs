// SPDX-License-Identifier: MIT OR Apache-2.0
//! How an element pulls packets through its inputs.

use crate::cx::Cx;
use castanet_packet::{Batch, Packet};

/// The maximum number of unusable packets that all elements of a pull path may pull, in total, to answer one pull.
const TRIES: u32 = 256;

impl<'a> Cx<'a> {
    /// Pulls at most `max` packets through an input.
    pub fn pull(&mut self, input: usize, max: usize, into: &mut Batch) {
        if let Some(r) = &mut self.router {
            let before = into.len();
            r.pull(self.core, self.out.range.me, input, max, into);
            self.core.budget.pulled(into.len() > before);
        }
    }

    /// Pulls one packet through an input.
    #[inline]
    pub fn pull_one(&mut self, input: usize) -> Option<Packet> {
        let p = self.router.as_mut()?.pull_one(self.core, self.out.range.me, input);
        self.core.budget.pulled(p.is_some());
        p
    }

    /// Runs `f` with a limit on how many unusable packets it may pull. [`Cx::try_again`] counts these packets. Nested
    /// calls, in elements that pull from each other, share one limit, so the numbers of tries do not multiply.
    #[inline]
    pub fn with_tries<R>(&mut self, f: impl FnOnce(&mut Cx<'a>) -> R) -> R {
        let outermost = self.core.tries == 0;
        if outermost {
            self.core.tries = TRIES;
        }
        let out = f(self);
        if outermost {
            self.core.tries = 0;
        }
        out
    }
    /// Called by an element that has pulled an unusable packet. Returns whether the element may pull another packet. If
    /// not, the element must return no packet. The notifiers upstream stay on, so the task that pulls gets another turn
    /// after the other tasks.
    #[inline]
    pub fn try_again(&mut self) -> bool {
        // `tries` stops at 1, because 0 means that there is no limit.
        let more = self.core.tries > 1;
        self.core.tries -= u32::from(more);
        more
    }
    /// Pulls packets through an input until `take` returns a packet, a pull returns none, or the limit on unusable
    /// packets is reached.
    ///
    /// Every element that may have to pull several packets to return one must use this function. Without the limit, a
    /// source that never sends a usable packet could block the worker.
    #[inline]
    pub fn pull_until(
        &mut self,
        input: usize,
        mut take: impl FnMut(Packet, &mut Cx<'a>) -> Option<Packet>,
    ) -> Option<Packet> {
        self.with_tries(|cx| {
            loop {
                let p = cx.pull_one(input)?;
                let taken = take(p, cx);
                if taken.is_some() || !cx.try_again() {
                    return taken;
                }
            }
        })
    }
}
