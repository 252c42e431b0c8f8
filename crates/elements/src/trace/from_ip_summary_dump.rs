// SPDX-License-Identifier: MIT OR Apache-2.0
//! FromIPSummaryDump: makes packets from a summary dump.

#[cfg(test)]
mod tests;

use super::from_dump::args::Probability;
use super::records::{RecordArgs, Records};
use super::summary_args::{FieldList, FlowId, Protocol};
use castanet_element::prelude::*;
use castanet_io::CaptureError;
use castanet_io::summary::SummaryReader;

/// Makes packets from a summary dump.
///
/// Each line or binary record makes one packet, with the fields that the header of the dump lists. The file may be
/// compressed by gzip, bzip2 or xz; `-` is the standard input. DATA is a dump within the
/// configuration. Times may begin or end with a point or have an exponent. Numbers may be hexadecimal, and
/// ICMP types and codes may be names.
///
/// A packet has an IPv4 header and one of TCP, UDP or ICMP, and an Ethernet header if a field requires one. The data
/// after the headers is left out, and the extra length annotation gives its length. With CHECKSUM, packets have this
/// data. The network header is marked and the destination annotation set. Values that a record does not give come from
/// FLOWID, PROTO or the lines `!flowid`, `!proto` and `!aggregate`. All other missing values are zero, except the time
/// to live, which is 100.
///
/// A field that cannot be read counts as missing. A line without a readable field is left out. A message gives the
/// number of the first such line. The handler `bad_lines` counts all such lines, and `bad_fields` counts the fields
/// that cannot be read.
///
/// With TIMING, packets are emitted at the intervals of their timestamps. STOP asks the driver to stop after the last
/// packet was emitted.
///
/// # Ports
/// No inputs. Output 0: packets, push or pull.
///
/// # Example
/// ```click
/// FromIPSummaryDump(DATA "!data ip_src ip_dst ip_proto
/// 1.0.0.1 2.0.0.2 U
/// 1.0.0.3 2.0.0.2 T
/// ", STOP true) -> IPPrint(made) -> Discard;
/// ```
#[derive(Class)]
#[class(ledger(enters, holds))]
#[class(name = "FromIPSummaryDump", ports = "0/1", processing = "a/a", packets = "/any", workers = exclusive)]
#[class(task, capabilities(EmptyNotifier), effects(stops))]
#[class(drops(Sampled, NoBuffer), takes_state = "the open file and the place in it")]
pub struct FromIpSummaryDump {
    #[engine(element)]
    records: Records<Args>,
}

/// Arguments of FromIPSummaryDump.
#[derive(Args)]
#[args(exactly_one(filename, data))]
pub struct Args {
    /// The file; `-` is the standard input.
    filename: Option<Filename>,
    /// Whether the driver is asked to stop at the end.
    #[arg(keyword, default = false)]
    stop: bool,
    /// When false, no packets are emitted.
    #[arg(keyword, default = true, handler = "rwc")]
    active: bool,
    /// Accepted for old configurations; unknown bytes are always zero.
    #[arg(keyword, name = "ZERO", default = true)]
    _zero: bool,
    /// Whether packets are emitted at the intervals of their timestamps.
    #[arg(keyword, default = false)]
    timing: bool,
    /// Whether packets get all their bytes and correct checksums.
    #[arg(keyword, default = false)]
    checksum: bool,
    /// The probability that a packet is emitted.
    #[arg(keyword, default = Probability(1.0), show = "1", handler = "r", handler_name = "sampling_prob")]
    sample: Probability,
    /// The protocol of packets for which the dump gives none.
    #[arg(keyword, default = Protocol(6), show = "TCP")]
    proto: Protocol,
    /// Whether a record that stands for N packets yields N packets.
    #[arg(keyword, default = false)]
    multipacket: bool,
    /// The fields of a line, until the dump itself names them.
    #[arg(keyword, alias = "CONTENTS", alias = "DEFAULT_CONTENTS", alias = "DEFAULT_FIELDS")]
    fields: Option<FieldList>,
    /// Addresses and ports of packets for which the dump gives none.
    #[arg(keyword, alias = "DEFAULT_FLOWID")]
    flowid: Option<FlowId>,
    /// Whether a file that does not exist counts as empty.
    #[arg(keyword, default = false)]
    allow_nonexistent: bool,
    /// The dump itself, in place of a file.
    #[arg(keyword)]
    data: Option<Data>,
}

impl RecordArgs for Args {
    fn filename(&self) -> Option<&Filename> {
        self.filename.as_ref()
    }
    fn is_same(&self, other: &Args) -> bool {
        self.filename == other.filename && self.data == other.data
    }
    fn open(&self) -> Result<SummaryReader, CaptureError> {
        let mut reader = match (&self.filename, &self.data) {
            (Some(name), _) => match SummaryReader::open(&name.0) {
                Err(CaptureError::Io { source, .. })
                    if self.allow_nonexistent && source.kind() == std::io::ErrorKind::NotFound =>
                {
                    SummaryReader::from_bytes(&name.0, "")?
                }
                other => other?,
            },
            (None, data) => SummaryReader::from_bytes("<data>", data.clone().unwrap_or_default().0)?,
        };
        reader.defaults_mut().protocol = self.proto.0;
        if let Some(flow) = &self.flowid {
            flow.0.put(reader.defaults_mut());
        }
        if let Some(fields) = &self.fields {
            reader.set_fields(fields.0.clone());
        }
        Ok(reader)
    }
    fn is_active(&self) -> bool {
        self.active
    }
    fn deactivate(&mut self) {
        self.active = false;
    }
    fn stops(&self) -> bool {
        self.stop
    }
    fn timing(&self) -> bool {
        self.timing
    }
    fn checksum(&self) -> bool {
        self.checksum
    }
    fn sample(&self) -> f64 {
        self.sample.0
    }
    fn multipacket(&self) -> bool {
        self.multipacket
    }
}
