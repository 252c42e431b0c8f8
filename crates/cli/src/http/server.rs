// SPDX-License-Identifier: MIT OR Apache-2.0
//! The HTTP server: one thread, with bounds on the number, the size and the time of requests.

use super::network::Network;
use super::respond::{Deadline, State, respond};
use super::work::THREADS;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{sleep, timeout, timeout_at};

/// The largest number of connections. Others wait until one of them ends.
const CONNECTIONS: u32 = 64;
/// The largest size of a request without its body, in bytes.
const REQUEST: usize = 16 << 10;
/// The largest number of header fields of a request.
const FIELDS: usize = 64;
/// The time that a request may take to arrive, without its body.
const ARRIVAL: Duration = Duration::from_secs(5);
/// The pause after a connection could not be accepted, for example because the process has too many open files.
const PAUSE: Duration = Duration::from_millis(100);
/// The time in which clients of event streams can still be told that the router has ended.
const GRACE: Duration = Duration::from_millis(300);

/// A running server. Dropping it ends the server.
pub struct Server {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens at the first of `addresses` that is free, and serves clients of this host and of `clients`.
    ///
    /// # Errors
    /// When no address is free.
    pub fn start(addresses: &[SocketAddr], clients: Vec<Network>, state: State) -> std::io::Result<Server> {
        let listener = std::net::TcpListener::bind(addresses)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(THREADS)
            .build()?;
        let listener = {
            let _inside = runtime.enter();
            TcpListener::from_std(listener)?
        };
        let state = Arc::new(state);
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("http".into()).spawn(move || {
            let slots = Arc::new(Semaphore::new(CONNECTIONS as usize));
            let accepts = runtime.spawn(accept(listener, clients, state.clone(), slots.clone()));
            runtime.block_on(async {
                // The channel also ends when its sender is dropped.
                let _ = stopped.await;
                accepts.abort();
                state.events.end();
                let _ = timeout(GRACE, slots.acquire_many(CONNECTIONS)).await;
            });
            // A reading that is going on ends by itself, when the router answers or has stopped.
            runtime.shutdown_background();
        })?;
        Ok(Server { address, stop: Some(stop), thread: Some(thread) })
    }

    /// The address at which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits for ever.
    pub fn wait(mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Whether a client of this address is served: it is on this host, or in one of the networks.
fn admits(networks: &[Network], client: IpAddr) -> bool {
    client.to_canonical().is_loopback() || networks.iter().any(|n| n.has(client))
}

async fn accept(listener: TcpListener, clients: Vec<Network>, state: Arc<State>, slots: Arc<Semaphore>) {
    loop {
        let Ok(slot) = slots.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, peer)) => {
                if !admits(&clients, peer.ip()) {
                    continue;
                }
                let state = state.clone();
                tokio::spawn(async move {
                    serve(stream, state).await;
                    drop(slot);
                });
            }
            Err(_) => sleep(PAUSE).await,
        }
    }
}

/// Serves one request.
async fn serve(stream: TcpStream, state: Arc<State>) {
    let deadline = Arc::new(Deadline::new());
    let of_request = deadline.clone();
    let service = service_fn(move |request| respond(request, state.clone(), of_request.clone()));
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(ARRIVAL)
            .max_buf_size(REQUEST)
            .max_headers(FIELDS)
            .keep_alive(false)
            .serve_connection(TokioIo::new(stream), service)
    );
    loop {
        let until = deadline.get();
        // Errors concern one client, who sees the connection end.
        if timeout_at(until, &mut connection).await.is_ok() || deadline.get() <= until {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_of_other_networks_are_disconnected() {
        let networks = ["192.0.2.0/24", "2001:db8::/32"].map(|n| n.parse::<Network>());
        let networks: Vec<Network> = networks.into_iter().flatten().collect();
        for (client, named, unnamed) in [
            ("127.0.0.9", true, true),
            ("::1", true, true),
            ("::ffff:127.0.0.1", true, true),
            ("192.0.2.77", true, false),
            ("2001:db8::5", true, false),
            ("198.51.100.1", false, false),
        ] {
            let admitted = |n: &[Network]| client.parse().is_ok_and(|c| admits(n, c));
            assert_eq!((admitted(&networks), admitted(&[])), (named, unnamed), "{client}");
        }
    }
}
