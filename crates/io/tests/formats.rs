// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests each format and each error with hand-written bytes.
#![allow(clippy::unwrap_used)]
use std::io::Write;
use std::process::{Command, Stdio};

use castanet_io::{CaptureError, CaptureReader, CaptureWriter, LinkType};

/// A builder of bytes that appends numbers in one byte order.
struct Bytes {
    big: bool,
    out: Vec<u8>,
}

impl Bytes {
    fn new(big: bool) -> Bytes {
        Bytes { big, out: Vec::new() }
    }
    fn u32(mut self, n: u32) -> Bytes {
        self.out.extend(if self.big { n.to_be_bytes() } else { n.to_le_bytes() });
        self
    }
    fn u16(mut self, n: u16) -> Bytes {
        self.out.extend(if self.big { n.to_be_bytes() } else { n.to_le_bytes() });
        self
    }
    fn raw(mut self, bytes: &[u8]) -> Bytes {
        self.out.extend(bytes);
        self
    }
    /// Appends a pcapng block.
    fn block(self, kind: u32, body: Bytes) -> Bytes {
        let padding = (4 - body.out.len() % 4) % 4;
        let length = u32::try_from(body.out.len() + padding + 12).unwrap();
        self.u32(kind).u32(length).raw(&body.out).raw(&[0; 3][..padding]).u32(length)
    }
    fn section(self) -> Bytes {
        let big = self.big;
        self.block(0x0a0d_0d0a, Bytes::new(big).u32(0x1a2b_3c4d).u16(1).u16(0).u32(u32::MAX).u32(u32::MAX))
    }
}

fn pcap(big: bool, magic: u32) -> Bytes {
    Bytes::new(big).u32(magic).u16(2).u16(4).u32(0).u32(0).u32(65535).u32(1)
}

type Packet = (u32, i64, Vec<u8>, u32);

fn read(bytes: Vec<u8>) -> Result<(Vec<Packet>, bool), CaptureError> {
    let mut reader = CaptureReader::from_bytes("x", bytes)?;
    let mut packets = Vec::new();
    while let Some(frame) = reader.next_frame()? {
        packets.push((frame.link.0, frame.time_ns, frame.data.to_vec(), frame.original_len));
    }
    Ok((packets, reader.truncated()))
}

fn error(bytes: Vec<u8>) -> String {
    read(bytes).unwrap_err().to_string()
}

#[test]
fn pcap_in_all_its_forms() {
    for big in [false, true] {
        let file = pcap(big, 0xa1b2_c3d4).u32(5).u32(7).u32(3).u32(9).raw(b"abc").out;
        assert_eq!(read(file).unwrap(), (vec![(1, 5_000_007_000, b"abc".to_vec(), 9)], false));
        let file = pcap(big, 0xa1b2_3c4d).u32(5).u32(7).u32(0).u32(9).out;
        assert_eq!(read(file).unwrap(), (vec![(1, 5_000_000_007, vec![], 9)], false));
        let extra = [0; 8];
        let file = pcap(big, 0xa1b2_cd34).u32(5).u32(7).u32(3).u32(3).raw(&extra).raw(b"abc").out;
        assert_eq!(read(file).unwrap(), (vec![(1, 5_000_007_000, b"abc".to_vec(), 3)], false));
        // In version 2.2 the captured and the original length are swapped. The upper bits of the link type field are
        // not part of the type.
        let file = Bytes::new(big).u32(0xa1b2_c3d4).u16(2).u16(2).u32(0).u32(0).u32(99).u32(0x2400_0065);
        let file = file.u32(0).u32(0).u32(9).u32(2).raw(b"ab").out;
        assert_eq!(read(file).unwrap(), (vec![(101, 0, b"ab".to_vec(), 9)], false));
    }
}

#[test]
fn time_may_run_backwards_and_links_may_be_unknown() {
    let file = Bytes::new(false).u32(0xa1b2_c3d4).u16(2).u16(4).u32(0).u32(0).u32(9).u32(54_321);
    let file = file.u32(9).u32(0).u32(1).u32(1).raw(b"a").u32(2).u32(0).u32(1).u32(1).raw(b"b").out;
    let (packets, _) = read(file.clone()).unwrap();
    let seen: Vec<_> = packets.iter().map(|packet| (packet.0, packet.1)).collect();
    assert_eq!(seen, [(54_321, 9_000_000_000), (54_321, 2_000_000_000)]);
    assert_eq!(CaptureReader::from_bytes("x", file).unwrap().link(), Some(LinkType(54321)));
}

#[test]
fn pcapng_sections_interfaces_and_blocks() {
    let little = Bytes::new(false);
    let idb = |big, link: u16, options: &[u8]| Bytes::new(big).u16(link).u16(0).u32(4).raw(options);
    let file = little
        .section()
        .block(1, idb(false, 1, &[]))
        .block(
            1,
            idb(false, 101, &[9, 0, 1, 0, 9, 0, 0, 0, 14, 0, 8, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        )
        .block(1, idb(false, 7, &[9, 0, 1, 0, 0x80 | 10, 0, 0, 0]))
        .block(0x0bad, Bytes::new(false).raw(b"who knows"))
        // Enhanced Packet Block: interface 1, whose times are in nanoseconds and offset by 10 s. The block has a
        // comment that is not UTF-8.
        .block(
            6,
            Bytes::new(false)
                .u32(1)
                .u32(1)
                .u32(5)
                .u32(3)
                .u32(60)
                .raw(b"abc\0")
                .raw(&[1, 0, 1, 0, 0xff, 0, 0, 0]),
        )
        // Obsolete Packet Block: interface 0, whose times are in microseconds. The block has a drop count.
        .block(2, Bytes::new(false).u16(0).u16(7).u32(0).u32(8).u32(2).u32(2).raw(b"de"))
        // Simple Packet Block: truncated to the interface's snapshot length of 4.
        .block(3, Bytes::new(false).u32(6).raw(b"fghi"))
        // Enhanced Packet Block: the time is 2048 units of 1/1024 s.
        .block(6, Bytes::new(false).u32(2).u32(0).u32(2048).u32(1).u32(1).raw(b"j"))
        .out;
    let big = Bytes::new(true)
        .section()
        .block(1, idb(true, 113, &[]))
        .block(6, Bytes::new(true).u32(0).u32(0).u32(1).u32(2).u32(2).raw(b"kl"))
        .out;
    let (packets, truncated) = read([file, big].concat()).unwrap();
    assert!(!truncated);
    assert_eq!(
        packets,
        [
            (101, (1 << 32) + 5 + 10_000_000_000, b"abc".to_vec(), 60),
            (1, 8_000, b"de".to_vec(), 2),
            (1, 0, b"fghi".to_vec(), 6),
            (7, 2_000_000_000, b"j".to_vec(), 1),
            (113, 1_000, b"kl".to_vec(), 2),
        ]
    );
}

#[test]
fn extreme_times_do_not_overflow() {
    for (resolution, expected) in [(0, i64::MAX), (0x80, i64::MAX), (127, 0), (255, 0), (9, i64::MAX)] {
        let file = Bytes::new(false)
            .section()
            .block(1, Bytes::new(false).u16(1).u16(0).u32(0).raw(&[9, 0, 1, 0, resolution, 0, 0, 0]))
            .block(6, Bytes::new(false).u32(0).u32(u32::MAX).u32(u32::MAX).u32(0).u32(0))
            .out;
        assert_eq!(read(file).unwrap().0[0].1, expected, "{resolution}");
    }
}

#[test]
fn error_texts() {
    let section = || Bytes::new(false).section().block(1, Bytes::new(false).u16(1).u16(0).u32(0));
    let cases = [
        (vec![], "x:   empty file"),
        (vec![0xd4], "x:   not a tcpdump file (too short)"),
        (pcap(true, 0xa1b2_c3d4).out[..23].to_vec(), "x:   not a tcpdump file (too short)"),
        (Bytes::new(false).section().out[..27].to_vec(), "x:   not a tcpdump file (too short)"),
        (b"hello".to_vec(), "x: not a pcap or pcapng file: it begins with 68 65 6c 6c"),
        (
            Bytes::new(true).u32(0xa1b2_c3d4).u16(3).u16(1).raw(&[0; 16]).out,
            "x: bad capture file at byte 4: pcap version 3.1 is not known, only 2.x is",
        ),
        (
            pcap(true, 0xa1b2_c3d4).u32(0).u32(0).u32(4).u32(3).raw(b"abcd").out,
            "x: bad capture file at byte 24: captured length 4 is over the original length 3",
        ),
        (
            pcap(true, 0xa1b2_c3d4).u32(0).u32(0).u32(0x7fff_ffff).u32(0x7fff_ffff).out,
            "x: bad capture file at byte 24: captured length 2147483647 is over 262144",
        ),
        (
            section().block(6, Bytes::new(false).u32(1).u32(0).u32(0).u32(0).u32(0)).out,
            "x: bad capture file at byte 48: packet of interface 1, which is not described in the section",
        ),
        (
            section().block(6, Bytes::new(false).u32(0).u32(0).u32(0).u32(5).u32(5).raw(b"abcd")).out,
            "x: bad capture file at byte 48: captured length 5 is over the block's 4",
        ),
        (
            section().block(6, Bytes::new(false).u32(0)).out,
            "x: bad capture file at byte 48: block shorter than its content",
        ),
        (
            section().u32(9).u32(14).raw(&[0; 6]).out,
            "x: bad capture file at byte 48: block length 14 is not a multiple of 4 of at least 12",
        ),
        (
            section().u32(9).u32(12).u32(16).out,
            "x: bad capture file at byte 48: block length 12 at its start, 16 at its end",
        ),
        (
            Bytes::new(false).u32(0x0a0d_0d0a).u32(28).u32(7).raw(&[0; 16]).out,
            "x: bad capture file at byte 0: bad byte-order magic of a section",
        ),
    ];
    for (bytes, text) in cases {
        assert_eq!(error(bytes), text);
    }
    let missing = CaptureReader::open("/nonexistent").err().unwrap();
    assert_eq!(missing.to_string(), "/nonexistent: No such file or directory");
}

/// Readers and writers move between workers with the elements that own them.
#[test]
fn readers_and_writers_can_move_between_threads() {
    fn movable<T: Send>() {}
    movable::<CaptureReader>();
    movable::<CaptureWriter>();
    movable::<CaptureError>();
}

#[test]
fn an_error_is_the_end() {
    let file = pcap(true, 0xa1b2_c3d4).u32(0).u32(0).u32(4).u32(3).raw(&[0; 40]).out;
    let mut reader = CaptureReader::from_bytes("x", file).unwrap();
    assert!(reader.next_frame().is_err());
    assert!(matches!(reader.next_frame(), Ok(None)));
}

#[test]
fn positions() {
    let mut file = pcap(false, 0xa1b2_c3d4);
    for n in 0..5u32 {
        file = file.u32(n).u32(0).u32(n).u32(n).raw(&[7; 5][..n as usize]);
    }
    let size = file.out.len() as u64;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("five.pcap");
    std::fs::write(&path, &file.out).unwrap();
    for mut reader in [CaptureReader::from_bytes("x", file.out).unwrap(), CaptureReader::open(&path).unwrap()]
    {
        assert_eq!((reader.filesize(), reader.filepos()), (Some(size), 24));
        let mut positions = vec![];
        while let Some(frame) = reader.next_frame().unwrap() {
            let length = frame.data.len();
            positions.push((reader.packet_filepos(), length));
        }
        assert_eq!(reader.filepos(), size);
        for (at, length) in positions.into_iter().rev() {
            reader.seek(at).unwrap();
            assert_eq!(reader.next_frame().unwrap().unwrap().data.len(), length);
        }
        reader.seek(3).unwrap();
        assert_eq!(reader.filepos(), 24);
        reader.seek(size + 9).unwrap();
        assert!(reader.next_frame().unwrap().is_none());
    }
    let mut ng = CaptureReader::from_bytes("x", Bytes::new(true).section().out).unwrap();
    assert_eq!(ng.link(), None);
    assert_eq!(
        ng.seek(9).unwrap_err().to_string(),
        "x: cannot move to byte 9: pcapng files can only be read in order"
    );
}

/// Compresses with an external program, if it is installed.
fn compressed(program: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    let mut child =
        Command::new(program).arg("-c").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    Some(child.wait_with_output().unwrap().stdout)
}

#[test]
fn compressed_files() {
    let mut file = pcap(false, 0xa1b2_c3d4);
    for n in 0..20_000 {
        file = file.u32(n).u32(0).u32(4).u32(4).u32(n);
    }
    let dir = tempfile::tempdir().unwrap();
    for (program, magic) in
        [("gzip", &b"\x1f\x8b\x08\0\0\0"[..]), ("bzip2", b"BZh9xx"), ("xz", b"\xfd7zXZ\0")]
    {
        let Some(packed) = compressed(program, &file.out) else {
            // Without the program only the error can be tested.
            println!("{program} is not installed: only its error is tested");
            assert!(error(magic.to_vec()).contains("is not installed"));
            continue;
        };
        let path = dir.path().join(program);
        std::fs::write(&path, &packed).unwrap();
        for mut reader in
            [CaptureReader::from_bytes("x", packed.clone()).unwrap(), CaptureReader::open(&path).unwrap()]
        {
            let mut count = 0;
            while reader.next_frame().unwrap().is_some() {
                count += 1;
            }
            assert_eq!((count, reader.filesize()), (20_000, None), "{program}");
            assert!(reader.seek(24).unwrap_err().to_string().ends_with("it is compressed"));
        }
        // A reader that stops early leaves no child process behind.
        CaptureReader::open(&path).unwrap().next_frame().unwrap().unwrap();
        // Truncated or damaged data is an error.
        let cut = packed[..packed.len() / 2].to_vec();
        let text = error(cut);
        assert!(text.starts_with(&format!("x: '{program} -dc' could not decompress it")), "{text}");
        let twice = compressed(program, &packed).unwrap();
        assert!(error(twice).contains("compressed twice"));
    }
}
