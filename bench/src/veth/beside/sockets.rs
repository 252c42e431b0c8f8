// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bare AF_XDP forwarder: it receives from one device and sends to another, without elements and without looking at a byte.

use castanet_io::device::xdp::{Share, XdpOptions, XdpReceiver, XdpSender, buffers};
use castanet_io::device::{DeviceError, MAX_BATCH};
use rustix::event::{PollFd, PollFlags, poll};

/// The number of looks that find no frame before the forwarder sleeps, as many as FromDevice makes.
const LOOKS: u32 = 256;

/// Forwards until the process is killed. Prints a line when it is ready.
///
/// # Errors
/// The kernel does not permit it, or a device goes down.
pub fn forward(from: &str, to: &str) -> Result<(), String> {
    let text = |e: DeviceError| e.to_string();
    let options =
        XdpOptions { promiscuous: false, share: Share::WHOLE, buffers: buffers(1, 1), busy_poll: false };
    let mut receiver = XdpReceiver::open(from, &options).map_err(text)?;
    let mut sender = XdpSender::open(to, &options).map_err(text)?;
    receiver.start().map_err(text)?;
    println!("ready");
    let mut packets = Vec::with_capacity(MAX_BATCH);
    let mut idle = 0;
    loop {
        let room = MAX_BATCH - packets.len().min(MAX_BATCH);
        let n = receiver.receive(room, |p| packets.extend(p));
        if !packets.is_empty() || sender.is_waiting() {
            let sent = sender.send(&mut packets);
            if let Some(why) = sent.refusal.filter(|r| !r.is_for_now()) {
                return Err(format!("{to}: a frame was refused: {why:?}"));
            }
        }
        idle = if n > 0 || !packets.is_empty() { 0 } else { idle + 1 };
        if idle > LOOKS {
            idle = 0;
            let mut fds: Vec<PollFd<'_>> = receiver.fds().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
            poll(&mut fds, None).map_err(|e| format!("{from}: {e}"))?;
        }
    }
}
