// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps of traced packets, from the lines of the global handler `trace`.

use std::collections::BTreeMap;

/// The bytes and annotations of a packet at one place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bytes {
    /// The offset of the data in its buffer.
    pub start: u64,
    /// The offset of the IP header in the data, if it has been marked.
    pub network: Option<i64>,
    /// The length of the packet. `data` may be shorter.
    pub length: u64,
    /// The annotation bytes, without zeros at the end.
    pub annotations: Vec<u8>,
    pub data: Vec<u8>,
}

/// The action of an element on a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The packet entered the router through the element, which emitted it by this output.
    Entered(u32),
    /// The element made the packet from another one, and emitted it by this output.
    Made(u32),
    /// The element passed the packet on by this output.
    Out(u32),
    Held,
    Left,
    Ended(String),
    Dropped(String),
    Gone,
    Cut,
}

/// One step of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub packet: u64,
    /// 0 for the packet that was chosen, above 0 for packets that elements made from it.
    pub part: u64,
    /// Nanoseconds since 1970.
    pub time: i64,
    pub worker: u32,
    pub element: String,
    /// The input where the packet came in, if it was pushed.
    pub input: Option<u32>,
    pub event: Event,
    pub bytes: Option<Bytes>,
}

/// Reads hexadecimal digits; `-` stands for no bytes.
pub fn hex(text: &str) -> Option<Vec<u8>> {
    if text == "-" {
        return Some(Vec::new());
    }
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|p| u8::from_str_radix(std::str::from_utf8(p).ok()?, 16).ok()).collect()
}

impl Step {
    /// Reads a line. None if it has another form.
    pub fn parse(line: &str) -> Option<Step> {
        let words: Vec<&str> = line.split('\t').collect();
        let [packet, part, time, worker, element, input, event, detail, bytes @ ..] = &words[..] else {
            return None;
        };
        let port = || detail.parse::<u32>().ok();
        let reason = || detail.to_string();
        let event = match *event {
            "entered" => Event::Entered(port()?),
            "made" => Event::Made(port()?),
            "out" => Event::Out(port()?),
            "held" => Event::Held,
            "left" => Event::Left,
            "ended" => Event::Ended(reason()),
            "dropped" => Event::Dropped(reason()),
            "gone" => Event::Gone,
            "cut" => Event::Cut,
            _ => return None,
        };
        let bytes = match bytes {
            [start, network, length, annotations, data] => Some(Bytes {
                start: start.parse().ok()?,
                network: network.parse().ok(),
                length: length.parse().ok()?,
                annotations: hex(annotations)?,
                data: hex(data)?,
            }),
            _ => None,
        };
        Some(Step {
            packet: packet.parse().ok()?,
            part: part.parse().ok()?,
            time: time.parse().ok()?,
            worker: worker.parse().ok()?,
            element: element.to_string(),
            input: input.parse().ok(),
            event,
            bytes,
        })
    }
    /// Whether the packet has ended with this step, as far as the trace knows.
    fn is_end(&self) -> bool {
        !matches!(self.event, Event::Entered(_) | Event::Made(_) | Event::Out(_) | Event::Held)
    }
}

/// Packets whose steps are not all known yet.
#[derive(Default)]
pub struct Packets(BTreeMap<u64, Vec<Step>>);

impl Packets {
    /// Adds a step. If it was the last step of a packet and of all parts of it, returns the steps of the packet.
    pub fn add(&mut self, step: Step) -> Option<Vec<Step>> {
        let (packet, is_end) = (step.packet, step.is_end());
        let steps = self.0.entry(packet).or_default();
        steps.push(step);
        let begun = 1 + steps.iter().filter(|s| matches!(s.event, Event::Made(_))).count();
        let ended = steps.iter().filter(|s| s.is_end()).count();
        if is_end && ended >= begun { self.0.remove(&packet) } else { None }
    }
    /// The packets that are still in the router.
    pub fn rest(self) -> impl Iterator<Item = Vec<Step>> {
        self.0.into_values()
    }
}
