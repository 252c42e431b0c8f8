// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCP streams in both directions, one after the other. The receiver compares every byte.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

/// Timeout, longer than any operation needs even on a slow machine.
const PATIENCE: Duration = Duration::from_secs(200);
/// The number of bytes per write, enough for super-packets of any length.
const BLOCK: usize = 256 << 10;

/// Generates a block of the stream, which differs from the preceding and following blocks.
fn block(number: u64) -> impl Iterator<Item = u8> {
    let first = number * (BLOCK as u64 / 8);
    (first..first + BLOCK as u64 / 8).flat_map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes())
}

fn send(stream: &mut TcpStream, blocks: u64) -> io::Result<()> {
    (0..blocks).try_for_each(|n| stream.write_all(&block(n).collect::<Vec<u8>>()))
}

fn receive(stream: &mut TcpStream, blocks: u64) -> io::Result<()> {
    let mut got = vec![0; BLOCK];
    for n in 0..blocks {
        stream.read_exact(&mut got)?;
        if let Some(at) = block(n).zip(&got).position(|(a, b)| a != *b) {
            return Err(io::Error::other(format!("block {n} differs at byte {at}")));
        }
    }
    Ok(())
}

fn patient(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Serves one client: receives blocks, then sends the same number of blocks.
pub fn serve(port: u16, blocks: u64) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))?;
    println!("ready");
    let mut stream = patient(listener.accept()?.0)?;
    receive(&mut stream, blocks)?;
    send(&mut stream, blocks)
}

/// Sends blocks to a server, then receives the same number of blocks.
pub fn exchange(server: &str, port: u16, blocks: u64) -> io::Result<()> {
    let mut stream = patient(TcpStream::connect((server, port))?)?;
    send(&mut stream, blocks)?;
    receive(&mut stream, blocks)?;
    println!("{blocks} blocks each way");
    Ok(())
}
