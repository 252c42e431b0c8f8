// SPDX-License-Identifier: MIT OR Apache-2.0
//! The byte patterns of `Classifier`: `[!]OFFSET/VALUE[%MASK] ...` or `-`.

use crate::error::Fault;
use crate::expr::{Atom, Expr};

/// The largest offset. Far longer than any packet, and small enough to keep offset arithmetic from overflowing.
const MAX_OFFSET: u32 = 1 << 20;

/// Parses one pattern. All clauses are parsed, so that all errors are reported.
pub(crate) fn parse(text: &str) -> Result<Expr, Vec<Fault>> {
    let mut clauses = Vec::new();
    let mut faults = Vec::new();
    let mut dash = None;
    let mut words = 0usize;
    for (start, word) in split(text) {
        words += 1;
        if word == "-" {
            dash = Some(start..start + 1);
            continue;
        }
        match clause(start, word) {
            Ok(e) => clauses.push(e),
            Err(f) => faults.push(f),
        }
    }
    match dash {
        Some(range) if words > 1 => faults
            .push(Fault::new(range, "'-' matches every packet and stands alone").expected("'OFFSET/VALUE'")),
        None if words == 0 => {
            let end = text.len();
            faults.push(Fault::new(end..end, "empty pattern").expected("'OFFSET/VALUE[%MASK]' or '-'"))
        }
        _ => {}
    }
    if faults.is_empty() { Ok(Expr::And(clauses)) } else { Err(faults) }
}

/// The words of `text` with their offsets.
fn split(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let base = text.as_ptr() as usize;
    text.split_ascii_whitespace().map(move |w| (w.as_ptr() as usize - base, w))
}

fn clause(start: usize, word: &str) -> Result<Expr, Fault> {
    let fault = |from: usize, to: usize, message: &str| Fault::new(start + from..start + to, message);
    let body = word.trim_start_matches('!');
    let bangs = word.len() - body.len();
    if bangs > 1 {
        return Err(fault(0, bangs, "more than one '!'").expected("'!OFFSET/VALUE'"));
    }
    let Some(slash) = body.find('/').map(|i| i + bangs) else {
        return Err(fault(0, word.len(), "clause without '/'").expected("'OFFSET/VALUE[%MASK]'"));
    };
    let offset = &word[bangs..slash];
    if offset.is_empty() {
        return Err(fault(slash, slash + 1, "no offset before '/'").expected("a decimal offset"));
    }
    if !offset.bytes().all(|b| b.is_ascii_digit()) {
        return Err(fault(bangs, slash, "bad offset").expected("a decimal offset"));
    }
    let offset = match offset.parse::<u32>() {
        Ok(o) if o <= MAX_OFFSET => o,
        _ => {
            let most = format!("at most {MAX_OFFSET}");
            return Err(fault(bangs, slash, "offset too large").expected(most));
        }
    };
    let percent = word[slash..].find('%').map(|i| i + slash);
    let value_end = percent.unwrap_or(word.len());
    let value = nibbles(start + slash + 1, &word[slash + 1..value_end], "value")?;
    let mask = match percent {
        None => None,
        Some(p) => {
            let mask = nibbles(start + p + 1, &word[p + 1..], "mask")?;
            if mask.len() != value.len() {
                let want = format!("{} digits", value.len());
                let from = (p + 1).min(word.len());
                return Err(fault(from, word.len(), "mask and value differ in length").expected(want));
            }
            Some(mask)
        }
    };
    let tests = words(offset, &value, mask.as_deref());
    let all = match <[Expr; 1]>::try_from(tests) {
        Ok([one]) => one,
        Err(many) => Expr::And(many),
    };
    Ok(if bangs == 1 { all.negate() } else { all })
}

/// Parses an even number of hex digits. `?` stands for any digit and gives `None`.
fn nibbles(start: usize, text: &str, what: &str) -> Result<Vec<Option<u8>>, Fault> {
    let whole = start..start + text.len();
    if text.is_empty() {
        return Err(
            Fault::new(whole, format!("empty {what}")).expected("an even number of hex digits or '?'")
        );
    }
    let mut out = Vec::new();
    for (i, c) in text.char_indices() {
        match (c, c.to_digit(16)) {
            ('?', _) => out.push(None),
            (_, Some(d)) => out.push(Some(d as u8)),
            _ => {
                let at = start + i..start + i + c.len_utf8();
                return Err(Fault::new(at, format!("bad digit in {what}")).expected("a hex digit or '?'"));
            }
        }
    }
    if out.len() % 2 != 0 {
        return Err(
            Fault::new(whole, format!("odd number of digits in {what}")).expected("two digits per byte")
        );
    }
    Ok(out)
}

/// One test for each aligned word that the value covers.
fn words(offset: u32, value: &[Option<u8>], mask: Option<&[Option<u8>]>) -> Vec<Expr> {
    let mut atoms: Vec<Atom> = Vec::new();
    for (i, digit) in value.iter().enumerate() {
        let at = offset + (i / 2) as u32;
        let word = at & !3;
        let asked = match (digit, mask.and_then(|m| m.get(i))) {
            (None, _) | (_, Some(None)) => 0,
            (Some(_), None) => 0xf,
            (Some(_), Some(Some(m))) => u32::from(*m),
        };
        let shift = 28 - (at & 3) * 8 - (i as u32 & 1) * 4;
        let need = at + 1;
        if atoms.last().is_none_or(|a| a.offset != word) {
            atoms.push(Atom { offset: word, mask: 0, value: 0, need });
        }
        if let Some(atom) = atoms.last_mut() {
            atom.mask |= asked << shift;
            atom.value |= (u32::from(digit.unwrap_or(0)) & asked) << shift;
            atom.need = need;
        }
    }
    // A word without tested bits needs no test of its own if a later word requires more bytes.
    let last = atoms.len().saturating_sub(1);
    let mut i = 0;
    atoms.retain(|a| {
        i += 1;
        a.mask != 0 || i > last
    });
    atoms.into_iter().map(Expr::Atom).collect()
}
