// SPDX-License-Identifier: MIT OR Apache-2.0
//! The address of an HTTP server.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};

/// A host and a port, `HOST:PORT`. IPv6 addresses are in brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// The host, without brackets.
    pub host: String,
    pub port: u16,
}

impl std::str::FromStr for Listen {
    type Err = String;
    fn from_str(text: &str) -> Result<Listen, String> {
        let wrong = || "expected HOST:PORT, for example 127.0.0.1:9090".to_string();
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let inner = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
        if inner.is_none() && host.contains([':', '[', ']']) {
            return Err(wrong());
        }
        let host = inner.unwrap_or(host);
        let port = port.parse().map_err(|_| wrong())?;
        if host.is_empty() || host.contains(|c: char| c.is_whitespace() || c == '/') {
            return Err(wrong());
        }
        Ok(Listen { host: host.to_string(), port })
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Listen { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

/// Returns the addresses of a host. `open` says whether the user has named the networks of clients.
///
/// # Errors
/// When the host is unknown, or when other hosts can reach it and the user has named no clients.
pub fn resolve(listen: &Listen, open: bool) -> Result<Vec<SocketAddr>, String> {
    let found = (listen.host.as_str(), listen.port).to_socket_addrs();
    let all: Vec<SocketAddr> =
        found.map_err(|e| format!("--http {listen}: {}", crate::load::reason(&e)))?.collect();
    match all.iter().find(|a| !a.ip().is_loopback()) {
        Some(a) if !open => Err(format!(
            "--http {listen}: other hosts can reach {}; write 127.0.0.1:{} for clients of this host, or name the \
             clients: --http-from NETWORK, for example --http-from 192.0.2.0/24",
            a.ip(),
            listen.port
        )),
        _ => Ok(all),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_host_and_a_port() {
        for text in ["127.0.0.1:9090", "[::1]:0", "localhost:65535"] {
            let parsed = text.parse::<Listen>();
            assert_eq!(parsed.map(|l| l.to_string()), Ok(text.to_string()));
        }
        for text in [
            "", "9090", ":9090", "::1:9090", "[::1]", "[]:1", "h:65536", "h:-1", "h:", "a/b:1", "[::1:1",
            "a b:1",
        ] {
            assert!(text.parse::<Listen>().is_err(), "{text}");
        }
    }

    #[test]
    fn only_the_loopback_address_needs_no_list_of_clients() {
        let at = |host: &str| Listen { host: host.into(), port: 9090 };
        assert!(resolve(&at("127.0.0.1"), false).is_ok_and(|a| a.len() == 1));
        assert!(resolve(&at("127.5.0.1"), false).is_ok());
        for host in ["0.0.0.0", "192.0.2.1", "::", "::ffff:127.0.0.1"] {
            let error = resolve(&at(host), false).err().unwrap_or_default();
            assert!(error.contains("--http-from NETWORK"), "{host}: {error}");
            assert!(resolve(&at(host), true).is_ok(), "{host}");
        }
    }
}
