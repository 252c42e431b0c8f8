// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets up filters at the ingress of devices, by rtnetlink. The filters are cls_bpf programs that drop every
//! frame; their instructions also identify the process that owns the filter.

use super::netlink::{self as nl, Message, Netlink, attributes, number32};
use super::owner::Owner;
use rustix::io::Errno;

const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_BPF_OPS_LEN: u16 = 4;
const TCA_BPF_OPS: u16 = 5;
const TCA_BPF_FLAGS: u16 = 8;
/// Direct action: the return value of the program decides what happens to the frame.
const DIRECT: u32 = 1;
const CLSACT: u32 = 0xffff_fff1;
const CLSACT_HANDLE: u32 = 0xffff_0000;
const INGRESS: u32 = 0xffff_fff2;
const EGRESS: u32 = 0xffff_fff3;
/// Highest priority: the frame must be dropped before other filters process it.
const PRIORITY: u32 = 1;
const ETH_P_ALL: u16 = 3;
/// Length in bytes of the fixed part of messages about queueing disciplines and filters (struct tcmsg).
const HEAD: usize = 20;

/// Instruction codes of `ld #k` and `ret #k`. In the program of a shield, the loads have no effect on the return value.
/// The constants `k` of the loads describe the shield.
const LOAD: u16 = 0;
const RETURN: u16 = 6;
/// TC_ACT_SHOT: drop the frame.
const DROP: u32 = 2;
/// The first constant in the program of a shield: "CAST" in ASCII.
const MARK: u32 = 0x4341_5354;

fn message(kind: u16, flags: u16, index: u32, handle: u32, parent: u32, info: u32) -> Message {
    let mut head = [0; HEAD];
    for (at, value) in [(4, index), (8, handle), (12, parent), (16, info)] {
        if let Some(word) = head.get_mut(at..at + 4) {
            word.copy_from_slice(&value.to_ne_bytes());
        }
    }
    Message::new(kind, flags, &head)
}

fn info() -> u32 {
    PRIORITY << 16 | u32::from(ETH_P_ALL.to_be())
}

/// The filter of a shield.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Filter {
    pub handle: u32,
    pub owner: Owner,
    /// Whether the clsact qdisc was created for this filter.
    pub made: bool,
}

/// Returns the instructions of a filter: first loads of constants that describe the filter and its owner, then the
/// instruction that drops the packet.
fn program(owner: &Owner, made: bool) -> Vec<u8> {
    let constants = [MARK, owner.pid, owner.start, owner.namespace, u32::from(made)];
    let all = constants.map(|k| (LOAD, k)).into_iter().chain([(RETURN, DROP)]);
    all.flat_map(|(code, k)| [&code.to_ne_bytes()[..], &[0, 0], &k.to_ne_bytes()].concat()).collect()
}

/// Reads the instructions of a shield's filter. Returns the owner of the filter, and whether the clsact qdisc was
/// created for the filter. Returns `None` for other programs.
fn owner(operations: &[u8]) -> Option<(Owner, bool)> {
    let word = |i: usize| number32(operations, i * 8 + 4);
    let made = word(4)? == 1;
    let owner = Owner { pid: word(1)?, start: word(2)?, namespace: word(3)? };
    (operations == program(&owner, made)).then_some((owner, made))
}

/// Creates the clsact qdisc, which holds filters. Returns false if it already existed.
pub(super) fn make_place(n: &Netlink, index: u32) -> Result<bool, Errno> {
    let place = message(nl::RTM_NEWQDISC, nl::CREATE | nl::EXCL, index, CLSACT_HANDLE, CLSACT, 0);
    match n.request(place.attribute(TCA_KIND, b"clsact\0")) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        Err(e) => Err(e),
    }
}

/// Removes the clsact qdisc if it has no filters. Returns whether the qdisc was removed.
pub(super) fn remove_place(n: &Netlink, index: u32) -> Result<bool, Errno> {
    let mut others = false;
    for parent in [INGRESS, EGRESS] {
        let list = message(nl::RTM_GETTFILTER, 0, index, 0, parent, 0);
        // An error means that the qdisc does not exist, so it has no filters.
        let _ = n.dump(list, |kind, _| others |= kind == nl::RTM_NEWTFILTER);
    }
    if others {
        return Ok(false);
    }
    match n.request(message(nl::RTM_DELQDISC, 0, index, CLSACT_HANDLE, CLSACT, 0)) {
        Ok(()) | Err(Errno::NOENT | Errno::INVAL | Errno::NODEV) => Ok(true),
        Err(e) => Err(e),
    }
}

/// Adds a filter that drops every frame. Returns its handle, or `None` if all handles of the owner are in use.
pub(super) fn add(n: &Netlink, index: u32, owner: &Owner, made: bool) -> Result<Option<u32>, Errno> {
    let operations = program(owner, made);
    let count = (operations.len() / 8) as u16;
    // Use the first free handle, because other elements and programs may have filters on the device too.
    let first = owner.pid.wrapping_shl(8) | 1;
    for handle in first..=first | 0xff {
        let m = message(nl::RTM_NEWTFILTER, nl::CREATE | nl::EXCL, index, handle, INGRESS, info())
            .attribute(TCA_KIND, b"bpf\0")
            .nested(TCA_OPTIONS, |m| {
                m.attribute(TCA_BPF_OPS_LEN, &count.to_ne_bytes())
                    .attribute(TCA_BPF_OPS, &operations)
                    .attribute(TCA_BPF_FLAGS, &DIRECT.to_ne_bytes())
            });
        match n.request(m) {
            Ok(()) => return Ok(Some(handle)),
            Err(Errno::EXIST) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(None)
}

/// Removes a filter.
pub(super) fn remove(n: &Netlink, index: u32, handle: u32) -> Result<(), Errno> {
    let filter = message(nl::RTM_DELTFILTER, 0, index, handle, INGRESS, info());
    match n.request(filter.attribute(TCA_KIND, b"bpf\0")) {
        Ok(()) | Err(Errno::NOENT | Errno::INVAL | Errno::NODEV) => Ok(()),
        Err(e) => Err(e),
    }
}

/// Lists the filters of shields on a device.
pub(super) fn list(n: &Netlink, index: u32) -> Result<Vec<Filter>, Errno> {
    let mut all = Vec::new();
    n.dump(message(nl::RTM_GETTFILTER, 0, index, 0, INGRESS, 0), |kind, body| {
        if kind == nl::RTM_NEWTFILTER {
            all.extend(read(body));
        }
    })?;
    Ok(all)
}

/// Lists the kinds of the filters that are no shields: at the ingress, and at the egress.
pub(super) fn others(n: &Netlink, index: u32) -> Result<[Vec<String>; 2], Errno> {
    let mut all = [Vec::new(), Vec::new()];
    for (parent, kinds) in [INGRESS, EGRESS].into_iter().zip(&mut all) {
        n.dump(message(nl::RTM_GETTFILTER, 0, index, 0, parent, 0), |kind, body| {
            // The kernel lists each chain of filters too, with handle 0.
            let of_filter = kind == nl::RTM_NEWTFILTER && number32(body, 8).is_some_and(|h| h != 0);
            if of_filter && read(body).is_none() {
                let name = attributes(body.get(HEAD..).unwrap_or_default()).find(|a| a.0 == TCA_KIND);
                let name = name.map(|a| String::from_utf8_lossy(a.1).trim_end_matches('\0').to_string());
                kinds.extend(name);
            }
        })?;
    }
    Ok(all)
}

/// Reads a shield's filter from a message. Returns `None` for other filters.
fn read(body: &[u8]) -> Option<Filter> {
    let handle = number32(body, 8)?;
    let mut options = &[][..];
    for (kind, value) in attributes(body.get(HEAD..)?) {
        match kind {
            TCA_KIND if value != b"bpf\0" => return None,
            TCA_OPTIONS => options = value,
            _ => {}
        }
    }
    let (_, operations) = attributes(options).find(|a| a.0 == TCA_BPF_OPS)?;
    let (owner, made) = owner(operations)?;
    Some(Filter { handle, owner, made })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_names_its_owner() {
        let me = Owner { pid: 1234, start: 99, namespace: 0xf000_0001 };
        for made in [false, true] {
            let text = program(&me, made);
            assert_eq!(owner(&text), Some((me, made)));
            // A truncated program is not recognised as that of a shield.
            for cut in 0..text.len() {
                assert_eq!(owner(&text[..cut]), None, "{cut}");
            }
            let mut other = text.clone();
            other[4] ^= 1;
            assert_eq!(owner(&other), None);
            assert_eq!(owner(&[text, vec![0; 8]].concat()), None);
        }
    }

    #[test]
    fn messages_that_are_cut_name_nobody() {
        let operations = program(&Owner::this(), true);
        let m = message(nl::RTM_NEWTFILTER, 0, 3, 7, INGRESS, info())
            .attribute(TCA_KIND, b"bpf\0")
            .nested(TCA_OPTIONS, |m| m.attribute(TCA_BPF_OPS, &operations));
        let bytes = m.bytes();
        let body = &bytes[16..];
        assert_eq!(read(body).map(|f| (f.handle, f.owner, f.made)), Some((7, Owner::this(), true)));
        for cut in 0..body.len() {
            assert_eq!(read(&body[..cut]), None, "{cut}");
        }
    }
}
