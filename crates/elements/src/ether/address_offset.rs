// SPDX-License-Identifier: MIT OR Apache-2.0
//! Types of arguments that say where an Ethernet address is: in the packet, or in an annotation.

use castanet_element::kernel::Refused;
use castanet_element::prelude::*;

/// An offset in a packet, in bytes; `src` and `dst` stand for the offsets of these addresses in an Ethernet frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressOffset(pub usize);

impl ArgValue for AddressOffset {
    const TYPE: &'static str = "offset, 'src' or 'dst'";
    const WORD: bool = true;
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<AddressOffset, ValueError> {
        match text {
            "dst" => Ok(AddressOffset(0)),
            "src" => Ok(AddressOffset(6)),
            _ => u32::parse(text, cx).map(|n| AddressOffset(n as usize)),
        }
    }
}

impl AddressOffset {
    /// Returns the Ethernet address at this offset in a packet. None if the packet is too short.
    #[inline(always)]
    pub fn get(self, data: &[u8]) -> Option<[u8; 6]> {
        data.get(self.0..)?.first_chunk().copied()
    }
    /// The offset as code in the kernel needs it.
    pub fn in_kernel(self) -> Result<i32, Refused> {
        i32::try_from(self.0).map_err(|_| Refused("OFFSET is too large".into()))
    }
    /// Whether the packet is long enough to hold an address at this offset.
    #[inline(always)]
    pub fn is_in(self, data: &[u8]) -> bool {
        data.len() >= self.0.saturating_add(6)
    }
    /// Writes an Ethernet address at this offset.
    #[inline(always)]
    pub fn put(self, data: &mut [u8], address: [u8; 6]) {
        if let Some(place) = data.get_mut(self.0..).and_then(|d| d.first_chunk_mut()) {
            *place = address;
        }
    }
}

/// A six-byte annotation, as an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anno6(pub usize);

impl ArgValue for Anno6 {
    const TYPE: &'static str = "annotation of 6 bytes";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Anno6, ValueError> {
        Ok(Anno6(cx.annotation(text, 6)?))
    }
}
