// SPDX-License-Identifier: MIT OR Apache-2.0
//! Types of the arguments of device elements.

use castanet_element::prelude::*;
use castanet_io::LinkType;
use castanet_spec::Show;

/// The name of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceName(pub(super) String);

impl ArgValue for DeviceName {
    const TYPE: &'static str = "device";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<DeviceName, ValueError> {
        let name = String::parse(text, cx)?;
        let good = |b: u8| b.is_ascii_graphic() && b != b'/';
        if name.is_empty() || name.len() > 15 || !name.bytes().all(good) {
            return Err(format!("'{name}' is no name for a device: at most 15 characters, no spaces").into());
        }
        Ok(DeviceName(name))
    }
}

impl Show for DeviceName {
    fn show(&self) -> String {
        self.0.clone()
    }
}

/// The argument METHOD: how frames are received or sent. All words of old configurations mean packet sockets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method(pub(super) String);

/// The words that METHOD accepts.
const METHODS: [&str; 7] = ["XDP", "LINUX", "PACKET", "PCAP", "PCAPFD", "DEVBPF", "NETMAP"];

impl Method {
    /// Whether frames are received or sent through AF_XDP sockets.
    pub(super) fn is_xdp(method: Option<&Method>) -> bool {
        method.is_some_and(|m| m.0 == "XDP")
    }
}

impl ArgValue for Method {
    const TYPE: &'static str = "method";
    const WORD: bool = true;
    fn parse(text: &str, _: &ArgCx<'_>) -> Result<Method, ValueError> {
        let word = text.to_ascii_uppercase();
        if METHODS.contains(&word.as_str()) {
            return Ok(Method(word));
        }
        let near = castanet_lang::nearest(&word, METHODS).map(|m| format!("; did you mean {m}?"));
        Err(format!(
            "unknown method '{text}'{}",
            near.unwrap_or_else(|| ": PACKET, XDP, LINUX or PCAP".into())
        )
        .into())
    }
}

impl Show for Method {
    fn show(&self) -> String {
        self.0.clone()
    }
}

/// A link type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encap(pub(super) LinkType);

impl ArgValue for Encap {
    const TYPE: &'static str = "link type";
    const WORD: bool = true;
    fn parse(text: &str, _: &ArgCx<'_>) -> Result<Encap, ValueError> {
        let words: Vec<&str> = LinkType::words().collect();
        Ok(LinkType::parse(text)
            .map(Encap)
            .ok_or_else(|| format!("unknown link type '{text}': {}", words.join(", ")))?)
    }
}

impl Show for Encap {
    fn show(&self) -> String {
        self.0.to_string()
    }
}
