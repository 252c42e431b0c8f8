// SPDX-License-Identifier: MIT OR Apache-2.0
//! ChatterSocket: shows messages of the router to other programs.

use super::serving::{ListenerKind, Serving, place};
use crate::server::Service;
use castanet_element::prelude::*;

/// Shows messages of the router to other programs.
///
/// A client of the TCP port or the Unix socket receives the line `Click::ChatterSocket/1.0`, and then each message of
/// the channel, as standard error shows it. Elements send messages to the channel `default`, unless they name another
/// one, as in `IPPrint(CHANNEL news)`. Messages to another channel do not go to standard error, unless the socket has
/// `QUIET_CHANNEL false`.
///
/// The router never waits for a client. If a client reads too slowly, messages that do not fit into its buffer of 256
/// KiB are lost. The address, LOCALHOST, RETRIES and hot swaps work as with ControlSocket.
///
/// # Ports
/// None.
///
/// # Example
/// ```click
/// ChatterSocket(UNIX, messages.sock);
/// InfiniteSource(LIMIT 2, STOP true) -> Print(seen) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "ChatterSocket", ports = "0/0", processing = "a/a", flow = "x/x", packets = "/")]
#[class(workers = exclusive, takes_state = "the socket and its clients", build, lifecycle, handlers, host(Sockets))]
pub struct ChatterSocket {
    args: Args,
    serving: Serving,
}

/// Arguments of ChatterSocket.
#[derive(Args)]
pub struct Args {
    /// `TCP` or `UNIX`.
    #[arg(name = "TYPE")]
    kind: ListenerKind,
    /// The port (`PORT+` for the first free port from PORT on), or the file of the Unix socket.
    #[arg(name = "PORT", alias = "FILENAME")]
    place: String,
    /// The channel whose messages are shown.
    #[arg(keyword, default = Word("default".into()), show = "default")]
    channel: Word,
    /// When false, messages of a channel other than `default` are shown on standard error too.
    #[arg(keyword, default = true)]
    quiet_channel: bool,
    /// Whether clients are greeted.
    #[arg(keyword, default = true)]
    greeting: bool,
    /// The number of retries, one a second, while the address is in use; if all fail, the router stops.
    #[arg(keyword, default = 0)]
    retries: i32,
    /// Whether each failed attempt to listen is reported.
    #[arg(keyword, default = true)]
    retry_warnings: bool,
    /// Whether TCP connections are accepted only from this host.
    #[arg(keyword, default = true)]
    localhost: bool,
}

impl Build for ChatterSocket {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        if args.kind == ListenerKind::Socket {
            return Err("TYPE: expected TCP or UNIX".into());
        }
        let place = place(args.kind, &args.place, !args.localhost, cx)?;
        let retries = u32::try_from(args.retries).unwrap_or(0);
        let service = Service::Chatter {
            channel: args.channel.0.clone(),
            greeting: args.greeting,
            aloud: !args.quiet_channel,
        };
        let serving = Serving::new(place, service, retries, args.retry_warnings, cx);
        Ok(ChatterSocket { args, serving })
    }
}

#[handlers]
impl ChatterSocket {
    /// Messages lost, counted once for each client.
    #[read(unit = "messages")]
    fn lost(&self) -> Counted {
        Counted(self.serving.server().map_or(0, crate::Server::lost))
    }
}

impl Lifecycle for ChatterSocket {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        self.serving.initialise(cx)
    }
    fn cleanup(&mut self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        self.serving.end();
        Ok(())
    }
    /// Returns the key of the address. The key does not include the channel, so the socket stays open when the channel
    /// changes.
    fn holds(&self) -> Option<String> {
        Some(self.serving.key())
    }
    fn take_over(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.serving.take_over(&mut old.serving, cx);
        Ok(())
    }
}

impl Element for ChatterSocket {
    fn timer(&mut self, _: u16, cx: &mut Cx<'_>) {
        self.serving.retry(cx);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::Kit;

    #[test]
    fn arguments() {
        for (config, want) in [
            ("SOCKET, 3", "TYPE: expected TCP or UNIX"),
            ("TCP, 1, CHANNEL \"\"", "CHANNEL: expected word"),
            ("UNIX", "PORT: required argument missing"),
        ] {
            let errors = Kit::<ChatterSocket>::new(config).err().unwrap();
            assert!(errors.iter().any(|e| e.starts_with(want)), "{config}: {errors:?}");
        }
        let mut kit = Kit::<ChatterSocket>::new("UNIX, /x, CHANNEL news, GREETING false").unwrap();
        assert_eq!((kit.read("lost"), kit.element.holds()), (Ok("0".into()), Some("unix /x".into())));
    }
}
