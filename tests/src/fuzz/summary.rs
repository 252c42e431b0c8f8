// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fuzz target for summary dumps.

use super::at_most;
use castanet_io::summary::{
    Draft, FIELDS, Item, Made, Making, SummaryHeader, SummaryReader, SummaryRecords, View,
};

/// The maximum packet length.
const MOST: usize = 4000;

/// Returns a packet as a router would pass it to a writer.
fn view<'a>(data: &'a [u8], made: &Made) -> View<'a> {
    let network = if made.header > 0 { data.get(made.link..) } else { None };
    let mac = if made.link > 0 { Some(data) } else { None };
    let mut view = View::new(data, mac, network, made.extra_length, true);
    (view.time, view.first_time) = (made.time, made.first_time);
    view.extra_packets = made.count.saturating_sub(1);
    (view.paint, view.aggregate) = (made.paint, made.aggregate);
    view
}

/// Reads a dump, and calls `each` for every packet. Returns the number of packets.
fn read(data: &[u8], checksum: bool, each: &mut dyn FnMut(&[u8], &Made)) -> usize {
    let Ok(mut reader) = SummaryReader::from_bytes("input", data) else { return 0 };
    read_all(&mut reader, data.len(), checksum, each)
}

/// Reads all records of an input of `len` bytes.
fn read_all(
    reader: &mut SummaryReader,
    len: usize,
    checksum: bool,
    each: &mut dyn FnMut(&[u8], &Made),
) -> usize {
    let (mut draft, mut bytes, mut records, mut items) = (Draft::default(), Vec::new(), 0, 0);
    loop {
        items += 1;
        // A line gives at most three items: a record and two other items. An input of `len` bytes has at most
        // `len + 1` lines.
        assert!(items <= 3 * len + 3, "more items than bytes");
        match reader.next(&mut draft) {
            Ok(Item::Record) => records += 1,
            Ok(Item::Nothing) => continue,
            Ok(Item::Problem(text)) => {
                assert!(text.starts_with("input:"), "{text}");
                continue;
            }
            Ok(Item::End) => return records,
            Err(e) => {
                let _ = e.to_string();
                return records;
            }
        }
        let made = draft.make(reader.defaults(), Making { checksum, most: MOST, part: (0, 1) }, &mut bytes);
        assert!(bytes.len() <= MOST && made.link + made.header <= bytes.len());
        each(&bytes, &made);
    }
}

/// Reads bytes as a text that tcpdump printed.
fn tcpdump(data: &[u8]) {
    if let Ok(mut reader) = SummaryReader::tcpdump_from_bytes("input", data) {
        read_all(&mut reader, data.len(), true, &mut |_, _| ());
    }
}

/// Reads bytes as a dump, writes each packet with every field, as text and in binary, and reads the result
/// again. The first byte selects whether checksums are computed, and whether bad packets get a `!bad` line.
pub fn summary(data: &[u8]) {
    let data = at_most(data, 1 << 14);
    let [first, data @ ..] = data else { return };
    // Skip compressed files, because external programs would decompress them.
    if [&[0x1f, 0x8b][..], b"BZh", &[0xfd, b'7', b'z']].iter().any(|c| data.starts_with(c)) {
        return;
    }
    tcpdump(data);
    for binary in [false, true] {
        // The first field is a time, so that no line looks like a comment.
        let mut records = SummaryRecords::new(FIELDS.iter().collect(), binary);
        let mut written = 0;
        read(data, first & 1 != 0, &mut |bytes, made| {
            let seen = view(bytes, made);
            if let Some(bad) = seen.bad()
                && first & 2 != 0
            {
                records.note(&format!("!bad {bad}"));
            }
            records.push(&seen);
            written += 1;
        });
        let out = [records.header(&SummaryHeader::default()).as_bytes(), records.bytes()].concat();
        assert_eq!(read(&out, false, &mut |_, _| {}), written, "records that were written are read");
    }
}
