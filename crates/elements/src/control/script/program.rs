// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs of scripts: their instructions, labels and exported variables.

use super::instruction::{Ending, Instruction, Op, Target};
use castanet_element::spec::ArgError;
use std::ops::Range;

/// The instructions of a script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program(pub Vec<Instruction>);

impl Program {
    /// Parses instructions, each with its position in the configuration string.
    pub fn parse(lines: &[(Range<usize>, &str)]) -> Result<Program, Vec<ArgError>> {
        let mut program = Program::default();
        let (mut errors, mut places) = (Vec::new(), Vec::new());
        for (place, line) in lines {
            match Instruction::parse(line) {
                Ok(Some(i)) => {
                    program.0.push(i);
                    places.push(place.clone());
                }
                Ok(None) => {}
                Err(mut e) => {
                    let at = |n: usize| n.saturating_add(place.start).min(place.end);
                    e.range = at(e.range.start)..at(e.range.end);
                    errors.push(e);
                }
            }
        }
        for (i, place) in program.0.iter().zip(places) {
            if let Op::Goto(label) = &i.op
                && !label.contains('$')
                && program.target(label).is_none()
            {
                let near = castanet_lang::nearest(label, program.labels());
                let help = near.map_or(format!("add 'label {label}'"), |n| format!("did you mean '{n}'?"));
                errors.push(ArgError::new(format!("no such label '{label}'"), place).help(help));
            }
        }
        if errors.is_empty() { Ok(program) } else { Err(errors) }
    }
    /// Makes a script without instructions wait for one step.
    pub fn wait_if_empty(&mut self) {
        if self.0.is_empty() {
            self.0.push(Instruction { op: Op::Pause, text: String::new(), unquote: false });
        }
    }
    fn labels(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|i| match &i.op {
            Op::Label(l) => Some(l.as_str()),
            _ => None,
        })
    }
    /// Returns where a jump to a label leads; `None` if there is no such label. The labels that every script has can be
    /// overridden by the script's own labels.
    pub fn target(&self, label: &str) -> Option<Target> {
        let own = self.0.iter().position(|i| matches!(&i.op, Op::Label(l) if l == label));
        own.map(Target::At).or(match label {
            "begin" | "loop" => Some(Target::At(0)),
            "end" => Some(Target::End(Ending::End)),
            "exit" => Some(Target::End(Ending::Exit)),
            "stop" => Some(Target::End(Ending::Stop)),
            "error" => Some(Target::End(Ending::Error)),
            _ => None,
        })
    }
    /// Returns the variables that are also handlers, each once.
    pub fn exports(&self) -> Vec<&str> {
        let mut all = Vec::new();
        for i in &self.0 {
            if let Op::Init { variable, export: true } = &i.op
                && !all.contains(&variable.as_str())
            {
                all.push(variable);
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn labels() {
        let p = |lines: &[&str]| {
            Program::parse(&lines.iter().map(|&l| (10..10 + l.len(), l)).collect::<Vec<_>>())
        };
        let program =
            p(&["set x 1", "label end", "", "goto end", "goto begin", "goto $x", "export y", "export y 2"])
                .unwrap();
        assert_eq!(program.target("end"), Some(Target::At(1)));
        assert_eq!(program.target("begin"), Some(Target::At(0)));
        assert_eq!(program.target("error"), Some(Target::End(Ending::Error)));
        assert_eq!(program.exports(), ["y"]);
        let errors = p(&["label here", "goto nowhere", "foo"]).unwrap_err();
        let found: Vec<_> = errors.iter().map(|e| (e.message.as_str(), e.range.clone())).collect();
        assert_eq!(found, [("syntax error at 'foo'", 10..13), ("no such label 'nowhere'", 10..22)]);
    }
}
