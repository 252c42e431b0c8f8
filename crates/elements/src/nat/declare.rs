// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the classes of rewriters have in common: all but their arguments is the business of `Rewriter`.

/// Implements `Element` and `Lifecycle` for a class by its field `rewriter`.
macro_rules! rewriter_element {
    ($class:ty) => {
        impl Element for $class {
            #[inline]
            fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
                self.rewriter.push(port, batch, cx);
            }
            fn timer(&mut self, _: u16, cx: &mut Cx<'_>) {
                self.rewriter.timer(cx);
            }
        }

        impl Lifecycle for $class {
            fn initialise(&mut self, _: &mut InitCx<'_>) -> Result<(), String> {
                self.rewriter.initialise()
            }
            fn read(&mut self, handler: &str, parameters: &str, cx: &mut Cx<'_>) -> Result<String, String> {
                self.rewriter.read(handler, parameters, cx)
            }
            fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), String> {
                self.rewriter.write(handler, value, cx)
            }
            fn take_state(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), String> {
                self.rewriter.take_state(&mut old.rewriter, cx);
                Ok(())
            }
            fn own_handlers(&self) -> Vec<(String, &'static str)> {
                self.rewriter.own_handlers()
            }
        }
    };
}
pub(super) use rewriter_element;
