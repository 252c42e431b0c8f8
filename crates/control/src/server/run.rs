// SPDX-License-Identifier: MIT OR Apache-2.0
//! The thread of a server: it waits for all clients with epoll, and serves each in turn.

use super::peer::{Next, Peer, Talk};
use super::{Common, Service, Settings};
use crate::access::Access;
use crate::chatter::Subscriber;
use crate::session::{self, Rules, Session};
use castanet_element::Remote;
use castanet_element::spec::{Origin, bytes};
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, accept_with, getpeername, send, sockopt};
use rustix::process::{Uid, geteuid};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Epoll data of the waker.
const WAKER: u64 = 0;
/// Epoll data of the listening socket.
const LISTENER: u64 = 1;
/// Epoll data of the first client; each further client gets the next number.
const FIRST: u64 = 2;

/// Largest number of connections accepted in a row.
const ACCEPTED: usize = 64;
/// How long the server accepts no connections after the process has run out of descriptors.
const PAUSE: Duration = Duration::from_secs(1);
/// How long queued output is still sent when the server ends.
const LAST_OUTPUT: Duration = Duration::from_millis(200);
/// TCP keepalive: idle time before the first probe, interval of probes, number of probes.
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(60), Duration::from_secs(20), 3);

/// The thread of a server.
pub(super) struct Loop {
    common: Arc<Common>,
    remote: Arc<dyn Remote>,
    settings: Settings,
    rules: Rules,
    access: Access,
    subscriber: Option<(String, Arc<Subscriber>)>,
    epoll: OwnedFd,
    listener: Option<OwnedFd>,
    /// The time at which to accept connections again; `None` unless accepting is paused.
    resume: Option<Instant>,
    peers: HashMap<u64, Peer>,
    next: u64,
    busy: VecDeque<u64>,
    /// The next time at which a client may have timed out; `None` if no client can time out.
    check: Option<Instant>,
    total: usize,
    buffer: Vec<u8>,
    /// The user of the process when the server was started. The process may change its user later.
    owner: Uid,
}

/// The rights of a client of a Unix socket, by its user; `None` if it may not connect.
fn of_user(peer: Uid, owner: Uid) -> Option<Origin> {
    (peer == owner || peer.is_root()).then_some(Origin::User)
}

/// The rights of a client of a TCP socket, by its address. A loopback address proves that the client is local: the
/// kernel drops packets with such a source address unless they arrive on the loopback device.
fn of_address(peer: Option<SocketAddr>) -> Origin {
    match peer {
        Some(a) if a.ip().to_canonical().is_loopback() => Origin::Anonymous,
        _ => Origin::Network,
    }
}

/// The rights of a client, by its socket; `None` if it may not connect.
fn origin(fd: &OwnedFd, owner: Uid) -> Option<Origin> {
    match sockopt::socket_domain(fd) {
        Ok(AddressFamily::UNIX) => of_user(sockopt::socket_peercred(fd).ok()?.uid, owner),
        _ => {
            let peer = getpeername(fd).ok().flatten();
            Some(of_address(peer.and_then(|a| SocketAddr::try_from(a).ok())))
        }
    }
}

impl Loop {
    pub fn new(
        common: Arc<Common>,
        fd: OwnedFd,
        connected: bool,
        remote: Arc<dyn Remote>,
    ) -> io::Result<Loop> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, common.waker.as_fd(), EventData::new_u64(WAKER), EventFlags::IN)?;
        let settings = common.settings.lock().clone();
        let mut made = Loop {
            access: Access::new(remote.clone()),
            common,
            remote,
            settings,
            rules: Rules::default(),
            subscriber: None,
            epoll,
            listener: None,
            resume: None,
            peers: HashMap::new(),
            next: FIRST,
            busy: VecDeque::new(),
            check: None,
            total: 0,
            buffer: vec![0; 1 << 16],
            owner: geteuid(),
        };
        made.apply_settings();
        if connected {
            made.admit(fd, "inherited");
        } else {
            epoll::add(&made.epoll, &fd, EventData::new_u64(LISTENER), EventFlags::IN)?;
            made.listener = Some(fd);
        }
        Ok(made)
    }

    /// Applies the settings.
    fn apply_settings(&mut self) {
        self.settings = self.common.settings.lock().clone();
        match &self.settings.service {
            Service::Control(rules) => {
                self.rules = rules.clone();
                self.subscriber = None;
            }
            Service::Chatter { channel, .. } => {
                if self.subscriber.as_ref().is_none_or(|e| e.0 != *channel) {
                    let subscriber =
                        Arc::new(Subscriber::new(self.common.waker.clone(), self.settings.limits.messages));
                    let listener: Arc<dyn castanet_element::Listener> = subscriber.clone();
                    self.remote.listen(channel, Arc::downgrade(&listener));
                    self.subscriber = Some((channel.clone(), subscriber));
                }
            }
        }
    }

    /// Serves until the server is dropped.
    pub fn run(&mut self) {
        let mut events = Vec::with_capacity(256);
        while !self.common.stop.load(Ordering::SeqCst) {
            events.clear();
            self.common.rounds.fetch_add(1, Ordering::Relaxed);
            let timeout = self.timeout();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
            // New settings are applied before the events below, so that the events are handled with them.
            if self.common.changed.swap(false, Ordering::SeqCst) {
                self.apply_settings();
            }
            // Clients with buffered commands are served after those with ready descriptors, in order.
            let again = self.busy.len();
            for event in &events {
                match event.data.u64() {
                    WAKER => self.wake(),
                    LISTENER => self.accept(),
                    id => self.turn(id, { event.flags }.intersects(EventFlags::HUP | EventFlags::ERR)),
                }
            }
            for _ in 0..again {
                if let Some(id) = self.busy.pop_front() {
                    if let Some(p) = self.peers.get_mut(&id) {
                        p.busy = false;
                    }
                    self.turn(id, false);
                }
            }
            let now = Instant::now();
            if self.check.is_some_and(|t| t <= now) {
                self.disconnect_idle(now);
            }
            if self.resume.is_some_and(|t| t <= now) {
                self.resume = None;
                self.listen(true);
            }
            self.common.clients.store(self.peers.len(), Ordering::Relaxed);
        }
        self.flush_all();
    }

    fn timeout(&self) -> Option<Timespec> {
        if !self.busy.is_empty() {
            return Some(Timespec::default());
        }
        let next = [self.check, self.resume].into_iter().flatten().min()?;
        let left = next.saturating_duration_since(Instant::now());
        // Rounded up, so that deadlines have passed at the wake-up.
        Some(Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()).saturating_add(1_000).min(999_999_999),
        })
    }

    /// Handles a wake-up: distributes new messages to clients.
    fn wake(&mut self) {
        self.common.waker.clear();
        let Some((channel, subscriber)) = &self.subscriber else { return };
        let received = subscriber.take();
        if let Service::Chatter { aloud: true, .. } = self.settings.service
            && channel != "default"
            && !received.text.is_empty()
        {
            (self.settings.report)(bytes::decode(&received.text).trim_end_matches('\n'));
        }
        let count = received.text.iter().filter(|&&b| b == b'\n').count() as u64;
        let mut lost = received.lost.saturating_mul(self.peers.len() as u64);
        let ids: Vec<u64> = self.peers.keys().copied().collect();
        for id in ids {
            if let Some(p) = self.peers.get_mut(&id)
                && !received.text.is_empty()
            {
                if !p.queue(&received.text, self.settings.limits.messages) {
                    lost += count;
                }
                self.turn(id, false);
            }
        }
        self.common.lost.fetch_add(lost, Ordering::Relaxed);
    }

    /// Turns epoll events of the listening socket on or off.
    fn listen(&self, on: bool) {
        if let Some(l) = &self.listener {
            let flags = if on { EventFlags::IN } else { EventFlags::empty() };
            let _ = epoll::modify(&self.epoll, l, EventData::new_u64(LISTENER), flags);
        }
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTED {
            let Some(l) = &self.listener else { return };
            match accept_with(l, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(fd) => self.connected(fd),
                Err(Errno::AGAIN) => return,
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                    self.resume = Instant::now().checked_add(PAUSE);
                    return self.listen(false);
                }
                // For example, the client closed the connection before it was accepted.
                Err(_) => {}
            }
        }
    }

    /// Admits a client that has connected, unless there are too many clients.
    fn connected(&mut self, fd: OwnedFd) {
        // Clients use at most half of the descriptors, because the rest of the process needs some too.
        let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let files = files.map_or(usize::MAX, |n| usize::try_from(n / 2).unwrap_or(usize::MAX));
        let most = self.settings.limits.clients.min(files);
        if self.peers.len() >= most
            && let Some(id) = self.peers.iter().find(|p| p.1.is_gone()).map(|p| *p.0)
        {
            self.close(id, "");
        }
        if self.peers.len() >= most {
            let text = match self.settings.service {
                Service::Control(_) => format!("{}590 Too many clients\r\n", session::GREETING),
                Service::Chatter { .. } => String::new(),
            };
            let _ = send(&fd, text.as_bytes(), SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
            return;
        }
        // TCP only; Unix sockets do not have these options.
        if sockopt::set_tcp_nodelay(&fd, true).is_ok() {
            let (idle, interval, times) = KEEPALIVE;
            let _ = sockopt::set_socket_keepalive(&fd, true);
            let _ = sockopt::set_tcp_keepidle(&fd, idle);
            let _ = sockopt::set_tcp_keepintvl(&fd, interval);
            let _ = sockopt::set_tcp_keepcnt(&fd, times);
        }
        self.admit(fd, "opened");
    }

    fn admit(&mut self, fd: OwnedFd, how: &str) {
        let Some(from) = origin(&fd, self.owner) else {
            if let Service::Control(_) = self.settings.service {
                let text = format!("{}530 Permission denied\r\n", session::GREETING);
                let _ = send(&fd, text.as_bytes(), SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
            }
            return;
        };
        let peer = match &self.settings.service {
            Service::Control(_) => {
                let session = Session::new(self.settings.limits.clone(), from);
                Peer::new(fd, Talk::Control(Box::new(session)))
            }
            Service::Chatter { greeting, .. } => Peer::chatter(fd, *greeting),
        };
        let id = self.next;
        self.next += 1;
        if epoll::add(&self.epoll, &peer.fd, EventData::new_u64(id), EventFlags::empty()).is_err() {
            return;
        }
        self.peers.insert(id, peer);
        self.say(id, how);
        self.turn(id, false);
    }

    fn say(&self, id: u64, what: &str) {
        if self.settings.verbose {
            let name = &self.settings.name;
            (self.settings.report)(&format!("{name}: connection {} {what}", id - FIRST + 1));
        }
    }

    /// Serves a client once. Depending on the returned [`Next`], closes the connection, queues the client to be served
    /// again, or waits for an event.
    fn turn(&mut self, id: u64, hung_up: bool) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let next = peer.turn(&mut self.buffer, &self.rules, &mut self.access, hung_up);
        let holds = peer.holds();
        self.total = self.total.saturating_sub(peer.held).saturating_add(holds);
        peer.held = holds;
        match next {
            Next::Close => return self.close(id, "closed"),
            Next::Again if !peer.busy => {
                peer.busy = true;
                self.busy.push_back(id);
            }
            Next::Again | Next::Wait => {}
        }
        let wanted = peer.wanted();
        if wanted != peer.interest {
            peer.interest = wanted;
            if epoll::modify(&self.epoll, &peer.fd, EventData::new_u64(id), wanted).is_err() {
                return self.close(id, "closed");
            }
        }
        if let Some(t) = peer.deadline(&self.settings.limits) {
            self.check = Some(self.check.map_or(t, |c| c.min(t)));
        }
        while self.total > self.settings.limits.total {
            let Some(id) = self.peers.iter().max_by_key(|p| p.1.held).map(|p| *p.0) else { return };
            self.close(id, "closed: too much is buffered");
        }
    }

    fn close(&mut self, id: u64, why: &str) {
        if let Some(p) = self.peers.remove(&id) {
            self.total = self.total.saturating_sub(p.held);
            // Closing the descriptor removes it from epoll.
            drop(p);
            if !why.is_empty() {
                self.say(id, why);
            }
        }
    }

    /// Disconnects clients that have timed out.
    fn disconnect_idle(&mut self, now: Instant) {
        let limits = &self.settings.limits;
        let times = self.peers.iter().filter_map(|(&id, p)| p.deadline(limits).map(|t| (id, t)));
        let (late, waiting): (Vec<_>, Vec<_>) = times.partition(|&(_, t)| t <= now);
        self.check = waiting.into_iter().map(|w| w.1).min();
        for (id, _) in late {
            self.close(id, "closed: timed out");
        }
    }

    /// Sends queued output for a short time before the server ends.
    fn flush_all(&mut self) {
        self.listener = None;
        let start = Instant::now();
        loop {
            self.peers.values_mut().for_each(Peer::flush);
            self.peers.retain(|_, p| p.wanted().contains(EventFlags::OUT));
            if self.peers.is_empty() || start.elapsed() > LAST_OUTPUT {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;

    #[test]
    fn the_user_of_a_unix_socket_and_root_have_the_rights_of_the_operator() {
        let (me, other) = (Uid::from_raw(1000), Uid::from_raw(65534));
        assert_eq!(of_user(me, me), Some(Origin::User));
        assert_eq!(of_user(Uid::ROOT, me), Some(Origin::User));
        assert_eq!(of_user(other, me), None);
        assert_eq!(of_user(me, Uid::ROOT), None);
        let (a, _b) = UnixStream::pair().unwrap();
        let a = OwnedFd::from(a);
        assert_eq!(origin(&a, geteuid()), Some(Origin::User));
    }

    #[test]
    fn clients_of_other_hosts_may_call_nothing() {
        for (peer, want) in [
            ("127.0.0.1:1", Origin::Anonymous),
            ("127.255.0.3:65535", Origin::Anonymous),
            ("[::1]:1", Origin::Anonymous),
            ("[::ffff:127.0.0.1]:1", Origin::Anonymous),
            ("10.0.0.1:1", Origin::Network),
            ("0.0.0.0:1", Origin::Network),
            ("128.0.0.1:1", Origin::Network),
            ("[fe80::1]:1", Origin::Network),
            ("[::127.0.0.1]:1", Origin::Network),
            ("[::ffff:10.0.0.1]:1", Origin::Network),
        ] {
            assert_eq!(of_address(Some(peer.parse().unwrap())), want, "{peer}");
        }
        assert_eq!(of_address(None), Origin::Network);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let served = OwnedFd::from(listener.accept().unwrap().0);
        assert_eq!(origin(&served, geteuid()), Some(Origin::Anonymous));
        assert_eq!(origin(&listener.into(), geteuid()), Some(Origin::Network), "it has no peer");
    }
}
