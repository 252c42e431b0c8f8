// SPDX-License-Identifier: MIT OR Apache-2.0
//! Byte sources of captures: a file, standard input, memory, or a decompressing program.
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;

use crate::CaptureError;

/// Bytes needed to detect compression; xz has the longest magic number.
const HEAD: usize = 6;

enum Raw {
    File(File),
    Bytes(Cursor<Vec<u8>>),
    Stream(Box<dyn Read + Send>),
    Child(ChildStdout),
}

impl Read for Raw {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Raw::File(file) => file.read(buf),
            Raw::Bytes(bytes) => bytes.read(buf),
            Raw::Stream(stream) => stream.read(buf),
            Raw::Child(stdout) => stdout.read(buf),
        }
    }
}

/// A child process that decompresses the input. It is killed when its reader is dropped.
struct Decompressor {
    program: &'static str,
    child: Child,
    reaped: bool,
}

impl Drop for Decompressor {
    fn drop(&mut self) {
        if !self.reaped {
            // If the reader stops early, the child stays blocked on its pipe. So kill the child and wait for its end.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// A buffered byte source that counts the bytes read from it.
pub(crate) struct Source {
    name: String,
    reader: BufReader<Raw>,
    /// Bytes that were read ahead to detect the format.
    head: Vec<u8>,
    head_pos: usize,
    offset: u64,
    size: Option<u64>,
    decompressor: Option<Decompressor>,
}

impl Source {
    /// Opens a file, or standard input for `-`. Compressed input is decompressed; input that was compressed twice
    /// is an error.
    pub(crate) fn open(path: &Path) -> Result<Source, CaptureError> {
        if path.as_os_str() == "-" {
            return Source::new("<stdin>".to_owned(), Raw::Stream(Box::new(io::stdin())), None);
        }
        let name = path.display().to_string();
        let file = File::open(path).map_err(|e| CaptureError::io(&name, e))?;
        let size = file.metadata().ok().filter(|meta| meta.is_file()).map(|meta| meta.len());
        match size {
            Some(_) => Source::new(name, Raw::File(file), size),
            None => Source::new(name, Raw::Stream(Box::new(file)), None),
        }
    }

    /// A source of bytes in memory.
    pub(crate) fn bytes(name: &str, bytes: Vec<u8>) -> Result<Source, CaptureError> {
        let size = u64::try_from(bytes.len()).ok();
        Source::new(name.to_owned(), Raw::Bytes(Cursor::new(bytes)), size)
    }

    fn new(name: String, raw: Raw, size: Option<u64>) -> Result<Source, CaptureError> {
        let plain = Source {
            name,
            reader: BufReader::with_capacity(1 << 16, raw),
            head: Vec::new(),
            head_pos: 0,
            offset: 0,
            size,
            decompressor: None,
        };
        let mut source = plain.looked_at()?;
        if let Some(program) = compressed_by(&source.head) {
            source = source.through(program)?.looked_at()?;
            if let Some(inner) = compressed_by(&source.head) {
                return Err(CaptureError::corrupt(
                    &source.name,
                    0,
                    format!("compressed twice ({inner} inside)"),
                ));
            }
        }
        Ok(source)
    }

    /// Reads ahead the first bytes, which identify the format.
    fn looked_at(mut self) -> Result<Source, CaptureError> {
        let mut head = [0; HEAD];
        let n = self.read_full(&mut head)?;
        self.head = head.get(..n).unwrap_or_default().to_vec();
        self.head_pos = 0;
        self.offset = 0;
        Ok(self)
    }

    /// Returns a source of the same bytes, decompressed by `program -dc`.
    fn through(self, program: &'static str) -> Result<Source, CaptureError> {
        let Source { name, reader, head, .. } = self;
        let buffered = reader.buffer().to_vec();
        let mut command = Command::new(program);
        command.arg("-dc").stdout(Stdio::piped()).stderr(Stdio::null());
        let mut feed = None;
        match reader.into_inner() {
            Raw::File(mut file) => {
                file.rewind().map_err(|e| CaptureError::io(&name, e))?;
                command.stdin(Stdio::from(file));
            }
            raw => {
                command.stdin(Stdio::piped());
                feed = Some(raw);
            }
        }
        let mut child = command.spawn().map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => CaptureError::NoDecompressor { file: name.clone(), program },
            _ => CaptureError::io(&name, e),
        })?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let decompressor = Decompressor { program, child, reaped: false };
        let Some(stdout) = stdout else {
            return Err(CaptureError::io(&name, io::ErrorKind::BrokenPipe.into()));
        };
        if let (Some(mut raw), Some(mut stdin)) = (feed, stdin) {
            // If the source is not a regular file, a thread copies the source to the child. The thread ends when the
            // source or the child ends. It ignores errors: an incomplete input makes the child fail, and the exit
            // status of the child shows this.
            thread::spawn(move || {
                let _ = stdin
                    .write_all(&head)
                    .and_then(|()| stdin.write_all(&buffered))
                    .and_then(|()| io::copy(&mut raw, &mut stdin));
            });
        }
        Ok(Source {
            name,
            reader: BufReader::with_capacity(1 << 16, Raw::Child(stdout)),
            head: Vec::new(),
            head_pos: 0,
            offset: 0,
            size: None,
            decompressor: Some(decompressor),
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Number of bytes read so far, which is the position of the next record.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Length of a plain file or of memory, in bytes; `None` for pipes and compressed files.
    pub(crate) fn size(&self) -> Option<u64> {
        self.size
    }

    /// The first bytes of the input, at most six, which identify its format.
    pub(crate) fn head(&self) -> &[u8] {
        &self.head
    }

    /// Reads until `buf` is full or the input ends. Returns the number of bytes read.
    pub(crate) fn read_full(&mut self, buf: &mut [u8]) -> Result<usize, CaptureError> {
        let mut filled = 0;
        if self.head_pos < self.head.len() {
            let mut waiting = self.head.get(self.head_pos..).unwrap_or_default();
            filled = waiting.read(buf).unwrap_or(0);
            self.head_pos = self.head_pos.saturating_add(filled);
        }
        while let Some(rest) = buf.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.reader.read(rest) {
                Ok(0) => {
                    self.ended()?;
                    break;
                }
                Ok(n) => filled = filled.saturating_add(n),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(CaptureError::io(&self.name, e)),
            }
        }
        self.offset = self.offset.saturating_add(u64::try_from(filled).unwrap_or(u64::MAX));
        Ok(filled)
    }

    /// Appends bytes to `line`, up to and including the next line end. Stops earlier when `line` has `most`
    /// bytes. Returns the number of bytes read, 0 at the end of the input.
    pub(crate) fn read_line(&mut self, line: &mut Vec<u8>, most: usize) -> Result<usize, CaptureError> {
        let before = line.len();
        let end = |bytes: &[u8]| bytes.iter().position(|b| *b == b'\n').map(|i| i.saturating_add(1));
        loop {
            let room = most.saturating_sub(line.len());
            let waiting = self.head.get(self.head_pos..).unwrap_or_default();
            let from_head = !waiting.is_empty();
            let buffered = if from_head {
                waiting
            } else {
                match io::BufRead::fill_buf(&mut self.reader) {
                    Ok(bytes) => bytes,
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                    Err(e) => return Err(CaptureError::io(&self.name, e)),
                }
            };
            let piece = buffered.get(..room).unwrap_or(buffered);
            let found = end(piece);
            let n = found.unwrap_or(piece.len());
            line.extend_from_slice(piece.get(..n).unwrap_or_default());
            if from_head {
                self.head_pos = self.head_pos.saturating_add(n);
            } else {
                io::BufRead::consume(&mut self.reader, n);
            }
            self.offset = self.offset.saturating_add(u64::try_from(n).unwrap_or(u64::MAX));
            if n == 0 && room > 0 {
                self.ended()?;
            }
            if n == 0 || found.is_some() {
                return Ok(line.len().saturating_sub(before));
            }
        }
    }

    /// Skips `count` bytes. Returns false if the input ended first.
    pub(crate) fn skip(&mut self, count: u64) -> Result<bool, CaptureError> {
        let mut left = count;
        let mut scratch = [0; 4096];
        while left > 0 {
            let want = usize::try_from(left).unwrap_or(usize::MAX).min(scratch.len());
            let n = self.read_full(scratch.get_mut(..want).unwrap_or_default())?;
            if n < want {
                return Ok(false);
            }
            left = left.saturating_sub(u64::try_from(n).unwrap_or(u64::MAX));
        }
        Ok(true)
    }

    /// Moves to a byte position. Only plain files and memory support this.
    pub(crate) fn seek(&mut self, offset: u64) -> Result<(), CaptureError> {
        let unseekable = |why| CaptureError::Unseekable { file: self.name.clone(), offset, why };
        let moved = match self.reader.get_mut() {
            Raw::File(file) => file.seek(SeekFrom::Start(offset)),
            Raw::Bytes(bytes) => bytes.seek(SeekFrom::Start(offset)),
            Raw::Stream(_) => return Err(unseekable("it is not a regular file")),
            Raw::Child(_) => return Err(unseekable("it is compressed")),
        };
        moved.map_err(|e| CaptureError::io(&self.name, e))?;
        self.reader.consume_all();
        self.head_pos = self.head.len();
        self.offset = offset;
        Ok(())
    }

    /// Checks the exit status of the decompressor at the end of its output, to detect truncated output.
    fn ended(&mut self) -> Result<(), CaptureError> {
        let Some(Decompressor { program, child, reaped }) = &mut self.decompressor else { return Ok(()) };
        if *reaped {
            return Ok(());
        }
        let status = child.wait().map_err(|e| CaptureError::io(&self.name, e))?;
        *reaped = true;
        if status.success() {
            return Ok(());
        }
        Err(CaptureError::Decompressor { file: self.name.clone(), program, status: status.to_string() })
    }
}

/// Discards the buffered bytes of a reader, which are stale after a seek.
trait ConsumeAll {
    fn consume_all(&mut self);
}

impl ConsumeAll for BufReader<Raw> {
    fn consume_all(&mut self) {
        let buffered = self.buffer().len();
        io::BufRead::consume(self, buffered);
    }
}

/// The program that decompresses data starting with `head`; `None` if the data are not compressed.
fn compressed_by(head: &[u8]) -> Option<&'static str> {
    match head {
        [0x1f, 0x8b, ..] => Some("gzip"),
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some("bzip2"),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some("xz"),
        _ => None,
    }
}
