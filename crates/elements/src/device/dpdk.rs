// SPDX-License-Identifier: MIT OR Apache-2.0
//! Common parts of the classes for DPDK's ports. There is no DPDK here: the devices of the kernel are used in the way
//! that is best for each.

use castanet_element::prelude::*;
use castanet_io::device::{Abilities, BestWay, device_of_port, info};
use castanet_io::privilege::may_use_xdp;
use castanet_spec::Show;

/// A port, and the way to its device.
pub(super) struct Port {
    /// The name of the device.
    pub device: String,
    /// The interface index of the device.
    pub index: u32,
    pub way: BestWay,
}

/// Finds the device of a port. None if there is none and `may_be_missing`.
pub(super) fn find(port: &str, may_be_missing: bool) -> Result<Option<Port>, ConfigError> {
    let device = match device_of_port(port) {
        Ok(device) => device,
        Err(_) if may_be_missing => return Ok(None),
        Err(e) => return Err(ArgError::new(e.to_string(), 0..usize::MAX).help(e.help()).into()),
    };
    let info = info(&device).map_err(|e| ConfigError::from(e.to_string()))?;
    let way = BestWay::of(&info, &Abilities::of(&info), may_use_xdp());
    Ok(Some(Port { device, index: info.index, way }))
}

/// Says which device a port is, how its frames come or go, and which arguments mean nothing.
pub(super) fn tell(port: &str, found: Option<&Port>, ignored: &[&str], cx: &InitCx<'_>) {
    let me = cx.declaration();
    let Some(Port { device, way, .. }) = found else {
        return cx.message(&format!("{me}: there is no device for port '{port}'; no packet passes"));
    };
    let method = if way.xdp { "XDP" } else { "PACKET" };
    cx.message(&format!("{me}: port '{port}' is {device}, with METHOD {method}: {}", way.why));
    if !ignored.is_empty() {
        cx.message(&format!("{me}: without effect here: {}", ignored.join(", ")));
    }
}

/// A value that is accepted and means nothing here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ignored(String);

impl ArgValue for Ignored {
    const TYPE: &'static str = "any";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Ignored, ValueError> {
        Ok(Ignored(String::parse(text, cx)?))
    }
}

impl Show for Ignored {
    fn show(&self) -> String {
        self.0.clone()
    }
}

/// Returns the names of those values that are given, except numbers below 1 and false, which ask for nothing.
pub(super) fn given(all: &[(&'static str, &Option<Ignored>)]) -> Vec<&'static str> {
    let asks = |v: &Ignored| {
        let text = v.0.trim();
        !(text.is_empty() || text.eq_ignore_ascii_case("false") || text.parse::<i64>().is_ok_and(|n| n < 1))
    };
    all.iter().filter(|(_, v)| v.as_ref().is_some_and(asks)).map(|(name, _)| *name).collect()
}

/// Arguments that FromDPDKDevice and ToDPDKDevice share. They adjust DPDK, and mean nothing here.
#[derive(Args)]
pub struct Tuning {
    /// Accepted and ignored: the number of descriptors of a ring.
    #[arg(keyword, name = "NDESC")]
    _ndesc: Option<Ignored>,
    /// Accepted and ignored: the maximum number of queues.
    #[arg(keyword, name = "MAXQUEUES")]
    _maxqueues: Option<Ignored>,
    /// Accepted and ignored: the number of queues.
    #[arg(keyword, name = "N_QUEUES")]
    _n_queues: Option<Ignored>,
    /// Accepted and ignored: the maximum number of threads.
    #[arg(keyword, name = "MAXTHREADS")]
    _maxthreads: Option<Ignored>,
    /// Accepted and ignored: whether the device checks or makes IP checksums.
    #[arg(keyword, name = "IPCO")]
    _ipco: Option<Ignored>,
    /// Accepted and ignored: whether the device checks or makes TCP checksums.
    #[arg(keyword, name = "TCO")]
    _tco: Option<Ignored>,
    /// Accepted and ignored: whether the device checks or makes UDP checksums.
    #[arg(keyword, name = "UCO")]
    _uco: Option<Ignored>,
    /// Accepted and ignored: how much is printed.
    #[arg(keyword, name = "VERBOSE")]
    _verbose: Option<Ignored>,
    /// Accepted and ignored: the number of packets in a burst; packets that are ready are taken together, up to 64 of them.
    #[arg(keyword, name = "BURST")]
    _burst: Option<Ignored>,
}
