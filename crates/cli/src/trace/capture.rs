// SPDX-License-Identifier: MIT OR Apache-2.0
//! Captures of traces and taps: pcapng, with a comment for each packet where there is something to say.

use crate::ctl::Failure;
use crate::load::reason;
use castanet_graph::filter::is_ip_packet;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::{DataLink, PcapError};
use std::borrow::Cow;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Duration;

/// The link types of a capture. A router has frames and IP packets, so that a capture has two interfaces.
const LINKS: [(DataLink, &str); 2] = [(DataLink::ETHERNET, "frames"), (DataLink::RAW, "packets")];

/// Time stamps are in units of 10^-9 seconds.
const NANOSECONDS: u8 = 9;

/// A capture that is being written.
pub struct Capture {
    writer: PcapNgWriter<Box<dyn Write>>,
}

/// Why a capture could not be written.
pub enum Broken {
    /// The reader has closed the pipe.
    Closed,
    /// Another error, as it is shown.
    Other(String),
}

impl From<PcapError> for Broken {
    fn from(e: PcapError) -> Broken {
        match e {
            PcapError::IoError(e) => e.into(),
            e => Broken::Other(format!("the capture cannot be written: {e}")),
        }
    }
}
impl From<std::io::Error> for Broken {
    fn from(e: std::io::Error) -> Broken {
        match e.kind() {
            std::io::ErrorKind::BrokenPipe => Broken::Closed,
            _ => Broken::Other(format!("the capture cannot be written: {}", reason(&e))),
        }
    }
}
impl From<Broken> for Failure {
    fn from(e: Broken) -> Failure {
        match e {
            Broken::Closed => Failure::Said,
            Broken::Other(e) => Failure::Here(e),
        }
    }
}

/// Creates the file of a capture.
///
/// # Errors
/// When the file cannot be created.
pub fn create(file: &Path) -> Result<Box<dyn Write>, Failure> {
    let created = File::create(file).map_err(|e| format!("{}: {}", file.display(), reason(&e)))?;
    Ok(Box::new(BufWriter::new(created)))
}

impl Capture {
    /// Begins a capture. `name` says where the packets are from.
    ///
    /// # Errors
    /// When the header cannot be written.
    pub fn new(out: Box<dyn Write>, name: &str) -> Result<Capture, Broken> {
        let mut writer = PcapNgWriter::new(out)?;
        for (link, what) in LINKS {
            let mut interface = InterfaceDescriptionBlock::new(link, 0);
            interface.options = vec![
                InterfaceDescriptionOption::IfName(Cow::Owned(format!("{name} ({what})"))),
                InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            ];
            writer.write_pcapng_block(interface)?;
        }
        Ok(Capture { writer })
    }

    /// Writes a packet: the time in nanoseconds since 1970, the bytes, the length of the whole packet, the offset of its
    /// IP header if it is known, and a comment.
    ///
    /// # Errors
    /// When the packet cannot be written.
    pub fn write(
        &mut self,
        time: i64,
        data: &[u8],
        length: u64,
        network: Option<i64>,
        comment: Option<&str>,
    ) -> Result<(), Broken> {
        let is_ip = network == Some(0) || network.is_none() && is_ip_packet(data);
        let options = comment.map(|c| EnhancedPacketOption::Comment(Cow::Borrowed(c))).into_iter().collect();
        self.writer.write_pcapng_block(EnhancedPacketBlock {
            interface_id: u32::from(is_ip),
            timestamp: Duration::from_nanos(time.try_into().unwrap_or(0)),
            original_len: length.try_into().unwrap_or(u32::MAX),
            data: Cow::Borrowed(data),
            options,
        })?;
        Ok(())
    }

    /// Writes what waits in buffers, so that a program at the other end of a pipe sees it.
    ///
    /// # Errors
    /// When the packets cannot be written.
    pub fn flush(&mut self) -> Result<(), Broken> {
        Ok(self.writer.get_mut().flush()?)
    }
}
