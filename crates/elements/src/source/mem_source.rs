// SPDX-License-Identifier: MIT OR Apache-2.0
//! MemSource: frames from memory, as a device would bring them.

use super::{LINE, TEXT, append_lines, burst_turn, copy_line, copy_lines, fill_line, left};
use castanet_element::prelude::*;
use castanet_io::CaptureReader;
use castanet_lang::args as text;
use castanet_packet::DEFAULT_HEADROOM;

/// Sends copies of frames that are held in memory, as fast as they are taken.
///
/// Like a device it copies each frame into a fresh buffer of the pool. The frames are the words of DATA, or all frames of a
/// capture file; they are sent in rotation, or at random. Its task sends BURST packets a turn and sleeps while every queue
/// downstream that can tell is full. After LIMIT packets it rests; with STOP the next turn stops the driver. Packets are not
/// stamped with the time.
///
/// # Ports
/// Output 0 (push): packets.
///
/// # Example
/// ```click
/// MemSource("\<ffffffffffff 020000000001 0800>" "second frame", LIMIT 1000, STOP true) -> Discard;
/// ```
#[derive(Class)]
#[class(books(enters))]
#[class(name = "MemSource", ports = "0/1", processing = "h/h", packets = "/any", workers = exclusive)]
#[class(takes_state = "the count, the next frame, the place in the burst and in the random numbers")]
#[class(task, build, lifecycle, effects(stops))]
#[handler(name = "reset", flags = "wb", doc = "Sets the count to 0 and starts again with the first frame.")]
#[handler(name = "frames", flags = "r", doc = "Number of frames in memory.")]
pub struct MemSource {
    args: Args,
    /// Packets sent.
    #[handler]
    count: Count,
    /// All frames one behind the other, each padded to whole lines.
    lines: Vec<[u8; LINE]>,
    frames: Vec<Frame>,
    /// The frame to be sent next.
    next: usize,
    random: Random,
    stopped: bool,
    /// Packets of the current burst that earlier turns have sent.
    sent: usize,
    downstream: Signal,
    batch: Batch,
}

/// Where a frame stands among the lines.
#[derive(Clone, Copy)]
struct Frame {
    start: u32,
    count: u32,
    len: u32,
}

/// Arguments of MemSource.
#[derive(Args)]
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
    fn parse(t: &str, cx: &ArgCx<'_>) -> Result<Self, String> {
        let words = text::words(t).into_iter();
        words
            .map(|r| Data::parse(t.get(r).unwrap_or(""), cx).map(|d| d.0))
            .collect::<Result<_, _>>()
            .map(Frames)
    }
}

impl Build for MemSource {
    fn build(mut args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        if args.data.is_some() && args.file.is_some() {
            return Err("DATA and FILE exclude each other".into());
        }
        let data = args.data.take();
        let mut source = MemSource {
            count: Count::default(),
            lines: Vec::new(),
            frames: Vec::new(),
            next: 0,
            random: cx.random(),
            stopped: false,
            sent: 0,
            downstream: Signal::always(),
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
    fn add(&mut self, data: &[u8]) -> Result<(), String> {
        if data.len() > castanet_packet::MAX_LENGTH - DEFAULT_HEADROOM {
            return Err(format!("a frame of {} bytes is too long for a packet", data.len()));
        }
        let start = self.lines.len();
        let count = append_lines(data, &mut self.lines);
        let number = |n: usize| u32::try_from(n).map_err(|_| "too many frames".to_string());
        self.frames.push(Frame { start: number(start)?, count: number(count)?, len: number(data.len())? });
        Ok(())
    }

    fn load(&mut self, file: &str) -> Result<(), String> {
        let mut reader = CaptureReader::open(file).map_err(|e| e.to_string())?;
        while let Some(frame) = reader.next_frame().map_err(|e| e.to_string())? {
            self.add(frame.data).map_err(|e| format!("{file}: {e}"))?;
        }
        if self.frames.is_empty() { Err(format!("{file}: no frame")) } else { Ok(()) }
    }

    /// Goes on to the next frame.
    #[inline(always)]
    fn advance(&mut self) {
        self.next = if self.args.random {
            // Below the number of frames, so it fits.
            self.random.below(self.frames.len() as u64) as usize
        } else if self.next + 1 < self.frames.len() {
            self.next + 1
        } else {
            0
        };
    }

    /// Whether all was sent that LIMIT allows.
    #[inline(always)]
    fn is_done(&self) -> bool {
        u64::try_from(self.args.limit).is_ok_and(|limit| limit <= self.count.get())
    }

    /// A copy of the next frame if it is a short one and a buffer is at hand.
    #[inline(always)]
    fn short_packet(&mut self) -> Option<Packet> {
        let &Frame { start, count: 1, len } = self.frames.get(self.next)? else { return None };
        let line = self.lines.get(start as usize)?;
        let mut p = Packet::at_hand(DEFAULT_HEADROOM, LINE)?;
        fill_line(&mut p, line, len as usize);
        self.advance();
        Some(p)
    }

    /// A copy of the next frame; none when no buffer is free.
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
        // INVARIANT: nothing was sent of a burst of one, so that there is no account to be kept of it.
        let ready = self.args.active && !self.is_done() && cx.room(&self.downstream, 1, false).is_ok();
        let Some(p) = ready.then(|| self.short_packet()).flatten() else { return self.send(cx) };
        self.count.add(1);
        cx.entered(1);
        cx.emit(0, p);
        Turn::Again
    }
}

impl MemSource {
    /// Has sent all that it may.
    #[cold]
    #[inline(never)]
    fn rest(&mut self, cx: &mut Cx<'_>) -> Turn {
        if self.args.stop && !std::mem::replace(&mut self.stopped, true) {
            cx.stop(1);
        }
        Turn::Sleep
    }

    /// Sends what is due in a turn of a burst.
    #[inline(never)]
    fn send(&mut self, cx: &mut Cx<'_>) -> Turn {
        let burst = self.args.burst as usize;
        if !self.args.active || burst == 0 {
            return Turn::Sleep;
        }
        let left = left(self.args.limit, self.count);
        if left == 0 {
            return self.rest(cx);
        }
        let want = left.min(burst.saturating_sub(self.sent)).min(cx.limit());
        let n = match cx.room(&self.downstream, want, self.sent > 0) {
            Ok(n) => n,
            Err(turn) => return turn,
        };
        if n == 1 {
            // One packet needs no batch.
            let p = self.packet();
            let turn = burst_turn(&mut self.sent, usize::from(p.is_some()), left, burst);
            if let Some(p) = p {
                self.count.add(1);
                cx.entered(1);
                cx.emit(0, p);
            }
            return turn;
        }
        for _ in 0..n {
            let Some(p) = self.packet() else { break };
            self.batch.push(p);
        }
        self.count.add(self.batch.len() as u64);
        cx.entered(self.batch.len() as u64);
        let turn = burst_turn(&mut self.sent, self.batch.len(), left, burst);
        cx.forward(0, &mut self.batch);
        turn
    }
}

impl Lifecycle for MemSource {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), String> {
        self.downstream = cx.downstream(0);
        if let Some(f) = self.args.file.clone() {
            self.load(&f.0)?;
        }
        if self.args.random {
            self.advance();
        }
        Ok(())
    }
    fn read(&mut self, _: &str, _: &str, _: &mut Cx<'_>) -> Result<String, String> {
        Ok(self.frames.len().to_string())
    }
    fn write(&mut self, handler: &str, _: &str, cx: &mut Cx<'_>) -> Result<(), String> {
        self.count.reset();
        if !self.args.random {
            self.next = 0;
        }
        self.changed(handler, cx)
    }
    fn changed(&mut self, handler: &str, cx: &mut Cx<'_>) -> Result<(), String> {
        if handler == "burst" {
            self.sent = 0;
        }
        if left(self.args.limit, self.count) > 0 {
            self.stopped = false;
        }
        cx.schedule();
        Ok(())
    }
    fn effects(&self, _: Effects) -> Effects {
        // STOP falls into a turn without packets, where no batch can show it.
        Effects::NONE
    }
    fn take_state(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), String> {
        self.next = if old.next < self.frames.len() { old.next } else { 0 };
        (self.sent, self.random) = (old.sent, old.random.clone());
        self.stopped = old.stopped && left(self.args.limit, self.count) == 0;
        cx.schedule();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::Kit;

    fn texts(out: Vec<(usize, Packet)>) -> Vec<String> {
        out.iter().map(|(_, p)| String::from_utf8_lossy(p.data()).into_owned()).collect()
    }

    #[test]
    fn rotates_within_bursts_and_limits() {
        let mut kit = Kit::<MemSource>::new("\"a\" \"b c\" \\<64 65>, 7, 4, STOP true").unwrap().limit(3);
        let mut turns = Vec::new();
        loop {
            let (turn, out) = kit.task();
            if turn == Turn::Sleep {
                break;
            }
            assert_eq!(kit.stops(), 0);
            turns.push((texts(out).join(","), turn));
        }
        let want = [("a,b c,de", Turn::More), ("a", Turn::Again), ("b c,de,a", Turn::Again)];
        assert_eq!(turns, want.map(|(t, turn)| (t.to_string(), turn)));
        assert_eq!((kit.stops(), kit.task().0, kit.stops()), (1, Turn::Sleep, 1));
        kit.write("reset", "").unwrap();
        assert!(kit.woken());
        assert_eq!(texts(kit.task().1), ["a", "b c", "de"]);
        kit.write("active", "false").unwrap();
        assert_eq!(kit.task().0, Turn::Sleep);
        assert_eq!((kit.read("count").unwrap(), kit.read("frames").unwrap()), ("3".into(), "3".into()));
    }

    #[test]
    fn every_length_is_copied_whole() {
        for len in 0..600usize {
            let data: Vec<u8> = (0..len).map(|i| i as u8).collect();
            let config = format!("{}, BURST 2", castanet_lang::args::quote_bytes(&data));
            let mut kit = Kit::<MemSource>::new(&config).unwrap();
            for (_, p) in kit.task().1 {
                assert_eq!((p.data(), p.headroom(), p.timestamp()), (&data[..], 28, 0));
            }
        }
    }

    #[test]
    fn random_order_takes_every_frame() {
        let mut kit = Kit::<MemSource>::new("'a' b c d, RANDOM true, BURST 300").unwrap().limit(256);
        let mut seen = texts(kit.task().1);
        assert_eq!(seen.len(), 256);
        assert_ne!(seen[..4], ["a", "b", "c", "d"]);
        seen.sort();
        seen.dedup();
        assert_eq!(seen, ["a", "b", "c", "d"]);
    }

    #[test]
    fn the_order_of_frames_is_that_of_single_packets() {
        let long = "c".repeat(100);
        for random in [false, true] {
            let sent = |burst: usize, limit: usize| {
                let config = format!("'a' bb {long} dddd, BURST {burst}, RANDOM {random}");
                let mut kit = Kit::<MemSource>::new(&config).unwrap().limit(limit);
                (0..60 / burst.min(limit)).flat_map(|_| texts(kit.task().1)).collect::<Vec<_>>()
            };
            let one = sent(1, 1);
            assert_eq!(one.len(), 60);
            for (burst, limit) in [(1, 32), (3, 32), (5, 1), (30, 10)] {
                assert_eq!(sent(burst, limit), one, "{burst} {limit} {random}");
            }
        }
    }

    #[test]
    fn frames_of_a_capture() {
        let mut bytes = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
        bytes.extend([0; 8]);
        bytes.extend([0, 0, 4, 0, 1, 0, 0, 0]);
        for frame in [&b"first"[..], b"second"] {
            bytes.extend([0; 8]);
            bytes.extend((frame.len() as u32).to_le_bytes().repeat(2));
            bytes.extend(frame);
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &bytes).unwrap();
        let mut kit = Kit::<MemSource>::new(&format!("FILE {}, LIMIT 3", file.path().display())).unwrap();
        assert_eq!(texts(kit.task().1), ["first", "second", "first"]);
        std::fs::write(file.path(), &bytes[..24]).unwrap();
        let none = Kit::<MemSource>::new(&format!("FILE {}", file.path().display())).err().unwrap();
        assert!(none[0].ends_with("no frame"), "{none:?}");
    }

    #[test]
    fn argument_errors() {
        for (config, error) in [
            ("a, FILE b", "DATA and FILE exclude each other"),
            ("\"\\<00", "DATA: a quote or '\\<' is not closed"),
            ("a, x", "LIMIT: invalid number"),
        ] {
            assert_eq!(Kit::<MemSource>::new(config).err().unwrap(), [error], "{config}");
        }
        assert!(Kit::<MemSource>::new("FILE /nonexistent.pcap").is_err());
    }
}
