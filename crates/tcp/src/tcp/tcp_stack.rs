// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCPStack: a host's TCP.

use super::ip_notes;
use super::values::{Along, Ends, Peers, Services};
use crate::application::Applications;
use crate::engine::{Arrived, Ecn, Engine, Flow, IcmpError, Listener, Settings};
use castanet_element::prelude::*;
use castanet_wire::ipv4::{Ipv4Header, protocol};
use castanet_wire::{checksum, tcp};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The number of the timer.
const TIMER: u16 = 0;

/// The Transmission Control Protocol of a host (RFC 9293), with applications on top of it.
///
/// The stack takes TCP segments for its addresses and sends the segments of its connections. Applications, such as TCPEcho,
/// are elements that name the stack; each says on which port it listens, or which peer it connects to. LISTEN, CONNECT and
/// the handlers of the same names do the same from the side of the stack.
///
/// The protocol itself is written in Prolac, in protocols/tcp, with delayed acknowledgements, slow start, CUBIC (RFC 9438),
/// fast retransmit, selective acknowledgements (RFC 2018), window scaling, and timestamps (RFC 7323). A stack has at most
/// CONNECTIONS connections, whose data takes at most MEMORY bytes. If more than BACKLOG connections are half open, further
/// SYNs are answered by SYN cookies (RFC 4987), which need no memory. Initial sequence numbers are those of RFC 6528. When a
/// connection is opened and there is no place for it, the oldest connection in TIME-WAIT gives way. A hot swap moves
/// connections to the stack of the same name; those whose application or address is gone are reset. The examples of TCPEcho
/// and of the other applications show connections.
///
/// ICMP errors about segments of the stack are taken as RFC 9293, section 3.9.2.2 and RFC 5927 say: they must quote a segment
/// that is in flight, and they end only connections that are not established. With PATHMTU, segments are not fragmented, and
/// the errors of routers make them smaller where a path needs it (RFC 1191). Explicit congestion notification (RFC 3168) is used if the
/// peer offers it, or with ECN. A packet whose source route leads on to another host is not for the stack.
///
/// # Ports
/// Input 0 (push): IP packets with marked network header. Output 0 (push): IP packets of the stack. Output 1 (push,
/// optional): packets that are neither TCP nor an ICMP error about it, or not for an address of the stack, and fragments;
/// without output 1 they are dropped.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 20, LIMIT 5, STOP true) -> IPEncap(tcp, 10.0.0.1, 10.0.0.2) -> SetTCPChecksum
///     -> TCPStack(10.0.0.2, CONNECTIONS 1000) -> Discard;
/// ```
#[derive(Class)]
#[class(ledger(enters, leaves))]
#[class(name = "TCPStack", offload = aware, capabilities(Offloads), ports = "1/1-2", processing = "h/h", flow = "x/yx", packets = "ip/ip")]
#[class(workers = exclusive, build, lifecycle, handlers, task, takes_state = "connections and added listeners")]
#[class(drops(
    BadTransport,
    NoIpHeader,
    NotAnswered,
    BadSource,
    TableFull,
    NoMemory,
    NoBuffer,
    StaleError,
    SourceRoute
))]
pub struct TcpStack {
    args: Args,
    #[counts]
    engine: Engine,
    applications: Arc<Applications>,
    /// The applications whose connections were opened: those of the configuration are opened once.
    begun: BTreeSet<String>,
    /// The watch of the local sockets of relayed connections.
    watch: Option<(Arc<OwnedFd>, Watch)>,
    /// Segments received.
    #[count(unit = "segments")]
    received: Count,
    /// Segments sent.
    #[count(unit = "segments")]
    sent: Count,
}

/// Arguments of TCPStack.
#[derive(Args)]
pub struct Args {
    /// The addresses of the stack; connections are opened from the first one.
    addr: IpList,
    /// Ports and the applications that listen on them: `7 echo 9 discard`.
    #[arg(keyword, default = Services::default(), show = "")]
    listen: Services,
    /// Peers to connect to when the router starts, and the applications: `10.0.0.1:9 source`. `10.0.0.1:9@10.0.2.1@10.0.3.1` is a peer
    /// to which a loose source route leads over two hosts; with `!` instead of `@` it is a strict one.
    #[arg(keyword, default = Peers::default(), show = "")]
    connect: Peers,
    /// The most connections.
    #[arg(keyword, default = 131_072, min = 1, max = 4_000_000)]
    connections: u32,
    /// The most connections that peers have begun and not completed.
    #[arg(keyword, default = 1024, max = 1_000_000)]
    backlog: u32,
    /// The most bytes of data that connections hold.
    #[arg(keyword, default = 268_435_456, min = 65_536)]
    memory: u32,
    /// The largest receive buffer of a connection in bytes.
    #[arg(keyword, default = 262_144, min = 2048, max = 1_073_725_440)]
    rcvbuf: u32,
    /// The largest send buffer of a connection in bytes.
    #[arg(keyword, default = 262_144, min = 2048, max = 1_073_725_440)]
    sndbuf: u32,
    /// The time to live of IP packets.
    #[arg(keyword, default = 64, min = 1)]
    ttl: u8,
    /// The Differentiated Services codepoint of the packets (RFC 2474). The handler `dscp` changes that of a connection.
    #[arg(keyword, default = 0, max = 63)]
    dscp: u8,
    /// The silence, in seconds, after which a peer is asked whether it is alive; 0 for never.
    #[arg(keyword, default = 0, max = 1_000_000)]
    keepalive: u32,
    /// How many seconds data may wait for its acknowledgement before the connection ends; 0 for no limit. A SYN waits for three
    /// minutes at least.
    #[arg(keyword, default = 300, max = 1_000_000)]
    timeout: u32,
    /// Whether data is sent at once, though the data before it has not been acknowledged: Nagle's algorithm is off.
    #[arg(keyword, default = false)]
    nodelay: bool,
    /// Whether segments are not fragmented, but become smaller where a path needs it: path MTU discovery (RFC 1191).
    #[arg(keyword, default = false)]
    pathmtu: bool,
    /// Explicit congestion notification (RFC 3168): `accept` uses it if the peer offers it, `offer` offers it as well when a connection
    /// is opened, `off` never uses it.
    #[arg(keyword, default = Ecn::Accept, show = "accept")]
    ecn: Ecn,
    /// Whether segments are taken that came along a source route. A connection that a peer has begun along one is answered along the same
    /// way back (RFC 9293, section 3.9.2.1).
    #[arg(keyword, default = true)]
    sourceroutes: bool,
    /// Whether segments that follow each other are sent as a super-packet, which devices cut into segments.
    #[arg(keyword, default = true)]
    superpackets: bool,
}

impl Build for TcpStack {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        if args.addr.0.is_empty() {
            return Err("ADDR: at least one address is needed".into());
        }
        let settings = Settings {
            addresses: args.addr.0.clone(),
            connections: args.connections as usize,
            backlog: args.backlog as usize,
            memory: args.memory as usize,
            rcvbuf: args.rcvbuf as usize,
            sndbuf: args.sndbuf as usize,
            ttl: args.ttl,
            dscp: args.dscp,
            keep_alive: args.keepalive,
            user_timeout: args.timeout,
            no_delay: args.nodelay,
            path_mtu: args.pathmtu,
            ecn: args.ecn,
            super_packets: args.superpackets,
        };
        let (engine, applications) = (Engine::new(settings, cx.secret()), cx.share(Applications::default));
        let (received, sent) = Default::default();
        Ok(TcpStack { args, engine, applications, begun: BTreeSet::new(), watch: None, received, sent })
    }
}

impl TcpStack {
    /// The index of the application that an element is.
    fn index_of(&self, element: u32) -> Option<usize> {
        self.engine.applications().iter().position(|a| a.element == element)
    }
    fn application(&self, name: &str) -> Result<usize, HandlerError> {
        let unknown = || format!("'{name}' is not an application of this stack").into();
        self.engine.application(name).ok_or_else(unknown)
    }
    /// Opens the connections of applications that were not there before.
    fn begin(&mut self, now: i64, cx: &mut Cx<'_>) {
        for (i, a) in self.engine.applications().to_vec().into_iter().enumerate() {
            if !self.begun.insert(a.name.clone()) {
                continue;
            }
            let own = self.args.connect.0.iter().filter(|(_, element)| *element == a.element);
            for peer in a.peers.iter().chain(own.map(|(peer, _)| peer)) {
                if let Err(e) = self.engine.connect_along(peer.route, None, peer.end, i, now) {
                    let (stack, end) = (cx.declaration(), peer.end);
                    cx.message(&format!("{stack}: {} does not connect to {end}: {e}", a.name));
                }
            }
        }
    }

    /// Passes a TCP segment, or an ICMP error about one, to the engine. Emits other packets on output 1, and drops invalid ones.
    fn take(&mut self, mut p: Packet, now: i64, cx: &mut Cx<'_>) {
        let other = |p, cx: &mut Cx<'_>| cx.emit_or(1, p, Reason::NotAnswered);
        let Some(ip) = p.network().and_then(|n| Ipv4Header::checked(n, false).ok().copied()) else {
            return cx.drop(p, Reason::NoIpHeader);
        };
        let (src, dst) = (Ipv4Addr::from_bits(ip.src.get()), Ipv4Addr::from_bits(ip.dst.get()));
        let notes = match ip_notes::is_plain(&ip) {
            true => None,
            false => p.network().map(|n| ip_notes::read(&ip, n)),
        };
        // RFC 1122, section 3.2.1.8: a packet whose source route leads on is one for another host.
        let is_ours = notes.as_ref().is_none_or(|n| n.route != Arrived::InTransit);
        let for_us = is_ours && self.engine.settings().addresses.contains(&dst) && !ip.is_fragment();
        let range = ip.header_len()..usize::from(ip.total_len.get());
        let is_icmp = for_us && ip.protocol == protocol::ICMP;
        let error = if is_icmp { self.error(&p, range.clone()) } else { None };
        if !for_us || (ip.protocol != protocol::TCP && error.is_none()) {
            return other(p, cx);
        }
        // RFC 9293, section 3.9.2: no segment comes from several hosts.
        if src.is_multicast() || src.is_broadcast() || src.is_unspecified() {
            return cx.drop(p, Reason::BadSource);
        }
        if let Some(error) = error {
            return match error.and_then(|e| self.engine.icmp_error(&e, now)) {
                Ok(()) => cx.left(1),
                Err(reason) => cx.drop(p, reason),
            };
        }
        if !self.args.sourceroutes && notes.as_ref().is_some_and(|n| n.route != Arrived::Directly) {
            return cx.drop(p, Reason::SourceRoute);
        }
        // A partial checksum is that of a packet that no line has carried, so nothing can have changed it.
        let is_partial = p.offload().is_some_and(|o| o.checksum.is_some());
        let (segments, _) = p.segments();
        let segment = p.network_mut().and_then(|n| n.get_mut(range));
        let done = match segment {
            Some(s) if is_partial || tcp::checksum_ok(ip.src.get(), ip.dst.get(), s) => {
                let flow = flow(src, dst, s).ok_or(Reason::BadTransport);
                flow.and_then(|flow| match &notes {
                    None => self.engine.input(flow, s, now),
                    Some(notes) => self.engine.input_noted(flow, s, now, notes),
                })
            }
            _ => Err(Reason::BadTransport),
        };
        match done {
            Ok(()) => {
                self.received.add(segments);
                cx.left(1);
            }
            Err(reason) => cx.drop(p, reason),
        }
    }
    /// The ICMP error in a packet, if its ICMP message is one about a segment of this stack.
    fn error(&self, p: &Packet, range: Range<usize>) -> Option<Result<IcmpError, Reason>> {
        let message = p.network()?.get(range)?;
        let addresses = &self.engine.settings().addresses;
        let error = IcmpError::read(message).filter(|e| addresses.contains(e.flow.local.ip()))?;
        Some(if checksum::sum(message) == 0xffff { Ok(error) } else { Err(Reason::BadTransport) })
    }
    /// Waits for the local sockets of relayed connections.
    fn wait(&mut self, cx: &mut Cx<'_>) {
        let Some(fd) = self.engine.local_descriptor() else { return };
        // After a hot swap the descriptor may be that of another router.
        if let Some((_, old)) = self.watch.take_if(|(watched, _)| !Arc::ptr_eq(watched, &fd)) {
            cx.unwatch(old);
        }
        let (_, watch) = self.watch.get_or_insert_with(|| (fd.clone(), cx.watch(fd, Interest::Read)));
        cx.wait(*watch);
    }
    /// Sends what the engine has to send, and sets the timer.
    fn flush(&mut self, cx: &mut Cx<'_>) {
        let packets = self.engine.packets();
        cx.entered(packets.len() as u64);
        for p in packets {
            self.sent.add(p.segments().0);
            cx.emit(0, p);
        }
        let unsent = self.engine.take_unsent();
        if unsent > 0 {
            cx.entered(unsent);
            cx.count_drops(Reason::NoBuffer, unsent);
        }
        match (self.engine.next_timeout(), cx.timer(TIMER)) {
            (Some(at), set) if set.is_none_or(|set| set > at) => cx.set_timer(TIMER, at),
            _ => {}
        }
        self.wait(cx);
    }
}

/// The flow of a segment.
fn flow(src: Ipv4Addr, dst: Ipv4Addr, segment: &[u8]) -> Option<Flow> {
    let header = tcp::TcpHeader::from_prefix(segment)?;
    Some(Flow {
        local: SocketAddrV4::new(dst, header.dst_port.get()),
        remote: SocketAddrV4::new(src, header.src_port.get()),
    })
}

impl Element for TcpStack {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let now = cx.recent();
        for p in batch.drain() {
            self.take(p, now, cx);
            self.flush(cx);
        }
    }
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        let now = cx.recent();
        self.begin(now, cx);
        self.engine.pass_time(now);
        let more = self.engine.run_local(now);
        self.flush(cx);
        if more { Turn::Again } else { Turn::Sleep }
    }
    fn timer(&mut self, _: u16, cx: &mut Cx<'_>) {
        let now = cx.recent();
        self.engine.pass_time(now);
        self.flush(cx);
    }
}

impl Lifecycle for TcpStack {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        let now = cx.now();
        self.engine.pass_time(now);
        self.engine.set_applications(self.applications.all());
        let mut wanted = Vec::new();
        for (i, a) in self.engine.applications().iter().enumerate() {
            wanted.extend(a.ports.iter().map(|port| (*port, i)));
        }
        let named = self.args.listen.0.iter().map(|(port, e)| (Some(*port), *e));
        let named = named.chain(self.args.connect.0.iter().map(|(_, e)| (None, *e)));
        for (port, element) in named {
            let index = self.index_of(element);
            let unknown = || format!("{} is not an application of this stack", cx.name_of(element));
            let index = index.ok_or_else(unknown)?;
            wanted.extend(port.map(|port| (port, index)));
        }
        for (port, application) in wanted {
            let listener = Listener { application, added: false };
            self.engine.listen(port, listener).map_err(|e| format!("port {port}: {e}"))?;
        }
        cx.schedule();
        Ok(())
    }
    fn take_state(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        let now = cx.recent();
        self.engine.take_over(&mut old.engine, now);
        self.begun = std::mem::take(&mut old.begun);
        cx.schedule();
        Ok(())
    }
}

#[handlers]
impl TcpStack {
    /// One line for each connection: address and port of this end and of the peer, state, application, bytes that wait to be
    /// acknowledged, bytes that wait to be read.
    #[read(expensive)]
    fn connections(&self) -> Table {
        let mut out = String::new();
        for c in self.engine.connections() {
            let _ = writeln!(out, "{} {} {} {} {}", c.flow, c.state, c.application, c.send, c.receive);
        }
        Table(out)
    }
    /// Number of connections.
    #[read(unit = "connections")]
    fn count(&self) -> usize {
        self.engine.size()
    }
    /// Number of connections that peers have begun and not completed.
    #[read(unit = "connections")]
    fn half_open(&self) -> usize {
        self.engine.half_open()
    }
    /// Bytes of data of all connections.
    #[read(name = "data", unit = "bytes")]
    fn used_memory(&self) -> usize {
        self.engine.memory()
    }
    /// One line for each port that is listened on, with its application.
    #[read]
    fn listeners(&self) -> Table {
        let mut out = String::new();
        for (port, listener) in self.engine.listeners() {
            let name = self.engine.applications().get(listener.application).map_or("", |a| &a.name);
            let _ = writeln!(out, "{port} {name}");
        }
        Table(out)
    }
    /// Lets an application listen on a port (`PORT APPLICATION`).
    #[write]
    fn listen(&mut self, text: &str, cx: &mut Cx<'_>) -> Result<(), HandlerError> {
        let (port, name) = text.trim().split_once(' ').ok_or("expected PORT APPLICATION")?;
        let port = cx.with_args(|a| u16::parse(port, a))?;
        let application = self.application(name.trim())?;
        let listener = Listener { application, added: true };
        self.engine.listen(port, listener).map_err(|e| e.to_string().into())
    }
    /// Ends listening on a port (`PORT`). Its connections stay.
    #[write]
    fn unlisten(&mut self, port: u16) -> Result<(), HandlerError> {
        self.engine.unlisten(port).map_err(|e| e.to_string().into())
    }
    /// Opens a connection (`ADDR:PORT APPLICATION`), from the first address of the stack, or from another one
    /// (`ADDR:PORT APPLICATION ADDR`). A source route is given as in CONNECT.
    #[write]
    fn connect(&mut self, text: &str, cx: &mut Cx<'_>) -> Result<(), HandlerError> {
        let (peer, name) = text.trim().split_once(' ').ok_or("expected ADDR:PORT APPLICATION")?;
        let Along(peer) = cx.with_args(|a| Along::parse(peer, a))?;
        let (name, from) = name.trim().split_once(' ').map_or((name, None), |(n, from)| (n, Some(from)));
        let from = from.map(|from| cx.with_args(|a| Ipv4Addr::parse(from.trim(), a))).transpose()?;
        let (application, now) = (self.application(name.trim())?, cx.recent());
        let opened = self.engine.connect_along(peer.route, from, peer.end, application, now);
        opened.map_err(|e| e.to_string())?;
        cx.schedule();
        Ok(())
    }
    /// Ends the data of this end of a connection (`LOCAL REMOTE`, as `connections` shows them).
    #[write]
    fn close(&mut self, ends: Ends, cx: &mut Cx<'_>) -> Result<(), HandlerError> {
        let now = cx.recent();
        self.engine.with_stream(ends.0, now, |s| s.close()).map_err(|e| e.to_string())?;
        cx.schedule();
        Ok(())
    }
    /// Sets the Differentiated Services codepoint of the packets of a connection from now on (`LOCAL REMOTE DSCP`, the ends as
    /// `connections` shows them).
    #[write]
    fn set_dscp(&mut self, text: &str, cx: &mut Cx<'_>) -> Result<(), HandlerError> {
        let (ends, dscp) = text.trim().rsplit_once(' ').ok_or("expected LOCAL REMOTE DSCP")?;
        let (ends, dscp) =
            cx.with_args(|a| Ok::<_, ValueError>((Ends::parse(ends, a)?, u8::parse(dscp, a)?)))?;
        if dscp > 63 {
            return Err("a codepoint is at most 63".into());
        }
        let now = cx.recent();
        self.engine.with_stream(ends.0, now, |s| s.set_dscp(dscp)).map_err(|e| e.to_string().into())
    }
    /// Resets a connection (`LOCAL REMOTE`, as `connections` shows them).
    #[write]
    fn abort(&mut self, ends: Ends, cx: &mut Cx<'_>) -> Result<(), HandlerError> {
        let now = cx.recent();
        self.engine.with_stream(ends.0, now, |s| s.abort()).map_err(|e| e.to_string())?;
        cx.schedule();
        Ok(())
    }
}
