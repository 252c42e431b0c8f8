// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fields of a packet with a TCP segment.

use castanet_wire::ipv4::Ipv4Header;
use castanet_wire::tcp::{self, TcpHeader, flag};

/// The kinds of options.
pub const MSS: u8 = 2;
pub const SACK: u8 = 5;
pub const TIMESTAMP: u8 = 8;

/// A segment. Its packet has an IP header of 20 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    pub header: TcpHeader,
    /// The bytes of data.
    pub data: u32,
    pub timestamp: Option<(u32, u32)>,
    pub sack: bool,
}

impl Segment {
    /// Reads a packet.
    ///
    /// # Panics
    /// If it is no TCP segment, or a checksum is wrong: no end may send such a packet.
    pub fn read(packet: &[u8]) -> Segment {
        let ip = Ipv4Header::checked(packet, true).unwrap();
        assert_eq!((ip.header_len(), usize::from(ip.total_len.get())), (Ipv4Header::LEN, packet.len()));
        let segment = &packet[Ipv4Header::LEN..];
        assert!(tcp::checksum_ok(ip.src.get(), ip.dst.get(), segment), "{packet:x?}");
        let header = *TcpHeader::from_prefix(segment).unwrap();
        let mut s = Segment {
            header,
            data: (segment.len() - header.header_len()) as u32,
            timestamp: None,
            sack: false,
        };
        for_each_option(&mut segment[..header.header_len()].to_vec(), |kind, value| match (kind, value) {
            (TIMESTAMP, [_, _, value @ ..]) if value.len() == 8 => {
                s.timestamp = Some((number(&value[..4]), number(&value[4..])));
            }
            (SACK, _) => s.sack = true,
            _ => {}
        });
        s
    }
    pub fn has(&self, flags: u8) -> bool {
        self.header.has(flags)
    }
    pub fn seq(&self) -> u32 {
        self.header.seq.get()
    }
    pub fn ack(&self) -> u32 {
        self.header.ack.get()
    }
    /// The numbers that it takes.
    pub fn length(&self) -> u32 {
        self.data + u32::from(self.has(flag::SYN)) + u32::from(self.has(flag::FIN))
    }
}

impl std::fmt::Display for Segment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (bit, name) in ["F", "S", "R", "P", ".", "U", "E", "W"].into_iter().enumerate() {
            if self.header.flags >> bit & 1 == 1 {
                f.write_str(name)?;
            }
        }
        write!(f, " {}+{} ack {} win {}", self.seq(), self.data, self.ack(), self.header.window.get())?;
        match self.timestamp {
            Some((value, echo)) => write!(f, " ts {value} {echo}{}", if self.sack { " sack" } else { "" }),
            None => f.write_str(if self.sack { " sack" } else { "" }),
        }
    }
}

pub fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |n, b| n << 8 | u32::from(*b))
}

/// Calls `f` with the kind and the bytes of each option of a header, which it may change.
pub fn for_each_option(header: &mut [u8], mut f: impl FnMut(u8, &mut [u8])) {
    let mut list = &mut header[TcpHeader::LEN..];
    while let [kind, rest @ ..] = list {
        let length = match (*kind, rest.first()) {
            (0, _) => return,
            (1, _) => 1,
            (_, length) => usize::from(*length.unwrap()),
        };
        let (option, after) = list.split_at_mut(length);
        f(option[0], option);
        list = after;
    }
}
