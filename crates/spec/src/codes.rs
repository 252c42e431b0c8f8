// SPDX-License-Identifier: MIT OR Apache-2.0
//! Port count, processing and flow codes (language reference, section 2).

/// How many ports of one side an element may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// The minimum.
    pub min: usize,
    /// The maximum; none for no limit.
    pub max: Option<usize>,
}

impl Count {
    /// Whether `n` ports are allowed.
    pub fn allows(self, n: usize) -> bool {
        n >= self.min && self.max.is_none_or(|m| n <= m)
    }
    const fn parse(side: &[u8]) -> Option<Count> {
        let mut i = 0;
        while i < side.len() && side[i] != b'-' {
            i += 1;
        }
        let (min, rest) = side.split_at(i);
        match (min, rest) {
            (min, []) => match number(min) {
                Some(n) => Some(Count { min: n, max: Some(n) }),
                None => None,
            },
            ([], [_]) => Some(Count { min: 0, max: None }),
            (min, [_]) => match number(min) {
                Some(min) => Some(Count { min, max: None }),
                None => None,
            },
            (min, [_, max @ ..]) => {
                let min = if min.is_empty() { Some(0) } else { number(min) };
                match (min, number(max)) {
                    (Some(min), Some(max)) if min <= max => Some(Count { min, max: Some(max) }),
                    _ => None,
                }
            }
        }
    }
}

/// The outputs of a port count code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outputs {
    /// A number or range that does not depend on the inputs.
    Count(Count),
    /// As many outputs as there are inputs, plus this number.
    Same(usize),
}

/// A port count code: `IN/OUT`, or one count for both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// The number of inputs.
    pub inputs: Count,
    /// The number of outputs.
    pub outputs: Outputs,
}

impl Ports {
    /// Any number on both sides, as for an unknown class.
    pub const ANY: Ports =
        Ports { inputs: Count { min: 0, max: None }, outputs: Outputs::Count(Count { min: 0, max: None }) };

    /// Parses a code such as `1/1-2`, `-/1`, `2/=+`; none if malformed. A `const fn`, because macros check
    /// codes at compile time.
    pub const fn parse(code: &str) -> Option<Ports> {
        let (i, o) = sides(code.as_bytes());
        let outputs = match o {
            [b'=', plus @ ..] if only(plus, b"+") => Some(Outputs::Same(plus.len())),
            [b'=', ..] => None,
            _ => match Count::parse(o) {
                Some(count) => Some(Outputs::Count(count)),
                None => None,
            },
        };
        match (Count::parse(i), outputs) {
            (Some(inputs), Some(outputs)) => Some(Ports { inputs, outputs }),
            _ => None,
        }
    }
    /// Returns how many outputs an element with `inputs` inputs may have.
    pub fn outputs_for(self, inputs: usize) -> Count {
        match self.outputs {
            Outputs::Count(c) => c,
            Outputs::Same(plus) => {
                let n = inputs.saturating_add(plus);
                Count { min: n, max: Some(n) }
            }
        }
    }
}

/// How packets move through one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Processing {
    /// The upstream element pushes packets.
    Push,
    /// The downstream element pulls packets.
    Pull,
    /// Push or pull, depending on the neighbours.
    Agnostic,
}

/// A processing code: one letter per port. The last letter applies to all further ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessingCode {
    inputs: Vec<Processing>,
    outputs: Vec<Processing>,
}

impl ProcessingCode {
    /// Reads a code such as `a/ah`; none if malformed.
    pub fn parse(code: &str) -> Option<ProcessingCode> {
        let (i, o) = code.split_once('/').unwrap_or((code, code));
        let side = |s: &str| {
            let v = s.chars().map(|c| match c {
                'h' => Some(Processing::Push),
                'l' => Some(Processing::Pull),
                'a' => Some(Processing::Agnostic),
                _ => None,
            });
            v.collect::<Option<Vec<_>>>().filter(|v| !v.is_empty())
        };
        Some(ProcessingCode { inputs: side(i)?, outputs: side(o)? })
    }
    /// Returns how packets move through an input.
    pub fn input(&self, port: usize) -> Processing {
        Self::of(&self.inputs, port)
    }
    /// Returns how packets move through an output.
    pub fn output(&self, port: usize) -> Processing {
        Self::of(&self.outputs, port)
    }
    fn of(side: &[Processing], port: usize) -> Processing {
        side.get(port).or(side.last()).copied().unwrap_or(Processing::Agnostic)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum FlowPort {
    /// Reaches the ports of the other side that have one of these letters.
    Set(Vec<char>),
    /// Reaches the ports of the other side that have none of these letters.
    Not(Vec<char>),
    /// Reaches the port of the other side that has the same number.
    SameIndex,
}

/// A flow code: which inputs can lead to which outputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    inputs: Vec<FlowPort>,
    outputs: Vec<FlowPort>,
}

impl Flow {
    /// Reads a code such as `x/x`, `xy/x`, `#/#`, `x/[^x]y`; none if malformed.
    pub fn parse(code: &str) -> Option<Flow> {
        let (i, o) = code.split_once('/').unwrap_or((code, code));
        Some(Flow { inputs: Self::side(i)?, outputs: Self::side(o)? })
    }
    fn side(text: &str) -> Option<Vec<FlowPort>> {
        let mut out = Vec::new();
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            out.push(match c {
                '#' => FlowPort::SameIndex,
                '[' => {
                    let mut set: Vec<char> = Vec::new();
                    loop {
                        match chars.next()? {
                            ']' => break,
                            c => set.push(c),
                        }
                    }
                    match set.split_first() {
                        Some(('^', rest)) => FlowPort::Not(rest.to_vec()),
                        _ => FlowPort::Set(set),
                    }
                }
                c if c.is_ascii_alphabetic() => FlowPort::Set(vec![c]),
                _ => return None,
            });
        }
        Some(out).filter(|v| !v.is_empty())
    }
    /// Whether a packet that enters by `input` may leave by `output`.
    pub fn connects(&self, input: usize, output: usize) -> bool {
        let i = self.inputs.get(input).or(self.inputs.last());
        let o = self.outputs.get(output).or(self.outputs.last());
        match (i, o) {
            // `#` is a letter that differs from port to port, so `[^#]` is every port except the one of the
            // same number.
            (Some(FlowPort::SameIndex), Some(FlowPort::Not(b)))
            | (Some(FlowPort::Not(b)), Some(FlowPort::SameIndex)) => input != output || !b.contains(&'#'),
            (Some(FlowPort::SameIndex), _) | (_, Some(FlowPort::SameIndex)) => input == output,
            (Some(FlowPort::Set(a)), Some(FlowPort::Set(b))) => a.iter().any(|c| b.contains(c)),
            (Some(FlowPort::Set(a)), Some(FlowPort::Not(b))) => a.iter().any(|c| !b.contains(c)),
            (Some(FlowPort::Not(a)), Some(FlowPort::Set(b))) => b.iter().any(|c| !a.contains(c)),
            (Some(FlowPort::Not(_)), Some(FlowPort::Not(_))) => true,
            _ => false,
        }
    }
}

/// Whether [`Ports::parse`] accepts a code. For checks at compile time.
pub const fn ports_are_valid(code: &str) -> bool {
    Ports::parse(code).is_some()
}

/// Whether [`ProcessingCode::parse`] accepts a code. For checks at compile time.
pub const fn processing_is_valid(code: &str) -> bool {
    let (i, o) = sides(code.as_bytes());
    !i.is_empty() && !o.is_empty() && only(i, b"hla") && only(o, b"hla")
}

/// Whether [`Flow::parse`] accepts a code. For checks at compile time.
pub const fn flow_is_valid(code: &str) -> bool {
    let (i, o) = sides(code.as_bytes());
    flow_side_is_valid(i) && flow_side_is_valid(o)
}

/// Splits a code at its first `/`. A code without `/` is used for both sides.
pub(crate) const fn sides(code: &[u8]) -> (&[u8], &[u8]) {
    let mut i = 0;
    while i < code.len() {
        if code[i] == b'/' {
            let (a, b) = code.split_at(i);
            return (a, b.split_at(1).1);
        }
        i += 1;
    }
    (code, code)
}

/// Whether every byte of `text` is one of `set`.
const fn only(text: &[u8], set: &[u8]) -> bool {
    let mut i = 0;
    while i < text.len() {
        let mut j = 0;
        while j < set.len() && set[j] != text[i] {
            j += 1;
        }
        if j == set.len() {
            return false;
        }
        i += 1;
    }
    true
}

/// Parses a number that consists only of decimal digits; none if the text is empty, has other characters, or is too
/// large.
const fn number(text: &[u8]) -> Option<usize> {
    if text.is_empty() || !only(text, b"0123456789") {
        return None;
    }
    let (mut n, mut i) = (0usize, 0);
    while i < text.len() {
        let digit = (text[i] - b'0') as usize;
        n = match n.checked_mul(10) {
            Some(tens) => match tens.checked_add(digit) {
                Some(n) => n,
                None => return None,
            },
            None => return None,
        };
        i += 1;
    }
    Some(n)
}

const fn flow_side_is_valid(side: &[u8]) -> bool {
    let mut i = 0;
    while i < side.len() {
        match side[i] {
            b'#' => {}
            b'[' => {
                while i < side.len() && side[i] != b']' {
                    i += 1;
                }
                if i == side.len() {
                    return false;
                }
            }
            c if c.is_ascii_alphabetic() => {}
            _ => return false,
        }
        i += 1;
    }
    !side.is_empty()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn port_counts() {
        let p = Ports::parse("1/1-2").unwrap();
        assert!(p.inputs.allows(1) && !p.inputs.allows(0));
        assert!(p.outputs_for(1).allows(2) && !p.outputs_for(1).allows(3));
        assert!(Ports::parse("-/1").unwrap().inputs.allows(99));
        assert!(Ports::parse("1-").unwrap().outputs_for(3).allows(7));
        assert_eq!(Ports::parse("1-/=+").unwrap().outputs_for(3), Count { min: 4, max: Some(4) });
        let large = Ports::parse("0-18446744073709551615").unwrap();
        assert_eq!(large.inputs, Count { min: 0, max: Some(usize::MAX) });
        assert_eq!(Ports::parse("-").unwrap().inputs, Count { min: 0, max: None });
        assert_eq!(Ports::parse("-3").unwrap().inputs, Count { min: 0, max: Some(3) });
        for bad in [
            "",
            "x",
            "1/",
            "/1",
            "2-1",
            "1/=x",
            "1/2/3",
            "+1",
            "1-+2",
            "x-",
            "-x",
            "1-2-3",
            "18446744073709551616",
        ] {
            assert_eq!(Ports::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn processing_repeats_the_last_letter() {
        let p = ProcessingCode::parse("a/ah").unwrap();
        assert_eq!(p.input(0), Processing::Agnostic);
        assert_eq!(
            [p.output(0), p.output(1), p.output(9)],
            [Processing::Agnostic, Processing::Push, Processing::Push]
        );
        assert_eq!(ProcessingCode::parse("l").unwrap().output(3), Processing::Pull);
        assert_eq!(ProcessingCode::parse("h/"), None);
        assert_eq!(ProcessingCode::parse("q"), None);
    }

    #[test]
    fn flow_codes() {
        let c = |code: &str, i, o| Flow::parse(code).unwrap().connects(i, o);
        assert!(c("x/x", 0, 0) && c("x/x", 3, 7));
        assert!(!c("x/y", 0, 0));
        assert!(c("xy/x", 0, 0) && !c("xy/x", 1, 0));
        assert!(c("#/#", 2, 2) && !c("#/#", 2, 1));
        assert!(c("#/[^#]", 2, 1) && !c("#/[^#]", 2, 2) && c("#/[^x]", 2, 2) && !c("[^#]/#", 0, 0));
        assert!(c("x/[xy]", 0, 0) && c("xy/[^x]", 1, 0) && !c("xy/[^x]", 0, 0));
        for bad in ["", "x/", "x/[x", "?"] {
            assert_eq!(Flow::parse(bad), None, "{bad}");
        }
    }

    /// Tries all texts of up to five characters of a set. For each, the check at compile time must agree with the
    /// parser.
    #[test]
    fn codes_are_checked_as_they_are_parsed() {
        fn all(set: &str, check: &dyn Fn(&str)) {
            let mut texts = vec![String::new()];
            for _ in 0..=5 {
                texts.iter().for_each(|t| check(t));
                texts = texts.iter().flat_map(|t| set.chars().map(move |c| format!("{t}{c}"))).collect();
            }
        }
        all("hla/x", &|t| assert_eq!(processing_is_valid(t), ProcessingCode::parse(t).is_some(), "{t}"));
        all("xy#[]^/", &|t| assert_eq!(flow_is_valid(t), Flow::parse(t).is_some(), "{t}"));
    }
}
