// SPDX-License-Identifier: MIT OR Apache-2.0
//! Source files and positions in them.

use std::ops::Range;
use std::sync::Arc;

/// A source file, by its index in [`Sources`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// A range of bytes in one source file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// A span from a byte range.
    pub fn new(file: FileId, range: Range<usize>) -> Span {
        let clamp = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Span { file, start: clamp(range.start), end: clamp(range.end.max(range.start)) }
    }
    /// The same range in the file whose number is higher by `files`.
    pub fn shifted(self, files: u32) -> Span {
        Span { file: FileId(self.file.0.saturating_add(files)), ..self }
    }
    /// The range of bytes that the span covers.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
    /// The smallest span that covers both spans; `self` if they lie in different files.
    pub fn to(self, other: Span) -> Span {
        if self.file != other.file {
            return self;
        }
        Span { file: self.file, start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// A source position for people: line and column from 1, line directives applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The file name, or the name given by a line directive.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
}

#[derive(Clone, Debug)]
struct Source {
    name: String,
    text: Arc<str>,
    lines: Vec<u32>,
    /// For each line directive: byte offset of the next line, its line number, and its file name (`None` for
    /// the file's own name).
    directives: Vec<(u32, u32, Option<String>)>,
}

impl Source {
    /// The index in `lines` of the line that contains a byte.
    fn index_of_line(&self, at: u32) -> usize {
        self.lines.partition_point(|&l| l <= at).saturating_sub(1)
    }
    /// The file and the line of a byte, line directives applied. `i` is the index of its line.
    fn named_line(&self, at: u32, i: usize) -> (&str, u32) {
        let d = self.directives.partition_point(|d| d.0 <= at);
        match d.checked_sub(1).and_then(|d| self.directives.get(d)) {
            Some((from, line, file)) => {
                let lines = i.saturating_sub(self.index_of_line(*from));
                let line = line.saturating_add(u32::try_from(lines).unwrap_or(0));
                (file.as_deref().unwrap_or(&self.name), line)
            }
            None => (&self.name, u32::try_from(i + 1).unwrap_or(u32::MAX)),
        }
    }
}

/// All source texts, with the line tables that turn byte offsets into positions.
#[derive(Clone, Debug, Default)]
pub struct Sources(Vec<Source>);

impl Sources {
    /// An empty set of sources.
    pub fn new() -> Sources {
        Sources::default()
    }
    /// Adds a text. Messages call it by `name`: `config` for a text from `-e`, `<stdin>` for standard input.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<Arc<str>>) -> FileId {
        let text = text.into();
        let mut lines = vec![0u32];
        let bytes = text.as_bytes();
        let after = |i: usize| u32::try_from(i + 1).unwrap_or(u32::MAX);
        if bytes.contains(&b'\r') {
            let ends = bytes
                .iter()
                .enumerate()
                .filter(|&(i, &b)| b == b'\n' || (b == b'\r' && bytes.get(i + 1) != Some(&b'\n')));
            lines.extend(ends.map(|(i, _)| after(i)));
        } else {
            lines.extend(text.match_indices('\n').map(|(i, _)| after(i)));
        }
        self.0.push(Source { name: name.into(), text, lines, directives: Vec::new() });
        FileId(u32::try_from(self.0.len() - 1).unwrap_or(u32::MAX))
    }
    /// Adds all texts of `other`. Returns the number that its file numbers grow by.
    pub fn append(&mut self, other: Sources) -> u32 {
        let first = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        self.0.extend(other.0);
        first
    }
    /// Records a line directive: from byte `at` on, lines count from `line` and belong to `file` (`None`: the
    /// file's own name).
    pub fn add_directive(&mut self, id: FileId, at: usize, line: u32, file: Option<String>) {
        if let Some(s) = self.0.get_mut(id.0 as usize) {
            s.directives.push((u32::try_from(at).unwrap_or(u32::MAX), line, file));
        }
    }
    /// All files, in the order in which they were added.
    pub fn files(&self) -> impl Iterator<Item = FileId> {
        (0..self.0.len()).map(|i| FileId(u32::try_from(i).unwrap_or(u32::MAX)))
    }
    /// The text of a file; empty for an unknown file.
    pub fn text(&self, id: FileId) -> &str {
        self.0.get(id.0 as usize).map_or("", |s| &s.text)
    }
    /// The text of a file, for users that keep it longer than the sources; empty for an unknown file.
    pub fn shared_text(&self, id: FileId) -> Arc<str> {
        self.0.get(id.0 as usize).map(|s| s.text.clone()).unwrap_or_default()
    }
    /// The name of a file, ignoring line directives.
    pub fn name(&self, id: FileId) -> &str {
        self.0.get(id.0 as usize).map_or("<unknown>", |s| &s.name)
    }
    /// The text of a span; empty if the span is out of range.
    pub fn snippet(&self, span: Span) -> &str {
        self.text(span.file).get(span.range()).unwrap_or("")
    }
    /// The line and the column in characters of a byte, both from 1, without regard to line directives.
    pub fn position(&self, id: FileId, at: u32) -> (usize, usize) {
        let Some(s) = self.0.get(id.0 as usize) else { return (1, 1) };
        let line = s.lines.partition_point(|&l| l <= at).max(1);
        let start = s.lines.get(line - 1).copied().unwrap_or(0);
        let before = s.text.get(start as usize..at as usize).unwrap_or("");
        (line, before.chars().count() + 1)
    }
    /// The text of a line, counted from 1 without regard to line directives, without its line end.
    pub fn line(&self, id: FileId, line: usize) -> &str {
        let Some(s) = self.0.get(id.0 as usize) else { return "" };
        let bound = |n: usize| s.lines.get(n).map_or(s.text.len(), |&l| l as usize);
        let range = line.checked_sub(1).map_or(0, bound)..bound(line);
        s.text.get(range).unwrap_or("").trim_end_matches(['\n', '\r'])
    }
    /// The position of the first byte of a span.
    pub fn place(&self, span: Span) -> Position {
        let Some(s) = self.0.get(span.file.0 as usize) else {
            return Position { file: "<unknown>".into(), line: 1, column: 1 };
        };
        let i = s.index_of_line(span.start);
        let start = s.lines.get(i).copied().unwrap_or(0);
        let before = s.text.get(start as usize..span.start as usize).unwrap_or("");
        let column = u32::try_from(before.chars().count() + 1).unwrap_or(u32::MAX);
        let (file, line) = s.named_line(span.start, i);
        Position { file: file.into(), line, column }
    }
    /// The file and the line of the first byte of a span, as in [`Sources::place`].
    pub fn file_and_line(&self, span: Span) -> (&str, u32) {
        self.0.get(span.file.0 as usize).map_or(("<unknown>", 1), |s| {
            let i = s.index_of_line(span.start);
            s.named_line(span.start, i)
        })
    }
}
