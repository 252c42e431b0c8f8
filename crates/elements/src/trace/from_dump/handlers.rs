// SPDX-License-Identifier: MIT OR Apache-2.0
//! The handlers of FromDump.

use super::super::replay::{FileSize, Source as _};
use super::FromDump;
use castanet_element::prelude::*;
use castanet_io::CaptureReader;

/// The error that handlers return after a hot swap has given the file to another router.
const NOT_OPEN: &str = "the file is not open";

impl FromDump {
    fn reader(&self) -> Result<&CaptureReader, HandlerError> {
        self.reader.as_ref().ok_or_else(|| NOT_OPEN.into())
    }
}

#[handlers]
impl FromDump {
    /// The link type: `ETHER`, `IP`... or its number.
    #[read]
    fn encap(&self) -> Result<String, HandlerError> {
        Ok(match self.reader()?.link() {
            Some(l) => l.word().map_or_else(|| l.0.to_string(), Into::into),
            None => "-".into(),
        })
    }
    /// Size of the file; `-` if it is unknown.
    #[read(unit = "bytes")]
    fn filesize(&self) -> Result<FileSize, HandlerError> {
        Ok(FileSize(self.reader()?.filesize()))
    }
    /// Byte position of the next record.
    #[read(unit = "bytes")]
    fn filepos(&self) -> Result<u64, HandlerError> {
        Ok(self.reader()?.filepos())
    }
    #[write]
    fn set_filepos(&mut self, to: u64, cx: &mut Cx<'_>) -> Result<(), HandlerError> {
        let reader = self.reader.as_mut().ok_or(NOT_OPEN)?;
        reader.seek(to).map_err(ElementError::refused)?;
        if let Some(p) = self.ready.take() {
            cx.drop(p, Reason::Cleared);
        }
        self.replay.finished = false;
        self.wake(cx);
        Ok(())
    }
    /// Byte position of the record of the last packet.
    #[read(unit = "bytes")]
    fn packet_filepos(&self) -> Result<u64, HandlerError> {
        Ok(self.reader()?.packet_filepos())
    }
    /// Makes the element inactive and asks the driver to stop.
    #[write(button)]
    fn stop(&mut self, cx: &mut Cx<'_>) {
        self.args.active = false;
        self.replay.sleep(cx);
        cx.stop(1);
    }
    /// Moves END by a number of seconds; if END was reached, the element continues.
    #[write]
    fn extend_interval(&mut self, by: Nanos, cx: &mut Cx<'_>) {
        if self.begun {
            self.end = self.end.map(|e| e.saturating_add(by.0));
        } else {
            self.extended = self.extended.saturating_add(by.0);
        }
        if self.ready.is_some() {
            self.replay.finished = false;
        }
        self.wake(cx);
    }
    /// Sets `count` to 0.
    #[write(button)]
    fn reset_counts(&mut self) {
        self.count.reset();
    }
    /// With TIMING, emits the next packet immediately, and the following packets at their intervals after it.
    #[write(button)]
    fn reset_timing(&mut self, cx: &mut Cx<'_>) {
        self.shift = None;
        self.wake(cx);
    }
}
