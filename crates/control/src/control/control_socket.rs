// SPDX-License-Identifier: MIT OR Apache-2.0
//! ControlSocket: handlers for other programs.

use super::serving::{ListenerKind, Serving, place};
use crate::server::Service;
use crate::session::Rules;
use crate::{Token, TokenError};
use castanet_element::prelude::*;
use std::path::Path;
use std::sync::Arc;

/// Lets other programs read and write handlers while the router runs.
///
/// TYPE `TCP` takes a port (`7777+` for the first free port from 7777 on). `UNIX` takes a file, which only the router's
/// user may open, and which is removed when the router ends. `SOCKET` takes the number of a descriptor that the process
/// was started with. Clients use the protocol `Click::ControlSocket/1.3`, which docs/control.md describes. `castanet
/// ctl` is such a client.
///
/// One thread beside the workers serves all clients. Workers carry out the calls between two batches.
///
/// By default, TCP connections are accepted only from this host. With `LOCALHOST false`, they are accepted from any
/// host. A client that connects from the loopback address may read and write handlers. Handlers that reconfigure the
/// router or open files by name need the TOKEN. Even with the TOKEN, a client can name only files below the folder of
/// `--library-path`. A client from another host needs the TOKEN for every call. A Unix socket serves the user of the
/// router and root, and gives all rights. docs/security.md says more.
///
/// A hot swap keeps the socket and its clients if the new configuration listens on the same address.
///
/// With PROXY, all calls go to the element that it names, for example a Script of type PROXY: a call of handler `e.h`
/// becomes a call of the proxy's handler `e.h`.
///
/// # Ports
/// None.
///
/// # Example
/// ```click
/// ControlSocket(UNIX, control.sock, READONLY true);
/// InfiniteSource(LIMIT 5, STOP true) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "ControlSocket", ports = "0/0", processing = "a/a", flow = "x/x", packets = "/")]
#[class(workers = exclusive, takes_state = "the socket and its clients", build, lifecycle, handlers, host(Sockets))]
pub struct ControlSocket {
    args: Args,
    serving: Serving,
}

/// Arguments of ControlSocket.
#[derive(Args)]
pub struct Args {
    /// `TCP`, `UNIX` or `SOCKET`.
    #[arg(name = "TYPE")]
    kind: ListenerKind,
    /// The port (`PORT+` for the first free port from PORT on), the file of the Unix socket, or the
    /// descriptor.
    #[arg(name = "PORT", alias = "FILENAME", alias = "FD")]
    place: String,
    /// Whether clients may only read.
    #[arg(keyword, default = false)]
    readonly: bool,
    /// The element that all calls go to.
    #[arg(keyword)]
    proxy: Option<ElementRef>,
    /// Whether to report each client that connects or disconnects.
    #[arg(keyword, default = false)]
    verbose: bool,
    /// The number of retries, one a second, while the address is in use; if all fail, the router stops.
    #[arg(keyword, default = 0)]
    retries: i32,
    /// Whether each failed attempt is reported.
    #[arg(keyword, default = true)]
    retry_warnings: bool,
    /// Whether TCP connections are accepted only from this host; only an explicit `false` admits other hosts.
    #[arg(keyword, default = true)]
    localhost: bool,
    /// The file with the token that lets clients of a TCP port reconfigure the router and name files.
    #[arg(keyword)]
    token: Option<Filename>,
}

impl ControlSocket {
    /// Reads the token file, and returns the rules for clients.
    fn rules(&self, proxy: Option<String>) -> Result<Rules, TokenError> {
        let read = |f: &Filename| Token::read(Path::new(&f.0)).map(Arc::new);
        Ok(Rules {
            readonly: self.args.readonly,
            proxy,
            token: self.args.token.as_ref().map(read).transpose()?,
        })
    }
}

impl Build for ControlSocket {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let place = place(args.kind, &args.place, !args.localhost, cx)?;
        let retries = u32::try_from(args.retries).unwrap_or(0);
        let service = Service::Control(Rules { readonly: args.readonly, ..Rules::default() });
        let mut serving = Serving::new(place, service, retries, args.retry_warnings, cx);
        serving.settings.verbose = args.verbose;
        Ok(ControlSocket { args, serving })
    }
}

#[handlers]
impl ControlSocket {
    /// The TCP port that the socket listens on; empty for other addresses.
    #[read]
    fn port(&self) -> String {
        let port = self.serving.server().and_then(crate::Server::port);
        port.map(|p| p.to_string()).unwrap_or_default()
    }
    /// The file of the Unix socket; empty for other addresses.
    #[read]
    fn filename(&self) -> String {
        self.serving.file()
    }
}

impl Lifecycle for ControlSocket {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        let proxy = self.args.proxy.and_then(|p| u32::try_from(p.0).ok());
        let proxy = proxy.map(|e| cx.name_of(e).to_string());
        self.serving.settings.service = Service::Control(self.rules(proxy).map_err(ElementError::refused)?);
        self.serving.initialise(cx)
    }
    fn cleanup(&mut self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        self.serving.end();
        Ok(())
    }
    fn holds(&self) -> Option<String> {
        Some(self.serving.key())
    }
    fn take_over(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.serving.take_over(&mut old.serving, cx);
        Ok(())
    }
}

impl Element for ControlSocket {
    fn timer(&mut self, _: u16, cx: &mut Cx<'_>) {
        self.serving.retry(cx);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Client;
    use crate::client::Address;
    use castanet_element::kit::Kit;
    use castanet_element::{Listener, Remote};
    use std::os::unix::fs::MetadataExt as _;
    use std::sync::Weak;
    use std::time::Duration;

    #[test]
    fn arguments() {
        for (config, want) in [
            ("", "TYPE: required argument missing"),
            ("TCP", "PORT: required argument missing"),
            ("UDP, 7", "TYPE: expected TCP, UNIX or SOCKET"),
            ("TCP, nonsense", "PORT: invalid number"),
            ("TCP, 70000", "PORT: "),
            ("UNIX, \"\"", "FILENAME: file name is empty"),
            ("SOCKET, x", "FD: invalid number"),
            ("TCP, 7777, PROXY nobody", "PROXY: 'nobody' does not name an element"),
        ] {
            let errors = Kit::<ControlSocket>::new(config).err().unwrap();
            assert!(errors.iter().any(|e| e.starts_with(want)), "{config}: {errors:?}");
        }
    }

    #[test]
    fn what_it_holds() {
        for (config, key, file) in [
            ("TCP, 7777", "tcp 127.0.0.1 7777", ""),
            ("tcp, 7777+, LOCALHOST false", "tcp 0.0.0.0 7777+", ""),
            ("TCP, www, LOCALHOST true", "tcp 127.0.0.1 80", ""),
            ("UNIX, \"/tmp//x\"", "unix /tmp/x", "/tmp/x"),
            ("UNIX, /./tmp/x", "unix /tmp/x", "/./tmp/x"),
            ("SOCKET, 3", "descriptor 3", ""),
        ] {
            // An element without a router does not listen.
            let mut kit = Kit::<ControlSocket>::new(config).unwrap();
            assert_eq!(kit.element.holds().as_deref(), Some(key));
            assert_eq!((kit.read("port"), kit.read("filename")), (Ok(String::new()), Ok(file.into())));
            kit.cleanup().unwrap();
        }
    }

    /// A router whose only handler can be read and written.
    struct One;
    impl Remote for One {
        fn elements(&self) -> Vec<String> {
            vec!["e".into()]
        }
        fn read(&self, _: Option<&str>, handler: &str, _: &str) -> Result<String, CallError> {
            Ok(if handler == "handlers" { "h\trw\n".into() } else { "1".into() })
        }
        fn write(&self, _: Origin, _: Option<&str>, _: &str, _: &str) -> Result<String, CallError> {
            Ok(String::new())
        }
        fn swaps(&self) -> u64 {
            0
        }
        fn has_ended(&self) -> bool {
            false
        }
        fn listen(&self, _: &str, _: Weak<dyn Listener>) {}
    }

    #[test]
    fn a_swap_hands_over_the_socket_and_its_clients() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("s");
        let config = format!("UNIX, {}", file.display());
        let mut old = Kit::<ControlSocket>::new(&config).unwrap();
        let mut new = Kit::<ControlSocket>::new(&format!("{config}, READONLY true")).unwrap();
        assert_eq!(old.element.holds(), new.element.holds());
        old.element.serving.listen_for(Arc::new(One)).unwrap();
        let wait = Duration::from_secs(100);
        let mut client = Client::connect(&Address::Unix(file.clone()), wait).unwrap();
        client.write("h", b"x").unwrap();
        let inode = || std::fs::metadata(&file).unwrap().ino();
        let before = inode();
        new.with(|e, cx| e.take_over(&mut old.element, cx)).unwrap();
        old.cleanup().unwrap();
        assert_eq!(client.write("h", b"x").unwrap_err().to_string(), "Permission denied for 'h'");
        assert_eq!((client.read("h", "").unwrap(), inode()), (b"1".to_vec(), before));
        // The swap failed: the old element takes its socket back.
        old.with(|e, cx| e.take_over(&mut new.element, cx)).unwrap();
        new.cleanup().unwrap();
        client.write("h", b"x").unwrap();
        assert_eq!(new.next_timer(), None);
        old.cleanup().unwrap();
        assert!(!file.exists());
        // The server may still answer requests that it has begun.
        while client.read("h", "").is_ok() {}
        // An old element without a server is treated as one that is still trying to listen. The new element takes over
        // and tries next.
        new.with(|e, cx| e.take_over(&mut old.element, cx)).unwrap();
        assert!(new.next_timer().is_some_and(|t| t < 1000));
    }
}
