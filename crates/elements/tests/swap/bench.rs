// SPDX-License-Identifier: MIT OR Apache-2.0
//! One element and its surroundings, which a test can drive, read and swap.

use super::cases::Case;
use castanet_classes::Registry;
use castanet_element::build::Wiring;
use castanet_element::kit::Site;
use castanet_element::notify::Notes;
use castanet_element::prelude::*;
use castanet_element::run_loop::{self, Core, Edge, Internals as _, Router};
use castanet_element::spec::ClassSpec;
use castanet_element::spec::codes::{Processing, ProcessingCode};
use castanet_element::{Clock, Gauge, Info, Instance, Messages, Missing, handler};
use std::collections::VecDeque;
use std::sync::Arc;

/// The time at which each play (a run of a case) starts, in nanoseconds.
pub const START: i64 = 1_000_000_000_000;
const MS: i64 = 1_000_000;

struct Silent;
impl Messages for Silent {
    fn message(&self, _: &str) {}
    fn stop(&self, _: u32) {}
    fn wake(&self, _: u32, _: u32) {}
}

/// The wiring of a single element under test. Its empty notifier has note 0, its full notifier has note 1,
/// and notes from 2 on belong to upstream elements. The fields are the gauge of the element and the gauge of
/// all elements around it.
struct Alone(Gauge, Gauge);
impl Wiring for Alone {
    fn note(&self, _: u32, c: Capability) -> Option<Note> {
        Some(Note::new(u32::from(c == Capability::FullNotifier)))
    }
    fn upstream(&self, _: u32, input: usize, _: Capability) -> (Vec<u32>, bool) {
        (vec![2 + input as u32], false)
    }
    fn downstream(&self, _: u32, _: usize, _: Capability) -> (Vec<u32>, bool) {
        (Vec::new(), true)
    }
    fn gauge(&self, element: u32) -> Option<Gauge> {
        Some(if element == 0 { self.0.clone() } else { self.1.clone() })
    }
    fn storages_upstream(&self, _: u32, _: usize) -> Vec<u32> {
        vec![2]
    }
    fn storages_downstream(&self, _: u32, _: usize) -> Vec<u32> {
        vec![1]
    }
}

/// Packets to pull, by input.
#[derive(Default)]
pub struct Supply(pub Vec<VecDeque<Packet>>);
impl Router for Supply {
    fn pull(&mut self, core: &mut Core, _: u32, input: usize, max: usize, into: &mut Batch) {
        if let Some(s) = self.0.get_mut(input) {
            let n = max.min(s.len());
            into.extend(s.drain(..n));
            if s.is_empty() {
                core.notes().clear(Note::new(2 + input as u32));
            }
        }
    }
    fn read(&mut self, _: &mut Core, _: Option<u32>, h: &str, _: &str) -> Result<String, CallError> {
        Err(CallError::Missing(Missing::Read(h.into())))
    }
    fn write(&mut self, _: &mut Core, _: Option<u32>, _: &str, _: &str) -> Result<(), CallError> {
        Ok(())
    }
    fn has(&self, _: &Core, _: Option<u32>, _: &str) -> (bool, bool) {
        (false, true)
    }
}

/// One element and its surroundings.
pub struct Bench {
    spec: &'static ClassSpec,
    instance: Instance,
    pub core: Core,
    edges: Vec<Edge>,
    pub supply: Supply,
    around: Gauge,
    ins: Vec<bool>,
    outs: Vec<bool>,
}

impl Bench {
    pub fn new(case: &Case, clock: i64) -> Bench {
        Bench::replica(case, clock, (0, 1), &mut Site::default())
    }
    /// Creates one of several replicas of an element.
    pub fn replica(case: &Case, clock: i64, replica: (usize, usize), site: &mut Site) -> Bench {
        let (class, config, inputs, outputs, ..) = *case;
        let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conf/traces/ip-router-eth0.pcap");
        let text = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conf/traces/tcpdump.txt");
        let config = match config {
            "TRACE" => trace,
            "TEXT" => text,
            other => other,
        };
        let def = castanet_element::Classes::get(&Registry::new(), class).unwrap();
        let code = ProcessingCode::parse(def.spec.processing).unwrap();
        let ins: Vec<bool> = (0..inputs).map(|i| code.input(i) != Processing::Pull).collect();
        let outs: Vec<bool> = (0..outputs).map(|i| code.output(i) != Processing::Pull).collect();
        let mut names = Names::new();
        names.set_origin(Origin::Operator);
        for (i, (name, class)) in [
            ("e", class),
            ("in", "Suppressor"),
            ("out", "Suppressor"),
            ("switch", "EtherSwitch"),
            ("x", "Null"),
        ]
        .into_iter()
        .enumerate()
        {
            names.define_element(name, i, class);
        }
        let mut cx = site.cx(def.spec, config, &names, &ins, &outs);
        (cx.written_class, cx.replica) = (class, replica);
        let mut instance = (def.build)(config, &mut cx).unwrap_or_else(|e| panic!("{class}: {e:?}"));
        let info = Info { name: "e".into(), class: class.into(), ..Info::default() };
        let notes = Notes::new(2 + inputs);
        let mut core =
            Core::new([info].into(), Arc::new(names), notes, Arc::new(Silent), Clock::simulated(clock));
        core.set_limit(32);
        let around = Gauge::default();
        let wiring = Alone(Gauge::default(), around.clone());
        run_loop::initialise(&mut core, 0, &wiring, false, |cx| instance.common().initialise(cx)).0.unwrap();
        let edges = (0..outputs).map(|_| Edge::default()).collect();
        let supply = Supply((0..inputs).map(|_| VecDeque::new()).collect());
        Bench { spec: def.spec, instance, core, edges, supply, around, ins, outs }
    }
    fn with<R>(&mut self, first: u32, f: impl FnOnce(&mut Instance, &mut Cx<'_>) -> R) -> R {
        let edges = self.edges.get_mut(first as usize..).unwrap_or_default();
        f(&mut self.instance, &mut Cx::new(edges, &mut self.core, Some(&mut self.supply), 0, first))
    }
    fn element<R>(
        &mut self,
        f: impl FnOnce(&mut dyn castanet_element::AnyElement, &mut Cx<'_>) -> R,
    ) -> Option<R> {
        self.with(0, |i, cx| match i {
            Instance::Element(e) => Some(f(e.as_mut(), cx)),
            Instance::Action(_) => None,
        })
    }
    pub fn write(&mut self, handler: &str, value: &str) {
        self.with(0, |i, cx| handler::write(i.common(), handler, value, cx)).unwrap();
    }
    /// Returns the values of all handlers that need no parameters.
    pub fn told(&mut self) -> Vec<(String, String)> {
        let mut all = Vec::new();
        let own = self.instance.common_ref().own_handlers();
        let declared = self.spec.all_handlers().map(|h| (h.name.to_string(), h.flags));
        for (name, flags) in declared.chain(own) {
            if flags.is_readable() && !flags.contains(castanet_spec::HandlerFlags::PARAMETERS) {
                let text = self.with(0, |i, cx| handler::read(i.common(), &name, "", cx));
                all.push((name, coarse(&text.unwrap_or_else(String::from))));
            }
        }
        all
    }
    /// Takes over the state of an element of the old router.
    pub fn take_element(&mut self, old: &mut Bench) {
        let Bench { instance, core, edges, supply, .. } = self;
        core.clock().jump(old.core.clock().peek());
        let before = old.instance.common();
        castanet_element::count::move_counts(before, instance.common());
        let mut cx = Cx::new(edges, core, Some(supply), 0, 0);
        instance.common().take_state_from(before, &mut cx).unwrap();
    }
    /// Takes over the packets that wait upstream of an element of the old router, as queues upstream would do.
    pub fn take_supply(&mut self, old: &mut Bench) {
        self.supply = std::mem::take(&mut old.supply);
        self.around.set(old.around.get());
        for (i, s) in self.supply.0.iter().enumerate() {
            if !s.is_empty() {
                self.core.set_note(Note::new(2 + i as u32));
            }
        }
        old.supply.0.resize_with(self.ins.len(), VecDeque::new);
    }
    /// Takes over the state of an element and the packets that wait upstream.
    pub fn take(&mut self, old: &mut Bench) {
        self.take_element(old);
        self.take_supply(old);
    }

    fn expire(&mut self, now: i64) {
        while let Some((_, (_, id))) = self.core.timers().pop_due(now) {
            self.element(|e, cx| e.timer(id, cx));
        }
    }
    /// Performs one step of the play. Returns what came out.
    pub fn step(&mut self, n: i64) -> Vec<String> {
        let mut random = Random::new(n as u64, "play");
        // Spanning trees change slowly, so their steps are longer.
        let tick = if self.spec.name == "EtherSpanTree" { 20 * MS } else { MS };
        let now = START + n * tick;
        self.core.clock().jump(now);
        self.core.advance_recent(now);
        self.expire(now);
        self.around.set((n % 40) as usize);
        let mut pulled = Vec::new();
        // Packets come in phases, with pauses in between.
        let busy = n % 100 < 70;
        if busy && !self.ins.is_empty() {
            let port = random.below(self.ins.len() as u64) as usize;
            for i in 0..random.below(3) {
                let p = packet(n * 3 + i as i64);
                if !self.ins[port] {
                    self.supply.0[port].push_back(p);
                    self.core.set_note(Note::new(2 + port as u32));
                    continue;
                }
                let mut batch: Batch = [p].into_iter().collect();
                self.with(0, |i, cx| match i {
                    Instance::Element(e) => e.push(port, &mut batch, cx),
                    Instance::Action(_) => {}
                });
                let kept = self.with(1, |i, cx| match i {
                    Instance::Action(a) => {
                        a.action_batch(&mut batch, cx);
                        true
                    }
                    Instance::Element(_) => false,
                });
                if kept {
                    self.edges[0].batch.append(&mut batch);
                }
            }
        }
        for port in (0..self.outs.len()).filter(|p| !self.outs[*p]).collect::<Vec<_>>() {
            let mut batch = Batch::new();
            let n = random.below(3) as usize;
            self.element(|e, cx| e.pull(port, n, &mut batch, cx));
            pulled.extend(batch.drain().map(|p| (port, p)));
        }
        for _ in 0..4 {
            if self.element(|e, cx| e.task(cx)) != Some(Turn::Again) {
                break;
            }
        }
        self.core.take_scheduled().for_each(drop);
        let pushed = self.edges.iter_mut().enumerate();
        let pushed: Vec<_> =
            pushed.flat_map(|(i, e)| e.batch.drain().map(move |p| (i, p)).collect::<Vec<_>>()).collect();
        let all = pulled.into_iter().chain(pushed);
        let left = self.supply.0.iter().map(VecDeque::len);
        all.map(|(i, p)| format!("{n}: {i} {:02x?} {}", p.data(), p.paint()))
            .chain([format!("{n}: left {:?}", left.collect::<Vec<_>>())])
            .collect()
    }
}

/// Returns packet `n`, which may be of many kinds: UDP, TCP, echo requests, fragments that fit together,
/// Ethernet frames, ARP replies.
fn packet(n: i64) -> Packet {
    let mut random = Random::new(n as u64 / 2, "packet");
    let host = |r: &mut Random| [1, 0, 0, 1 + r.below(5) as u8];
    let (from, to) = (host(&mut random), host(&mut random));
    let port = |r: &mut Random| 1000 + r.below(3) as u16;
    let (sport, dport) = (port(&mut random), port(&mut random));
    let builder = etherparse::PacketBuilder::ipv4(from, to, 9);
    let mut ip = Vec::new();
    let kind = random.below(6);
    match kind {
        0 | 3 => builder.udp(sport, dport).write(&mut ip, &[n as u8; 24]).unwrap(),
        1 => builder.tcp(sport, dport, 1, 2).syn().write(&mut ip, b"").unwrap(),
        2 => builder.icmpv4_echo_request(sport, 1).write(&mut ip, b"12345678").unwrap(),
        _ => builder.udp(sport, dport).write(&mut ip, &[7; 40]).unwrap(),
    }
    if kind == 3 {
        // The first fragment, then the last one, of the same datagram.
        let (id, offset) = ((n / 2) as u16, if n % 2 == 0 { 0x2000_u16 } else { 4 });
        ip[4..6].copy_from_slice(&id.to_be_bytes());
        ip[6..8].copy_from_slice(&offset.to_be_bytes());
    }
    let station = |i: u8| [2, 0, 0, 0, 0, i];
    let data = match kind {
        4 => [&station(to[3])[..], &station(from[3]), &[8, 0], &ip].concat(),
        5 => {
            let head = [&station(9)[..], &station(from[3]), &[8, 6, 0, 1, 8, 0, 6, 4, 0, 2]].concat();
            [&head[..], &station(from[3]), &from, &station(9), &[1, 0, 0, 9], &[0; 18]].concat()
        }
        _ => ip,
    };
    let mut p = castanet_element::kit::packet(&data);
    if kind < 4 {
        p.set_network_header(0, 20);
    }
    p.set_dst_ip(u32::from_be_bytes(to));
    p.set_timestamp(START + n / 3 * MS);
    p.set_anno_u32(castanet_element::spec::anno::AGGREGATE, u32::from(from[3]));
    p
}

/// Rounds the numbers in a text to three decimal places, because reading the clock takes simulated time.
fn coarse(text: &str) -> String {
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let mut out = String::new();
    for piece in text.split_inclusive(|c| !is_number(c)) {
        let number = piece.trim_end_matches(|c| !is_number(c));
        match number.parse::<f64>() {
            Ok(n) if number.matches('.').count() == 1 => {
                out.push_str(&format!("{n:.3}{}", &piece[number.len()..]));
            }
            _ => out.push_str(piece),
        }
    }
    out
}
