// SPDX-License-Identifier: MIT OR Apache-2.0
//! Input specifications: what a rewriter does with packets of unknown flows.

use super::mapper::Mapper;
use super::pattern::{Pattern, words};
use super::registry::Registry;
use castanet_element::prelude::*;
use std::sync::Arc;

/// The outputs of forward packets and of replies.
pub type Outs = [u16; 2];

/// A pattern as an input specification gives it: written out, or by name.
#[derive(Clone, Debug)]
pub enum PatternText {
    /// Written out.
    Inline(Arc<Pattern>),
    /// Defined by IPRewriterPatterns.
    Named(String),
}

/// A pattern with the outputs of its flows: `SADDR SPORT DADDR DPORT FOUT ROUT` or `NAME FOUT ROUT`.
#[derive(Clone, Debug)]
pub struct Target<P> {
    /// The rule for new flows.
    pub pattern: P,
    /// The outputs of the flows.
    pub outs: Outs,
}

impl Target<PatternText> {
    /// Parses the words of a pattern (or its name) and of two outputs.
    pub fn parse(words: &[&str], cx: &ArgCx<'_>) -> Result<Self, ValueError> {
        let Some((pattern, [f, r])) = words.split_last_chunk() else {
            return Err(ValueError::from("syntax error").help("write 'SADDR SPORT DADDR DPORT FOUT ROUT'"));
        };
        let pattern = match pattern {
            [name] => PatternText::Named((*name).to_string()),
            all => PatternText::Inline(Arc::new(Pattern::parse(all, cx)?)),
        };
        Ok(Target { pattern, outs: [output("forward", f, cx)?, output("reply", r, cx)?] })
    }
    /// Returns the target with the pattern itself. If the target names a pattern, looks it up.
    pub fn resolve(&self, registry: &Registry, scope: &str) -> Result<Target<Arc<Pattern>>, ValueError> {
        let pattern = match &self.pattern {
            PatternText::Inline(p) => p.clone(),
            PatternText::Named(n) => {
                registry.pattern(scope, n).ok_or_else(|| format!("no pattern named '{n}'"))?
            }
        };
        Ok(Target { pattern, outs: self.outs })
    }
}

fn output(what: &str, word: &str, cx: &ArgCx<'_>) -> Result<u16, ValueError> {
    u16::parse(word, cx)
        .map_err(|e| ValueError::from(format!("bad {what} port")).help(format!("'{word}': {e}")))
}

/// Checks that both outputs of a flow exist. `outputs` is the number of outputs of the rewriter.
fn check_outputs(outs: Outs, outputs: usize) -> Result<(), ValueError> {
    let bad = ["forward", "reply"].into_iter().zip(outs).find(|o| usize::from(o.1) >= outputs);
    bad.map_or(Ok(()), |(what, n)| {
        let help = format!("there is no output {n}: the outputs are 0 to {}", outputs.saturating_sub(1));
        Err(ValueError::from(format!("bad {what} port")).help(help))
    })
}

/// An input specification as it is written. If it has an error, the error is stored until the rewriter is built, so
/// that the errors of all specifications are reported together.
#[derive(Clone, Debug)]
pub struct SpecText {
    spec: Result<UnresolvedSpec, ValueError>,
    text: String,
}

/// A [`Spec`] in which the names of patterns and mappers have not been looked up yet.
#[derive(Clone, Debug)]
enum UnresolvedSpec {
    Drop,
    Pass(u16),
    Keep(Outs),
    Pattern(Target<PatternText>),
    Mapper(u32),
}

/// An input specification: what happens to packets of unknown flows.
#[derive(Clone)]
pub enum Spec {
    /// Drops the packets.
    Drop,
    /// Passes the packets unchanged to this output.
    Pass(u16),
    /// Makes flows that change nothing.
    Keep(Outs),
    /// Makes flows by a pattern.
    Pattern(Target<Arc<Pattern>>),
    /// Makes flows by a pattern that a mapper chooses.
    Mapper(Arc<Mapper>),
}

/// The first words of specifications.
const WORDS: &[&str] = &["drop", "discard", "pass", "passthrough", "nochange", "keep", "pattern", "xpattern"];

impl UnresolvedSpec {
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<UnresolvedSpec, ValueError> {
        let all = words(text);
        Ok(match all.as_slice() {
            [] => return Err("empty argument".into()),
            ["drop" | "discard"] => UnresolvedSpec::Drop,
            ["pass" | "passthrough" | "nochange"] => UnresolvedSpec::Pass(0),
            ["pass" | "passthrough" | "nochange", out] => UnresolvedSpec::Pass(output("forward", out, cx)?),
            ["keep", f, r] => UnresolvedSpec::Keep([output("forward", f, cx)?, output("reply", r, cx)?]),
            ["pattern" | "xpattern", rest @ ..] => UnresolvedSpec::Pattern(Target::parse(rest, cx)?),
            ["drop" | "discard" | "pass" | "passthrough" | "nochange" | "keep", ..] => {
                return Err(ValueError::from("syntax error")
                    .help("write 'drop', 'pass [PORT]' or 'keep FPORT RPORT'"));
            }
            [name] => {
                let unknown = |e: ValueError| ValueError::from("unknown specification").help(e.to_string());
                let ElementRef(e) = ElementRef::parse(name, cx).map_err(unknown)?;
                match cx.names.element_class(cx.scope, name) {
                    Some((_, class)) if !super::mapper::CLASSES.contains(&class) => {
                        return Err(format!("'{name}' is of class {class}, which is no mapper").into());
                    }
                    _ => UnresolvedSpec::Mapper(u32::try_from(e).map_err(|_| "no such element")?),
                }
            }
            [word, rest @ ..] => {
                let unknown = ValueError::from("unknown specification");
                return Err(match castanet_lang::nearest(word, WORDS.iter().copied()) {
                    Some(near) => unknown.did_you_mean(format!("{near} {}", rest.join(" "))),
                    None => unknown.help(format!(
                        "'{word}' is none of drop, pass, keep, pattern and the name of a mapper"
                    )),
                });
            }
        })
    }
}

impl ArgValue for SpecText {
    const TYPE: &'static str = "rewriter-input-spec";
    const NUMBERED: &'static str = "input spec";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<SpecText, ValueError> {
        Ok(SpecText { spec: UnresolvedSpec::parse(text, cx), text: text.to_string() })
    }
}

impl SpecText {
    /// Looks up the names in the specification. Returns an error if a name is unknown, or if an output is not below
    /// `outputs`.
    pub fn resolve(&self, registry: &Registry, scope: &str, outputs: usize) -> Result<Spec, ValueError> {
        let spec = match self.spec.as_ref().map_err(Clone::clone)? {
            UnresolvedSpec::Drop => Spec::Drop,
            UnresolvedSpec::Pass(out) => Spec::Pass(*out),
            UnresolvedSpec::Keep(outs) => Spec::Keep(*outs),
            UnresolvedSpec::Pattern(t) => Spec::Pattern(t.resolve(registry, scope)?),
            UnresolvedSpec::Mapper(e) => {
                Spec::Mapper(registry.mapper(*e)?.ok_or_else(|| format!("'{}' is no mapper", self.text))?)
            }
        };
        spec.outs().try_for_each(|outs| check_outputs(outs, outputs))?;
        Ok(spec)
    }
    /// Checks the specification as far as that needs no other element. Returns an error if the text was wrong, or if an
    /// output is not below `outputs`.
    pub fn check(&self, outputs: usize) -> Result<(), ValueError> {
        match self.spec.as_ref().map_err(Clone::clone)? {
            UnresolvedSpec::Drop | UnresolvedSpec::Mapper(_) => Ok(()),
            UnresolvedSpec::Pass(out) => check_outputs([*out; 2], outputs),
            UnresolvedSpec::Keep(outs) | UnresolvedSpec::Pattern(Target { outs, .. }) => {
                check_outputs(*outs, outputs)
            }
        }
    }
    /// The specification as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl Spec {
    /// Returns every pair of outputs that the specification gives to packets and their replies. A mapper has a pair for
    /// each target.
    fn outs(&self) -> impl Iterator<Item = Outs> {
        let (own, mapped) = match self {
            Spec::Drop => (None, &[][..]),
            Spec::Pass(out) => (Some([*out; 2]), &[][..]),
            Spec::Keep(outs) | Spec::Pattern(Target { outs, .. }) => (Some(*outs), &[][..]),
            Spec::Mapper(m) => (None, m.targets()),
        };
        own.into_iter().chain(mapped.iter().map(|t| t.outs))
    }
    /// Returns every pattern that the specification may use.
    pub fn patterns(&self) -> Vec<Arc<Pattern>> {
        match self {
            Spec::Pattern(t) => vec![t.pattern.clone()],
            Spec::Mapper(m) => m.targets().iter().map(|t| t.pattern.clone()).collect(),
            _ => Vec::new(),
        }
    }
    /// Whether another specification would treat packets in the same way as this one.
    pub fn is_like(&self, other: &Spec) -> bool {
        let alike = |a: &Target<Arc<Pattern>>, b: &Target<Arc<Pattern>>| {
            a.outs == b.outs && a.pattern.is_like(&b.pattern)
        };
        match (self, other) {
            (Spec::Drop, Spec::Drop) => true,
            (Spec::Pass(a), Spec::Pass(b)) => a == b,
            (Spec::Keep(a), Spec::Keep(b)) => a == b,
            (Spec::Pattern(a), Spec::Pattern(b)) => alike(a, b),
            (Spec::Mapper(a), Spec::Mapper(b)) => {
                let (a, b) = (a.targets(), b.targets());
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b))
            }
            _ => false,
        }
    }
    /// Lets each pattern continue the sequence of the pattern at the same position in `other`, if both have the same
    /// definition.
    pub fn go_on_from(&self, other: &Spec) {
        for (a, b) in self.patterns().iter().zip(other.patterns()) {
            a.go_on_from(&b);
        }
    }
    /// Formats the specification for handlers.
    pub fn show(&self, kind: super::flow::RewriterKind) -> String {
        match self {
            Spec::Drop => "<drop>".into(),
            Spec::Pass(_) => "<nochange>".into(),
            Spec::Keep(_) => "<keep>".into(),
            Spec::Pattern(t) => t.pattern.show(kind),
            Spec::Mapper(_) => "<mapper>".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::nat::ip_rewriter::IpRewriter;
    use castanet_element::kit::Kit;

    #[test]
    fn errors_name_the_input_and_the_word() {
        for (spec, error) in [
            ("pattern x 5 - - 0 0", "bad source address"),
            ("pattern 1.0.0.2-1.0.0.1 5 - - 0 0", "bad source address"),
            ("pattern 1.0.0.1 x - - 0 0", "bad source port"),
            ("pattern 1.0.0.1 9-5 - - 0 0", "bad source port"),
            ("pattern 1.0.0.1 5 y - 0 0", "bad destination address"),
            ("pattern 1.0.0.1 5 - z 0 0", "bad destination port"),
            ("pattern 1.0.0.1 5 - - a 0", "bad forward port"),
            ("keep 0 b", "bad reply port"),
            ("keep 0", "syntax error"),
            ("first second", "unknown specification"),
        ] {
            let told = Kit::<IpRewriter>::with_ports(&format!("drop, {spec}"), 2, 1).err().unwrap();
            assert_eq!(told, [format!("input spec 1: {error}")], "{spec}");
        }
        let both = Kit::<IpRewriter>::with_ports("pattern - - - - 9 1, drop 1", 2, 2).err().unwrap();
        assert_eq!(both, ["input spec 0: bad forward port", "input spec 1: syntax error"]);
    }
}
