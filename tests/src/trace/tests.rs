// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that the stored traces equal the generator's output and have the required contents.
#![allow(clippy::unwrap_used)]
use std::path::Path;

use castanet_io::CaptureReader;
use etherparse::SlicedPacket;

use super::*;

#[test]
fn kept_traces_are_made_from_the_seed() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conf/traces");
    let made = tempfile::tempdir().unwrap();
    let traces = ip_router(SEED);
    write(&traces, made.path()).unwrap();
    for (interface, frames) in traces.interfaces.iter().enumerate() {
        let name = file_name(interface);
        let mut reader = CaptureReader::open(kept.join(&name)).unwrap();
        for frame in frames {
            let read = reader.next_frame().unwrap().unwrap();
            assert_eq!(
                (read.time_ns, read.data, read.original_len),
                (frame.time_ns, &frame.data[..], frame.original_len)
            );
        }
        assert!(reader.next_frame().unwrap().is_none());
        // The writer uses native byte order. The stored files are little-endian.
        if cfg!(target_endian = "little") {
            let same =
                std::fs::read(kept.join(&name)).unwrap() == std::fs::read(made.path().join(&name)).unwrap();
            assert!(same, "{name} is not what make-trace makes");
        }
    }
}

#[test]
fn size_and_order() {
    let traces = ip_router(SEED);
    let bytes: usize = traces.interfaces.iter().flatten().map(|frame| frame.data.len() + 16).sum();
    assert!(bytes < 2_000_000, "{bytes}");
    for frames in &traces.interfaces {
        assert!(frames.len() > 1500);
        assert!(frames.is_sorted_by_key(|frame| frame.time_ns));
        assert!(frames.iter().all(|frame| frame.data.len() <= 4000));
    }
    assert_ne!(ip_router(SEED + 1), traces);
    assert_eq!(ip_router(SEED), traces);
}

/// Checks with etherparse that forwardable packets have correct transport checksums.
#[test]
fn checksums_are_right() {
    let (mut udp, mut tcp) = (0, 0);
    for frame in ip_router(SEED).interfaces.iter().flatten() {
        let Ok(SlicedPacket { net: Some(net), transport: Some(transport), .. }) =
            SlicedPacket::from_ethernet(&frame.data)
        else {
            continue;
        };
        let etherparse::NetSlice::Ipv4(ip) = net else { continue };
        let header = ip.header().to_header();
        if header.calc_header_checksum() != header.header_checksum || header.is_fragmenting_payload() {
            continue;
        }
        match transport {
            etherparse::TransportSlice::Udp(slice) => {
                let right = slice.to_header().calc_checksum_ipv4(&header, slice.payload()).unwrap();
                // If the UDP length is wrong, the packet was changed deliberately, so its checksum is not compared.
                if usize::from(slice.length()) == slice.payload().len() + 8 {
                    assert_eq!(slice.checksum(), right);
                    udp += 1;
                }
            }
            etherparse::TransportSlice::Tcp(slice) => {
                assert_eq!(
                    slice.checksum(),
                    slice.calc_checksum_ipv4(ip.header().source(), ip.header().destination()).unwrap()
                );
                tcp += 1;
            }
            _ => {}
        }
    }
    assert!(udp > 1000 && tcp > 500, "{udp} {tcp}");
}
