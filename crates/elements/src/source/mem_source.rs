// SPDX-License-Identifier: MIT OR Apache-2.0
//! MemSource: sends frames from memory, as a device would deliver them.

#[cfg(test)]
mod tests;

use super::bursts::Bursts;
use super::sent_count::SentCount;
use super::{Ended, LINE, TEXT, append_lines, copy_line, copy_lines, fill_line};
use castanet_element::prelude::*;
use castanet_io::CaptureReader;
use castanet_lang::args as text;
use castanet_packet::DEFAULT_HEADROOM;

/// Sends copies of frames that are held in memory, as fast as they are accepted.
///
/// Like a device, it copies each frame into a fresh buffer of the pool. The frames are the words of DATA, or
/// all frames of a capture file. They are sent in rotation, or in random order. Its task sends BURST packets
/// per turn, and sleeps while every queue downstream that has a notifier is full. After LIMIT packets the
/// source pauses; with STOP, the next turn stops the driver. Packets get no timestamp.
///
/// # Ports
/// Output 0 (push): packets.
///
/// # Example
/// ```click
/// MemSource("\<ffffffffffff 020000000001 0800>" "second frame", LIMIT 1000, STOP true) -> Discard;
/// ```
#[derive(Class)]
#[class(ledger(enters))]
#[class(name = "MemSource", ports = "0/1", processing = "h/h", packets = "/any unmarked", alignment = "4 0", workers = exclusive)]
#[class(takes_state = "the next frame, the place in the burst and in the random numbers")]
#[class(task, build, lifecycle, handlers, effects(stops), depends = packet)]
pub struct MemSource {
    args: Args,
    #[counts]
    count: SentCount,
    /// All frames, one after the other, each padded to a multiple of `LINE` bytes.
    lines: Vec<[u8; LINE]>,
    frames: Vec<Frame>,
    /// The index of the next frame to send.
    next: usize,
    random: Random,
    ended: Ended,
    bursts: Bursts,
    batch: Batch,
}

/// The position of a frame in `lines`: its first line, its number of lines, and its length in bytes.
#[derive(Clone, Copy)]
struct Frame {
    start: u32,
    count: u32,
    len: u32,
}

/// Arguments of MemSource.
#[derive(Args)]
#[args(at_most_one(data, file))]
pub struct Args {
    /// The frames, each a word or quoted string.
    #[arg(show = "69 bytes of text")]
    data: Option<Frames>,
    /// How many packets to send; negative for no limit.
    #[arg(default = -1, handler = "rw.")]
    limit: i64,
    /// Packets to send in a turn.
    #[arg(default = 32, handler = "rw.")]
    burst: u32,
    /// A capture file to take the frames from.
    #[arg(keyword, name = "FILE")]
    file: Option<Filename>,
    /// Whether to send the frames in random order.
    #[arg(keyword, default = false)]
    random: bool,
    /// Whether to stop the driver after LIMIT packets.
    #[arg(keyword, default = false)]
    stop: bool,
    /// When false, no packet is sent.
    #[arg(keyword, default = true, handler = "rw")]
    active: bool,
}

/// Strings of bytes, separated by blanks.
#[derive(Clone, Debug)]
pub struct Frames(Vec<Vec<u8>>);

impl ArgValue for Frames {
    const TYPE: &'static str = "list of data";
    fn parse(t: &str, cx: &ArgCx<'_>) -> Result<Self, ValueError> {
        let words = text::words(t).into_iter();
        words
            .map(|r| Data::parse(t.get(r).unwrap_or(""), cx).map(|d| d.0))
            .collect::<Result<_, _>>()
            .map(Frames)
    }
}

impl Build for MemSource {
    fn build(mut args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let data = args.data.take();
        let mut source = MemSource {
            count: SentCount::default(),
            lines: Vec::new(),
            frames: Vec::new(),
            next: 0,
            random: cx.random(),
            ended: Ended::default(),
            bursts: Bursts::new(),
            batch: Batch::new(),
            args,
        };
        if source.args.file.is_none() {
            for f in data.map_or_else(|| vec![TEXT.to_vec()], |d| d.0) {
                source.add(&f).map_err(|e| format!("DATA: {e}"))?;
            }
            if source.frames.is_empty() {
                return Err("DATA: no frame".into());
            }
        }
        Ok(source)
    }
}

impl MemSource {
    fn add(&mut self, data: &[u8]) -> Result<(), ValueError> {
        if data.len() > castanet_packet::MAX_LENGTH - DEFAULT_HEADROOM {
            return Err(format!("a frame of {} bytes is too long for a packet", data.len()).into());
        }
        let start = self.lines.len();
        let count = append_lines(data, &mut self.lines);
        let number = |n: usize| u32::try_from(n).map_err(|_| "too many frames");
        self.frames.push(Frame { start: number(start)?, count: number(count)?, len: number(data.len())? });
        Ok(())
    }

    fn load(&mut self, file: &str) -> Result<(), ElementError> {
        let mut reader = CaptureReader::open(file).map_err(ElementError::refused)?;
        while let Some(frame) = reader.next_frame().map_err(ElementError::refused)? {
            self.add(frame.data).map_err(|e| format!("{file}: {e}"))?;
        }
        if self.frames.is_empty() { Err(format!("{file}: no frame").into()) } else { Ok(()) }
    }

    /// Sets `next` to the index of the next frame: in rotation, or at random.
    #[inline(always)]
    fn advance(&mut self) {
        self.next = if self.args.random {
            // The random number is below the number of frames, so it fits.
            self.random.below(self.frames.len() as u64) as usize
        } else if self.next + 1 < self.frames.len() {
            self.next + 1
        } else {
            0
        };
    }

    /// Returns a copy of the next frame. Returns none if the frame is longer than `LINE` bytes, or if the free list of
    /// the thread's pool is empty.
    #[inline(always)]
    fn short_packet(&mut self) -> Option<Packet> {
        let &Frame { start, count: 1, len } = self.frames.get(self.next)? else { return None };
        let line = self.lines.get(start as usize)?;
        let mut p = Packet::at_hand(DEFAULT_HEADROOM, LINE)?;
        fill_line(&mut p, line, len as usize);
        self.advance();
        Some(p)
    }

    /// Returns a copy of the next frame; `None` if no buffer is free.
    #[inline(always)]
    fn packet(&mut self) -> Option<Packet> {
        let &Frame { start, count, len } = self.frames.get(self.next)?;
        let (start, len) = (start as usize, len as usize);
        let p = if count == 1 {
            copy_line(self.lines.get(start)?, len, DEFAULT_HEADROOM)?
        } else {
            copy_lines(self.lines.get(start..)?.get(..count as usize)?, len, DEFAULT_HEADROOM)?
        };
        self.advance();
        Some(p)
    }
}

impl Element for MemSource {
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        if self.args.burst != 1 {
            return self.send(cx);
        }
        if cx.quantum() > 1 {
            return self.send_several(cx);
        }
        // INVARIANT: with a burst of one packet, no turn leaves a burst unfinished, so `bursts` need not be
        // updated.
        let may_send = self.args.active && !self.count.has_reached(self.args.limit);
        let ready = may_send && self.bursts.room_for_one(cx).is_ok();
        let Some(p) = ready.then(|| self.short_packet()).flatten() else { return self.send(cx) };
        self.count.add(1, cx);
        cx.emit(0, p);
        Turn::Again
    }
    fn plain_turns(&self, cx: &Cx<'_>) -> usize {
        if !self.args.active || self.args.burst != 1 || !self.bursts.is_plain(cx) {
            return 0;
        }
        self.count.left(self.args.limit)
    }
}

impl MemSource {
    /// Handles a turn of the task after LIMIT packets have been sent.
    #[cold]
    #[inline(never)]
    fn rest(&mut self, cx: &mut Cx<'_>) -> Turn {
        self.ended.stop(self.args.stop, cx);
        Turn::Sleep
    }

    /// Sends the packets of several turns, one for each turn.
    #[inline(never)]
    fn send_several(&mut self, cx: &mut Cx<'_>) -> Turn {
        for _ in 0..cx.quantum().min(self.count.left(self.args.limit)) {
            let Some(p) = self.short_packet().or_else(|| self.packet()) else { break };
            self.batch.push(p);
        }
        self.count.add(self.batch.len(), cx);
        cx.forward(0, &mut self.batch);
        Turn::Again
    }

    /// Sends as many packets of the current burst as this turn may send.
    #[inline(never)]
    fn send(&mut self, cx: &mut Cx<'_>) -> Turn {
        let burst = self.args.burst as usize;
        if !self.args.active || burst == 0 {
            return Turn::Sleep;
        }
        let left = self.count.left(self.args.limit);
        if left == 0 {
            return self.rest(cx);
        }
        let want = left.min(self.bursts.rest(burst, cx));
        let n = match self.bursts.room(want, cx) {
            Ok(n) => n,
            Err(turn) => return turn,
        };
        if n == 1 {
            // One packet needs no batch.
            let p = self.packet();
            let turn = self.bursts.end_turn(usize::from(p.is_some()), left, burst);
            if let Some(p) = p {
                self.count.add(1, cx);
                cx.emit(0, p);
            }
            return turn;
        }
        for _ in 0..n {
            let Some(p) = self.packet() else { break };
            self.batch.push(p);
        }
        self.count.add(self.batch.len(), cx);
        let turn = self.bursts.end_turn(self.batch.len(), left, burst);
        cx.forward(0, &mut self.batch);
        turn
    }
}

impl MemSource {
    /// Schedules the task after the settings or the count have changed. If packets are left to send, STOP applies
    /// again.
    fn resume(&mut self, cx: &mut Cx<'_>) {
        self.ended.resume(self.count.has_reached(self.args.limit));
        cx.schedule();
    }
}

#[handlers]
impl MemSource {
    /// Sets the count to 0 and starts again with the first frame.
    #[write(button)]
    fn reset(&mut self, cx: &mut Cx<'_>) {
        self.count.reset();
        if !self.args.random {
            self.next = 0;
        }
        self.resume(cx);
    }
    /// Number of frames in memory.
    #[read(name = "frames", unit = "frames")]
    fn frame_count(&self) -> usize {
        self.frames.len()
    }
}

impl Lifecycle for MemSource {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        self.bursts.initialise(cx);
        if let Some(f) = self.args.file.clone() {
            self.load(&f.0)?;
        }
        if self.args.random {
            self.advance();
        }
        Ok(())
    }
    fn changed(&mut self, handler: &str, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        if handler == Args::BURST {
            self.bursts.restart();
        }
        self.resume(cx);
        Ok(())
    }
    fn effects(&self, _: Effects) -> Effects {
        // STOP takes effect in a turn without packets, so its effect does not depend on the batch size.
        Effects::empty()
    }
    fn take_state(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.next = if old.next < self.frames.len() { old.next } else { 0 };
        self.random = old.random.clone();
        self.bursts.go_on_from(&old.bursts);
        self.ended.go_on_from(old.ended, self.count.has_reached(self.args.limit));
        cx.schedule();
        Ok(())
    }
}
