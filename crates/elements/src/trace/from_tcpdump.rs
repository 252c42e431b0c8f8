// SPDX-License-Identifier: MIT OR Apache-2.0
//! FromTcpdump: makes packets from the lines that tcpdump printed.

use super::from_dump::args::Probability;
use super::records::{RecordArgs, Records};
use castanet_element::prelude::*;
use castanet_io::CaptureError;
use castanet_io::summary::SummaryReader;

/// Makes packets from the text that tcpdump printed: one line for each packet, or two with `-v`.
///
/// The file may be compressed by gzip, bzip2 or xz; `-` is the standard input. Addresses must be numbers, as printed by
/// `tcpdump -n`. Sequence numbers are correct only if tcpdump printed them with `-S`. A packet has an IPv4 header and
/// one of TCP, UDP or ICMP. The data after the headers is left out, and the extra length annotation gives its length.
/// With CHECKSUM, packets have this data. The network header is marked and the destination annotation set. Fields that
/// a line does not have are zero, except the time to live, which is 100.
///
/// Lines of other protocols, and lines with details of a packet, are skipped. Lines that cannot be parsed are skipped
/// too: a message gives the number of the first such line, and `bad_lines` counts them. STOP asks the driver to stop
/// after the last packet was emitted.
///
/// # Ports
/// No inputs. Output 0: packets, push or pull.
///
/// # Example
/// ```click
/// FromTcpdump(conf/traces/tcpdump.txt, STOP true) -> IPPrint(made) -> Discard;
/// ```
#[derive(Class)]
#[class(ledger(enters, holds))]
#[class(name = "FromTcpdump", ports = "0/1", processing = "a/a", packets = "/ip", workers = exclusive)]
#[class(task, capabilities(EmptyNotifier), effects(stops))]
#[class(drops(Sampled, NoBuffer), takes_state = "the open file and the place in it")]
pub struct FromTcpdump {
    #[engine(element)]
    records: Records<Args>,
}

/// Arguments of FromTcpdump.
#[derive(Args)]
pub struct Args {
    /// The file; `-` is the standard input.
    filename: Filename,
    /// Whether the driver is asked to stop at the end.
    #[arg(keyword, default = false)]
    stop: bool,
    /// When false, no packets are emitted.
    #[arg(keyword, default = true, handler = "rwc")]
    active: bool,
    /// Accepted for old configurations; unknown bytes are always zero.
    #[arg(keyword, name = "ZERO", default = true)]
    _zero: bool,
    /// Whether packets get all their bytes and correct checksums.
    #[arg(keyword, default = false)]
    checksum: bool,
    /// The probability that a packet is emitted.
    #[arg(keyword, default = Probability(1.0), show = "1", handler = "r", handler_name = "sampling_prob")]
    sample: Probability,
}

impl RecordArgs for Args {
    fn filename(&self) -> Option<&Filename> {
        Some(&self.filename)
    }
    fn is_same(&self, other: &Args) -> bool {
        self.filename == other.filename
    }
    fn open(&self) -> Result<SummaryReader, CaptureError> {
        SummaryReader::open_tcpdump(&self.filename.0)
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
    fn checksum(&self) -> bool {
        self.checksum
    }
    fn sample(&self) -> f64 {
        self.sample.0
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::Kit;

    /// Makes an element that reads this text.
    fn kit(text: &str, more: &str) -> Kit<FromTcpdump> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Kit::new(&format!("{}{more}", file.path().display())).unwrap()
    }
    fn run(kit: &mut Kit<FromTcpdump>) -> Vec<Packet> {
        let mut all = Vec::new();
        loop {
            let (turn, out) = kit.task();
            all.extend(out.into_iter().map(|o| o.1));
            if turn == Turn::Sleep {
                return all;
            }
        }
    }

    #[test]
    fn packets_of_lines() {
        let mut kit = kit(
            "2.000001 IP 1.0.0.1.80 > 2.0.0.2.1024: Flags [S.], seq 7, ack 9, win 512, options [mss 1460], length 0\n\
             2.5 ARP, Request who-has 1.0.0.1 tell 1.0.0.5, length 28\n\
             nonsense\n\
             2.6 1.0.0.1.53 > 2.0.0.2.53: udp 20\n",
            ", STOP true, CHECKSUM true",
        );
        let out = run(&mut kit);
        assert_eq!(kit.messages().len(), 1, "one line was not understood");
        assert_eq!((kit.read("bad_lines").unwrap().as_str(), kit.stops()), ("1", 1));
        let [first, second] = out.as_slice() else { panic!("{} packets", out.len()) };
        assert_eq!((first.timestamp(), first.len(), second.len()), (2_000_001_000, 44, 48));
        for p in &out {
            let header = p.ip_header().unwrap();
            let sum = castanet_wire::checksum::ipv4_header_checksum(header);
            assert_eq!(sum.to_be_bytes(), header[10..12], "the checksum is right");
            assert_eq!(p.anno_u32(castanet_spec::anno::DST_IP), u32::from_ne_bytes([2, 0, 0, 2]));
        }
        assert_eq!(first.data()[20..34], [0, 80, 4, 0, 0, 0, 0, 7, 0, 0, 0, 9, 0x60, 0x12]);
        assert_eq!(
            (kit.read("encap").unwrap().as_str(), kit.read("filepos").unwrap()),
            ("IP", kit.read("filesize").unwrap())
        );
    }

    #[test]
    fn stops_and_samples() {
        let line = "1.0 IP 1.0.0.1 > 2.0.0.2: ICMP echo request, id 1, seq 2, length 64\n";
        let mut all = kit(&line.repeat(2000), ", SAMPLE 0.25");
        let n = run(&mut all).len();
        assert!((350..650).contains(&n), "{n}");
        assert_eq!(all.dropped(Reason::Sampled), 2000 - n as u64);
        let mut some = kit(&line.repeat(9), "");
        some.write("stop", "").unwrap();
        assert_eq!(
            (run(&mut some).len(), some.stops(), some.read("active").unwrap()),
            (0, 1, "false".into())
        );
        assert!(Kit::<FromTcpdump>::new("").is_err());
        assert!(Kit::<FromTcpdump>::new("/nonexistent/x").is_err());
    }
}
