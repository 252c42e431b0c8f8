// SPDX-License-Identifier: MIT OR Apache-2.0
//! Align: aligns packet data in memory.

use castanet_element::kernel::{Code, Lowered};
use castanet_element::prelude::*;

/// Aligns packet data so that its memory address modulo MODULUS is OFFSET.
///
/// A misaligned packet is replaced by an aligned copy, which differs only in its headroom and tailroom. Bytes that were
/// stripped stay before the data. In the kernel, where programs read at any address, Align leaves packets as they are; if
/// they come up later, they need not be aligned.
///
/// # Ports
/// Input 0: packets. Output 0: the same packets, aligned.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 5, STOP true) -> Strip(3) -> Align(4, 0) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "Align", ports = "1/1", processing = "a/a", packets = "any/same", workers = replicate)]
#[class(build, drops(NoBuffer), depends = packet)]
#[class(kernel)]
pub struct Align {
    args: Args,
}

/// Arguments of Align and CheckAlign.
#[derive(Args)]
pub struct Args {
    /// The alignment in bytes, a power of two of at most 64.
    modulus: u32,
    /// The required remainder of the address, in bytes, less than MODULUS.
    offset: i32,
}

impl Args {
    /// Returns the arguments if they are in range.
    pub(super) fn checked(self) -> Result<Args, ConfigError> {
        if !self.modulus.is_power_of_two() || self.modulus > 64 {
            return Err("MODULUS: must be a power of two, 64 at most".into());
        }
        if u32::try_from(self.offset).is_ok_and(|o| o < self.modulus) {
            Ok(self)
        } else {
            Err(format!("OFFSET: must be between 0 and {}", self.modulus - 1).into())
        }
    }

    /// Returns the number of bytes by which the address of the data must increase to be aligned.
    #[inline]
    pub(super) fn missing(&self, p: &Packet) -> usize {
        let mask = self.modulus as usize - 1;
        // `checked` makes sure that the offset is not negative.
        (self.offset as usize).wrapping_sub(p.data().as_ptr() as usize) & mask
    }
}

impl Build for Align {
    fn build(args: Args, _: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(Align { args: args.checked()? })
    }
}

impl Align {
    /// Returns an aligned copy of a packet, with `before` bytes of its headroom, so that Unstrip can restore them.
    fn copied(&self, p: &mut Packet, before: usize) -> Option<Packet> {
        let mut new = Packet::new(p.len().checked_add(before)?.checked_add(self.args.modulus as usize)?)?;
        if !p.unstrip(before) {
            return None;
        }
        let len = p.len();
        // The byte at `before` is the one to be aligned.
        new.strip(before);
        let missing = self.args.missing(&new);
        new.unstrip(before);
        // An Unstrip downstream must not show what the buffer held before.
        new.data_mut().get_mut(..missing)?.fill(0);
        new.strip(missing);
        new.truncate(len);
        new.data_mut().copy_from_slice(p.data());
        new.copy_annotations(p);
        if let Some(at) = p.mac_offset() {
            new.set_mac_header(at);
        }
        if let Some(at) = p.network_offset().and_then(|at| usize::try_from(at).ok()) {
            new.set_network_header(at, p.network_header_length());
        }
        p.strip(before);
        new.strip(before);
        Some(new)
    }

    /// Like [`Align::copied`], with the whole headroom unless the copy would be too long.
    #[cold]
    fn moved(&self, p: &mut Packet) -> Option<Packet> {
        let headroom = p.headroom();
        self.copied(p, headroom).or_else(|| self.copied(p, 0))
    }
}

impl Action for Align {
    #[inline]
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        if self.args.missing(p) != 0 {
            match self.moved(p) {
                Some(new) => *p = new,
                None => return Verdict::Drop(Reason::NoBuffer),
            }
        }
        Verdict::Next
    }
}

impl InKernel for Align {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        // Programs in the kernel read at any address.
        code.next(0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn every_alignment_of_every_length() {
        let data: Vec<u8> = (0..80).collect();
        for (modulus, offset) in [(1, 0), (2, 1), (4, 0), (4, 2), (8, 7), (64, 5)] {
            let mut kit = Kit::<Align>::new(&format!("{modulus}, {offset}")).unwrap();
            for strip in 0..20 {
                for len in [0, 1, 20, 60] {
                    let mut p = packet(&data[..strip + len]);
                    p.set_paint(5);
                    p.set_timestamp(6);
                    p.set_mac_header(0);
                    p.strip(strip);
                    p.set_network_header(0, len.min(20));
                    let aligned = p.data().as_ptr() as usize % modulus == offset;
                    let before = p.data().as_ptr();
                    let mut out = kit.act([p]);
                    let q = &mut out[0].1;
                    assert_eq!(q.data(), &data[strip..strip + len]);
                    assert_eq!(q.data().as_ptr() as usize % modulus, offset);
                    assert_eq!(q.data().as_ptr() == before, aligned, "copied only when it must be");
                    assert_eq!((q.paint(), q.timestamp()), (5, 6));
                    assert_eq!((q.network_offset(), q.network_header_length()), (Some(0), len.min(20)));
                    assert_eq!(q.mac_offset(), Some(-(strip as isize)));
                    let mut q = q.share().unwrap();
                    assert!(q.unstrip(strip), "stripped bytes can be restored");
                    assert_eq!(q.data(), &data[..strip + len]);
                    assert!(q.unstrip(40) && q.data()[..40] == [0; 40], "other new bytes are zero");
                }
            }
        }
    }

    #[test]
    fn argument_errors() {
        for (config, error) in [
            ("3, 0", "MODULUS: must be a power of two, 64 at most"),
            ("0, 0", "MODULUS: must be a power of two, 64 at most"),
            ("4, 4", "OFFSET: must be between 0 and 3"),
            ("4, -1", "OFFSET: must be between 0 and 3"),
            ("4", "OFFSET: required argument missing"),
        ] {
            assert_eq!(Kit::<Align>::new(config).err().unwrap(), [error], "{config}");
        }
    }
}
