// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of a packet: the facts that the compiler knows about it at one point of a program.

/// The number of annotation bytes.
pub const ANNOTATIONS: usize = 48;

/// The number of words of four bytes in the annotations.
pub const WORDS: usize = ANNOTATIONS / 4;

/// The facts that are known about a packet when the program is compiled. Offsets count from the start of the frame.
///
/// Everything else about a packet is in the frame or on the stack of the program: the annotations that are not known, and
/// the length of a packet that was shortened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The offset of the packet's data.
    pub data: i32,
    /// The number of bytes from the start of the frame that are present and belong to the packet.
    pub present: u32,
    /// Whether the packet ends before the frame does. Its end is then on the stack.
    pub shortened: bool,
    /// Whether the packet is on its way up with a [`Ticket`](crate::order::Ticket), which is on the stack.
    pub ticket: bool,
    /// The offset of the MAC header, if it is marked.
    pub mac: Option<i32>,
    /// The offset and the length of the network header, if it is marked.
    pub network: Option<(i32, u32)>,
    /// Whether the first byte of the network header was written after the header was marked. The length in that byte may then
    /// differ from the length of the mark.
    pub rewritten: bool,
    /// The first six bytes of the frame, if they are known: the destination of an Ethernet frame.
    pub destination: Option<[u8; 6]>,
    /// The packet type annotation, as the number that the kernel uses (PACKET_HOST and others).
    pub packet_type: u8,
    /// The annotation bytes. `None` for those that are known only when the program runs.
    pub annotations: [Option<u8>; ANNOTATIONS],
}

impl State {
    /// The state of a frame as a device delivers it.
    pub fn received() -> State {
        State {
            data: 0,
            // The kernel runs programs only on frames with a whole Ethernet header, but its verifier does not know that.
            present: 0,
            shortened: false,
            ticket: false,
            mac: Some(0),
            network: None,
            rewritten: false,
            destination: None,
            packet_type: 0,
            annotations: [Some(0); ANNOTATIONS],
        }
    }

    /// The annotation words of which bytes are known only when the program runs.
    pub fn dynamic_words(&self) -> impl Iterator<Item = usize> + '_ {
        let (words, _) = self.annotations.as_chunks::<4>();
        words.iter().enumerate().filter(|(_, word)| word.contains(&None)).map(|(i, _)| i)
    }

    /// Returns what is known on two paths alike. None if the paths differ in anything but `present`, `rewritten` and
    /// `destination`.
    pub(crate) fn meet(self, other: &State) -> Option<State> {
        let present = self.present.min(other.present);
        let destination = self.destination.filter(|d| other.destination == Some(*d));
        let rewritten = self.rewritten || other.rewritten;
        let [mine, theirs] = [&self, other].map(|s| State { present, rewritten, destination, ..s.clone() });
        (mine == theirs).then_some(mine)
    }
}
