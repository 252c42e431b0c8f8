// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads summary dumps, text and binary.

use super::draft::{Defaults, Draft};
use super::field::Field;
use super::field_type::{FieldType, Value};
use super::flow::Flow;
use super::tcpdump::{self, Parsed};
use super::words::{parse_number, protocol};
use crate::CaptureError;
use crate::source::Source;
use std::path::Path;

/// Largest length of a line or record, in bytes. A longer line or record is skipped.
const LONGEST: usize = 1 << 20;
/// Largest number of fields of a line.
const MOST_FIELDS: usize = 256;

/// The next item of a dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A record, stored in the draft.
    Record,
    /// A line that is not a record, for example a header line.
    Nothing,
    /// A message for the user: `FILE:LINE: text`. Each kind of message is returned only once.
    Problem(String),
    /// The end of the dump.
    End,
}

/// Reads a summary dump.
///
/// Invalid parts are skipped: an invalid field counts as missing, and a line without any valid field is not a
/// record. Invalid fields and invalid lines are counted, and the first invalid line is reported.
pub struct SummaryReader {
    source: Source,
    defaults: Defaults,
    fields: Vec<&'static Field>,
    buffer: Vec<u8>,
    line: u64,
    binary: bool,
    begun: bool,
    told: Told,
    /// A message that the next call of [`SummaryReader::next`] returns.
    waiting: Option<String>,
    bad_lines: u64,
    bad_fields: u64,
    /// The parser of lines that tcpdump printed; `None` for summary dumps.
    tcpdump: Option<tcpdump::Parser>,
}

/// For each kind of message, whether one has been returned. Further messages of this kind are not returned.
#[derive(Default)]
struct Told {
    no_fields: bool,
    bad_line: bool,
    bad_header: bool,
    version: bool,
    cut: bool,
}

impl SummaryReader {
    /// Opens a file, plain or compressed, or standard input for `-`.
    pub fn open(path: impl AsRef<Path>) -> Result<SummaryReader, CaptureError> {
        Ok(SummaryReader::new(Source::open(path.as_ref())?))
    }
    /// Opens a file with text that tcpdump printed.
    pub fn open_tcpdump(path: impl AsRef<Path>) -> Result<SummaryReader, CaptureError> {
        let tcpdump = Some(tcpdump::Parser::default());
        Ok(SummaryReader { tcpdump, ..SummaryReader::open(path)? })
    }
    /// Reads text that tcpdump printed, from memory; messages use `name` as the name of the file.
    pub fn tcpdump_from_bytes(name: &str, bytes: impl Into<Vec<u8>>) -> Result<SummaryReader, CaptureError> {
        let tcpdump = Some(tcpdump::Parser::default());
        Ok(SummaryReader { tcpdump, ..SummaryReader::from_bytes(name, bytes)? })
    }
    /// Reads a dump from memory; messages use `name` as the name of the file.
    pub fn from_bytes(name: &str, bytes: impl Into<Vec<u8>>) -> Result<SummaryReader, CaptureError> {
        Ok(SummaryReader::new(Source::bytes(name, bytes.into())?))
    }
    fn new(source: Source) -> SummaryReader {
        SummaryReader {
            source,
            defaults: Defaults::default(),
            fields: Vec::new(),
            buffer: Vec::new(),
            line: 0,
            binary: false,
            begun: false,
            told: Told::default(),
            waiting: None,
            bad_lines: 0,
            bad_fields: 0,
            tcpdump: None,
        }
    }
    /// Sets which field each column of a record holds. A `!data` line in the dump replaces this list.
    pub fn set_fields(&mut self, fields: Vec<&'static Field>) {
        self.fields = fields;
    }
    /// The default values for missing fields; the dump may change them.
    pub fn defaults_mut(&mut self) -> &mut Defaults {
        &mut self.defaults
    }
    /// The default values for missing fields.
    pub fn defaults(&self) -> &Defaults {
        &self.defaults
    }
    /// The number of lines and binary records that could not be read.
    pub fn bad_lines(&self) -> u64 {
        self.bad_lines
    }
    /// The number of invalid fields.
    pub fn bad_fields(&self) -> u64 {
        self.bad_fields
    }
    /// Bytes read so far.
    pub fn filepos(&self) -> u64 {
        self.source.offset()
    }
    /// Size of the file in bytes, if it is known.
    pub fn filesize(&self) -> Option<u64> {
        self.source.size()
    }

    /// Reads the next line or binary record.
    pub fn next(&mut self, draft: &mut Draft) -> Result<Item, CaptureError> {
        if let Some(text) = self.waiting.take() {
            return Ok(Item::Problem(text));
        }
        let more = if self.binary { self.read_record()? } else { self.read_line()? };
        let kind = match more {
            None => return Ok(Item::End),
            Some(Read::Cut) if std::mem::replace(&mut self.told.cut, true) => return Ok(Item::End),
            Some(Read::Cut) => {
                return Ok(Item::Problem(self.problem("warning: cut in its last record, which is left out")));
            }
            Some(kind) => kind,
        };
        let buffer = std::mem::take(&mut self.buffer);
        let item = match kind {
            Read::Binary => self.record(&buffer, draft),
            Read::Line => self.line(&buffer, draft),
            Read::TooLong => self.bad_line(),
            Read::Cut => Item::End,
        };
        self.buffer = buffer;
        self.begun = true;
        Ok(item)
    }

    /// Reads a line into the buffer.
    fn read_line(&mut self) -> Result<Option<Read>, CaptureError> {
        self.buffer.clear();
        if self.source.read_line(&mut self.buffer, LONGEST)? == 0 {
            return Ok(None);
        }
        self.line += 1;
        let mut kind = Read::Line;
        // The rest of a line that is too long is read in pieces and ignored.
        while self.buffer.len() >= LONGEST && self.buffer.last() != Some(&b'\n') {
            kind = Read::TooLong;
            self.buffer.clear();
            if self.source.read_line(&mut self.buffer, LONGEST)? == 0 {
                break;
            }
        }
        Ok(Some(kind))
    }

    /// Reads a binary record, without its length, into the buffer.
    fn read_record(&mut self) -> Result<Option<Read>, CaptureError> {
        self.buffer.clear();
        let mut head = [0; 4];
        let n = self.source.read_full(&mut head)?;
        if n < head.len() {
            // A record starts with its length in four bytes, so one to three bytes at the end are a truncated record.
            return Ok((n > 0).then_some(Read::Cut));
        }
        self.line += 1;
        let word = u32::from_be_bytes(head);
        let length = u64::from(word & 0x7fff_ffff);
        let Some(length) = length.checked_sub(4) else {
            let what = format!("record {} has a length of {length} bytes, less than 4", self.line);
            return Err(CaptureError::corrupt(
                self.source.name(),
                self.source.offset().saturating_sub(4),
                what,
            ));
        };
        if length > LONGEST as u64 {
            return Ok(Some(if self.source.skip(length)? { Read::TooLong } else { Read::Cut }));
        }
        self.buffer.resize(length as usize, 0);
        let n = self.source.read_full(&mut self.buffer)?;
        if n < self.buffer.len() {
            return Ok(Some(Read::Cut));
        }
        Ok(Some(if word >> 31 != 0 { Read::Line } else { Read::Binary }))
    }

    fn problem(&self, text: &str) -> String {
        format!("{}:{}: {text}", self.source.name(), self.line)
    }

    fn bad_line(&mut self) -> Item {
        self.bad_lines += 1;
        if std::mem::replace(&mut self.told.bad_line, true) {
            return Item::Nothing;
        }
        Item::Problem(self.problem("packet parse error"))
    }

    fn line(&mut self, bytes: &[u8], draft: &mut Draft) -> Item {
        if let Some(parser) = &mut self.tcpdump {
            return match parser.line(&String::from_utf8_lossy(bytes), draft) {
                Parsed::Packet => Item::Record,
                Parsed::Nothing => Item::Nothing,
                Parsed::Bad => self.bad_line(),
            };
        }
        let bytes = bytes.trim_ascii();
        let first = !self.begun;
        let Some(command) = bytes.strip_prefix(b"!").filter(|c| !self.is_mark(c)) else {
            if bytes.is_empty() || bytes.starts_with(b"#") {
                return Item::Nothing;
            }
            if first && self.fields.is_empty() {
                let name = self.source.name();
                self.waiting =
                    Some(format!("{name}:0: warning: missing banner line; is this an IP summary dump?"));
            }
            return self.text_record(bytes, draft);
        };
        let text = String::from_utf8_lossy(command);
        let mut words = text.split_whitespace();
        let name = words.next().unwrap_or("");
        let rest: Vec<&str> = words.take(MOST_FIELDS).collect();
        match self.header(name, &rest) {
            Ok(()) => Item::Nothing,
            Err(problem) => problem.map_or(Item::Nothing, Item::Problem),
        }
    }

    /// Whether the `!` at the start of a line is the value of a fragment field (don't fragment), and not the
    /// start of a header line.
    fn is_mark(&self, after: &[u8]) -> bool {
        let alone = after.first().is_none_or(u8::is_ascii_whitespace);
        alone
            && self
                .fields
                .first()
                .is_some_and(|f| matches!(f.kind, FieldType::Fragment | FieldType::FragmentOffset))
    }

    /// Reads a header line, which begins with `!`.
    fn header(&mut self, name: &str, words: &[&str]) -> Result<(), Option<String>> {
        match name {
            "IPSummaryDump" => {
                let mut parts =
                    words.first().unwrap_or(&"").split('.').map(|n| n.parse::<u32>().unwrap_or(0));
                let version = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
                if version > super::VERSION && !std::mem::replace(&mut self.told.version, true) {
                    return Err(Some(self.problem("warning: unexpected IPSummaryDump version")));
                }
            }
            "data" | "contents" => {
                let found: Vec<_> = words.iter().map(|w| (*w, Field::find(w))).collect();
                self.fields = found.iter().filter_map(|f| f.1).collect();
                let unknown = found.iter().find(|f| f.1.is_none()).map(|f| f.0);
                if let Some(unknown) = unknown {
                    // Drop the columns from the unknown one on, because later values could not be assigned to
                    // the right fields.
                    let known = found.iter().take_while(|f| f.1.is_some()).count();
                    self.fields.truncate(known);
                    return Err(self.header_problem(&format!("unknown content type '{unknown}'")));
                }
            }
            "flowid" => match Flow::parse(words) {
                Some(flow) => flow.put(&mut self.defaults),
                None => return Err(self.header_problem("bad flow ID")),
            },
            "proto" => match words.first().and_then(|w| protocol(w)) {
                Some(n) => self.defaults.protocol = n,
                None => return Err(self.header_problem("bad protocol")),
            },
            "aggregate" => match words.first().and_then(|w| parse_number(w)?.try_into().ok()) {
                Some(n) => self.defaults.aggregate = n,
                None => return Err(self.header_problem("bad aggregate")),
            },
            "binary" => self.binary = true,
            _ => {}
        }
        Ok(())
    }
    fn header_problem(&mut self, text: &str) -> Option<String> {
        self.bad_lines += 1;
        let told = std::mem::replace(&mut self.told.bad_header, true);
        (!told).then(|| self.problem(text))
    }

    /// Counts a line that cannot be read because the columns are unknown. Only the first such line is
    /// reported.
    fn without_fields(&mut self) -> Item {
        self.bad_lines += 1;
        if std::mem::replace(&mut self.told.no_fields, true) {
            return Item::Nothing;
        }
        let text = self.problem("no '!data' provided");
        match self.waiting.replace(text) {
            Some(before) => Item::Problem(before),
            None => Item::Problem(self.waiting.take().unwrap_or_default()),
        }
    }

    fn text_record(&mut self, mut line: &[u8], draft: &mut Draft) -> Item {
        if self.fields.is_empty() {
            return self.without_fields();
        }
        *draft = Draft::default();
        let (mut good, mut bad) = (0_u64, 0_u64);
        for field in &self.fields {
            let word = take_word(&mut line);
            match word {
                b"" => break,
                b"-" => good += 1,
                _ => match field.kind.parse(word) {
                    Some(value) => {
                        field.put(draft, &value);
                        good += 1;
                    }
                    None => bad += 1,
                },
            }
        }
        self.bad_fields = self.bad_fields.saturating_add(bad);
        if good == 0 { self.bad_line() } else { Item::Record }
    }

    fn record(&mut self, mut record: &[u8], draft: &mut Draft) -> Item {
        if self.fields.is_empty() {
            return self.without_fields();
        }
        *draft = Draft::default();
        let mut good = 0;
        for field in &self.fields {
            match field.kind.read(&mut record) {
                Some(value) => {
                    good += 1;
                    put_binary(field, draft, &value);
                }
                None => {
                    self.bad_fields = self.bad_fields.saturating_add(1);
                    break;
                }
            }
        }
        if good == 0 { self.bad_line() } else { Item::Record }
    }
}

/// Sets a field from a binary record. Binary records hold zero for a missing value. So zero counts as missing
/// in fields where zero is not a valid value.
fn put_binary(field: &Field, draft: &mut Draft, value: &Value<'_>) {
    let said = match field.kind {
        FieldType::Fragment => b".!Ff".iter().any(|l| u64::from(*l) == value.number()),
        FieldType::Ether => value.bytes() != [0; 6],
        FieldType::EtherType => value.number() != 0,
        _ => value.number() != 0 || !["ip_hl", "tcp_off", "ip_capture_len"].contains(&field.name),
    };
    if said {
        field.put(draft, value);
    }
}

/// The result of reading a line or a binary record into the buffer.
enum Read {
    Line,
    Binary,
    TooLong,
    /// The dump ends inside a record.
    Cut,
}

/// Removes the next word from a line and returns it. A word ends at white space. If it begins with a quoted
/// string, white space inside the quotes belongs to the word.
fn take_word<'a>(line: &mut &'a [u8]) -> &'a [u8] {
    let text = line.trim_ascii_start();
    let mut end = 0;
    if text.first() == Some(&b'"') {
        end = 1;
        let mut escaped = false;
        for b in text.iter().skip(1) {
            end += 1;
            match b {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => break,
                _ => {}
            }
        }
    }
    let more = text.get(end..).unwrap_or_default();
    end += more.iter().position(u8::is_ascii_whitespace).unwrap_or(more.len());
    let (word, rest) = text.split_at_checked(end).unwrap_or((text, &[]));
    *line = rest;
    word
}
