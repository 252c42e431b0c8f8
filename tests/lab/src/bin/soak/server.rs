// SPDX-License-Identifier: MIT OR Apache-2.0
//! The server: answers short connections, exchanges long streams, and returns datagrams.

use crate::bytes::{self, HEADER, PATIENCE, STACK};
use crate::traffic::{paced, report};
use castanet_io::namespace;
use nix::sys::socket::{setsockopt, sockopt};
use std::io::{self, Read};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

/// What the server counts.
#[derive(Default)]
struct Counts {
    connections: AtomicU64,
    connection_bytes: AtomicU64,
    streams_ended: AtomicU64,
    received: AtomicU64,
    sent: AtomicU64,
    wrong: AtomicU64,
    failed: AtomicU64,
    datagrams: AtomicU64,
    datagrams_wrong: AtomicU64,
}

/// Serves until the end of standard input, then prints what it counted.
pub fn serve() -> Result<(), String> {
    namespace::end_with_parent().map_err(|e| e.to_string())?;
    let failed = |e: io::Error| e.to_string();
    let counts = Arc::new(Counts::default());
    for port in bytes::SHORT_PORT..bytes::SHORT_PORT + bytes::SHORT_PORTS {
        listen(port, &counts, short).map_err(failed)?;
    }
    listen(bytes::STREAM_PORT, &counts, stream).map_err(failed)?;
    // The socket is bound to one address, so that replies come from the address that the client uses.
    let socket = UdpSocket::bind((bytes::server(1), bytes::DATAGRAM_PORT)).map_err(failed)?;
    // The default receive buffer is too small on a busy machine. The kernel may limit the size.
    let _ = setsockopt(&socket, sockopt::RcvBuf, &(4 << 20));
    let c = counts.clone();
    thread::spawn(move || datagrams(&socket, &c));
    println!("ready");
    io::stdin().lock().read_to_end(&mut Vec::new()).map_err(failed)?;
    let c = |n: &AtomicU64| n.load(Relaxed);
    report(&serde_json::json!({
        "connections": c(&counts.connections),
        "connection_bytes": c(&counts.connection_bytes),
        "streams_ended": c(&counts.streams_ended),
        "received": c(&counts.received),
        "sent": c(&counts.sent),
        "wrong": c(&counts.wrong),
        "failed": c(&counts.failed),
        "datagrams": c(&counts.datagrams),
        "datagrams_wrong": c(&counts.datagrams_wrong),
    }));
    Ok(())
}

/// Accepts connections on a port, and runs `talk` for each in its own thread.
fn listen(port: u16, counts: &Arc<Counts>, talk: fn(TcpStream, &Counts) -> io::Result<()>) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))?;
    // The standard library sets a backlog of 128, which is too small after an outage. A second call of `listen` changes
    // it.
    nix::sys::socket::listen(&listener, nix::sys::socket::Backlog::new(4096)?)?;
    let counts = counts.clone();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let each = counts.clone();
            let spawned = thread::Builder::new().stack_size(STACK).spawn(move || {
                if talk(stream, &each).is_err() {
                    each.failed.fetch_add(1, Relaxed);
                }
            });
            if spawned.is_err() {
                counts.failed.fetch_add(1, Relaxed);
            }
        }
    });
    Ok(())
}

/// Receives a message and sends another of the same length. The client closes the connection.
fn short(mut stream: TcpStream, counts: &Counts) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    let mut header = [0; HEADER];
    stream.read_exact(&mut header)?;
    let (id, length) = (bytes::number(&header), bytes::number(&header[8..]));
    let (got, wrong) = bytes::receive(&mut stream, id, Some(length), |_| ())?;
    counts.wrong.fetch_add(wrong, Relaxed);
    counts.connection_bytes.fetch_add(got, Relaxed);
    bytes::send(&mut stream, bytes::answer(id), length)?;
    if stream.read(&mut [0])? > 0 {
        return Err(io::Error::other("more bytes than were announced"));
    }
    counts.connections.fetch_add(1, Relaxed);
    Ok(())
}

/// Sends and receives bytes until the client closes its direction.
fn stream(mut stream: TcpStream, counts: &Counts) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut header = [0; HEADER];
    stream.read_exact(&mut header)?;
    let (id, rate) = (bytes::number(&header), bytes::number(&header[8..]));
    let end = AtomicBool::new(false);
    thread::scope(|s| {
        let mut to = stream.try_clone()?;
        let sender = s.spawn({
            let end = &end;
            move || {
                let sent = paced(&mut to, bytes::answer(id), rate, || end.load(Relaxed))?;
                to.shutdown(Shutdown::Write)?;
                Ok::<u64, io::Error>(sent)
            }
        });
        let received = bytes::receive(&mut stream, id, None, |_| ());
        end.store(true, Relaxed);
        let sent = sender.join().unwrap_or_else(|_| Err(io::Error::other("the sender panicked")))?;
        let (got, wrong) = received?;
        counts.received.fetch_add(got, Relaxed);
        counts.sent.fetch_add(sent, Relaxed);
        counts.wrong.fetch_add(wrong, Relaxed);
        counts.streams_ended.fetch_add(1, Relaxed);
        Ok(())
    })
}

/// Returns datagrams to their senders.
fn datagrams(socket: &UdpSocket, counts: &Counts) {
    let mut buffer = vec![0; 1 << 16];
    loop {
        let Ok((n, from)) = socket.recv_from(&mut buffer) else { continue };
        let Some((head, data)) = buffer.get(..n).and_then(|d| d.split_at_checked(8)) else { continue };
        counts.datagrams.fetch_add(1, Relaxed);
        if data != bytes::bytes(bytes::number(head), 0, data.len()) {
            counts.datagrams_wrong.fetch_add(1, Relaxed);
        }
        // If a datagram cannot be returned, the client counts it as lost.
        let _ = socket.send_to(buffer.get(..n).unwrap_or_default(), from);
    }
}
