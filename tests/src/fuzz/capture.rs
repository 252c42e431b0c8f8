// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fuzz target for capture files in memory.

use super::at_most;
use castanet_io::{CaptureReader, MAX_CAPTURED};

/// Magic numbers of compressed files, which external programs decompress.
const COMPRESSED: &[&[u8]] =
    &[&[0x1f, 0x8b], b"BZh", &[0xfd, b'7', b'z', b'X', b'Z'], &[0x28, 0xb5, 0x2f, 0xfd]];

/// Reads bytes as a capture file. Then seeks to several offsets, and reads on from there.
pub fn capture(data: &[u8]) {
    let data = at_most(data, 1 << 16);
    if COMPRESSED.iter().any(|c| data.starts_with(c)) {
        return;
    }
    let Ok(mut reader) = CaptureReader::from_bytes("input", data) else { return };
    let mut places = Vec::new();
    loop {
        let next = reader.next_frame();
        match next {
            Ok(Some(frame)) => {
                assert!(frame.data.len() <= MAX_CAPTURED as usize && frame.data.len() <= data.len());
                let _ = format!("{} {}", frame.link, frame.time_ns);
            }
            Ok(None) => break,
            Err(e) => {
                let _ = e.to_string();
                break;
            }
        }
        places.push(reader.packet_filepos());
        assert!(places.len() <= data.len(), "more frames than bytes");
        assert!(reader.filepos() <= data.len() as u64, "beyond the end");
    }
    let _ = (reader.link(), reader.truncated(), reader.filesize());
    let middle = places.get(places.len() / 2).copied().unwrap_or(0);
    for at in [middle, middle + 1, data.len() as u64, u64::MAX] {
        if reader.seek(at).is_ok() {
            while let Ok(Some(_)) = reader.next_frame() {}
        }
    }
}
