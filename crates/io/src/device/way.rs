// SPDX-License-Identifier: MIT OR Apache-2.0
//! The best way to receive from a device and send to it.

use super::xdp::{HEADROOM, LINK_HEADER};
use super::{Abilities, DeviceInfo};
use crate::LinkType;
use castanet_packet::region::BUFFER;

/// The best way to receive from a device and send to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BestWay {
    /// Whether AF_XDP sockets are faster than packet sockets and lose nothing.
    pub xdp: bool,
    /// The reason.
    pub why: String,
}

impl BestWay {
    /// The best way for a device. `permitted` says whether this process may load XDP programs.
    pub fn of(info: &DeviceInfo, abilities: &Abilities, permitted: bool) -> BestWay {
        let no = |why: String| BestWay { xdp: false, why };
        if info.link != LinkType::ETHERNET {
            return no(format!("the link type is {}", info.link));
        }
        if !permitted {
            return no("this process may not load XDP programs".into());
        }
        if info.xdp.is_some() {
            return no("another XDP program is attached".into());
        }
        let driver = abilities.driver.as_deref();
        let of = driver.map_or("its driver".into(), |d| format!("the driver {d}"));
        // An old kernel does not tell. Then nobody knows whether XDP would be faster.
        let Some(features) = abilities.xdp else {
            return no("this kernel does not report the driver's XDP features (needs Linux 6.3)".into());
        };
        if !(features.basic && features.redirect) {
            return no(format!("{of} runs no XDP programs"));
        }
        if Abilities::may_carry_offloads(driver) {
            return no("the other end may leave checksums and segmentation to it".into());
        }
        if info.mtu as usize + LINK_HEADER + HEADROOM > BUFFER && !features.several_buffers {
            return no(format!("its MTU is {}, and {of} does not support several buffers", info.mtu));
        }
        let how =
            if features.zero_copy { "and accesses packets itself" } else { "and the kernel copies frames" };
        BestWay { xdp: true, why: format!("{of} runs XDP programs, {how}") }
    }
}

#[cfg(test)]
mod tests {
    use super::super::xdp::XdpMode;
    use super::super::{Statistics, XdpFeatures};
    use super::*;

    #[test]
    fn xdp_is_chosen_only_where_it_loses_nothing() {
        let info = DeviceInfo {
            name: "eth0".into(),
            index: 2,
            up: true,
            running: true,
            mtu: 1500,
            link: LinkType::ETHERNET,
            ether: None,
            ether_broadcast: None,
            ip: None,
            broadcast: None,
            gateway: None,
            xdp: None,
            statistics: Statistics::default(),
        };
        let all = XdpFeatures { basic: true, redirect: true, zero_copy: true, several_buffers: true };
        let abilities = |driver: &str, xdp| Abilities { driver: Some(driver.into()), queues: 1, xdp };
        let good = abilities("ice", Some(all));
        let way = |info: &DeviceInfo, a: &Abilities| BestWay::of(info, a, true);
        assert_eq!(way(&info, &good).why, "the driver ice runs XDP programs, and accesses packets itself");
        assert!(way(&info, &good).xdp);
        let jumbo = DeviceInfo { mtu: 9000, ..info.clone() };
        assert!(way(&jumbo, &good).xdp);
        for (info, abilities, why) in [
            (&jumbo, &abilities("ice", Some(XdpFeatures { several_buffers: false, ..all })), "MTU is 9000"),
            (&info, &abilities("veth", Some(all)), "checksums"),
            (&info, &abilities("ice", None), "does not report"),
            (&info, &abilities("e1000", Some(XdpFeatures::default())), "the driver e1000 runs no"),
            (&DeviceInfo { xdp: Some(XdpMode::Driver), ..info.clone() }, &good, "attached"),
            (&DeviceInfo { link: LinkType::RAW_IP, ..info.clone() }, &good, "link type"),
        ] {
            let way = way(info, abilities);
            assert!(!way.xdp && way.why.contains(why), "{way:?}");
        }
        assert!(!BestWay::of(&info, &good, false).xdp);
    }
}
