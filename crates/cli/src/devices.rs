// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet devices`: lists the devices of the host, their drivers, and the ways in which a router can receive from them
//! and send to them.

use crate::load::{complain, write_out};
use castanet_io::LinkType;
use castanet_io::device::xdp::XdpMode;
use castanet_io::device::{Abilities, BestWay, DeviceInfo, XdpFeatures, all};
use castanet_io::privilege::may_use_xdp;
use clap::Args;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::process::ExitCode;

/// `castanet devices`.
#[derive(Args)]
pub struct Devices {
    /// Only these devices.
    #[arg(value_name = "DEVICE")]
    names: Vec<String>,
    /// Write one JSON object for each device.
    #[arg(long)]
    json: bool,
}

/// Whether METHOD XDP works on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Xdp {
    /// Whether it works.
    works: bool,
    /// In which way it works, or why it does not.
    how: String,
    /// Why it is not faster, and what else a user must know: one line for each.
    notes: Vec<String>,
}

/// Returns whether METHOD XDP works on a device. `permitted` says whether this process may load XDP programs.
fn xdp(info: &DeviceInfo, abilities: &Abilities, permitted: bool) -> Xdp {
    let no = |how: String| Xdp { works: false, how, notes: Vec::new() };
    let name = &info.name;
    if info.link != LinkType::ETHERNET {
        return no(format!("needs Ethernet, but the link type is {}", info.link));
    }
    if !permitted {
        return no("needs CAP_BPF, CAP_NET_ADMIN and CAP_NET_RAW in the initial user namespace".into());
    }
    if info.xdp.is_some() {
        return no(format!(
            "another XDP program is attached; end the program that attached it, or try: ip link set {name} xdp off (in generic mode: xdpgeneric off)"
        ));
    }
    let features = abilities.xdp.unwrap_or(XdpFeatures { basic: true, redirect: true, ..Default::default() });
    let mut notes = Vec::new();
    let driver = features.basic && features.redirect;
    let how = match (driver, features.zero_copy) {
        (true, true) => "the driver runs the program, and the device accesses packets itself (zero-copy)",
        (true, false) => "the driver runs the program, and the kernel copies frames",
        (false, _) => "the kernel runs the program after the driver (generic mode), and copies frames",
    };
    let of = abilities.driver.as_deref().map_or("its driver".into(), |d| format!("the driver {d}"));
    if abilities.xdp.is_none() {
        notes.push(
            "this kernel does not report the driver's XDP features (needs Linux 6.3), so the way is a guess"
                .to_string(),
        );
    } else if !driver {
        notes.push(format!("not faster, because {of} runs no XDP programs; METHOD PACKET may be faster"));
    } else if !features.zero_copy {
        notes.push(format!("not faster, because {of} does not support zero-copy"));
    }
    if abilities.queues == 1 {
        notes.push("one receive queue, so only one worker can receive".into());
    }
    if Abilities::may_carry_offloads(abilities.driver.as_deref()) {
        notes.push(format!(
            "the sender must complete checksums, segmentation and VLAN tags; at the other end of {name}, run: ethtool -K \
             DEVICE tx off txvlan off"
        ));
    }
    Xdp { works: true, how: how.into(), notes }
}

fn text(info: &DeviceInfo, abilities: &Abilities, xdp: &Xdp, best: &BestWay) -> String {
    let mut text = format!("{}\n", info.name);
    let mut line = |title: &str, what: &str| {
        let _ = writeln!(text, "  {title:<12} {what}");
    };
    let state = if info.up { "up" } else { "down" };
    let carrier = if info.up && !info.running { ", no carrier" } else { "" };
    let queues = match abilities.queues {
        1 => "1 receive queue".to_string(),
        n => format!("{n} receive queues"),
    };
    let driver = abilities.driver.as_deref().map_or("no driver".into(), |d| format!("driver {d}"));
    line("state", &format!("{state}{carrier}, {driver}, MTU {}, {queues}", info.mtu));
    line("METHOD PACKET", "works (the default): the kernel copies frames, and keeps offloads");
    line("METHOD XDP", &format!("{}: {}", if xdp.works { "works" } else { "does not work" }, xdp.how));
    for note in &xdp.notes {
        line("", note);
    }
    line("best", &format!("METHOD {}: {}", method(best), best.why));
    text
}

/// The word for the argument METHOD.
fn method(best: &BestWay) -> &'static str {
    if best.xdp { "XDP" } else { "PACKET" }
}

fn json(info: &DeviceInfo, abilities: &Abilities, xdp: &Xdp, best: &BestWay) -> Value {
    json!({
        "name": info.name,
        "up": info.up,
        "running": info.running,
        "driver": abilities.driver,
        "mtu": info.mtu,
        "receive_queues": abilities.queues,
        "best": { "method": method(best), "why": best.why },
        "xdp": {
            "works": xdp.works,
            "how": xdp.how,
            "notes": xdp.notes,
            "zero_copy": abilities.xdp.map(|x| x.zero_copy),
            "several_buffers": abilities.xdp.map(|x| x.several_buffers),
            "attached": info.xdp.map(|m| if m == XdpMode::Generic { "generic" } else { "driver" }),
        },
    })
}

/// Lists the devices.
pub fn main(args: &Devices) -> ExitCode {
    let devices = match all() {
        Ok(devices) => devices,
        Err(e) => {
            complain(&e.to_string());
            return ExitCode::FAILURE;
        }
    };
    let mut code = ExitCode::SUCCESS;
    for name in args.names.iter().filter(|n| devices.iter().all(|d| d.name != **n)) {
        let here: Vec<&str> = devices.iter().map(|d| d.name.as_str()).collect();
        complain(&format!("{name}: no such device\n  help: devices here: {}", here.join(", ")));
        code = ExitCode::FAILURE;
    }
    let permitted = may_use_xdp();
    let mut out = String::new();
    for info in devices.iter().filter(|d| args.names.is_empty() || args.names.contains(&d.name)) {
        let abilities = Abilities::of(info);
        let xdp = xdp(info, &abilities, permitted);
        let best = BestWay::of(info, &abilities, permitted);
        if args.json {
            let _ = writeln!(out, "{}", json(info, &abilities, &xdp, &best));
        } else {
            out.push_str(&text(info, &abilities, &xdp, &best));
        }
    }
    if let Err(e) = write_out(None, &out) {
        complain(&e);
        return ExitCode::FAILURE;
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device() -> (DeviceInfo, Abilities) {
        let info =
            DeviceInfo { running: false, ether: None, ..crate::doctor::testing::device("eth0", 2).info };
        let xdp = XdpFeatures { basic: true, redirect: true, zero_copy: true, several_buffers: true };
        (info, Abilities { driver: Some("ice".into()), queues: 4, xdp: Some(xdp) })
    }

    #[test]
    fn the_way_and_what_stands_in_its_way_are_told() {
        let (info, best) = device();
        let features = best.xdp.unwrap_or_default();
        let copying = XdpFeatures { zero_copy: false, ..features };
        let veth = Some("veth".to_string());
        let table: [(Abilities, bool, &str, &[&str]); 5] = [
            (best.clone(), true, "the driver runs the program, and the device accesses packets", &[]),
            (
                Abilities { xdp: Some(copying), ..best.clone() },
                true,
                "the driver runs",
                &["driver ice does not support"],
            ),
            (
                Abilities { xdp: Some(XdpFeatures::default()), driver: None, ..best.clone() },
                true,
                "the kernel runs the program after the driver",
                &["its driver runs no XDP programs; METHOD PACKET may be faster"],
            ),
            (
                Abilities { xdp: None, queues: 1, ..best.clone() },
                true,
                "the driver runs",
                &["Linux 6.3", "one worker"],
            ),
            (
                Abilities { driver: veth, ..best.clone() },
                true,
                "the driver runs",
                &["ethtool -K DEVICE tx off"],
            ),
        ];
        for (abilities, works, how, notes) in table {
            let x = xdp(&info, &abilities, true);
            assert!(x.works == works && x.how.contains(how), "{x:?}");
            assert_eq!(x.notes.len(), notes.len(), "{x:?}");
            assert!(x.notes.iter().zip(notes).all(|(n, w)| n.contains(w)), "{x:?}");
        }
        let taken = DeviceInfo { xdp: Some(XdpMode::Driver), ..info.clone() };
        let x = xdp(&taken, &best, true);
        assert!(!x.works && x.how.contains("ip link set eth0 xdp off") && x.notes.is_empty(), "{x:?}");
        assert!(xdp(&info, &best, false).how.contains("CAP_BPF"));
        let ip = DeviceInfo { link: LinkType::RAW_IP, ..info.clone() };
        assert!(!xdp(&ip, &best, true).works);
        let way = BestWay::of(&info, &best, true);
        let shown = text(&info, &best, &xdp(&info, &best, true), &way);
        assert!(
            shown.ends_with(
                "\n  best         METHOD XDP: the driver ice runs XDP programs, and accesses packets itself\n"
            ),
            "{shown}"
        );
        assert!(
            shown
                .starts_with("eth0\n  state        up, no carrier, driver ice, MTU 1500, 4 receive queues\n"),
            "{shown}"
        );
        assert_eq!(json(&info, &best, &xdp(&info, &best, true), &way)["xdp"]["zero_copy"], true);
    }
}
