// SPDX-License-Identifier: MIT OR Apache-2.0
//! The hosts on both sides of each router, and their processes.

use super::{Router, Settings};
use crate::launch::{Launcher, PATIENCE};
use crate::process::Process;
use crate::tcp::link::ends::Request;
use crate::veth::hosts::{self, join};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

/// The device of the hosts.
const DEVICE: &str = "eth";
/// The addresses of client and server.
const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(10, 0, 1, 2)];

/// A router with a host on each side.
struct Place {
    name: String,
    client: Process,
    /// `None` for the kernel.
    router: Option<Process>,
    /// The namespaces, and the server.
    _others: Vec<Process>,
}

/// All routers.
pub struct World {
    places: Vec<Place>,
    /// The process whose user namespace all hosts share.
    _first: Process,
}

impl Place {
    fn start(launcher: &Launcher, beside: u32, number: usize, router: &Router) -> Result<Place, String> {
        let [a, r, b] = [(); 3].map(|()| launcher.host(Some(beside)));
        let (a, r, b) = (a?, r?, b?);
        join(launcher, &r, (number, DEVICE), [&a, &b])?;
        for (host, address) in [&a, &b].into_iter().zip(ADDRESSES) {
            let [x, y, z, _] = address.octets();
            launcher.ip(
                host,
                &[
                    format!("address add {address}/24 dev {DEVICE}"),
                    format!("route add default via {x}.{y}.{z}.1"),
                ],
            )?;
        }
        if let Some(arguments) = router.offloads.arguments() {
            for (host, devices) in [(&a, &[DEVICE][..]), (&b, &[DEVICE]), (&r, &["in", "out"])] {
                for device in devices {
                    launcher.shell(host, &format!("ethtool -K {device} {arguments} > /dev/null"))?;
                }
            }
        }
        let process = match &router.configuration {
            None => {
                let address = |(device, address)| format!("address add {address} dev {device}");
                let lines: Vec<String> = hosts::interfaces(1).into_iter().map(address).collect();
                launcher.ip(&r, &lines)?;
                launcher.shell(&r, "echo 1 > /proc/sys/net/ipv4/ip_forward")?;
                None
            }
            Some(text) => {
                let driver: &[&str] = if router.in_kernel { &["--driver", "xdp"] } else { &[] };
                Some(launcher.castanet(&r, None, &[driver, &["--expression", text]].concat())?)
            }
        };
        let server = launcher.part("server", &["tcp-serve", &b.id().to_string()])?;
        server.line(PATIENCE)?;
        let client = launcher.part("client", &["tcp-measure", &a.id().to_string()])?;
        Ok(Place { name: router.name.clone(), client, router: process, _others: vec![a, r, b, server] })
    }

    fn ask(&mut self, request: Request) -> Result<f64, String> {
        self.client.tell(&request.line(ADDRESSES[1]))?;
        let line = self.client.line(PATIENCE)?;
        line.parse().map_err(|_| {
            let complaints = self.router.as_ref().map_or(String::new(), Process::complaints);
            format!("{}: {line} {complaints}", self.name).trim_end().to_string()
        })
    }

    /// Asks until there is an answer: the router may not have started yet.
    fn await_answer(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + PATIENCE;
        while let Err(e) = self.ask(Request::Echo(1)) {
            if self.router.as_mut().is_some_and(Process::has_ended) || Instant::now() > deadline {
                return Err(e);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl World {
    /// Creates the hosts and starts the processes.
    ///
    /// # Errors
    /// The machine lacks a required feature or permission.
    pub fn new(settings: &Settings) -> Result<World, String> {
        let launcher = Launcher { program: settings.program.clone(), part: settings.part.clone() };
        let first = launcher.host(None)?;
        let start = |(number, router)| Place::start(&launcher, first.id(), number, router);
        let places = settings.routers.iter().enumerate().map(start).collect::<Result<Vec<_>, String>>()?;
        let mut world = World { places, _first: first };
        world.places.iter_mut().try_for_each(Place::await_answer)?;
        Ok(world)
    }

    /// Lets the client of a router measure.
    ///
    /// # Errors
    /// The data does not come through.
    pub fn ask(&mut self, router: usize, request: Request) -> Result<f64, String> {
        self.places.get_mut(router).ok_or("no such router")?.ask(request)
    }
}
