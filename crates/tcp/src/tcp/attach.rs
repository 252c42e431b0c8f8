// SPDX-License-Identifier: MIT OR Apache-2.0
//! How applications attach to a stack.

use super::values::{Along, StackRef};
use crate::application::{Application, Applications, Registered, Tally};
use castanet_element::prelude::*;
use std::sync::Arc;

/// The arguments that all applications have.
#[derive(Args)]
pub struct AttachArgs {
    /// The stack.
    #[arg(alias = "TCPSTACK")]
    stack: StackRef,
    /// The port to listen on.
    #[arg(keyword)]
    port: Option<u16>,
    /// The peer to connect to when the router starts. `ADDR:PORT@HOP@HOP` is one to which a loose source route leads over these hosts,
    /// `ADDR:PORT!HOP!HOP` a strict one.
    #[arg(keyword)]
    connect: Option<Along>,
}

/// Registers an application with its stack. Returns its counts.
pub(super) fn attach(args: &AttachArgs, application: Arc<dyn Application>, cx: &mut BuildCx<'_>) -> Tally {
    let tally = Tally::default();
    let registered = Registered {
        name: cx.name.to_string(),
        element: cx.me,
        application,
        tally: tally.clone(),
        ports: args.port.into_iter().collect(),
        peers: args.connect.map(|e| e.0).into_iter().collect(),
    };
    cx.share_as(args.stack.0, Applications::default).add(registered);
    tally
}
