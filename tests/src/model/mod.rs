// SPDX-License-Identifier: MIT OR Apache-2.0
//! A model of the IP router in conf/ip-router-trace.click. It checks the router's output.
//!
//! [`check`] processes the traces packet by packet, and determines the fate of each from the RFCs and the
//! documentation of the element classes. It then compares the router's output with these fates, frame by frame.
//! It does not depend on timing or on the order between the two interfaces, because the router may read their
//! traces at any relative speed.
//!
//! Known limits of the traces: No packet may both cause an error and carry a source route, because the error would
//! carry the reversed route. No sender that gets an error may use one of the router's own addresses. No next hop may
//! change its Ethernet address.
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::Ipv4Addr;
use std::path::Path;

use castanet_io::{CaptureError, CaptureReader, LinkType};

mod claims;
mod fate;
mod fragments;
mod masked;
mod options;
mod router;
mod sent;

use fate::Fate;

/// The names of the router's output files, in the order eth0, eth1, host.
pub const OUTPUTS: [&str; 3] =
    ["ip-router-eth0.out.pcap", "ip-router-eth1.out.pcap", "ip-router-host.out.pcap"];

/// A captured frame, or a captured IP packet if it was delivered to the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Timestamp in nanoseconds since 1970.
    pub time_ns: i64,
    /// The bytes.
    pub data: Vec<u8>,
}

/// The complete input and output of a run.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// The frames that arrived, by interface.
    pub arrived: [Vec<Seen>; 2],
    /// The frames sent, by interface.
    pub sent: [Vec<Seen>; 2],
    /// The IP packets delivered to the host.
    pub host: Vec<Seen>,
}

impl Evidence {
    /// Reads the traces from one directory and the router's output from another.
    pub fn read(traces: &Path, out: &Path) -> Result<Evidence, EvidenceError> {
        let arrived = |n| read(&traces.join(crate::trace::file_name(n)), LinkType::ETHERNET);
        Ok(Evidence {
            arrived: [arrived(0)?, arrived(1)?],
            sent: [
                read(&out.join(OUTPUTS[0]), LinkType::ETHERNET)?,
                read(&out.join(OUTPUTS[1]), LinkType::ETHERNET)?,
            ],
            host: read(&out.join(OUTPUTS[2]), LinkType::RAW_IP)?,
        })
    }
}

/// The reason a run cannot be checked.
#[derive(Debug)]
pub enum EvidenceError {
    /// A file cannot be read.
    Capture(CaptureError),
    /// A file is truncated, has the wrong link type, or contains truncated packets.
    Unusable(String),
}

impl From<CaptureError> for EvidenceError {
    fn from(error: CaptureError) -> EvidenceError {
        EvidenceError::Capture(error)
    }
}

impl fmt::Display for EvidenceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EvidenceError::Capture(error) => error.fmt(f),
            EvidenceError::Unusable(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for EvidenceError {}

fn read(path: &Path, link: LinkType) -> Result<Vec<Seen>, EvidenceError> {
    let unusable = |what: String| EvidenceError::Unusable(format!("{}: {what}", path.display()));
    let mut reader = CaptureReader::open(path)?;
    if reader.link() != Some(link) {
        return Err(unusable(format!("packets should be {link}")));
    }
    let mut frames = Vec::new();
    while let Some(frame) = reader.next_frame()? {
        frames.push(Seen { time_ns: frame.time_ns, data: frame.data.to_vec() });
    }
    if reader.truncated() {
        return Err(unusable("the last record is cut".to_owned()));
    }
    Ok(frames)
}

/// The result of a check.
#[derive(Debug, Default)]
pub struct Report {
    /// The number of packets in the traces for each fate. The sum is the number of all packets.
    pub fates: BTreeMap<&'static str, u64>,
    /// The number of frames of each kind that the router sent or delivered to the host. The sum is the number
    /// of all frames written.
    pub sent: BTreeMap<&'static str, u64>,
    /// A description of each error.
    pub violations: Vec<String>,
}

impl Report {
    fn violation(&mut self, text: impl Into<String>) {
        self.violations.push(text.into());
    }

    fn count_sent(&mut self, what: &'static str) {
        *self.sent.entry(what).or_default() += 1;
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (title, counts) in [("packets of the traces", &self.fates), ("packets written", &self.sent)] {
            writeln!(f, "{title}: {}", counts.values().sum::<u64>())?;
            for (what, count) in counts {
                writeln!(f, "{count:8}  {what}")?;
            }
        }
        writeln!(f, "violations: {}", self.violations.len())?;
        // The first 50 errors are enough to find the cause.
        for text in self.violations.iter().take(50) {
            writeln!(f, "    {text}")?;
        }
        Ok(())
    }
}

/// Ethernet addresses by interface and IP address.
type Neighbours = HashMap<(usize, Ipv4Addr), [u8; 6]>;

/// The fates of all packets that arrived.
struct Fates {
    neighbours: Neighbours,
    /// The position of each neighbour's first ARP reply in the trace of its interface. The key is the interface and
    /// the IP address.
    replies: HashMap<(usize, Ipv4Addr), usize>,
    /// The fates of the packets of each interface, by position in the trace.
    all: [Vec<Fate>; 2],
}

fn fates(evidence: &Evidence) -> Fates {
    let (mut neighbours, mut replies) = (Neighbours::new(), HashMap::new());
    for (interface, frames) in evidence.arrived.iter().enumerate() {
        for (position, frame) in frames.iter().enumerate() {
            if let Some((address, mac)) = fate::learned(&frame.data) {
                neighbours.insert((interface, address), mac);
                replies.entry((interface, address)).or_insert(position);
            }
        }
    }
    let all = [0, 1].map(|interface| {
        let frames = evidence.arrived[interface].iter();
        frames.map(|frame| fate::of_frame(interface, &frame.data, &neighbours)).collect()
    });
    Fates { neighbours, replies, all }
}

/// Checks whether the output of a run is what the fates of its packets require.
pub fn check(evidence: &Evidence) -> Report {
    let fates = fates(evidence);
    let mut report = Report::default();
    for fate in fates.all.iter().flatten() {
        *report.fates.entry(fate.label).or_default() += 1;
    }
    sent::check(evidence, &fates, &mut report);
    report
}

#[cfg(test)]
mod tests;
