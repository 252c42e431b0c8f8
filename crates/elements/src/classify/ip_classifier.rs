// SPDX-License-Identifier: MIT OR Apache-2.0
//! IPClassifier: classifies IP packets by expressions over their headers.

use super::patterns::{Classify, ConfigNames, PatternText, of_config, one_per_output};
use castanet_classify::Program;
use castanet_element::kernel::{Code, Lowered};
use castanet_element::prelude::*;

/// Sends IP packets to the output of the first expression that they match.
///
/// An expression combines tests such as `src host 10.0.0.1`, `tcp dst port www`, `icmp type echo`, `ip ttl <
/// 4` with `and`, `or`, `not` and parentheses; `-`, `any` and `all` match every packet. Tests on ports and
/// other fields of the transport header hold only for first fragments. Packets that match no expression are
/// dropped. The network header must be marked.
///
/// # Ports
/// Input 0: IP packets. Outputs: one for each expression.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true) -> MarkIPHeader
///     -> c :: IPClassifier(tcp dst port 80 or 443, udp, -);
/// c [0] -> Discard; c [1] -> Discard; c [2] -> Discard;
/// ```
#[derive(Class)]
#[class(name = "IPClassifier", ports = "1/-", processing = "h/h", packets = "ip/same", workers = replicate)]
#[class(reconfigure = keeps, config_follows, drops(NoMatch, NoIpHeader), build, handlers, depends = packet)]
#[class(kernel)]
pub struct IpClassifier {
    args: Args,
    classify: Classify,
}

/// Arguments of IPClassifier.
#[derive(Args)]
pub struct Args {
    /// Expressions, one for each output; '-' matches all packets. The handler patternN reads and changes the
    /// expression of output N.
    #[arg(rest)]
    pattern: Vec<PatternText>,
}

impl Args {
    pub(super) fn texts(&self) -> Vec<&str> {
        self.pattern.iter().map(|p| p.0.as_str()).collect()
    }
}

impl Build for IpClassifier {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        one_per_output(args.pattern.len(), cx.outputs)?;
        let compiled = Program::from_ip_classifier(&args.texts(), &ConfigNames::new(cx.arg_cx()));
        let program = of_config(compiled, cx)?;
        Ok(IpClassifier { args, classify: Classify::new(program, cx) })
    }
}

#[handlers]
impl IpClassifier {
    /// The decision tree.
    #[read(merge = first)]
    fn program(&self) -> String {
        self.classify.program().program_text()
    }
    /// The expression of output N.
    #[read(each = self.args.pattern.len())]
    fn pattern(&self, output: usize) -> Option<&str> {
        self.args.pattern.get(output).map(|p| p.0.as_str())
    }
    #[write(each = self.args.pattern.len())]
    fn set_pattern(&mut self, output: usize, text: &str, cx: &mut Cx<'_>) -> Result<(), HandlerError> {
        let mut patterns = self.args.texts();
        if let Some(p) = patterns.get_mut(output) {
            *p = text.trim();
        }
        let compiled = cx.with_args(|a| Program::from_ip_classifier(&patterns, &ConfigNames::new(*a)));
        let (program, _) = compiled
            .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))?;
        self.args.pattern = patterns.into_iter().map(|p| PatternText(p.to_string())).collect();
        self.classify.replace(program);
        Ok(())
    }
}

impl Element for IpClassifier {
    #[inline]
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.classify.push(batch, cx);
    }
    #[inline]
    fn push_one(&mut self, _: usize, p: Packet, cx: &mut Cx<'_>) {
        self.classify.push_one(p, cx);
    }
}

impl InKernel for IpClassifier {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        self.classify.lower(code)
    }
}

#[cfg(test)]
#[path = "tests/ip_classifier.rs"]
mod tests;
