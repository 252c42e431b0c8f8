// SPDX-License-Identifier: MIT OR Apache-2.0
//! Explains why the kernel refuses a program, from the log of its verifier.

use crate::device::bpf::MapShape;
use crate::error::system_text;
use rustix::io::Errno;

/// The most lines of the log that are kept.
const LINES: usize = 6;
/// The kernel's ENOTSUPP, which programs get when their translation to machine code fails. It has no name outside the kernel.
const UNTRANSLATED: i32 = 524;
/// The most bytes of a line that are kept.
const WIDTH: usize = 300;

/// The beginnings of lines that do not say what is wrong.
const STATISTICS: [&str; 6] =
    ["processed ", "verification time ", "stack depth ", "mark_precise: ", "last_idx ", "insns_limit "];

/// Parts of complaints, and what they mean. The first one that occurs counts.
const MEANINGS: [(&str, &str); 30] = [
    ("program is too large", "it has too many paths for the kernel to check all of them"),
    ("is too complex", "it has too many branches for the kernel to check all of them"),
    ("invalid access to packet", "it accesses bytes of the frame, but has not tested that they are present"),
    ("math between pkt pointer", "it accesses the frame at an offset that has no bound"),
    ("invalid access to map value", "it accesses bytes beyond the end of a table's entry"),
    ("invalid map_access", "it accesses bytes beyond the end of a table's entry"),
    ("unbounded memory access", "it accesses memory at an offset that has no bound"),
    ("unbounded min value", "it accesses memory at an offset that has no bound"),
    ("min value is negative", "it accesses memory at an offset that may be negative"),
    ("outside of the allowed memory range", "it accesses memory at an offset that may be too large"),
    (
        "mem access 'map_value_or_null'",
        "it uses the result of a look-up, but has not tested that there is an entry",
    ),
    ("invalid mem access", "it accesses memory at something that is not an address"),
    ("variable-offset stack", "it accesses the stack at an offset that is not known"),
    ("invalid stack", "it accesses memory outside its stack"),
    ("invalid write to stack", "it accesses memory outside its stack"),
    ("read from stack", "it reads bytes of its stack that it has not written, or bytes outside of it"),
    ("!read_ok", "it uses a register that has no value"),
    ("unreachable insn", "it has instructions that no path reaches"),
    ("back-edge", "it has a loop"),
    ("infinite loop", "it has a loop that may never end"),
    ("jump out of range", "it has a jump that leads out of the program"),
    ("not an exit", "it has a path without an end"),
    ("invalid func", "it calls a function that this kernel does not have"),
    ("unknown func", "it calls a function that this kernel does not have"),
    ("cannot use helper", "it calls a function that this kernel does not offer to XDP programs"),
    ("unknown opcode", "it has an instruction that this kernel does not know"),
    ("is not pointing to valid bpf_map", "one of its maps is missing"),
    ("leaks addr", "it would give away an address of the kernel"),
    ("misaligned", "it accesses memory at an address that is not a multiple of the size"),
    ("tail call", "its parts cannot call each other on this kernel"),
];

/// The kernel's refusal of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The number of the part that was refused.
    pub part: usize,
    errno: Errno,
    /// The end of the verifier's log: the last instruction, and the complaint.
    lines: Vec<String>,
}

/// The number of the instruction that a line of the log shows, as in `12: (71) r1 = *(u8 *)(r7 +40)`.
fn shown(line: &str) -> Option<usize> {
    let (number, rest) = line.split_once(": ")?;
    let is_code =
        matches!(rest.as_bytes(), [b'(', a, b, b')', ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit());
    number.parse().ok().filter(|_| is_code)
}

impl Refusal {
    /// The refusal of a part of a program: the error of bpf(2), and the log of the verifier, which may be empty.
    pub(crate) fn new(part: usize, errno: Errno, log: &str) -> Refusal {
        let says = |line: &&str| !line.is_empty() && !STATISTICS.iter().any(|s| line.starts_with(s));
        let lines: Vec<&str> = log.lines().filter(says).collect();
        let last = lines.iter().rposition(|l| shown(l).is_some()).unwrap_or(0);
        // A complaint has a line or two, but the last instruction must be kept in any case.
        let from = lines.len().saturating_sub(LINES - 1).max(last + 1);
        let kept = lines.get(last).into_iter().chain(lines.get(from..).unwrap_or_default());
        let short = |line: &&str| line.get(..line.floor_char_boundary(WIDTH)).unwrap_or_default().to_string();
        Refusal { part, errno, lines: kept.map(short).collect() }
    }

    /// The end of the log.
    pub(crate) fn lines(&self) -> &[String] {
        &self.lines
    }
    /// The error of bpf(2).
    pub(crate) fn errno(&self) -> Errno {
        self.errno
    }

    /// The complaint: the lines without the last instruction.
    fn complaint(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str).filter(|l| shown(l).is_none())
    }

    /// The number of the instruction that the verifier complains about, in the part.
    pub fn instruction(&self) -> Option<usize> {
        // Some complaints name it, as in `back-edge from insn 3 to 1`.
        let named = |line: &str| {
            let (_, rest) = line.split_once("insn ")?;
            rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
        };
        self.complaint().find_map(named).or_else(|| self.lines.iter().rev().find_map(|l| shown(l)))
    }

    /// The reason in plain words.
    pub fn why(&self) -> String {
        let meant = |(part, _): &&(&str, &str)| self.complaint().any(|line| line.contains(part));
        if let Some((_, words)) = MEANINGS.iter().find(meant) {
            return (*words).to_string();
        }
        match self.errno {
            Errno::TOOBIG => "it has more instructions than this kernel takes".into(),
            Errno::NOMEM => "the kernel has not enough memory for it".into(),
            errno if errno.raw_os_error() == UNTRANSLATED => {
                "the kernel could not translate it to machine code (dmesg may say why)".into()
            }
            errno => system_text(&std::io::Error::from(errno)),
        }
    }

    /// The message for users. `element` names the element to which the instruction belongs.
    pub fn text(&self, device: &str, element: Option<&str>) -> String {
        let place = element.map_or(String::new(), |e| format!(" at {e}"));
        let mut text = format!("the kernel refused the program for {device}{place}: {}", self.why());
        for line in &self.lines {
            text.push_str("\n  note: ");
            text.push_str(line);
        }
        text
    }
}

/// Why the kernel did not make a map, if it was too large.
pub(crate) fn too_large(shape: MapShape, errno: Errno) -> Option<String> {
    let MapShape { key, value, entries, .. } = shape;
    let bytes = u64::from(key) + u64::from(value);
    let why = match errno {
        Errno::TOOBIG => "is too large for the kernel",
        Errno::NOMEM => "needs more memory than the kernel has",
        _ => return None,
    };
    Some(format!("a map of {entries} entries of {bytes} bytes {why}"))
}

#[cfg(test)]
mod tests;
