// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where IPPrint and ARPPrint print their lines: a file, a message channel, or standard error.

use crate::handover;
use castanet_element::error::reason;
use castanet_element::prelude::*;
use parking_lot::Mutex;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::Arc;

/// Prints lines of text. The replicas of an element print to one file.
pub(crate) struct LineOutput {
    name: Option<Filename>,
    channel: Option<Word>,
    file: Arc<OutFile>,
    /// Whether this element created the file at initialisation.
    made: bool,
}

impl LineOutput {
    /// Makes an output to the file `name` if given, else to the message channel `channel` if given, else to standard
    /// error.
    pub fn new(name: Option<Filename>, channel: Option<Word>, cx: &mut BuildCx<'_>) -> LineOutput {
        LineOutput { name, channel, file: cx.share(OutFile::default), made: false }
    }
    /// Prints a line, given without its end. An error is reported once; later lines are discarded.
    pub fn print(&self, line: &mut String, cx: &mut Cx<'_>) {
        match (&self.name, &self.channel) {
            (Some(name), _) => {
                line.push('\n');
                if let Err(e) = self.file.write(&name.0, line) {
                    cx.message(&format!("{}: {}: {}", cx.declaration(), name.0, reason(&e)));
                }
            }
            (None, Some(channel)) => cx.message_on(&channel.0, line),
            (None, None) => cx.message(line),
        }
    }
}

impl Lifecycle for LineOutput {
    /// Checks that the file can be written.
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        if let Some(name) = &self.name {
            handover::watch_for_run(cx);
            self.made = !cx.inherits() && crate::trace::try_file(&name.0)?;
        }
        Ok(())
    }
    fn cleanup(&mut self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        let Some(name) = &self.name else { return Ok(()) };
        self.file.close(&name.0, self.made, cx)
    }
    /// Returns a key for the output file, which is the same in all routers that print to this file. None without a
    /// file.
    fn holds(&self) -> Option<String> {
        let name = self.name.as_ref()?;
        Some(format!("lines {}", handover::file_key(&name.0).display()))
    }
    fn take_over(&mut self, old: &mut Self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        self.file.take_over(&old.file);
        self.made |= std::mem::take(&mut old.made);
        Ok(())
    }
    fn effects(&self, _: Effects) -> Effects {
        if self.name.is_some() { Effects::FILES } else { Effects::PRINTS }
    }
}

/// The output file of an element, which all its replicas print to.
#[derive(Default)]
struct OutFile(Mutex<Sink>);

#[derive(Default)]
enum Sink {
    /// The file is not open yet. The first write opens and empties it. A router that never runs leaves it untouched.
    #[default]
    Closed,
    Open(Box<dyn Write + Send>),
    /// Writing to the file has failed, and the failure has been reported.
    Failed,
    /// The router that replaces this one has taken over the file.
    Gone,
}

impl Sink {
    /// Opens the file if it is not open yet. Clippy's ban on `File::create` is lifted here, because OUTFILE has the
    /// type `Filename`, which checks the name.
    #[allow(clippy::disallowed_methods)]
    fn open(&mut self, name: &str) -> std::io::Result<()> {
        if matches!(self, Sink::Closed) {
            let file: std::io::Result<Box<dyn Write + Send>> = match name {
                "-" => Ok(Box::new(std::io::stdout())),
                _ => File::create(name).map(|f| Box::new(BufWriter::new(f)) as _),
            };
            *self = match file {
                Ok(file) => Sink::Open(file),
                Err(e) => {
                    *self = Sink::Failed;
                    return Err(e);
                }
            };
        }
        Ok(())
    }
}

impl OutFile {
    /// Writes a line. After a failure, later lines are discarded.
    fn write(&self, name: &str, line: &str) -> std::io::Result<()> {
        let mut sink = self.0.lock();
        sink.open(name)?;
        let Sink::Open(file) = &mut *sink else { return Ok(()) };
        file.write_all(&castanet_lang::bytes::encode(line)).inspect_err(|_| *sink = Sink::Failed)
    }
    /// Writes buffered lines. A router that did not run writes nothing, because the file may belong to another router.
    /// Such a router removes the file if `made` says that initialisation created it.
    fn close(&self, name: &str, made: bool, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        let mut sink = self.0.lock();
        if matches!(*sink, Sink::Closed) && !handover::has_run(cx) {
            if made {
                handover::unmake(name);
            }
            return Ok(());
        }
        sink.open(name).map_err(ElementError::system(name))?;
        match &mut *sink {
            Sink::Open(file) => file.flush().map_err(ElementError::system(name)),
            Sink::Failed => Err(ElementError::Incomplete(format!("{name}: not all lines were written"))),
            Sink::Closed | Sink::Gone => Ok(()),
        }
    }
    /// Takes over the file of the old router (hot swap).
    fn take_over(&self, old: &OutFile) {
        if std::ptr::eq(self, old) {
            return;
        }
        let theirs = {
            let mut old = old.0.lock();
            if matches!(*old, Sink::Gone) {
                return;
            }
            std::mem::replace(&mut *old, Sink::Gone)
        };
        *self.0.lock() = theirs;
    }
}
