// SPDX-License-Identifier: MIT OR Apache-2.0
//! SetAnnoByte: sets one byte of the annotations.

use castanet_element::prelude::*;

/// Sets an annotation of one byte.
///
/// # Ports
/// Input 0: packets. Output 0: the same packets with the annotation set.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 5, STOP true) -> SetAnnoByte(PAINT, 3) -> CheckPaint(3) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "SetAnnoByte", ports = "1/1", processing = "a/a", packets = "any/same", workers = replicate)]
#[class(reconfigure = keeps, handlers, depends = packet)]
pub struct SetAnnoByte {
    args: Args,
}

/// Arguments of SetAnnoByte.
#[derive(Args)]
pub struct Args {
    /// The annotation, by name or byte offset.
    anno: Anno1,
    /// The value to set, 0 to 255.
    #[arg(handler = "rw")]
    value: u8,
}

#[handlers]
impl SetAnnoByte {
    /// The byte offset of the annotation.
    #[read(merge = first)]
    fn anno(&self) -> usize {
        self.args.anno.0
    }
}

impl Action for SetAnnoByte {
    #[inline]
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        p.set_anno_u8(self.args.anno.0, self.args.value);
        Verdict::Next
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn every_byte() {
        for at in 0..48usize {
            let mut kit = Kit::<SetAnnoByte>::new(&format!("{at}, 200")).unwrap();
            let mut want = [0; 48];
            want[at] = 200;
            assert_eq!(kit.act([packet(b"x")])[0].1.annotations(), want);
            assert_eq!(kit.read("anno").unwrap(), at.to_string());
        }
        let mut kit = Kit::<SetAnnoByte>::new("PAINT, 1").unwrap();
        kit.write("value", "2").unwrap();
        assert_eq!((kit.read("value").unwrap(), kit.act([packet(b"x")])[0].1.paint()), ("2".into(), 2));
        for bad in ["48, 1", "DST_IP, 1", "PAINT, 256", "PAINT", ""] {
            assert!(Kit::<SetAnnoByte>::new(bad).is_err(), "{bad}");
        }
    }
}
