// SPDX-License-Identifier: MIT OR Apache-2.0
//! Print: prints packets as text.

use castanet_element::prelude::*;
use std::fmt::Write;

/// Prints a line for each packet and passes it on.
///
/// The line contains the label, the timestamp, the length, headroom and tailroom, the annotations and the first bytes
/// of the packet. Arguments select which of these are shown.
///
/// # Ports
/// Input 0: packets. Output 0: the same packets.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 5, STOP true) -> Print(text, 16, CONTENTS ASCII) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "Print", offload = none, ports = "1/1", processing = "a/a", packets = "any/same", workers = replicate)]
#[class(reconfigure = keeps, build, effects(prints))]
pub struct Print {
    args: Args,
    /// The maximum number of bytes to show; `None` for all.
    most: Option<usize>,
    line: String,
}

/// Arguments of Print.
#[derive(Args)]
pub struct Args {
    /// The text at the start of each line.
    #[arg(default = String::new(), show = "")]
    label: String,
    /// The maximum number of bytes to show; negative for all, 0 for none.
    #[arg(default = 24, deprecated = "LENGTH", deprecated = "NBYTES")]
    maxlength: i32,
    /// How to show bytes: HEX, ASCII or NONE; true means HEX, false means NONE.
    #[arg(keyword, default = Contents::Hex, show = "HEX")]
    contents: Contents,
    /// Whether to show the timestamp.
    #[arg(keyword, default = false)]
    timestamp: bool,
    /// Whether to show the 48 bytes of annotations.
    #[arg(keyword, default = false)]
    printanno: bool,
    /// Whether packets are printed; false to pass them silently.
    #[arg(keyword, default = true, handler = "rw")]
    active: bool,
    /// Whether to show headroom and tailroom.
    #[arg(keyword, default = false)]
    headroom: bool,
}

/// The format in which bytes are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Bytes are not shown.
    None,
    /// As hexadecimal digits.
    Hex,
    /// As characters.
    Ascii,
}

impl ArgValue for Contents {
    const TYPE: &'static str = "NONE, HEX or ASCII";
    const WORD: bool = true;
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Contents, ValueError> {
        match text.to_ascii_uppercase().as_str() {
            "NONE" => return Ok(Contents::None),
            "HEX" => return Ok(Contents::Hex),
            "ASCII" => return Ok(Contents::Ascii),
            _ => {}
        }
        match bool::parse(text, cx) {
            Ok(hex) => Ok(if hex { Contents::Hex } else { Contents::None }),
            Err(_) => Err(ValueError::whole(format!(
                "bad contents value '{}'; should be 'NONE', 'HEX', or 'ASCII'",
                text.to_ascii_uppercase()
            ))),
        }
    }
}

impl Build for Print {
    fn build(args: Args, _: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(Print { most: usize::try_from(args.maxlength).ok(), args, line: String::new() })
    }
}

/// Writes a time as seconds with 6 decimal places, or with 9 if it is not a whole number of microseconds.
fn time(out: &mut String, ns: i64) -> std::fmt::Result {
    let sign = if ns < 0 { "-" } else { "" };
    let (s, ns) = (ns.unsigned_abs() / 1_000_000_000, ns.unsigned_abs() % 1_000_000_000);
    match ns % 1000 {
        0 => write!(out, "{sign}{s}.{:06}", ns / 1000),
        _ => write!(out, "{sign}{s}.{ns:09}"),
    }
}

fn hex(out: &mut String, bytes: &[u8]) -> std::fmt::Result {
    bytes.iter().try_for_each(|b| write!(out, "{b:02x}"))
}

impl Print {
    /// Writes the line for a packet to the element's text buffer.
    fn write(&mut self, p: &Packet) -> std::fmt::Result {
        let out = &mut self.line;
        out.clear();
        out.push_str(&self.args.label);
        if self.args.timestamp {
            out.push_str(if out.is_empty() { "" } else { ": " });
            time(out, p.timestamp())?;
        }
        out.push_str(if out.is_empty() { "" } else { ": " });
        write!(out, "{:4}", p.len())?;
        if self.args.headroom {
            write!(out, " (h{} t{})", p.headroom(), p.tailroom())?;
        }
        if self.args.printanno {
            out.push_str(" | ");
            hex(out, &p.annotations())?;
        }
        if self.args.contents == Contents::None || self.most == Some(0) || p.is_empty() {
            return Ok(());
        }
        out.push_str(" | ");
        let data = p.data();
        let data = data.get(..self.most.unwrap_or(usize::MAX)).unwrap_or(data);
        if self.args.contents == Contents::Hex {
            for (i, word) in data.chunks(4).enumerate() {
                out.push_str(if i > 0 { " " } else { "" });
                hex(out, word)?;
            }
        } else {
            for part in data.chunks(8) {
                out.push(' ');
                out.extend(part.iter().map(|&b| if (32..=126).contains(&b) { char::from(b) } else { '.' }));
            }
        }
        Ok(())
    }
}

impl Action for Print {
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        // Writing to a string does not fail.
        if self.args.active && self.write(p).is_ok() {
            cx.message(&self.line);
        }
        Verdict::Next
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    fn sample() -> Packet {
        let mut data =
            vec![0x45, 0, 0, 0x20, 0, 1, 0, 0, 0x40, 0x11, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 3, 0xe8, 7, 0xd0];
        data.extend([0; 8]);
        packet(&data)
    }

    #[test]
    fn lines_as_existing_scripts_read_them() {
        let zeros = |n: usize| "0".repeat(n);
        for (config, line) in [
            ("a", "a:   32 | 45000020 00010000 40110000 0a000001 0a000002 03e807d0".to_string()),
            ("", "  32 | 45000020 00010000 40110000 0a000001 0a000002 03e807d0".into()),
            ("\"\", 4", "  32 | 45000020".into()),
            ("b, 10", "b:   32 | 45000020 00010000 4011".into()),
            ("b, NBYTES 3", "b:   32 | 450000".into()),
            ("b, 0", "b:   32".into()),
            ("c, CONTENTS ascii", "c:   32 |  E.. .... @....... ........".into()),
            ("d, CONTENTS NONE", "d:   32".into()),
            ("d, CONTENTS false", "d:   32".into()),
            ("f, TIMESTAMP true, CONTENTS NONE", "f: 1.500000:   32".into()),
            ("TIMESTAMP true, CONTENTS NONE", "1.500000:   32".into()),
            ("g, HEADROOM true, CONTENTS NONE", "g:   32 (h28 t1988)".into()),
            ("h, PRINTANNO true, CONTENTS NONE", format!("h:   32 | {}05{}", zeros(32), zeros(62))),
            (
                "l, 8, TIMESTAMP true, HEADROOM true, PRINTANNO true",
                format!("l: 1.500000:   32 (h28 t1988) | {}05{} | 45000020 00010000", zeros(32), zeros(62)),
            ),
        ] {
            let mut kit = Kit::<Print>::new(config).unwrap();
            let mut p = sample();
            p.set_timestamp(1_500_000_000);
            p.set_paint(5);
            let data = p.data().to_vec();
            let (verdict, p) = kit.act1(p);
            assert_eq!((verdict, p.data()), (Verdict::Next, &data[..]));
            assert_eq!(kit.messages(), [line], "{config}");
        }
    }

    #[test]
    fn every_length_and_batch() {
        for n in [1, 2, 3, 32] {
            let mut kit = Kit::<Print>::new("x, -1").unwrap();
            assert_eq!(kit.act((0..n).map(|i| packet(&vec![0xab; i]))).len(), n);
            let want: Vec<_> = (0..n)
                .map(|i| {
                    let words: Vec<_> = (0..i).step_by(4).map(|at| "ab".repeat((i - at).min(4))).collect();
                    let bar = if i > 0 { " | " } else { "" };
                    format!("x: {i:4}{bar}{}", words.join(" "))
                })
                .collect();
            assert_eq!(kit.messages(), want);
        }
        let mut kit = Kit::<Print>::new("ACTIVE false").unwrap();
        kit.act([packet(b"x")]);
        assert!(kit.messages().is_empty());
        kit.write("active", "true").unwrap();
        kit.act([packet(b"x")]);
        assert_eq!(kit.messages().len(), 1);
    }

    #[test]
    fn arguments() {
        let bad = Kit::<Print>::new("CONTENTS foo").err().unwrap();
        assert_eq!(bad, ["bad contents value 'FOO'; should be 'NONE', 'HEX', or 'ASCII'"]);
        assert_eq!(Kit::<Print>::new("LENGTH 3").unwrap().warnings(), ["LENGTH is an old name of MAXLENGTH"]);
        assert_eq!(Kit::<Print>::new("CPU true").err().unwrap(), ["CPU: unknown argument"]);
    }

    #[test]
    fn times() {
        for (ns, text) in [
            (0, "0.000000"),
            (2_123_456_789, "2.123456789"),
            (1_000_001_000, "1.000001"),
            (-1, "-0.000000001"),
        ] {
            let mut out = String::new();
            time(&mut out, ns).unwrap();
            assert_eq!(out, text);
        }
    }
}
