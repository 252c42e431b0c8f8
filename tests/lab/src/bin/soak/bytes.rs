// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bytes that streams and datagrams carry. The receiver computes the same bytes and compares them.

use std::io::{self, Read, Write};
use std::net::Ipv4Addr;
use std::time::Duration;

/// The first of the consecutive ports for short connections.
pub const SHORT_PORT: u16 = 7000;
/// The number of ports for short connections.
pub const SHORT_PORTS: u16 = 4;
/// The port for long streams.
pub const STREAM_PORT: u16 = 7100;
/// The port for datagrams. The server returns each datagram to its sender.
pub const DATAGRAM_PORT: u16 = 7200;
/// The number of the server's addresses. Their last bytes count from 1.
pub const ADDRESSES: u8 = 16;
/// The server's address with this last byte.
pub fn server(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(198, 51, 100, last)
}
/// The length in bytes of a connection's header. The header has the id of the stream, and then the length of a message
/// or the rate of a long stream.
pub const HEADER: usize = 16;
/// Timeout, longer than any pause in a connection, even with all disturbances and repeated retransmissions.
pub const PATIENCE: Duration = Duration::from_secs(150);
/// The stack size of a thread of a client or server. It is small, because there are hundreds of threads.
pub const STACK: usize = 128 << 10;
/// The number of bytes that are compared at once.
const BLOCK: usize = 16 << 10;

/// The eight bytes of stream `id` from offset `8 * index` on.
fn word(id: u64, index: u64) -> [u8; 8] {
    (id.wrapping_mul(0xd1b5_4a32_d192_ed03).wrapping_add(index))
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(23)
        .to_le_bytes()
}

/// Returns `length` bytes of stream `id`, from `offset` on.
pub fn bytes(id: u64, offset: u64, length: usize) -> Vec<u8> {
    let skip = (offset % 8) as usize;
    let words = (offset / 8..).flat_map(|i| word(id, i));
    words.skip(skip).take(length).collect()
}

/// The id of the stream in the opposite direction.
pub fn answer(id: u64) -> u64 {
    !id
}

/// Writes a header.
pub fn header(id: u64, length: u64) -> [u8; HEADER] {
    let mut all = [0; HEADER];
    let (a, b) = all.split_at_mut(8);
    a.copy_from_slice(&id.to_le_bytes());
    b.copy_from_slice(&length.to_le_bytes());
    all
}

/// Reads a 64-bit number from a header or datagram.
pub fn number(from: &[u8]) -> u64 {
    let mut all = [0; 8];
    all.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
    u64::from_le_bytes(all)
}

/// Receives `length` bytes of a stream, or all bytes up to its end if `length` is none. Calls `each` with the size of
/// each piece. Returns the number of bytes received, and how many of them were wrong.
pub fn receive(
    from: &mut impl Read,
    id: u64,
    length: Option<u64>,
    mut each: impl FnMut(u64),
) -> io::Result<(u64, u64)> {
    let (mut got, mut wrong) = (0u64, 0u64);
    let mut buffer = vec![0; BLOCK.min(length.unwrap_or(u64::MAX) as usize)];
    while length.is_none_or(|l| got < l) {
        let most = length.map_or(buffer.len(), |l| buffer.len().min((l - got) as usize));
        let n = match from.read(buffer.get_mut(..most).unwrap_or_default()) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        if n == 0 {
            match length {
                None => break,
                Some(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        let should = bytes(id, got, n);
        wrong += buffer.iter().zip(&should).filter(|(a, b)| a != b).count() as u64;
        got += n as u64;
        each(n as u64);
    }
    Ok((got, wrong))
}

/// Sends the first `length` bytes of a stream.
pub fn send(to: &mut impl Write, id: u64, length: u64) -> io::Result<()> {
    to.write_all(&bytes(id, 0, length as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_the_same_in_any_pieces() {
        let whole = bytes(7, 0, 100);
        let pieces: Vec<u8> = [bytes(7, 0, 13), bytes(7, 13, 60), bytes(7, 73, 27)].concat();
        assert_eq!(whole, pieces);
        assert_ne!(whole, bytes(answer(7), 0, 100));
    }

    #[test]
    fn wrong_bytes_are_counted() {
        let mut sent = bytes(3, 0, 50_000);
        sent[40_000] ^= 1;
        let done = receive(&mut &sent[..], 3, None, |_| ()).ok();
        assert_eq!(done, Some((50_000, 1)));
        assert!(receive(&mut &sent[..], 3, Some(50_001), |_| ()).is_err());
    }
}
