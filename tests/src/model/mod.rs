// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the IP router of conf/ip-router-trace.click must do with its traces, and whether it did.
//!
//! [`check`] goes through the traces packet by packet and decides from the RFCs and the documentation of the
//! element classes what has to become of each; then it goes through what the router wrote and demands that the two
//! agree, frame by frame. It depends on no timing and on no order between the two interfaces, since the router may
//! read their traces at any relative speed.
//!
//! Known limits: no packet of the traces may get an error *and* carry a source route (the error would carry it
//! reversed), no sender that gets an error may claim one of the router's own addresses, and no next hop may change
//! its Ethernet address.
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

/// File names of what the router wrote, in the order eth0, eth1, host.
pub const OUTPUTS: [&str; 3] =
    ["ip-router-eth0.out.pcap", "ip-router-eth1.out.pcap", "ip-router-host.out.pcap"];

/// A captured frame, or for the host a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Time stamp in nanoseconds since 1970.
    pub time_ns: i64,
    /// The bytes.
    pub data: Vec<u8>,
}

/// All that is known of a run of the router.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// What arrived, by interface.
    pub arrived: [Vec<Seen>; 2],
    /// What was sent, by interface.
    pub sent: [Vec<Seen>; 2],
    /// IP packets that were given to the host.
    pub host: Vec<Seen>,
}

impl Evidence {
    /// Reads the traces of one folder and the router's output in another.
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

/// Why a run cannot even be looked at.
#[derive(Debug)]
pub enum EvidenceError {
    /// A file cannot be read.
    Capture(CaptureError),
    /// A file is cut, has the wrong link type, or holds cut packets.
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

/// What the check came to.
#[derive(Debug, Default)]
pub struct Report {
    /// How many packets of the traces met with each fate. They sum up to all packets.
    pub fates: BTreeMap<&'static str, u64>,
    /// How many frames of each kind the router sent, or gave to the host. They sum up to all that it wrote.
    pub sent: BTreeMap<&'static str, u64>,
    /// Everything that is not as it must be, in words.
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
        // The first ones tell; thousands would not.
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
    /// Position of the first ARP reply of each in its trace.
    replies: HashMap<(usize, Ipv4Addr), usize>,
    /// By interface and position in its trace.
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

/// Checks a run.
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
