// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests about drivers of devices (ethtool): queues, offloads, rings.
#![allow(unsafe_code)]

use super::error::DeviceError;
use super::facts;
use super::sys::{about, any_socket, check};
use rustix::io::Errno;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use zerocopy::{FromBytes, IntoBytes};

const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GRINGPARAM: u32 = 0x10;
const ETHTOOL_SRINGPARAM: u32 = 0x11;
const ETHTOOL_GTXCSUM: u32 = 0x16;
const ETHTOOL_STXCSUM: u32 = 0x17;
const ETHTOOL_GFLAGS: u32 = 0x25;
const ETHTOOL_SFLAGS: u32 = 0x26;
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSTATS: u32 = 0x1d;
const ETHTOOL_SGRO: u32 = 0x2c;
const ETHTOOL_GCHANNELS: u32 = 0x3c;
const SIOCETHTOOL: u32 = 0x8946;
/// Bits of the requests for flags.
const TX_VLAN: u32 = 1 << 7;
const RX_VLAN: u32 = 1 << 8;
const LRO: u32 = 1 << 15;

/// Makes an ethtool request. The first four bytes of the request are its command. The kernel may write an answer to the
/// rest. `fd` may be any socket.
///
/// # Safety
/// The command reads and writes at most size_of::<T>() bytes.
unsafe fn ethtool<T: FromBytes + IntoBytes>(
    fd: BorrowedFd<'_>,
    name: &str,
    request: &mut T,
) -> Result<(), Errno> {
    let mut about = about(name);
    about.ifr_ifru.ifru_data = std::ptr::from_mut(request).cast();
    // SAFETY: the argument is an ifreq with a name that ends with a zero byte and a pointer to the request, which lives
    // during the call. The caller guarantees that the request is long enough, and any bytes are a valid T.
    let r = unsafe { libc::ioctl(fd.as_raw_fd(), SIOCETHTOOL as _, std::ptr::from_mut(&mut about)) };
    check(r).map(drop)
}

/// Makes a request about a number of a device, and returns the number.
fn value(name: &str, command: u32, number: u32) -> Result<u32, Errno> {
    // struct ethtool_value: the command and a number.
    let mut request = [command, number];
    // SAFETY: the commands of this file that are used here read and write a struct ethtool_value, which has two words.
    unsafe { ethtool(any_socket()?.as_fd(), name, &mut request) }?;
    Ok(request[1])
}

/// The number of receive queues that a device uses; 1 if its driver does not tell.
pub fn receive_queues(name: &str) -> u32 {
    // struct ethtool_channels: the command; the maximum numbers of receive, send, other and combined queues; and the
    // numbers in use.
    let mut channels = [0u32; 9];
    channels[0] = ETHTOOL_GCHANNELS;
    // SAFETY: the command reads and writes a struct ethtool_channels, which has nine words.
    let done = any_socket().and_then(|fd| unsafe { ethtool(fd.as_fd(), name, &mut channels) });
    done.map_or(1, |()| channels[5].saturating_add(channels[8]).max(1))
}

/// The name of a device's driver; `None` if the device has none or does not exist.
pub fn driver(name: &str) -> Option<String> {
    // struct ethtool_drvinfo: the command, then texts of 32 bytes, the first of which is the driver.
    let mut info = [0u8; 196];
    info.first_chunk_mut::<4>()?.copy_from_slice(&ETHTOOL_GDRVINFO.to_ne_bytes());
    // SAFETY: the command reads and writes a struct ethtool_drvinfo, which has 196 bytes.
    unsafe { ethtool(any_socket().ok()?.as_fd(), name, &mut info) }.ok()?;
    let text = info.get(4..36)?.split(|b| *b == 0).next()?;
    Some(String::from_utf8_lossy(text).into_owned()).filter(|t| !t.is_empty())
}

/// The most statistics of a driver that [`statistics`] reads.
const MOST: usize = 1024;

/// The statistics of a device's driver, by name, such as `tx_queue_0_xdp_xmit` of veth; nothing if it counts nothing, or has very
/// many counters.
pub fn statistics(name: &str) -> Vec<(String, u64)> {
    read_statistics(name).unwrap_or_default()
}

fn read_statistics(name: &str) -> Option<Vec<(String, u64)>> {
    // The number of statistics stands in a word after the texts of struct ethtool_drvinfo.
    let mut info = [0u8; 196];
    info.first_chunk_mut::<4>()?.copy_from_slice(&ETHTOOL_GDRVINFO.to_ne_bytes());
    let fd = any_socket().ok()?;
    // SAFETY: the command reads and writes a struct ethtool_drvinfo, which has 196 bytes.
    unsafe { ethtool(fd.as_fd(), name, &mut info) }.ok()?;
    let count = u32::from_ne_bytes(*info.get(180..)?.first_chunk()?);
    if count as usize > MOST {
        return None;
    }
    // struct ethtool_gstrings: the command, the set (1: statistics), the count, and texts of 32 bytes.
    let mut names = Box::new([0u32; 3 + 8 * 4 * MOST]);
    names[..3].copy_from_slice(&[ETHTOOL_GSTRINGS, 1, count]);
    // SAFETY: the command writes 12 bytes and 32 bytes for each statistic. There is room for four times as many as there may
    // be. Only a change of the number of queues adds some.
    unsafe { ethtool(fd.as_fd(), name, &mut *names) }.ok()?;
    // struct ethtool_stats: the command, the count, and numbers of 64 bits.
    let mut numbers = Box::new([0u64; 1 + 4 * MOST]);
    let (command, count) = (u64::from(ETHTOOL_GSTATS), u64::from(count));
    numbers[0] = if cfg!(target_endian = "little") { count << 32 | command } else { command << 32 | count };
    // SAFETY: the command writes 8 bytes and 8 bytes for each statistic; as above.
    unsafe { ethtool(fd.as_fd(), name, &mut *numbers) }.ok()?;
    let texts = names.get(3..)?.as_bytes().as_chunks::<32>().0.iter().map(|text| {
        let text = text.split(|b| *b == 0).next().unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    });
    Some(texts.zip(numbers.iter().skip(1).copied()).take(usize::try_from(count).ok()?).collect())
}

/// Makes a device receive by NAPI, the polling interface of the kernel's drivers. Network cards always use
/// it, but veth uses it only when generic receive offload (GRO) is on. Frames that XDP redirects to a veth
/// arrive only with NAPI.
///
/// # Errors
/// When the device is missing, or the kernel does not permit it.
pub fn receive_by_napi(name: &str) -> Result<(), DeviceError> {
    facts::index(name)?;
    let failed = |e| DeviceError::from_errno(name, "receive by NAPI", e);
    value(name, ETHTOOL_SGRO, 1).map(drop).map_err(failed)
}

/// An offload of a device that matters to a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Offload {
    /// The device completes TCP and UDP checksums of what it sends (ethtool: `tx`). Segmentation needs this.
    TxChecksums,
    /// The device inserts VLAN tags into what it sends (`txvlan`).
    TxVlan,
    /// The device strips VLAN tags from what it receives (`rxvlan`).
    RxVlan,
    /// The device joins received TCP segments so that their original lengths are lost (`lro`).
    LargeReceive,
}

impl Offload {
    /// All of them.
    pub const ALL: [Offload; 4] =
        [Offload::TxChecksums, Offload::TxVlan, Offload::RxVlan, Offload::LargeReceive];

    /// The word of ethtool(8) for this offload.
    pub fn word(self) -> &'static str {
        match self {
            Offload::TxChecksums => "tx",
            Offload::TxVlan => "txvlan",
            Offload::RxVlan => "rxvlan",
            Offload::LargeReceive => "lro",
        }
    }
    fn bit(self) -> u32 {
        match self {
            Offload::TxChecksums => 0,
            Offload::TxVlan => TX_VLAN,
            Offload::RxVlan => RX_VLAN,
            Offload::LargeReceive => LRO,
        }
    }
    /// Whether this offload is on at a device; `None` if the driver does not tell.
    pub fn is_on(self, name: &str) -> Option<bool> {
        let on = match self {
            Offload::TxChecksums => value(name, ETHTOOL_GTXCSUM, 0).map(|n| n != 0),
            other => value(name, ETHTOOL_GFLAGS, 0).map(|flags| flags & other.bit() != 0),
        };
        on.ok()
    }
    /// Switches this offload off.
    ///
    /// # Errors
    /// When the device is missing, the kernel does not permit it, or the driver cannot do it.
    pub fn switch_off(self, name: &str) -> Result<(), DeviceError> {
        facts::index(name)?;
        let done = match self {
            Offload::TxChecksums => value(name, ETHTOOL_STXCSUM, 0),
            other => {
                let flags = value(name, ETHTOOL_GFLAGS, 0);
                flags.and_then(|flags| value(name, ETHTOOL_SFLAGS, flags & !other.bit()))
            }
        };
        done.map_err(|e| DeviceError::from_errno(name, "switch an offload off", e))?;
        match self.is_on(name) {
            Some(true) => Err(DeviceError::from_errno(name, "switch an offload off", Errno::OPNOTSUPP)),
            _ => Ok(()),
        }
    }
}

/// The size of a device's receive ring, in frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveRing {
    /// The size in use.
    pub size: u32,
    /// The largest size that the device supports.
    pub most: u32,
}

/// struct ethtool_ringparam: the command, four largest sizes, and the four sizes in use. The receive ring comes first.
fn rings(name: &str) -> Result<[u32; 9], Errno> {
    let mut request = [0u32; 9];
    request[0] = ETHTOOL_GRINGPARAM;
    // SAFETY: the command reads and writes a struct ethtool_ringparam, which has nine words.
    unsafe { ethtool(any_socket()?.as_fd(), name, &mut request) }?;
    Ok(request)
}

/// The size of a device's receive ring; `None` if the driver does not tell.
pub fn receive_ring(name: &str) -> Option<ReceiveRing> {
    rings(name).ok().map(|r| ReceiveRing { most: r[1], size: r[5] })
}

/// Sets the size of a device's receive ring. Most devices are down for a moment meanwhile.
///
/// # Errors
/// When the device is missing, the kernel does not permit it, or the driver cannot do it.
pub fn set_receive_ring(name: &str, size: u32) -> Result<(), DeviceError> {
    facts::index(name)?;
    let done = rings(name).and_then(|mut request| {
        request[0] = ETHTOOL_SRINGPARAM;
        request[5] = size;
        // SAFETY: the command reads a struct ethtool_ringparam, which has nine words.
        unsafe { ethtool(any_socket()?.as_fd(), name, &mut request) }
    });
    done.map_err(|e| DeviceError::from_errno(name, "set the size of its receive ring", e))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn devices_without_statistics_have_none() {
        assert_eq!(statistics("no-such-device"), []);
        assert_eq!(statistics("lo"), []);
    }

    #[test]
    fn devices_without_napi_say_so() {
        assert!(matches!(receive_by_napi("no-such-device"), Err(DeviceError::Missing { .. })));
    }

    #[test]
    fn the_loopback_device_answers_or_declines() {
        assert_eq!(Offload::LargeReceive.is_on("lo"), Some(false));
        assert_eq!(Offload::TxChecksums.is_on("lo"), Some(true));
        assert_eq!(receive_ring("lo"), None);
        for offload in Offload::ALL {
            assert_eq!(offload.is_on("no-such-device"), None);
            assert!(matches!(offload.switch_off("no-such-device"), Err(DeviceError::Missing { .. })));
        }
        assert!(matches!(set_receive_ring("no-such-device", 1), Err(DeviceError::Missing { .. })));
    }
}
