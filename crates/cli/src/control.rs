// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control sockets of the command line. They are elements of the driver, not of the configuration, so they survive hot
//! swaps and no client can change them.

use crate::load::complain;
use castanet_control::session::Rules;
use castanet_control::{ListenAddress, Server, Settings, Token};
use castanet_lang::args::quote;
use castanet_runtime::{DriverElement, Running};
use clap::Args;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;

/// Options of control sockets.
#[derive(Args, Debug, Default)]
pub struct Sockets {
    /// Open a control socket on this TCP port of the loopback address; PORT+ takes the next free port.
    #[arg(short, long = "port", value_name = "PORT")]
    pub ports: Vec<String>,
    /// Open a control socket for programs of this user at this path (Unix socket).
    #[arg(short, long = "unix-socket", value_name = "FILE")]
    pub unix_sockets: Vec<String>,
    /// Use this open descriptor, a socket, for control connections.
    #[arg(skip)]
    pub descriptors: Vec<String>,
    /// Let TCP clients that send the token in FILE reconfigure the router. These clients may also make the router read
    /// and write files in the folder of --library-path. No other user may have access to FILE (mode 0600).
    #[arg(long, value_name = "FILE")]
    pub control_token: Option<PathBuf>,
}

/// Options for configurations that clients send.
#[derive(Args, Clone, Debug, Default)]
pub struct FromClients {
    /// The folder from which configurations of clients may require libraries; default: none. Clients with the token
    /// may also make the router read and write files in this folder.
    #[arg(long, value_name = "DIR")]
    pub library_path: Option<PathBuf>,
    /// Let clients load packages, whose code runs with the rights of the router.
    #[arg(long)]
    pub allow_packages: bool,
}

fn port(text: &str) -> Result<ListenAddress, String> {
    let (number, following) = text.strip_suffix('+').map_or((text, false), |n| (n, true));
    let number = number
        .parse()
        .map_err(|_| format!("--port {text}: expected 0 to 65535, optionally followed by +"))?;
    Ok(ListenAddress::Tcp { address: IpAddr::V4(Ipv4Addr::LOCALHOST), port: number, following })
}

fn descriptor(text: &str) -> Result<ListenAddress, String> {
    let number = text.parse().map_err(|_| format!("--socket {text}: expected the number of a descriptor"))?;
    Ok(ListenAddress::Descriptor(number))
}

/// Returns the element that stands for a control socket in handler calls. `number` counts the sockets of the command
/// line from 0. `port` is the TCP port on which the socket listens.
fn element(number: usize, place: &ListenAddress, port: Option<u16>) -> DriverElement {
    let name = match number {
        0 => "click_driver@@ControlSocket".to_string(),
        n => format!("click_driver@@ControlSocket@{n}"),
    };
    let (config, file) = match place {
        ListenAddress::Tcp { port, following, .. } => {
            (format!("TCP, {port}{}", if *following { "+" } else { "" }), String::new())
        }
        ListenAddress::Unix(path) => {
            let file = castanet_lang::bytes::decode(path.as_os_str().as_encoded_bytes()).into_owned();
            (format!("UNIX, {}", quote(&file)), file)
        }
        ListenAddress::Descriptor(fd) => (format!("SOCKET, {fd}"), String::new()),
    };
    let port = port.map(|p| p.to_string()).unwrap_or_default();
    DriverElement { name, class: "ControlSocket", config, values: vec![("filename", file), ("port", port)] }
}

impl Sockets {
    /// Returns the addresses of all sockets.
    ///
    /// # Errors
    /// When an address is invalid. The first such address is reported.
    pub fn places(&self) -> Result<Vec<ListenAddress>, String> {
        let ports = self.ports.iter().map(|p| port(p));
        let files = self.unix_sockets.iter().map(|f| Ok(ListenAddress::Unix(f.into())));
        ports.chain(files).chain(self.descriptors.iter().map(|d| descriptor(d))).collect()
    }

    /// Listens on all sockets. Calls are answered as soon as the router runs, not before.
    ///
    /// # Errors
    /// When an address is in use or not permitted.
    pub fn open(&self, running: &Arc<Running>) -> Result<Vec<Server>, String> {
        let token = self.control_token.as_deref().map(Token::read).transpose();
        let token = token.map_err(|e| e.to_string())?.map(Arc::new);
        let (mut servers, mut elements) = (Vec::new(), Vec::new());
        for (number, place) in self.places()?.into_iter().enumerate() {
            let settings = Settings::control(Rules { token: token.clone(), ..Rules::default() });
            let server = Server::start(&place, settings, running.clone()).map_err(|e| e.to_string())?;
            if let (ListenAddress::Tcp { port, .. }, Some(p)) = (&place, server.port())
                && *port != p
            {
                complain(&format!("listening on TCP port {p}"));
            }
            elements.push(element(number, &place, server.port()));
            servers.push(server);
        }
        running.set_driver_elements(elements);
        Ok(servers)
    }
}
