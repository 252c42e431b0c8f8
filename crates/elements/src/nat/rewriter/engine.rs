// SPDX-License-Identifier: MIT OR Apache-2.0
//! How rewriters are built, initialised, and take over flows in a hot swap.

use super::{AHEAD, Rewriter, RewriterArgs};
use crate::handover;
use crate::nat::handle::Handle;
use crate::nat::registry::Registry;
use crate::nat::spec::SpecText;
use castanet_element::prelude::*;

impl<A: RewriterArgs> Engine for Rewriter<A> {
    type Args = A;
    fn build(args: A, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let (settings, specs) = (args.settings(), args.specs().to_vec());
        if specs.len() != cx.inputs {
            let n = cx.inputs;
            let s = if n == 1 { "" } else { "s" };
            let text = format!("need {n} input specification{s}, one per input port, not {}", specs.len());
            let help = match specs.len() > n {
                true => format!("connect input {n} too, or remove specifications"),
                false => "add a specification for each input that is connected, such as 'drop'".to_string(),
            };
            return Err(ArgError::new(text, 0..usize::MAX).help(help).into());
        }
        let wrong = |(i, s): (usize, &SpecText)| Some((i, s.check(cx.outputs).err()?));
        let errors: Vec<_> = specs.iter().enumerate().filter_map(wrong).collect();
        if !errors.is_empty() {
            return Err(cx.wrong_items("INPUTSPEC", "input spec", errors));
        }
        let registry = Registry::of(cx);
        let handle = Handle::new(settings.kind, settings.timeouts, cx.inputs, settings.capacity, cx);
        let handle = cx.share(|| handle);
        registry.add_rewriter(cx.me, handle.clone());
        let failures = (*cx.share(SharedCount::default)).clone();
        Ok(Rewriter {
            args,
            failures,
            handle,
            registry,
            scope: cx.scope.to_string(),
            specs,
            outputs: cx.outputs,
            kind: settings.kind,
            link: None,
            copies: false,
            reap: settings.reap,
            dst_anno: settings.dst_anno,
            reply_anno: settings.reply_anno,
            timed: false,
            ahead: Vec::with_capacity(AHEAD),
            segments: Batch::empty(),
        })
    }
    fn args(&mut self) -> &mut A {
        &mut self.args
    }
}

impl<A: RewriterArgs> Lifecycle for Rewriter<A> {
    fn initialise(&mut self, _: &mut InitCx<'_>) -> Result<(), ElementError> {
        let link = self.handle.link(&self.registry)?.clone();
        for (i, text) in self.specs.iter().enumerate() {
            let spec = text.resolve(&self.registry, &self.scope, self.outputs)?;
            self.check(&spec)?;
            link.store().set_spec(link.space, i, spec);
        }
        self.link = Some(link);
        Ok(())
    }
    fn take_state(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        let (Some(mine), Some(theirs)) = (self.handle.linked(), old.handle.linked()) else { return Ok(()) };
        if mine.is_shared_with(theirs) {
            return Ok(());
        }
        let (mut store, mut from) = (mine.store(), theirs.store());
        let now = cx.now();
        from.end_copies(now);
        let left = store.take_over(mine.space, &mut from, theirs.space);
        let news = from.leave(theirs.space, left);
        store.leave(mine.space, 0);
        store.copy_anew(mine.space);
        if store.count() > 0 && !self.timed {
            Self::set_timer(&mut self.timed, self.reap, now, cx);
        }
        if news {
            let s = if left == 1 { "" } else { "s" };
            handover::warn(&format!("{left} flow{s} lost (no input has such a pattern)"), cx);
        }
        Ok(())
    }
}
