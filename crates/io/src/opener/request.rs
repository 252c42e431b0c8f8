// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests of the router to the process that opens devices, and the answers. Requests and answers are words
//! separated by spaces.

use crate::device::xdp::{MapKind, MapShape, Refusal};
use crate::device::{DeviceError, Setup};
use castanet_kernel::Instruction;
use rustix::io::Errno;
use std::net::Ipv4Addr;

/// A request of the router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Open a packet socket, to send or to receive.
    Packet { device: String, sends: bool },
    /// Open a queue of a TUN or TAP device. If the name is empty, the kernel chooses a name.
    Tun { device: String, tap: bool },
    /// Configure a device.
    SetUp { device: String, setup: Setup },
    /// Remove the address and the default route in `setup` from a device.
    TakeAway { device: String, setup: Setup },
    /// Hide the frames of a device from the host.
    Raise { device: String },
    /// Remove the filter that hides the frames of a device.
    Lower { number: u32 },
    /// Open an AF_XDP socket for a device.
    XdpSocket { device: String },
    /// Attach the XDP program that passes the frames of a device to AF_XDP sockets.
    XdpAttach { device: String, queues: u32 },
    /// Make the frames of a queue go to a socket; if `None`, to no socket any more.
    XdpStart { attachment: u32, queue: u32, socket: Option<u32> },
    /// End an attachment, or close a descriptor of an AF_XDP socket.
    XdpForget { number: u32 },
    /// Make a map for the programs of devices, of which `device` is one.
    XdpMap { device: String, shape: MapShape },
    /// Add instructions to a part of the next program of an attachment: to the last part, or to a new one.
    XdpCode { attachment: u32, part: u32, instructions: Vec<Instruction> },
    /// Load the parts that were added, in which maps have the numbers of [`Request::XdpMap`]; 0 is the map of the
    /// device's sockets, and the largest number that of the program's parts. The device of the attachment runs them if `runs`.
    XdpLoad { attachment: u32, runs: bool },
    /// Make the device of an attachment run the plain program again.
    XdpPlain { attachment: u32 },
    /// Keep a map of counters alive if the router dies. The first `devices` counters are of packets that could not go up.
    XdpPin { map: u32, devices: u32 },
    /// Keep no programs alive.
    XdpUnpin,
    /// Make a TAP device whose frames the host gets as if the device had received them.
    HostPort { device: String },
    /// Open a raw socket for an IP protocol.
    Raw { protocol: u8 },
    /// The first configuration is ready. Later requests are checked against the list of allowed devices.
    Seal,
}

/// The number of the error of an answer that names none.
const EINVAL: i32 = Errno::INVAL.raw_os_error();
/// The word that stands for a missing value or an empty name.
const NONE: &str = "-";

fn word<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| NONE.into(), |v| v.to_string())
}

/// Parses an optional value. The outer `None` means a syntax error.
fn maybe<T: std::str::FromStr>(word: &str) -> Option<Option<T>> {
    if word == NONE { Some(None) } else { word.parse().ok().map(Some) }
}

fn setup_text(s: &Setup) -> String {
    let ether = s.ether.map(|e| e.map(|b| format!("{b:02x}")).concat());
    let (ip, len) = (word(s.ip.map(|i| i.0)), word(s.ip.map(|i| i.1)));
    format!("{ip} {len} {} {} {} {}", word(s.gateway), word(s.mtu), word(ether), word(s.up))
}

fn setup(words: &[&str]) -> Option<Setup> {
    let [ip, len, gateway, mtu, ether, up] = *words else { return None };
    let ip: Option<Ipv4Addr> = maybe(ip)?;
    let len: Option<u8> = maybe(len)?;
    if len.is_some_and(|l| l > 32) {
        return None;
    }
    let ether = if ether == NONE {
        None
    } else {
        let number = u64::from_str_radix(ether, 16).ok().filter(|_| ether.len() == 12)?;
        number.to_be_bytes().last_chunk::<6>().copied()
    };
    Some(Setup { ip: ip.zip(len), gateway: maybe(gateway)?, mtu: maybe(mtu)?, ether, up: maybe(up)? })
}

/// Parses a device name. Returns an empty name for [`NONE`], and `None` if the name is invalid.
fn device(word: &str) -> Option<String> {
    let good = !word.is_empty() && word.len() < 16 && word.bytes().all(|b| b.is_ascii_graphic() && b != b'/');
    good.then(|| if word == NONE { String::new() } else { word.to_owned() })
}

fn flag(word: &str, yes: &str, no: &str) -> Option<bool> {
    (word == yes || word == no).then_some(word == yes)
}

/// An instruction as a number.
fn number_of(i: Instruction) -> u64 {
    u64::from(i.code) << 56
        | u64::from(i.registers) << 48
        | u64::from(i.offset.cast_unsigned()) << 32
        | u64::from(i.immediate.cast_unsigned())
}

/// Parses instructions, of 16 hexadecimal digits each.
fn instructions(hex: &str) -> Option<Vec<Instruction>> {
    let (digits, rest) = hex.as_bytes().as_chunks::<16>();
    let one = |digits: &[u8; 16]| {
        let n = u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        Some(Instruction {
            code: (n >> 56) as u8,
            registers: (n >> 48) as u8,
            offset: (n >> 32) as i16,
            immediate: n as i32,
        })
    };
    if !rest.is_empty() {
        return None;
    }
    digits.iter().map(one).collect()
}

impl Request {
    /// The request as text.
    pub fn text(&self) -> String {
        let name = |d: &String| if d.is_empty() { NONE.to_owned() } else { d.clone() };
        match self {
            Request::Packet { device, sends } => {
                format!("packet {} {}", name(device), if *sends { "send" } else { "receive" })
            }
            Request::Tun { device, tap } => {
                format!("tun {} {}", name(device), if *tap { "tap" } else { "tun" })
            }
            Request::SetUp { device, setup } => format!("setup {} {}", name(device), setup_text(setup)),
            Request::TakeAway { device, setup } => format!("takeaway {} {}", name(device), setup_text(setup)),
            Request::Raise { device } => format!("raise {}", name(device)),
            Request::Lower { number } => format!("lower {number}"),
            Request::XdpSocket { device } => format!("xdp-socket {}", name(device)),
            Request::XdpAttach { device, queues } => format!("xdp-attach {} {queues}", name(device)),
            Request::XdpStart { attachment, queue, socket } => {
                let socket = socket.map_or("-".into(), |n| n.to_string());
                format!("xdp-start {attachment} {queue} {socket}")
            }
            Request::XdpForget { number } => format!("xdp-forget {number}"),
            Request::XdpMap { device, shape: MapShape { kind, key, value, entries } } => {
                format!("xdp-map {} {} {key} {value} {entries}", name(device), kind.name())
            }
            Request::XdpCode { attachment, part, instructions } => {
                let hex: String = instructions.iter().map(|i| format!("{:016x}", number_of(*i))).collect();
                format!("xdp-code {attachment} {part} {hex}")
            }
            Request::XdpLoad { attachment, runs } => {
                format!("xdp-load {attachment} {}", if *runs { "run" } else { "check" })
            }
            Request::XdpPlain { attachment } => format!("xdp-plain {attachment}"),
            Request::XdpPin { map, devices } => format!("xdp-pin {map} {devices}"),
            Request::XdpUnpin => "xdp-unpin".into(),
            Request::HostPort { device } => format!("host-port {}", name(device)),
            Request::Raw { protocol } => format!("raw {protocol}"),
            Request::Seal => "seal".into(),
        }
    }

    /// Parses a request; `None` for a syntax error.
    pub fn parse(text: &str) -> Option<Request> {
        let words: Vec<&str> = text.split(' ').collect();
        Some(match *words.as_slice() {
            ["packet", d, way] => {
                Request::Packet { device: device(d)?, sends: flag(way, "send", "receive")? }
            }
            ["tun", d, kind] => Request::Tun { device: device(d)?, tap: flag(kind, "tap", "tun")? },
            ["setup", d, ref rest @ ..] => Request::SetUp { device: device(d)?, setup: setup(rest)? },
            ["takeaway", d, ref rest @ ..] => Request::TakeAway { device: device(d)?, setup: setup(rest)? },
            ["raise", d] => Request::Raise { device: device(d)? },
            ["lower", n] => Request::Lower { number: n.parse().ok()? },
            ["xdp-socket", d] => Request::XdpSocket { device: device(d)? },
            ["xdp-attach", d, n] => Request::XdpAttach { device: device(d)?, queues: n.parse().ok()? },
            ["xdp-start", a, q, s] => Request::XdpStart {
                attachment: a.parse().ok()?,
                queue: q.parse().ok()?,
                socket: if s == "-" { None } else { Some(s.parse().ok()?) },
            },
            ["xdp-pin", map, devices] => {
                Request::XdpPin { map: map.parse().ok()?, devices: devices.parse().ok()? }
            }
            ["xdp-unpin"] => Request::XdpUnpin,
            ["xdp-forget", n] => Request::XdpForget { number: n.parse().ok()? },
            ["xdp-map", d, kind, key, value, entries] => Request::XdpMap {
                device: device(d)?,
                shape: MapShape {
                    kind: MapKind::named(kind)?,
                    key: key.parse().ok()?,
                    value: value.parse().ok()?,
                    entries: entries.parse().ok()?,
                },
            },
            ["xdp-code", a, part, hex] => Request::XdpCode {
                attachment: a.parse().ok()?,
                part: part.parse().ok()?,
                instructions: instructions(hex)?,
            },
            ["xdp-load", a, way] => {
                Request::XdpLoad { attachment: a.parse().ok()?, runs: flag(way, "run", "check")? }
            }
            ["xdp-plain", a] => Request::XdpPlain { attachment: a.parse().ok()? },
            ["host-port", d] => Request::HostPort { device: device(d)? },
            ["raw", p] => Request::Raw { protocol: p.parse().ok()? },
            ["seal"] => Request::Seal,
            _ => return None,
        })
    }

    /// The device of the request, if it concerns one.
    pub fn device(&self) -> Option<&str> {
        match self {
            Request::Packet { device, .. }
            | Request::Tun { device, .. }
            | Request::SetUp { device, .. }
            | Request::TakeAway { device, .. }
            | Request::XdpSocket { device }
            | Request::XdpAttach { device, .. }
            | Request::XdpMap { device, .. }
            | Request::HostPort { device }
            | Request::Raise { device } => Some(device),
            Request::XdpStart { .. }
            | Request::XdpForget { .. }
            | Request::XdpPin { .. }
            | Request::XdpUnpin
            | Request::XdpCode { .. }
            | Request::XdpLoad { .. }
            | Request::XdpPlain { .. }
            | Request::Lower { .. }
            | Request::Raw { .. }
            | Request::Seal => None,
        }
    }
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Success, with a name or a number if the request returns one.
    Done(String),
    /// An error of the kernel.
    Errno(i32),
    /// The device does not exist.
    Missing,
    /// The kernel does not support a requested feature.
    Unsupported(String),
    /// A setting is invalid.
    Invalid(String),
    /// The other process refuses the request.
    Refused(String),
    /// The kernel refuses a program.
    Unverified(Refusal),
}

impl Reply {
    /// Converts a result to an answer.
    pub fn of(result: Result<String, DeviceError>) -> Reply {
        let e = match result {
            Ok(text) => return Reply::Done(text),
            Err(e) => e,
        };
        match e {
            DeviceError::Missing { .. } => Reply::Missing,
            DeviceError::NotPermitted { .. } => Reply::Errno(Errno::PERM.raw_os_error()),
            DeviceError::Busy { .. } => Reply::Errno(Errno::BUSY.raw_os_error()),
            DeviceError::Down { .. } => Reply::Errno(Errno::NETDOWN.raw_os_error()),
            DeviceError::Unsupported { what, .. } => Reply::Unsupported(what),
            DeviceError::Invalid { what, .. } => Reply::Invalid(what),
            DeviceError::Refused { why, .. } => Reply::Refused(why),
            DeviceError::Unverified { refusal, .. } => Reply::Unverified(refusal),
            DeviceError::System { errno, .. } => Reply::Errno(errno.raw_os_error()),
        }
    }

    /// The answer as text.
    pub fn text(&self) -> String {
        match self {
            Reply::Done(text) => format!("done {text}"),
            Reply::Errno(e) => format!("errno {e}"),
            Reply::Missing => "missing ".into(),
            Reply::Unsupported(what) => format!("unsupported {what}"),
            Reply::Invalid(what) => format!("invalid {what}"),
            Reply::Refused(why) => format!("refused {why}"),
            Reply::Unverified(r) => {
                format!("unverified {} {}\n{}", r.part, r.errno().raw_os_error(), r.lines().join("\n"))
            }
        }
    }

    /// Parses an answer.
    pub fn parse(text: &str) -> Reply {
        let (kind, rest) = text.split_once(' ').unwrap_or((text, ""));
        let rest = rest.to_owned();
        match kind {
            "done" => Reply::Done(rest),
            "missing" => Reply::Missing,
            "unsupported" => Reply::Unsupported(rest),
            "invalid" => Reply::Invalid(rest),
            "refused" => Reply::Refused(rest),
            "unverified" => {
                let (head, log) = rest.split_once('\n').unwrap_or((&rest, ""));
                let (part, errno) = head.split_once(' ').unwrap_or_default();
                let errno = Errno::from_raw_os_error(errno.parse().ok().filter(|e| *e > 0).unwrap_or(EINVAL));
                Reply::Unverified(Refusal::new(part.parse().unwrap_or(0), errno, log))
            }
            _ => Reply::Errno(rest.parse().ok().filter(|e| *e > 0).unwrap_or(Errno::BADMSG.raw_os_error())),
        }
    }

    /// Returns the text of a success, or converts any other answer to an error.
    pub fn result(self, name: &str, doing: &'static str) -> Result<String, DeviceError> {
        let name = name.to_owned();
        Err(match self {
            Reply::Done(text) => return Ok(text),
            Reply::Errno(e) => DeviceError::from_errno(&name, doing, Errno::from_raw_os_error(e)),
            Reply::Missing => DeviceError::missing(&name),
            Reply::Unsupported(what) => DeviceError::Unsupported { name, what },
            Reply::Invalid(what) => DeviceError::Invalid { name, what },
            Reply::Refused(why) => DeviceError::Refused { name, doing, why },
            Reply::Unverified(refusal) => DeviceError::Unverified { name, refusal },
        })
    }
}
