// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decides which HTTP requests are answered, and with which rights.

use crate::api::Problem;
use castanet_control::Token;
use hyper::header::{AUTHORIZATION, HOST, HeaderMap, ORIGIN};
use std::net::IpAddr;

/// The names by which requests may call this host. A web page can make a browser send requests here under the page's own
/// name (DNS rebinding), so other names are refused.
#[derive(Clone, Debug)]
pub struct Hosts(Vec<String>);

impl Hosts {
    /// `listen` is the host at which the server listens, `more` are further names.
    pub fn new(listen: &str, more: &[String]) -> Hosts {
        let names = ["localhost", listen].into_iter().chain(more.iter().map(String::as_str));
        Hosts(names.map(str::to_ascii_lowercase).collect())
    }
    /// Whether a Host field names this host. An address is always right: a page cannot have it as its name.
    fn has(&self, field: &str) -> bool {
        let (host, port) = match field.strip_prefix('[').and_then(|f| f.split_once(']')) {
            Some((host, rest)) => (host, rest.strip_prefix(':').or(rest.is_empty().then_some("0"))),
            None => field.split_once(':').map_or((field, Some("0")), |(host, port)| (host, Some(port))),
        };
        port.is_some_and(|p| p.parse::<u16>().is_ok())
            && (host.parse::<IpAddr>().is_ok() || self.0.contains(&host.to_ascii_lowercase()))
    }
}

/// The rights of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// It may read.
    Read,
    /// It has shown the token, so it may also write.
    Write,
}

/// The rules for requests.
pub struct Gate {
    /// The names of this host.
    pub hosts: Hosts,
    /// The token that gives the right to write. Nobody may write without one.
    pub token: Option<Token>,
}

/// Returns the only value of a header field; `None` if there is none, an error if there are several.
fn single<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Problem> {
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (value, None) => Ok(value.map(|v| v.to_str().unwrap_or_default())),
        _ => Err(Problem::new(400, format!("expected one {name} field"))),
    }
}

impl Gate {
    /// Returns the rights of a request.
    ///
    /// # Errors
    /// When the request names another host, comes from a page of another site, or has a wrong token.
    pub fn admit(&self, headers: &HeaderMap) -> Result<Rights, Problem> {
        let Some(host) = single(headers, HOST.as_str())? else {
            return Err(Problem::new(400, "expected one Host field"));
        };
        if !self.hosts.has(host) {
            let why =
                "the Host field of the request does not name this host; --http-host NAME allows another name";
            return Err(Problem::new(403, why));
        }
        // Browsers send this field with requests that a page makes, except reads from its own site.
        if let Some(origin) = single(headers, ORIGIN.as_str())?
            && !origin.strip_prefix("http://").is_some_and(|o| o.eq_ignore_ascii_case(host))
        {
            return Err(Problem::new(403, "requests of other web pages are refused"));
        }
        // Browsers also say whether a request comes from another site. Following a link is allowed.
        let follows = single(headers, "sec-fetch-mode")? == Some("navigate");
        if let Some("cross-site" | "same-site") = single(headers, "sec-fetch-site")?
            && !follows
        {
            return Err(Problem::new(403, "requests of other web pages are refused"));
        }
        let Some(given) = single(headers, AUTHORIZATION.as_str())? else { return Ok(Rights::Read) };
        let bearer = given.split_once(' ').filter(|g| g.0.eq_ignore_ascii_case("bearer"));
        match (&self.token, bearer) {
            (Some(token), Some((_, word))) if token.matches(word.trim().as_bytes()) => Ok(Rights::Write),
            (None, _) => Ok(Rights::Read),
            _ => Err(Problem::new(401, "the token is wrong")),
        }
    }

    /// Checks that a request with these rights may write.
    ///
    /// # Errors
    /// When it may not.
    pub fn may_write(&self, rights: Rights) -> Result<(), Problem> {
        match (&self.token, rights) {
            (Some(_), Rights::Write) => Ok(()),
            (Some(_), Rights::Read) => {
                Err(Problem::new(401, "this needs the token that was printed at the start"))
            }
            (None, _) => {
                Err(Problem::new(403, "this server is read-only; --http-write starts one that is not"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use hyper::header::{HeaderName, HeaderValue};

    const TOKEN: &str = "0123456789abcdef";

    /// The rights of a request with these header fields: 0 to read, 1 to write, or the status of the error.
    fn status(gate: &Gate, fields: &[(&'static str, &'static str)]) -> u16 {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        match gate.admit(&headers) {
            Ok(Rights::Read) => 0,
            Ok(Rights::Write) => 1,
            Err(e) => e.status,
        }
    }
    fn gate(token: Option<&str>) -> Gate {
        let hosts = Hosts::new("::1", &["Router1.example".into()]);
        Gate { hosts, token: token.map(|t| t.parse().unwrap()) }
    }

    #[test]
    fn only_requests_under_known_names_are_answered() {
        let gate = gate(None);
        for (host, want) in [
            ("127.0.0.1", 0),
            ("127.0.0.1:1", 0),
            ("[::1]:9090", 0),
            ("[::1]", 0),
            ("192.0.2.1:9090", 0),
            ("LOCALHOST", 0),
            ("router1.example:80", 0),
            ("example.org", 403),
            ("localhost.example.org", 403),
            ("localhost:99999", 403),
            ("[::1]x", 403),
            ("[::1", 403),
            ("", 403),
            (":80", 403),
        ] {
            assert_eq!(status(&gate, &[("host", host)]), want, "{host}");
        }
        assert_eq!(status(&gate, &[]), 400);
        assert_eq!(status(&gate, &[("host", "localhost"), ("host", "localhost")]), 400);
    }

    #[test]
    fn pages_of_other_sites_are_refused() {
        let gate = gate(Some(TOKEN));
        let bearer = ("authorization", "Bearer 0123456789abcdef");
        let host = ("host", "localhost:90");
        for (fields, want) in [
            (&[("origin", "http://localhost:90")][..], 1),
            (&[("origin", "http://LOCALHOST:90")], 1),
            (&[("origin", "http://localhost")], 403),
            (&[("origin", "http://localhost:91")], 403),
            (&[("origin", "https://localhost:90")], 403),
            (&[("origin", "http://example.org")], 403),
            (&[("origin", "null")], 403),
            (&[("origin", "http://localhost:90"), ("origin", "http://example.org")], 400),
            (&[("sec-fetch-site", "same-origin")], 1),
            (&[("sec-fetch-site", "none")], 1),
            (&[("sec-fetch-site", "cross-site")], 403),
            (&[("sec-fetch-site", "same-site"), ("sec-fetch-mode", "cors")], 403),
            (&[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")], 1),
        ] {
            assert_eq!(status(&gate, &[&[host, bearer], fields].concat()), want, "{fields:?}");
        }
    }

    #[test]
    fn writes_need_the_token() {
        let (open, closed) = (gate(Some(TOKEN)), gate(None));
        let host = ("host", "localhost");
        for (field, want) in [
            ("Bearer 0123456789abcdef", 1),
            ("bearer 0123456789abcdef", 1),
            ("Bearer 0123456789abcdeg", 401),
            ("Bearer ", 401),
            ("Basic 0123456789abcdef", 401),
            ("0123456789abcdef", 401),
        ] {
            assert_eq!(status(&open, &[host, ("authorization", field)]), want, "{field}");
            assert_eq!(status(&closed, &[host, ("authorization", field)]), 0, "{field}");
        }
        let may = |gate: &Gate, rights| gate.may_write(rights).map_err(|e| e.status);
        assert_eq!(may(&open, Rights::Write), Ok(()));
        assert_eq!(may(&open, Rights::Read), Err(401));
        assert_eq!(may(&closed, Rights::Read), Err(403));
        assert_eq!(may(&closed, Rights::Write), Err(403));
    }
}
