// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decides what an HTTP request gets.

use hyper::header::{HOST, HeaderMap, ORIGIN};
use hyper::{Method, Uri};
use std::net::IpAddr;

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The metrics.
    Metrics,
    /// The list of pages.
    Index,
    /// An error: the status and a line of text.
    Error(u16, String),
}

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

/// Returns what a request gets.
pub fn answer(method: &Method, uri: &Uri, headers: &HeaderMap, hosts: &Hosts) -> Answer {
    let mut named = headers.get_all(HOST).iter();
    let host = match (named.next(), named.next()) {
        (Some(host), None) => host.to_str().unwrap_or_default(),
        _ => return Answer::Error(400, "expected one Host field".into()),
    };
    if !hosts.has(host) {
        let why =
            "the Host field of the request does not name this host; --http-host NAME allows another name";
        return Answer::Error(403, why.into());
    }
    // Browsers send this field with requests of other sites.
    if headers.contains_key(ORIGIN) {
        return Answer::Error(403, "requests of web pages are refused".into());
    }
    if method != Method::GET && method != Method::HEAD {
        return Answer::Error(405, "only GET and HEAD are allowed".into());
    }
    match uri.path() {
        "/metrics" => Answer::Metrics,
        "/" => Answer::Index,
        _ => Answer::Error(404, "there is only /metrics".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn status(method: Method, path: &str, fields: &[(&'static str, &'static str)]) -> u16 {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, HeaderValue::from_static(value));
        }
        let hosts = Hosts::new("::1", &["Router1.example".into()]);
        let Ok(uri) = path.parse::<Uri>() else { return 0 };
        match answer(&method, &uri, &headers, &hosts) {
            Answer::Metrics => 200,
            Answer::Index => 201,
            Answer::Error(code, _) => code,
        }
    }

    #[test]
    fn only_reads_of_known_pages_under_known_names_are_answered() {
        const LOCAL: (&str, &str) = ("host", "localhost:9090");
        for (method, path, fields, want) in [
            (Method::GET, "/metrics", &[LOCAL][..], 200),
            (Method::HEAD, "/metrics?x=y", &[LOCAL], 200),
            (Method::GET, "/", &[LOCAL], 201),
            (Method::GET, "/metrics/", &[LOCAL], 404),
            (Method::GET, "/../metrics", &[LOCAL], 404),
            (Method::POST, "/metrics", &[LOCAL], 405),
            (Method::OPTIONS, "/metrics", &[LOCAL], 405),
            (Method::GET, "/metrics", &[], 400),
            (Method::GET, "/metrics", &[LOCAL, LOCAL], 400),
            (Method::GET, "/metrics", &[LOCAL, ("origin", "http://example.org")], 403),
        ] {
            assert_eq!(status(method.clone(), path, fields), want, "{method} {path} {fields:?}");
        }
        for (host, want) in [
            ("127.0.0.1", 200),
            ("127.0.0.1:1", 200),
            ("[::1]:9090", 200),
            ("[::1]", 200),
            ("192.0.2.1:9090", 200),
            ("LOCALHOST", 200),
            ("router1.example:80", 200),
            ("example.org", 403),
            ("localhost.example.org", 403),
            ("localhost:99999", 403),
            ("[::1]x", 403),
            ("[::1", 403),
            ("", 403),
            (":80", 403),
        ] {
            assert_eq!(status(Method::GET, "/metrics", &[("host", host)]), want, "{host}");
        }
    }
}
