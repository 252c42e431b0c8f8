// SPDX-License-Identifier: MIT OR Apache-2.0
//! Damaged files: for any bytes, reading ends without panic and within bounded memory.
#![allow(clippy::unwrap_used)]
use castanet_io::{CaptureReader, MAX_CAPTURED};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Valid files: for each byte order a pcap, a modified pcap and a pcapng file, small enough to damage every byte.
fn samples() -> Vec<Vec<u8>> {
    let mut samples = Vec::new();
    for big in [false, true] {
        let n32 = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
        let n16 = |n: u16| if big { n.to_be_bytes() } else { n.to_le_bytes() };
        for magic in [0xa1b2_c3d4_u32, 0xa1b2_cd34] {
            let mut file = [&n32(magic)[..], &n16(2), &n16(4), &[0; 8], &n32(2000), &n32(1)].concat();
            for length in [0u32, 7, 20] {
                file.extend([n32(1), n32(2), n32(length), n32(length + 1)].concat());
                file.resize(file.len() + if magic == 0xa1b2_cd34 { 8 } else { 0 }, 0);
                file.resize(file.len() + length as usize, 0xaa);
            }
            samples.push(file);
        }
        let block = |kind: u32, body: &[u8]| {
            let length = n32(body.len() as u32 + 12);
            [&n32(kind)[..], &length, body, &length].concat()
        };
        let section = block(0x0a0d_0d0a, &[&n32(0x1a2b_3c4d)[..], &n16(1), &n16(0), &[0xff; 8]].concat());
        let resolution = [&n16(9)[..], &n16(1), &[9, 0, 0, 0], &n16(14), &n16(8), &[1; 8], &[0; 4]].concat();
        let interface = block(1, &[&n16(1)[..], &n16(0), &n32(0), &resolution].concat());
        let enhanced = block(6, &[n32(0), n32(1), n32(2), n32(4), n32(9), [1, 2, 3, 4]].concat());
        let obsolete =
            block(2, &[&n16(0)[..], &n16(1), &n32(1), &n32(2), &n32(4), &n32(4), &[1, 2, 3, 4]].concat());
        let simple = block(3, &[n32(4), [9, 9, 9, 9]].concat());
        let unknown = block(0x4444, &[5; 8]);
        samples.push([&section[..], &interface, &enhanced, &unknown, &obsolete, &simple, &section].concat());
    }
    samples
}

/// Reads to the end. Returns the number of packets, and whether reading met neither an error nor a truncated
/// record.
fn drain(bytes: &[u8]) -> (usize, bool) {
    let Ok(mut reader) = CaptureReader::from_bytes("x", bytes) else { return (0, false) };
    let mut packets = 0;
    loop {
        match reader.next_frame() {
            Ok(Some(frame)) => {
                assert!(frame.data.len() <= MAX_CAPTURED as usize);
                assert!(frame.data.len() <= frame.original_len as usize);
                assert!(frame.data.len() <= bytes.len());
                packets += 1;
                // Each packet takes at least 12 bytes of the file, so reading must end.
                assert!(packets <= bytes.len() / 12);
            }
            Ok(None) => return (packets, !reader.truncated()),
            Err(error) => {
                assert!(error.to_string().starts_with("x: "));
                assert!(matches!(reader.next_frame(), Ok(None)));
                return (packets, false);
            }
        }
    }
}

#[test]
fn samples_are_valid() {
    for sample in samples() {
        assert_eq!(drain(&sample), (3, true));
    }
}

#[test]
fn every_truncation() {
    for sample in samples() {
        let mut clean = 0;
        for length in 0..sample.len() {
            clean += usize::from(drain(&sample[..length]).1);
        }
        // Only truncation exactly at the end of a record or block goes undetected.
        assert!(clean <= 7, "{clean}");
    }
}

#[test]
fn every_byte_changed() {
    for sample in samples() {
        for at in 0..sample.len() {
            for value in
                [0, 1, 0x7f, 0x80, 0xff, sample[at] ^ 1, sample[at].wrapping_add(1), sample[at] ^ 0x80]
            {
                let mut damaged = sample.clone();
                damaged[at] = value;
                drain(&damaged);
            }
        }
        for at in 0..sample.len().saturating_sub(3) {
            for word in [0u32, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX, 262_145, 262_144] {
                for bytes in [word.to_le_bytes(), word.to_be_bytes()] {
                    let mut damaged = sample.clone();
                    damaged[at..at + 4].copy_from_slice(&bytes);
                    drain(&damaged);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, rng_seed: RngSeed::Fixed(2), ..ProptestConfig::default() })]

    #[test]
    fn random_tails(which in 0..6usize, keep in 4..60usize, tail in prop::collection::vec(any::<u8>(), 0..200)) {
        let sample = &samples()[which];
        let keep = keep.min(sample.len());
        drain(&[&sample[..keep], &tail].concat());
    }

    #[test]
    fn random_damage(
        which in 0..6usize,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut sample = samples()[which].clone();
        for (at, value) in damage {
            let at = at.index(sample.len());
            sample[at] = value;
        }
        drain(&sample);
    }

    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        drain(&bytes);
    }
}
