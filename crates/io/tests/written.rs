// SPDX-License-Identifier: MIT OR Apache-2.0
//! The output of CaptureWriter: layout, round trips, comparison with other readers, and errors.
#![allow(clippy::unwrap_used)]
use parking_lot::Mutex;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use castanet_io::{CaptureFormat, CaptureReader, CaptureWriter, LinkType, WriterOptions};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// A sink whose bytes the test can read. It accepts at most `room` bytes.
#[derive(Clone)]
struct Shared {
    bytes: Arc<Mutex<Vec<u8>>>,
    room: usize,
}

impl Shared {
    fn with_room(room: usize) -> Shared {
        Shared { bytes: Arc::default(), room }
    }
}

impl Write for Shared {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let mut bytes = self.bytes.lock();
        let n = buf.len().min(self.room - bytes.len());
        if n == 0 && !buf.is_empty() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        bytes.extend(&buf[..n]);
        Ok(n)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn written(options: WriterOptions, packets: &[(i64, Vec<u8>, u32)]) -> Vec<u8> {
    let shared = Shared::with_room(usize::MAX);
    let mut writer = CaptureWriter::from_writer("x", shared.clone(), options).unwrap();
    for (time, data, original) in packets {
        assert!(writer.write(*time, data, *original).unwrap());
    }
    assert_eq!(writer.count(), packets.len() as u64);
    writer.close().unwrap();
    let bytes = shared.bytes.lock();
    bytes.clone()
}

#[test]
fn the_default_layout() {
    let bytes = written(WriterOptions::default(), &[(1_500_000_001, b"abc".to_vec(), 7)]);
    if cfg!(target_endian = "little") {
        let header = b"\x4d\x3c\xb2\xa1\x02\0\x04\0\0\0\0\0\0\0\0\0\xd0\x07\0\0\x01\0\0\0";
        let record = b"\x01\0\0\0\x01\x65\xcd\x1d\x03\0\0\0\x07\0\0\0abc";
        assert_eq!(bytes, [&header[..], &record[..]].concat());
    }
    let raw = WriterOptions { link: LinkType::RAW_IP, nano: false, ..WriterOptions::default() };
    let bytes = written(raw, &[]);
    assert_eq!(bytes[..4], 0xa1b2_c3d4_u32.to_ne_bytes());
    assert_eq!(bytes[20..], 101u32.to_ne_bytes());
}

#[test]
fn lengths_and_times_are_limited() {
    let options = WriterOptions { snaplen: 4, ..WriterOptions::default() };
    let packets = [(-5, b"abcdef".to_vec(), 2), (i64::MAX, vec![], 0)];
    let mut reader = CaptureReader::from_bytes("x", written(options, &packets)).unwrap();
    let frame = reader.next_frame().unwrap().unwrap();
    assert_eq!((frame.time_ns, frame.data, frame.original_len), (0, &b"abcd"[..], 6));
    assert_eq!(reader.next_frame().unwrap().unwrap().time_ns, 4_294_967_295_999_999_999);
    let unlimited = WriterOptions { snaplen: 0, ..WriterOptions::default() };
    let mut reader = CaptureReader::from_bytes("x", written(unlimited, &[(0, vec![1; 300_000], 0)])).unwrap();
    let frame = reader.next_frame().unwrap().unwrap();
    assert_eq!((frame.data.len(), frame.original_len), (262_144, 300_000));
}

fn options() -> impl Strategy<Value = WriterOptions> {
    (any::<bool>(), any::<bool>(), any::<bool>(), prop_oneof![Just(1u32), Just(101), Just(54_321)]).prop_map(
        |(nano, ng, unbuffered, link)| WriterOptions {
            link: LinkType(link),
            snaplen: 0,
            nano,
            format: if ng { CaptureFormat::PcapNg } else { CaptureFormat::Pcap },
            unbuffered,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, rng_seed: RngSeed::Fixed(14), ..ProptestConfig::default() })]

    #[test]
    fn round_trip(
        options in options(),
        packets in prop::collection::vec(
            (0..4_000_000_000_000_000_000i64, prop::collection::vec(any::<u8>(), 0..200), 0..3000u32), 0..20),
    ) {
        let bytes = written(options, &packets);
        let mut reader = CaptureReader::from_bytes("x", bytes.clone()).unwrap();
        prop_assert_eq!(reader.link(), Some(options.link));
        for (time, data, original) in &packets {
            let frame = reader.next_frame().unwrap().unwrap();
            let unit = if options.nano { 1 } else { 1000 };
            prop_assert_eq!(frame.time_ns, time / unit * unit);
            prop_assert_eq!(frame.data, &data[..]);
            prop_assert_eq!(frame.original_len, (*original).max(data.len() as u32));
        }
        prop_assert!(reader.next_frame().unwrap().is_none() && !reader.truncated());
        match options.format {
            CaptureFormat::Pcap => other_reader_of_pcap(&bytes, &packets, options.nano),
            CaptureFormat::PcapNg => other_reader_of_pcapng(&bytes, &packets),
        }
    }
}

fn other_reader_of_pcap(bytes: &[u8], packets: &[(i64, Vec<u8>, u32)], nano: bool) {
    let mut other = pcap_file::pcap::PcapReader::new(bytes).unwrap();
    for (time, data, original) in packets {
        let packet = other.next_packet().unwrap().unwrap();
        let unit = if nano { 1 } else { 1000 };
        assert_eq!(packet.timestamp.as_nanos() as i64, time / unit * unit);
        assert_eq!((&packet.data[..], packet.orig_len), (&data[..], (*original).max(data.len() as u32)));
    }
    assert!(other.next_packet().is_none());
}

fn other_reader_of_pcapng(bytes: &[u8], packets: &[(i64, Vec<u8>, u32)]) {
    let mut other = pcap_file::pcapng::PcapNgReader::new(bytes).unwrap();
    let mut seen = Vec::new();
    while let Some(block) = other.next_block() {
        if let Some(packet) = block.unwrap().into_enhanced_packet() {
            seen.push((packet.data.to_vec(), packet.original_len));
        }
    }
    let expected: Vec<_> = packets
        .iter()
        .map(|(_, data, original)| (data.clone(), (*original).max(data.len() as u32)))
        .collect();
    assert_eq!(seen, expected);
}

/// Output of a program, or `None` if it is not installed.
fn run(program: &str, arguments: &[&str]) -> Option<String> {
    match Command::new(program).args(arguments).output() {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
            Some(text)
        }
        Err(_) => {
            println!("SKIP: {program} is not installed, so its opinion of written files is not asked");
            None
        }
    }
}

#[test]
fn capture_programs_read_what_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let arp =
        b"\xff\xff\xff\xff\xff\xff\0\0\xc0\xae\x67\xef\x08\x06\0\x01\x08\0\x06\x04\0\x01\0\0\xc0\xae\x67\xef\
        \x01\0\0\x01\0\0\0\0\0\0\x01\0\0\x05";
    for (format, extension) in [(CaptureFormat::Pcap, "pcap"), (CaptureFormat::PcapNg, "pcapng")] {
        for nano in [true, false] {
            let path = dir.path().join(format!("{nano}.{extension}"));
            let options = WriterOptions { nano, format, ..WriterOptions::default() };
            let mut writer = CaptureWriter::create(&path, options).unwrap();
            for n in 0..3 {
                writer.write(1_000_000_001_000 * n, arp, 60).unwrap();
            }
            writer.close().unwrap();
            let path = path.to_str().unwrap();
            if let Some(text) = run("tcpdump", &["-n", "-r", path]) {
                assert_eq!(text.matches("Request who-has 1.0.0.5 tell 1.0.0.1").count(), 3, "{text}");
            }
            if let Some(text) = run("capinfos", &["-c", "-E", "-M", path]) {
                assert!(text.contains("Number of packets:   3") && text.contains("ether"), "{text}");
            }
        }
    }
}

#[test]
fn an_error_is_told_once() {
    let shared = Shared::with_room(24 + 5);
    let options = WriterOptions { unbuffered: true, ..WriterOptions::default() };
    let mut writer = CaptureWriter::from_writer("out", shared, options).unwrap();
    assert_eq!(writer.write(0, b"abc", 3).unwrap_err().to_string(), "out: broken pipe");
    assert!(!writer.write(0, b"abc", 3).unwrap());
    assert_eq!(writer.count(), 0);
    assert!(writer.flush().is_ok());
    assert!(writer.close().is_ok());
    assert!(CaptureWriter::from_writer("out", Shared::with_room(9), options).is_err());
}

#[test]
fn a_full_disk_is_an_error() {
    if !Path::new("/dev/full").exists() {
        println!("SKIP: there is no /dev/full here");
        return;
    }
    let text = CaptureWriter::create("/dev/full", WriterOptions::default()).err().unwrap().to_string();
    assert_eq!(text, "/dev/full: No space left on device");
}

/// Simulates a full disk: the shell sets a file size limit for a child that runs this test binary again.
#[test]
fn a_cut_record_is_taken_back() {
    const CHILD: &str = "CASTANET_IO_LIMITED_FILE";
    if let Ok(path) = std::env::var(CHILD) {
        let mut writer = CaptureWriter::create(&path, WriterOptions::default()).unwrap();
        let mut failures = 0;
        for _ in 0..200 {
            failures += usize::from(writer.write(0, &[7; 1000], 1000).is_err());
        }
        assert_eq!(failures, 1);
        println!("{}", writer.count());
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("limited.pcap");
    // 100 blocks of 512 bytes (1024 in some shells): less than the packets need, and not a whole number of records.
    let script = "trap '' XFSZ; ulimit -f 100; exec \"$0\" a_cut_record_is_taken_back --exact";
    let child = Command::new("sh")
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .env(CHILD, &path)
        .output()
        .unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
    let size = File::open(&path).unwrap().metadata().unwrap().len();
    assert!(size > 24 && (size - 24).is_multiple_of(1016), "{size}");
    let mut reader = CaptureReader::open(&path).unwrap();
    while reader.next_frame().unwrap().is_some() {}
    assert!(!reader.truncated());
}
