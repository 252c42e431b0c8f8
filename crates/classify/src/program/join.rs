// SPDX-License-Identifier: MIT OR Apache-2.0
//! Joins programs that follow each other to one program ("Programming language optimizations for modular router
//! configurations", ASPLOS 2002, section 4).

use super::assembly::insert;
use super::{Program, Tree};
use crate::dag::{DROP, Dag, LEAF, TooLarge};
use crate::optimise::optimise;

/// A program that is joined with others.
#[derive(Clone, Debug)]
pub struct Part<'a> {
    /// The program.
    pub program: &'a Program,
    /// For each output of the program, what follows. Packets for an output without an entry are dropped.
    pub exits: Vec<Exit>,
}

/// The successor of an output of a [`Part`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Another part, by its index. It must come later in the list of parts.
    Part(usize),
    /// An output of the joined program.
    Output(u32),
}

impl Program {
    /// Makes one program with `outputs` outputs from several. Packets begin at the first part. Tests whose result is known
    /// from a part before are left out.
    ///
    /// None if there are no parts, if the parts have different [`OffsetBase`](super::OffsetBase)s, if an exit leads back or
    /// nowhere, or if the program would be too large.
    pub fn join(parts: &[Part<'_>], outputs: usize) -> Option<Program> {
        let kind = parts.first()?.program.kind;
        let fits = |(at, part): (usize, &Part<'_>)| {
            let ok = |exit: &Exit| match *exit {
                Exit::Part(next) => next > at && next < parts.len(),
                Exit::Output(out) => (out as usize) < outputs && out < DROP,
            };
            part.program.kind == kind && part.exits.iter().all(ok)
        };
        if !parts.iter().enumerate().all(fits) {
            return None;
        }
        joined(parts, outputs).ok()
    }
}

fn joined(parts: &[Part<'_>], outputs: usize) -> Result<Program, TooLarge> {
    let kind = parts.first().ok_or(TooLarge)?.program.kind;
    let mut dag = Dag::new(kind);
    let mut roots = vec![LEAF | DROP; parts.len()];
    for (at, part) in parts.iter().enumerate().rev() {
        let root = insert(&mut dag, &part.program.checked, |out| {
            let exit = out.port().and_then(|port| part.exits.get(port));
            match exit {
                Some(&Exit::Part(next)) => roots.get(next).copied().unwrap_or(LEAF | DROP),
                Some(&Exit::Output(out)) => LEAF | out,
                None => LEAF | DROP,
            }
        })?;
        if let Some(r) = roots.get_mut(at) {
            *r = root;
        }
    }
    let root = roots.first().copied().unwrap_or(LEAF | DROP);
    let tree = |all_present: bool| {
        let (dag, root) = optimise(&dag, root, all_present)?;
        Ok(Tree::new(&dag, root))
    };
    Ok(Program::from_trees(kind, outputs, tree(true)?, tree(false)?))
}
