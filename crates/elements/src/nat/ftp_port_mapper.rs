// SPDX-License-Identifier: MIT OR Apache-2.0
//! FTPPortMapper: lets active FTP work through rewriters.

use super::flow::class;
use super::ftp_command::{self, Command, Found};
use super::handle::{self, Link};
use super::header::{Family, Ports};
use super::registry::Registry;
use super::store::{Made, New};
use super::tuple::Tuple;
use castanet_element::prelude::*;
use castanet_wire::ipv4::{Ipv4Header, protocol};
use castanet_wire::{TcpHeader, checksum};
use std::sync::Arc;

/// Lets FTP clients behind a rewriter open data ports (RFC 959 section 4.1.2, RFC 2428 section 2).
///
/// FTPPortMapper must stand before CONTROL_REWRITER, so that it sees packets before they are rewritten. A `PORT` or
/// `EPRT` command contains an address and a port that the server is to connect to. FTPPortMapper makes a flow for that
/// connection in DATA_REWRITER, by the specification of input DATA_REWRITER_INPUT. The flow is the one that a packet
/// from that address and port to the server's data port (the control port less 1) would make. It puts the new address
/// and port of the flow into the command. If the command's length changes, CONTROL_REWRITER shifts the later sequence
/// numbers of the connection (RFC 3022 section 4.1). A packet is dropped if its command names an address other than the
/// sender's, or a port below 1024, because such a command could make the server attack another host (RFC 2577 section
/// 3). Packets with several commands are dropped too. Packets of connections unknown to CONTROL_REWRITER, and commands
/// that are split over several packets, pass unchanged. A client in passive mode (`PASV`, `EPSV`) opens its data
/// connections itself, and needs no help.
///
/// # Ports
/// Input 0, output 0: TCP packets from FTP clients to servers.
///
/// # Example
/// ```click
/// rw :: TCPRewriter(pattern 9.9.9.9 1024-65535# - - 0 1);
/// MemSource(\<45000028 00010000 40060000 01000001 02000002  10000015 00000001 00000000 50020000 00000000>
/// \<4500003D 00010000 40060000 01000001 02000002  10000015 00000002 00000002 50100000 00000000
/// 504F525420 312C302C302C312C31392C3133370D0A>, LIMIT 2)
/// -> CheckIPHeader(CHECKSUM false) -> FTPPortMapper(rw, rw, 0) -> rw;
/// rw [0] -> IPPrint(out) -> Discard;
/// rw [1] -> Discard;
/// DriverManager(wait 1, print rw.table, stop);
/// ```
#[derive(Class)]
#[class(name = "FTPPortMapper", ports = "1/1", processing = "a/a", packets = "ip optional/same", workers = share, build, lifecycle)]
#[class(reconfigure = keeps, offload = none, drops(RefusedCommand, NoMapping, PatternFull, TableFull, TooLong))]
pub struct FtpPortMapper {
    args: Args,
    registry: Arc<Registry>,
    links: Option<(Link, Link)>,
}

/// Arguments of FTPPortMapper.
#[derive(Args)]
pub struct Args {
    /// The rewriter that control connections go through: a TCPRewriter or IPRewriter.
    control_rewriter: TcpRef,
    /// The rewriter that data connections go through: a TCPRewriter or IPRewriter.
    data_rewriter: TcpRef,
    /// The input of DATA_REWRITER whose specification makes flows for data connections.
    data_rewriter_input: u16,
}

/// The element number of a TCPRewriter or IPRewriter.
#[derive(Clone, Copy, Debug)]
pub struct TcpRef(u32);

impl ArgValue for TcpRef {
    const TYPE: &'static str = "TCPRewriter";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<TcpRef, ValueError> {
        Ok(TcpRef(handle::rewriter(text, &["TCPRewriter", "IPRewriter"], cx)?))
    }
}

impl Build for FtpPortMapper {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(FtpPortMapper { args, registry: Registry::of(cx), links: None })
    }
}

impl Lifecycle for FtpPortMapper {
    fn initialise(&mut self, _: &mut InitCx<'_>) -> Result<(), ElementError> {
        let find = |TcpRef(element): TcpRef, what: &str| {
            let handle = self.registry.rewriter(element).ok_or(format!("{what}: names no rewriter"))?;
            handle.link(&self.registry).cloned()
        };
        let control = find(self.args.control_rewriter, "CONTROL_REWRITER")?;
        let data = find(self.args.data_rewriter, "DATA_REWRITER")?;
        let input = self.args.data_rewriter_input;
        if data.store().input(data.space, usize::from(input)).is_none() {
            return Err(format!("DATA_REWRITER_INPUT: DATA_REWRITER has no input {input}").into());
        }
        self.links = Some((control, data));
        Ok(())
    }
}

impl Action for FtpPortMapper {
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let Some(s) = p.network().and_then(segment) else { return Verdict::Next };
        let Some((control, data)) = &self.links else { return Verdict::Next };
        let now = cx.recent();
        // Only one lock is held at a time, because both rewriters may share one store.
        let Some(value) = control.store().look_up(control.space, protocol::TCP, s.connection, now) else {
            return Verdict::Next;
        };
        let (client, server) = (s.connection.src(), s.connection.dst());
        let Found::One(c) = s.found else { return Verdict::Drop(Reason::RefusedCommand) };
        let Some(port) = c.names.filter(|n| n.0 == client && n.1 >= 1024).map(|n| n.1) else {
            return Verdict::Drop(Reason::RefusedCommand);
        };
        let from = Tuple::new(client, port, server, s.connection.dport().wrapping_sub(1));
        let to = {
            let mut store = data.store();
            let known = store.look_up(data.space, protocol::TCP, from, now);
            let input = self.args.data_rewriter_input;
            let (space, class) = (data.space, class::TCP_NEW);
            let new = New { space, input, proto: protocol::TCP, from, class, anno: 0, now };
            match known.map_or_else(|| store.make(&new), |v| Made::Flow(v >> 1)) {
                Made::Flow(place) => {
                    let reply = known.is_some_and(|v| v & 1 == 1);
                    store.flow(place).map_or(from, |f| f.rewritten(reply))
                }
                Made::Pass(_) => from,
                Made::Drop(reason) => return Verdict::Drop(reason),
            }
        };
        let text = c.form.text(to.src(), to.sport());
        let by = text.len() as i64 - c.length as i64;
        if !replace(p, &s, &c, text.as_bytes()) {
            return Verdict::Drop(Reason::TooLong);
        }
        if by != 0
            && let Some(shifts) = control.store().shift(value >> 1, value & 1 == 1)
        {
            shifts.add(s.seq.wrapping_add((c.start + c.length) as u32), by as u32);
        }
        Verdict::Next
    }
}

/// A segment with commands.
struct Segment {
    /// Its addresses and ports.
    connection: Tuple,
    /// The commands in its text.
    found: Found,
    /// Its sequence number.
    seq: u32,
    /// The offset of the TCP header from the network header.
    start: usize,
    /// The offset of the text from the network header.
    text: usize,
    /// The total length of the IP packet in bytes.
    total: usize,
}

/// Returns the segment of the packet whose network header is at the start of `net`; `None` if it contains no complete
/// command.
fn segment(net: &[u8]) -> Option<Segment> {
    let key = Ports::<true, false, false>::key(net)?;
    let ip = Ipv4Header::from_prefix(net)?;
    let total = usize::from(ip.total_len.get());
    if ip.is_fragment() || total > net.len() {
        return None;
    }
    let start = usize::from(key.header);
    let tcp = TcpHeader::from_prefix(net.get(start..)?)?;
    let text = start + tcp.header_len();
    let found = ftp_command::find(net.get(text..total).filter(|_| tcp.header_len() >= TcpHeader::LEN)?);
    (found != Found::Nothing).then(|| Segment {
        connection: key.tuple,
        found,
        seq: tcp.seq.get(),
        start,
        text,
        total,
    })
}

/// Replaces the argument of a command by `text`, and updates lengths and checksums. Returns false if the
/// packet would become too long.
fn replace(p: &mut Packet, s: &Segment, c: &Command, text: &[u8]) -> bool {
    let Some(total) = u16::try_from(s.total - c.length + text.len()).ok() else { return false };
    let Some(start) = p.network_offset().and_then(|o| usize::try_from(o).ok()) else { return false };
    let old = p.network().and_then(|n| n.get(s.text..s.total)).map(checksum::sum);
    // Cuts off bytes behind the IP packet, such as Ethernet padding.
    p.truncate(start + s.total);
    if text.len() > c.length && !p.put(text.len() - c.length) {
        return false;
    }
    let Some(net) = p.network_mut() else { return false };
    let Some(place) = net.get_mut(s.text + c.start..) else { return false };
    let rest = s.total.saturating_sub(s.text + c.start + c.length);
    place.copy_within(c.length..c.length + rest, text.len());
    if let Some(t) = place.get_mut(..text.len()) {
        t.copy_from_slice(text);
    }
    p.truncate(start + usize::from(total));
    let Some(net) = p.network_mut() else { return false };
    let new = net.get(s.text..).map(checksum::sum);
    let was = s.total as u16;
    if let Some(ip) = Ipv4Header::from_prefix_mut(net) {
        checksum::update_field16(&mut ip.checksum, was, total);
        ip.total_len.set(total);
    }
    // The text starts at an even offset of the segment, so the checksum can be updated by the sums of the old
    // and the new text. The second update is for the length in the pseudo-header.
    if let (Some(h), Some(old), Some(new)) =
        (net.get_mut(s.start..).and_then(TcpHeader::from_prefix_mut), old, new)
    {
        checksum::update_field16(&mut h.checksum, old, new);
        checksum::update_field16(&mut h.checksum, was, total);
    }
    true
}
