// SPDX-License-Identifier: MIT OR Apache-2.0
//! The HTTP server: one thread, with bounds on the number, the size and the time of requests.

use super::answer::{Answer, Hosts, answer};
use super::network::Network;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{sleep, timeout};

/// Reads the metrics. The error is a line of text.
pub type Scrape = Arc<dyn Fn() -> Result<String, String> + Send + Sync>;

/// The largest number of connections. Others wait until one of them ends.
const CONNECTIONS: usize = 64;
/// The largest size of a request without its body, in bytes. Bodies are not read.
const REQUEST: usize = 16 << 10;
/// The largest number of header fields of a request.
const FIELDS: usize = 64;
/// The time that a request may take to arrive.
const ARRIVAL: Duration = Duration::from_secs(5);
/// The time that a reading of the router may take.
const READING: Duration = Duration::from_secs(20);
/// The time that a connection may last. It has one request.
const CONNECTION: Duration = Duration::from_secs(60);
/// The pause after a connection could not be accepted, for example because the process has too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// The state that all connections share.
struct State {
    hosts: Hosts,
    clients: Vec<Network>,
    scrape: Scrape,
    /// One reading at a time, so that clients cannot make the router answer any number of calls at once.
    turn: Arc<Semaphore>,
}

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
    pub fn start(
        addresses: &[SocketAddr],
        hosts: Hosts,
        clients: Vec<Network>,
        scrape: Scrape,
    ) -> std::io::Result<Server> {
        let listener = std::net::TcpListener::bind(addresses)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(2).build()?;
        let listener = {
            let _inside = runtime.enter();
            TcpListener::from_std(listener)?
        };
        let state = Arc::new(State { hosts, clients, scrape, turn: Arc::new(Semaphore::new(1)) });
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("http".into()).spawn(move || {
            runtime.spawn(accept(listener, state));
            // The channel also ends when its sender is dropped.
            let _ = runtime.block_on(stopped);
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

async fn accept(listener: TcpListener, state: Arc<State>) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(slot) = slots.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, peer)) => {
                if !admits(&state.clients, peer.ip()) {
                    continue;
                }
                let state = state.clone();
                tokio::spawn(async move {
                    let _ = timeout(CONNECTION, serve(stream, state)).await;
                    drop(slot);
                });
            }
            Err(_) => sleep(PAUSE).await,
        }
    }
}

/// Serves one request.
async fn serve(stream: TcpStream, state: Arc<State>) {
    let service = service_fn(move |request| respond(request, state.clone()));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(ARRIVAL)
        .max_buf_size(REQUEST)
        .max_headers(FIELDS)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    // Errors concern one client, who sees the connection end.
    let _ = connection.await;
}

async fn respond(request: Request<Incoming>, state: Arc<State>) -> Result<Response<Full<Bytes>>, Infallible> {
    const TEXT: &str = "text/plain; charset=utf-8";
    const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let (status, kind, text) = match answer(request.method(), request.uri(), request.headers(), &state.hosts)
    {
        Answer::Index => (200, TEXT, "/metrics: the metrics of the router, for Prometheus\n".to_string()),
        Answer::Metrics => match metrics(&state).await {
            Ok(text) => (200, METRICS, text),
            Err(e) => (503, TEXT, format!("{e}\n")),
        },
        Answer::Error(status, text) => (status, TEXT, format!("{text}\n")),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if status == 405 {
        let allowed = [Method::GET.as_str(), Method::HEAD.as_str()].join(", ");
        headers.extend(HeaderValue::from_str(&allowed).ok().map(|v| (ALLOW, v)));
    }
    Ok(response)
}

/// Reads the metrics on another thread, because the router may take long to answer.
async fn metrics(state: &State) -> Result<String, String> {
    let late = |_| "the router does not answer".to_string();
    let reading = async {
        let turn = state.turn.clone().acquire_owned().await.map_err(|e| e.to_string())?;
        let scrape = state.scrape.clone();
        let read = tokio::task::spawn_blocking(move || {
            let out = scrape();
            // The next reading begins when this one has ended, even if its client has gone.
            drop(turn);
            out
        });
        read.await.map_err(|_| "the reading failed".to_string())?
    };
    timeout(READING, reading).await.map_err(late)?
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
