// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parts of a measurement that run in subprocesses, because they need their own host or CPU.

use super::beside;
use super::generator::{self, Addresses, Arrivals, Sender, Worker};
use crate::tcp::link::ends;
use castanet_io::device;
use castanet_io::namespace::{self, Origin};
use std::fmt::Display;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::str::FromStr;

fn number<T: FromStr<Err: Display>>(word: &str) -> Result<T, String> {
    word.parse().map_err(|e| format!("'{word}': {e}"))
}

/// Reads an Ethernet address.
pub(crate) fn ether(word: &str) -> Result<[u8; 6], String> {
    let bytes: Option<Vec<u8>> = word.split(':').map(|b| u8::from_str_radix(b, 16).ok()).collect();
    bytes.and_then(|b| b.try_into().ok()).ok_or_else(|| format!("'{word}' is not an Ethernet address"))
}

/// Reads an IP address.
pub(crate) fn ip(word: &str) -> Result<u32, String> {
    number::<std::net::Ipv4Addr>(word).map(std::net::Ipv4Addr::to_bits)
}

/// Reads a device with Ethernet and IP addresses.
fn path(word: &str) -> Result<(String, Addresses), String> {
    match word.split('/').collect::<Vec<_>>()[..] {
        [device, e0, e1, i0, i1] => {
            let addresses = Addresses { ether: [ether(e0)?, ether(e1)?], ip: [ip(i0)?, ip(i1)?] };
            Ok((device.to_string(), addresses))
        }
        _ => Err(format!("'{word}' is not DEVICE/FROM/TO/FROM/TO")),
    }
}

/// Performs a part:
///
/// - `hold` creates a host and keeps it until its input ends; `hold PID` creates one in the user namespace of
///   another process.
/// - `enter PID PROGRAM WORD...` executes a program on a host; `pinned PID CPU PROGRAM WORD...` does so on one
///   CPU.
/// - `steer PID DEVICES CPU` makes a CPU execute the receive path of devices. Their names are separated by commas.
/// - `napi PID DEVICES` makes devices receive frames that are redirected to them.
/// - `drop PID DEVICES` drops all frames that devices receive; `forward PID PAIRS` forwards by the hand-written program, between
///   the devices of this number of pairs; `forward-sockets PID CPU FROM TO` forwards by bare AF_XDP sockets. All do so until their
///   input ends.
/// - `redirected PID DEVICES` prints the number of frames that programs have redirected to devices.
/// - `runs PID DEVICE` counts the runs of the program of a device.
/// - `send PID CPU packet|live LENGTH cpu|pid|self N RECEIVER DEVICES DEVICE/FROM/TO/FROM/TO...` is the generator. It runs on a host and
///   CPU, and sends on one or more devices in turn, with these Ethernet and IP addresses. The words between say what it observes.
///   Without a device to send on, it only observes.
/// - `tcp-serve PID [CPU]` and `tcp-measure PID [CPU]` are the kernel's ends of `castanet bench tcp` and `castanet bench streams`.
///
/// # Errors
/// The error names the operation that failed.
pub fn run(words: &[String]) -> Result<(), String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let text = |e: namespace::NamespaceError| e.to_string();
    match words[..] {
        ["hold"] => namespace::hold(Origin::Callers).map_err(text),
        ["hold", pid] => namespace::hold(Origin::SameAs(number(pid)?)).map_err(text),
        ["enter", pid, program, ref rest @ ..] => {
            namespace::enter(number(pid)?).map_err(text)?;
            Err(exec(program, rest))
        }
        ["pinned", pid, cpu, program, ref rest @ ..] => {
            namespace::pin(number(cpu)?).map_err(text)?;
            namespace::enter(number(pid)?).map_err(text)?;
            Err(exec(program, rest))
        }
        ["steer", pid, devices, cpu] => {
            namespace::enter(number(pid)?).and_then(|()| namespace::own_sys()).map_err(text)?;
            let mask = mask(number(cpu)?);
            devices.split(',').try_for_each(|device| {
                let path = format!("/sys/class/net/{device}/queues/rx-0/rps_cpus");
                std::fs::write(&path, &mask).map_err(|e| format!("{path}: {e}"))
            })
        }
        ["napi", pid, devices] => {
            namespace::enter(number(pid)?).map_err(text)?;
            devices.split(',').try_for_each(|d| device::receive_by_napi(d).map_err(|e| e.to_string()))
        }
        ["drop", pid, devices] => {
            namespace::enter(number(pid)?).map_err(text)?;
            beside::drop_frames(&devices.split(',').collect::<Vec<_>>())
        }
        ["forward", pid, pairs] => {
            namespace::enter(number(pid)?).map_err(text)?;
            beside::forward(number(pairs)?)
        }
        ["forward-sockets", pid, cpu, from, to] => {
            namespace::pin(number(cpu)?).map_err(text)?;
            namespace::enter(number(pid)?).map_err(text)?;
            beside::forward_by_sockets(from, to)
        }
        ["redirected", pid, devices] => {
            namespace::enter(number(pid)?).map_err(text)?;
            println!("{}", devices.split(',').map(beside::redirected).sum::<u64>());
            Ok(())
        }
        ["runs", pid, device] => {
            namespace::enter(number(pid)?).map_err(text)?;
            beside::count_runs(device)
        }
        ["send", pid, cpu, how, length, kind, worker, receiver, received, ref paths @ ..] => {
            namespace::pin(number(cpu)?).map_err(text)?;
            namespace::enter(number(pid)?).map_err(text)?;
            let paths = paths.iter().map(|word| path(word)).collect::<Result<Vec<_>, String>>()?;
            let worker = match kind {
                "pid" => Worker::Process(number(worker)?),
                "self" => Worker::Process(std::process::id()),
                _ => Worker::Processor(number(worker)?),
            };
            let devices = received.split(',').map(str::to_string).collect();
            let arrivals = Arrivals { receiver: number(receiver)?, devices };
            let sender = Sender::open(how.parse()?, &paths, number(length)?)?;
            generator::serve(sender, &arrivals, worker)
        }
        [kind @ ("tcp-serve" | "tcp-measure"), pid, ref cpu @ ..] => {
            if let [cpu] = cpu {
                namespace::pin(number(cpu)?).map_err(text)?;
            }
            namespace::enter(number(pid)?).map_err(text)?;
            if kind == "tcp-serve" { ends::serve() } else { ends::measure() }
        }
        _ => Err("unknown part".into()),
    }
}

/// Replaces this process by a program. Returns only if that fails.
fn exec(program: &str, words: &[&str]) -> String {
    let error = Command::new(program).args(words).exec();
    match (program, error.kind()) {
        ("ip", ErrorKind::NotFound) => format!("ip: {error}; the program ip is part of iproute2"),
        _ => format!("{program}: {error}"),
    }
}

/// A set of one CPU in the kernel's format: groups of 32 bits in hexadecimal, the highest first.
fn mask(cpu: usize) -> String {
    let mut text = format!("{:x}", 1u32 << (cpu % 32));
    for _ in 0..cpu / 32 {
        text.push_str(",00000000");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks() {
        for (cpu, want) in
            [(0, "1"), (1, "2"), (31, "80000000"), (32, "1,00000000"), (69, "20,00000000,00000000")]
        {
            assert_eq!(mask(cpu), want);
        }
    }

    #[test]
    fn words_are_checked() {
        assert_eq!(ether("02:00:00:0a:01:ff"), Ok([2, 0, 0, 10, 1, 255]));
        for bad in ["", "2:0", "02:00:00:0a:01:ff:00", "02:00:00:0a:01:gg"] {
            assert!(ether(bad).is_err());
        }
        assert_eq!(ip("10.0.1.2"), Ok(0x0a00_0102));
        let (device, a) =
            path("to1p2/02:00:00:01:03:02/02:00:00:01:03:01/10.0.2.2/10.0.3.2").unwrap_or_default();
        assert_eq!((device.as_str(), a.ether[1][5], a.ip[1]), ("to1p2", 1, 0x0a00_0302));
        assert!(path("to1p2/02:00:00:01:03:02/10.0.2.2/10.0.3.2").is_err());
        for bad in
            [&[][..], &["hold", "x"], &["enter"], &["steer", "1", "d"], &["napi", "1"], &["send"], &["fly"]]
        {
            let words: Vec<String> = bad.iter().map(ToString::to_string).collect();
            assert!(run(&words).is_err(), "{bad:?}");
        }
    }
}
