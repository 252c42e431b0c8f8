// SPDX-License-Identifier: MIT OR Apache-2.0
//! Paint: marks packets with a colour.

use castanet_element::kernel::{Code, Lowered};
use castanet_element::prelude::*;
use castanet_element::spec::anno;

/// Sets the paint annotation, or another annotation of one byte.
///
/// # Ports
/// Input 0: packets. Output 0: the same packets, painted.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 5, STOP true) -> Paint(3) -> c :: CheckPaint(3) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "Paint", ports = "1/1", processing = "a/a", packets = "any/same", workers = replicate)]
#[class(reconfigure = keeps, depends = packet)]
#[class(kernel)]
pub struct Paint {
    args: Args,
}

/// Arguments of Paint.
#[derive(Args)]
pub struct Args {
    /// The colour, 0 to 255.
    #[arg(handler = "rw")]
    color: u8,
    /// The one-byte annotation to set.
    #[arg(default = Anno1(anno::PAINT), show = "PAINT")]
    anno: Anno1,
}

impl Action for Paint {
    #[inline(always)]
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        p.set_anno_u8(self.args.anno.0, self.args.color);
        Verdict::Next
    }
}

impl InKernel for Paint {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        code.set_known_annotation(self.args.anno.0, [self.args.color]);
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
    fn paints() {
        let mut kit = Kit::<Paint>::new("7").unwrap();
        for n in [1, 2, 3, 32] {
            let out = kit.act((0..n).map(|_| packet(b"")));
            assert!(out.len() == n && out.iter().all(|(port, p)| *port == 0 && p.paint() == 7));
        }
        kit.write("color", "255").unwrap();
        assert_eq!(kit.act1(packet(b"")).1.paint(), 255);
        assert_eq!(kit.read("color").unwrap(), "255");
        assert!(kit.write("color", "256").is_err());
        let mut kit = Kit::<Paint>::new("7, ANNO 47").unwrap();
        let p = kit.act1(packet(b"")).1;
        assert_eq!((p.paint(), p.anno_u8(47)), (0, 7));
    }

    #[test]
    fn argument_errors() {
        for (config, error) in [
            ("", "COLOR: required argument missing"),
            ("256", "COLOR: out of range, bound 255"),
            ("1, 48", "ANNO: annotation offset 48 leaves no room for 1 bytes of 48"),
            ("1, DST_IP", "ANNO: annotation 'DST_IP' has 4 bytes, 1 wanted"),
        ] {
            assert_eq!(Kit::<Paint>::new(config).err().unwrap(), [error], "{config}");
        }
    }
}
