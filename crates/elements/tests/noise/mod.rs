// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes packets of every kind: good, truncated, damaged, random.
#![allow(clippy::unwrap_used, missing_docs)]

use castanet_classes::Registry;
use castanet_element::element;
use castanet_element::prelude::*;

/// The offset of the annotation bytes that mark a packet as noise, and hold the low byte of its source's seed. Fewer
/// classes use these bytes than other annotation bytes.
const TAG: usize = 44;
const MAGIC: u32 = 0x6e6f_6900;

pub fn add_to(r: &mut Registry) {
    r.add(element::<Noise>());
    r.add(element::<Out>());
    r.add(element::<Drain>());
}

/// Emits packets of every kind, 32 per turn.
#[derive(Class)]
#[class(name = "Noise", ports = "0/1", processing = "a/h", packets = "/any", workers = exclusive, task, build, ledger(enters))]
pub struct Noise {
    args: NoiseArgs,
    /// Packets emitted.
    #[count(unit = "packets")]
    count: Count,
    rest: u32,
    random: Random,
}

/// Arguments of Noise.
#[derive(Args)]
pub struct NoiseArgs {
    /// The seed: each seed gives different noise.
    seed: u64,
    /// The total number of packets.
    total: u32,
}

impl Build for Noise {
    fn build(args: NoiseArgs, _: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let random = Random::new(args.seed, "noise");
        Ok(Noise { args, count: Count::default(), rest: 0, random })
    }
}

fn sum(header: &[u8]) -> u16 {
    let words = header.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w.get(1).copied().unwrap_or(0)));
    let s: u32 = words.sum();
    let s = (s & 0xffff) + (s >> 16);
    !((s & 0xffff) + (s >> 16)) as u16
}

impl Noise {
    fn below(&mut self, n: u64) -> usize {
        self.random.below(n) as usize
    }
    fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.random.next_u64() as u8).collect()
    }
    /// Returns one of a few addresses, so that some packets belong together.
    fn address(&mut self) -> [u8; 4] {
        const FEW: &[[u8; 4]] = &[
            [10, 0, 0, 1],
            [10, 0, 0, 2],
            [18, 26, 4, 9],
            [192, 168, 1, 1],
            [1, 0, 0, 1],
            [1, 0, 0, 2],
            [2, 0, 0, 2],
            [255, 255, 255, 255],
            [127, 0, 0, 1],
            [224, 0, 0, 5],
            [0, 0, 0, 0],
        ];
        match self.below(12) {
            i if i < FEW.len() => FEW[i],
            _ => (self.random.next_u64() as u32).to_be_bytes(),
        }
    }
    /// Returns an IPv4 packet that is valid, except perhaps for its options and payload.
    fn ip(&mut self) -> Vec<u8> {
        let words = 5 + if self.below(3) == 0 { self.below(11) } else { 0 };
        let mut payload = match self.below(5) {
            0 => vec![0, 53, 0, 53, 0, 20, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
            1 => [
                &[0x12, 0x34, 0, 80, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x12, 0xff, 0xff, 0, 0, 0, 0][..],
                b"GET /",
            ]
            .concat(),
            2 => vec![8, 0, 0xf7, 0xff, 0, 0, 0, 0],
            3 => [&[11, 0, 0, 0, 0, 0, 0, 0][..], &[0x45; 28]].concat(),
            _ => {
                let n = self.below(40);
                self.bytes(n)
            }
        };
        if self.below(10) == 0 {
            payload.resize(1600, 7);
        }
        let mut p = vec![0; 4 * words];
        p[0] = 0x40 | words as u8;
        let length = p.len() + payload.len();
        p[2..4].copy_from_slice(&(length as u16).to_be_bytes());
        p[6..8].copy_from_slice(&[0u16, 0x4000, 0x2000, 0x2005][self.below(4)].to_be_bytes());
        p[8] = [64, 1, 0, 2, 255][self.below(5)];
        p[9] = [17, 6, 1, 1, 47][self.below(5)];
        let (a, b) = (self.address(), self.address());
        p[12..16].copy_from_slice(&a);
        p[16..20].copy_from_slice(&b);
        if words > 5 {
            let good: &[u8] =
                [&[7, 7, 4, 0, 0, 0, 0][..], &[68, 12, 5, 0], &[1, 1, 131, 7, 4], &[7, 3, 9], &[130, 0]]
                    [self.below(5)];
            let options = p.len() - 20;
            let n = good.len().min(options);
            p[20..20 + n].copy_from_slice(&good[..n]);
        }
        let s = sum(&p).to_be_bytes();
        p[10..12].copy_from_slice(&s);
        [p, payload].concat()
    }
    fn arp(&mut self) -> Vec<u8> {
        let mut p = vec![0, 1, 8, 0, 6, 4, 0, 1 + self.below(2) as u8, 2, 0, 0, 0, 0, 9];
        let (a, b) = (self.address(), self.address());
        p.extend(a);
        p.extend([0; 6]);
        p.extend(b);
        p.resize(46, 0);
        p
    }
    fn packet(&mut self) -> Packet {
        let ether =
            |to: [u8; 6], kind: [u8; 2], data: Vec<u8>| [&to[..], &[2, 0, 0, 0, 0, 9], &kind, &data].concat();
        let to = [[2, 0, 0, 0, 0, 1], [255; 6], [1, 0, 0x5e, 0, 0, 5]][self.below(3)];
        let kind = self.below(8);
        let mut data = match kind {
            0 => {
                let n = self.below(100);
                self.bytes(n)
            }
            1 => ether(to, [8, 6], self.arp()),
            2..=4 => ether(to, [8, 0], self.ip()),
            _ => self.ip(),
        };
        // Truncates some packets, and damages some.
        if self.below(4) == 0 {
            let n = self.below(data.len() as u64 + 1);
            data.truncate(n.min(70));
        }
        if self.below(4) == 0 && !data.is_empty() {
            let (at, bits) = (self.below(data.len().min(40) as u64), self.random.next_u64() as u8);
            data[at] ^= bits;
        }
        let mut p = castanet_element::kit::packet(&data);
        let start = if (1..=4).contains(&kind) { 14 } else { 0 };
        // Classes declare that they need a marked network header, but nothing enforces this. So most packets have the
        // mark, but not all.
        if self.below(6) != 0 && data.len() >= start + 20 {
            let length = usize::from(data[start] & 15) * 4;
            p.set_network_header(start, length.clamp(20, data.len() - start));
            if start == 14 && self.below(2) == 0 {
                p.strip(14);
            }
        }
        if self.below(2) == 0 {
            let to = u32::from_be_bytes(self.address());
            p.set_dst_ip(to);
        }
        p.set_paint(self.below(4) as u8);
        p.set_packet_type([PacketType::Host, PacketType::Broadcast, PacketType::Multicast][self.below(3)]);
        p.set_anno_u32(TAG, MAGIC | u32::from(self.args.seed as u8));
        p
    }
}

impl Element for Noise {
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        let left = self.args.total.saturating_sub(self.count.get() as u32);
        if left == 0 {
            return Turn::Sleep;
        }
        if self.rest == 0 {
            self.rest = left.min(32);
        }
        for _ in 0..self.rest.min(cx.limit() as u32) {
            let p = self.packet();
            cx.entered(1);
            cx.emit(0, p);
            self.count.add(1);
            self.rest -= 1;
        }
        if self.rest > 0 { Turn::More } else { Turn::Again }
    }
}

/// Prints a record of each packet: whether it is noise and from which source, a hash of its bytes, and a hash of its
/// annotations.
#[derive(Class)]
#[class(name = "Out", ports = "1/0", processing = "h/a", packets = "any/", workers = replicate, drops(Consumed), ends(Consumed))]
pub struct Out {
    args: OutArgs,
}

/// Arguments of Out.
#[derive(Args)]
pub struct OutArgs {
    /// The number at the start of each record.
    id: u32,
}

impl Element for Out {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        for p in batch.iter() {
            let tag = p.anno_u32(TAG);
            let tag = if tag & !255 == MAGIC { format!("noise{}", tag & 255) } else { "new".into() };
            let hash = |b: &[u8]| {
                b.iter().fold(0x811c_9dc5_u32, |h, &b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193))
            };
            let (data, all) = (hash(p.data()), hash(&p.annotations()));
            let headers = (p.mac_offset(), p.network_offset(), p.transport_offset());
            cx.message(&format!("out {} {tag} {} {data:08x} {all:08x} {headers:?}", self.args.id, p.len()));
        }
        cx.drop_all(batch, Reason::Consumed);
    }
}

/// Pulls 8 packets per turn, at any batch size. If there are no packets, it waits a millisecond, because
/// elements upstream may have no notifier. It gives up after 50 pulls without a packet.
#[derive(Class)]
#[class(name = "Drain", ports = "1/1", processing = "l/h", packets = "any/same", workers = exclusive, task)]
pub struct Drain {
    rest: usize,
    empty: u32,
    batch: Batch,
}

impl Element for Drain {
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        if self.rest == 0 {
            self.rest = 8;
        }
        let n = self.rest.min(cx.limit());
        self.rest -= n;
        cx.pull(0, n, &mut self.batch);
        if self.batch.is_empty() && self.rest == 0 {
            self.empty += 1;
            if self.empty < 50 {
                let at = cx.now() + 1_000_000;
                cx.set_timer(0, at);
            }
            return Turn::Sleep;
        }
        if !self.batch.is_empty() {
            self.empty = 0;
        }
        cx.forward(0, &mut self.batch);
        if self.rest > 0 { Turn::More } else { Turn::Again }
    }
    fn timer(&mut self, _: u16, cx: &mut Cx<'_>) {
        cx.schedule();
    }
}
