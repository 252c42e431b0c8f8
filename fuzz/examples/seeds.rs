// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the seed inputs of each target into `corpus/`, from the contents of the repository.

use castanet_tests::fuzz::settings::{example, place, settings};
use castanet_tests::{fuzz, trace};
use std::path::{Path, PathBuf};

/// Scripts which together use most instructions.
const SCRIPTS: &[&str] = &[
    "pause, print 1, wait 0.5, print $(add 1 2), stop\0return $(mod $(c.count) 2)",
    "label a, set x $(add $x 1), goto a $(lt $x 10), print $x, stop\0set n $(add $n 1), return 0",
    "print $(sprintf \"%5d %s %x %.3f\" 1 a 255 1.5), wait 1ms, loop\0exit",
    "write c.reset, read c.count, print c.rate, pause 2, error \"bad\"\0end",
    "init x 5, export y 6, set z ${x-8}${y[1]} $(q.length), goto end $(ge $z 1)\0print $input, error",
    "write q.capacity 5, write s.run 1 2 3, print $(s.v), returnq \"a\"\0set v $args, return $#",
    "setq x \"a b\", print $(first $x), print $(length $x), print $(in a $x), print $(if $(eq 1 1) yes no)\0return $(random 3)",
    "print $(now), print $(idiv 7 2) $(rem 7 -2) $(neg 3) $(abs -3) $(min 1 2) $(max 3 4) $(not false)\0return $(htons 1)",
    "printn $(nand true $(nor false false)), write stop, read list, wait_step, print $(readable c.count)\0return -1",
];

/// Patterns in each classifier language.
const PATTERNS: &[(u8, &str)] = &[
    (0, "12/0806 20/0001\n12/0806 20/0002\n12/0800\n-"),
    (0, "0/0000C0AE67EF 12/0800\n0/01%01 12/0800\n!14/45 23/??\n3/1?f?%f0f0"),
    (
        1,
        "src host 10.0.0.1 and not tcp port 80\ndst net 10.0.0.0/8 or icmp type echo\nudp && (src port 53 || dst port 53)\n-",
    ),
    (
        1,
        "ip proto 6\nip vers 4\nip hl 5\nip ttl < 5\nip frag\nip dscp 3\nip tos 0x10\nip len > 100\nip id 77\ntcp opt syn\ntrue",
    ),
    (
        1,
        "ether src 00:00:c0:ae:67:ef\nip[0] & 0x0f > 5\ntransp[2:2] = 80\nsrc or dst port >= 1024\nether host 1:2:3:4:5:6",
    ),
    (2, "deny src net 127.0.0.0/8 or src net 224.0.0.0/3\nallow all"),
    (
        2,
        "3 icmp type unreachable code 4\ndrop ip unfrag\n1 tcp and tcp opt ack\nallow udp ? port domain : tcp port http\n2 none",
    ),
];

/// Summary dumps, text and binary, which together contain most fields.
const SUMMARIES: &[&[u8]] = &[
    b"\0!IPSummaryDump 1.3\n!data timestamp ip_src ip_dst ip_proto sport dport ip_len\n1.5 1.0.0.1 2.0.0.2 T 10 20 40\n2.123456789 1.0.0.2 2.0.0.1 U 53 53 100\n3 - - I - - 28\n",
    b"\x01!data ip_fragoff ip_frag tcp_flags tcp_opt tcp_ntopt tcp_sack ip_opt\n8+ f FSRPAUECN mss1460;wscale3;sackok;ts5:6 . sack1-2;sack3-4 rr{1.2.3.4,5.6.7.8}+2\n0! ! SA . sackok 30=1:2 ts{1,2,!3}+1;148=0:0\n. . 18 - - - lsrr{1.2.3.4^5.6.7.8}\n",
    b"\x02# c\n!flowid 1.0.0.1 10 2.0.0.2 20 U\n!aggregate 7\n!proto I\n!contents icmp_type_name icmp_code_name icmp_flowid icmp_seq icmp_nextmtu count link direction\nunreachable needfrag - - 1400 9 < >\necho 0 1 2 - 1 R 7\n",
    b"\x03!data eth_src eth_dst eth_type payload payload_md5 payload_md5_hex payload_len wire_len ip_capture_len\n02-00-00-00-00-01 2:0:0:0:0:2 86DD \"\\000ab\\\"c\" qgauyYJ0pbR1w_tFOe_FYb 900150983cd24fb0d6963f7d28e17f72 9 1500 40\n",
    b"\0!data ntimestamp ip_src sport\n!binary\n\0\0\0\x12\x1d\xcde\0\0\0\0\x01\x01\x02\x03\x04\0\n\x80\0\0\x13!proto I        \n\0\0\0\x12\0\0\0\0\0\0\0\x02\x05\x06\x07\x08\xff\xff",
    b"\x01!data payload tcp_opt ip_opt ip_frag eth_src ip_ecn first_timestamp\n!binary\n\0\0\0#\0\0\0\x03abc\x04\x02\x04\x05\xb4\x04\x94\x04\0\0F\x02\0\0\0\0\x01\x03\0\0\0\x01\0\0\0\x02",
    b"\0!IPSummaryDump 9.9\n!data foo ip_src\nx y\n1 2 3\n",
    b"\x01!data ts_sec ts_usec ts_usec1 ip_hl ip_tos ip_dscp ip_ecn ip_ttl ip_id ip_sum tcp_off tcp_seq tcp_ack tcp_window tcp_urp udp_len\n1 2 3 60 255 63 ect1 1 65535 1 60 4294967295 1 2 3 4\n1 2 - 8 0 0 CE 0 0 0 8 0 0 0 0 0\n",
];

struct Folder(PathBuf, usize);

impl Folder {
    fn new(target: &str) -> std::io::Result<Folder> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
        std::fs::create_dir_all(&folder)?;
        Ok(Folder(folder, 0))
    }
    fn add(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.1 += 1;
        std::fs::write(self.0.join(format!("seed-{:03}", self.1)), bytes)
    }
}

/// Appends the texts of all files with this ending in a directory and its subdirectories to `all`.
fn texts_of(folder: &Path, ending: &str, all: &mut Vec<Vec<u8>>) -> std::io::Result<()> {
    let mut entries = std::fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(std::fs::DirEntry::path);
    for entry in entries {
        let path = entry.path();
        if path.is_dir() {
            texts_of(&path, ending, all)?;
        } else if path.extension().is_some_and(|e| e == ending) {
            all.push(std::fs::read(path)?);
        }
    }
    Ok(())
}

/// Encodes a frame in the format that `fuzz::elements::frames` decodes. `what` is the first byte of the encoding.
fn record(what: u8, frame: &[u8]) -> Vec<u8> {
    let n = u8::try_from(frame.len()).unwrap_or(u8::MAX);
    [&[what, n][..], &frame[..usize::from(n)]].concat()
}

/// Returns frames shorter than 256 bytes from the traces: one of each kind and length, shortest first.
fn kinds() -> Vec<Vec<u8>> {
    let mut all: Vec<_> = trace::ip_router(trace::SEED)
        .interfaces
        .into_iter()
        .flatten()
        .map(|f| f.data)
        .filter(|d| d.len() < 256)
        .collect();
    all.sort_by_key(|d| (d.len(), d.get(12..36).map(<[u8]>::to_vec)));
    all.dedup_by_key(|d| {
        (d.len(), d.get(12).copied(), d.get(14).copied(), d.get(20..24).map(<[u8]>::to_vec))
    });
    all
}

fn main() -> std::io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut texts = Vec::new();
    texts_of(&root.join("conf"), "click", &mut texts)?;
    texts_of(&root.join("crates/lang/tests/diagnostics"), "click", &mut texts)?;
    texts.extend(settings().iter().filter_map(|s| example(s.spec)).map(|t| t.as_bytes().to_vec()));
    let mut folder = Folder::new("language")?;
    texts.iter().filter(|t| t.len() <= 8192).try_for_each(|t| folder.add(t))?;

    let mut programs = Vec::new();
    texts_of(&root.join("crates/prolac/tests"), "pc", &mut programs)?;
    let mut folder = Folder::new("prolac")?;
    programs.iter().filter(|t| t.len() <= 4096).try_for_each(|t| folder.add(t))?;

    let (mut arguments, mut handlers, mut elements) =
        (Folder::new("arguments")?, Folder::new("handlers")?, Folder::new("elements")?);
    let frames = kinds();
    for (i, s) in settings().iter().enumerate() {
        let class = place(s.spec.name).to_be_bytes();
        arguments.add(&[&class[..], s.config.as_bytes()].concat())?;
        let all: Vec<_> = s.spec.args.iter().map(|a| format!("{} 1", a.name)).collect();
        arguments.add(&[&class[..], all.join(", ").as_bytes()].concat())?;
        let calls = (0..s.spec.all_handlers().count()).map(|h| {
            let text = ["1", "true", "10.0.0.1 0:0:0:0:0:1", "0.5s", "1000000"][h % 5];
            [&[u8::try_from(h).unwrap_or(0)][..], text.as_bytes()].concat()
        });
        handlers.add(&[&class[..], &calls.collect::<Vec<_>>().join(&b'\n')].concat())?;
        if !s.inputs.is_empty() {
            let some = frames.iter().skip(i % 7).step_by(7).take(12).enumerate();
            let some: Vec<u8> = some.flat_map(|(n, f)| record(n as u8 % 2, f)).collect();
            let how = [1, 0x42, 0x83, 0xc6][i % 4];
            elements.add(&[&class[..], &[how], &some].concat())?;
        }
    }

    let mut folder = Folder::new("router")?;
    for (n, some) in frames.chunks(16).enumerate() {
        let some: Vec<u8> = some.iter().enumerate().flat_map(|(i, f)| record(i as u8 % 2, f)).collect();
        folder.add(&[&[n as u8 % 4][..], &some].concat())?;
    }

    let (mut folder, mut jit) = (Folder::new("classifier")?, Folder::new("jit")?);
    for (language, text) in PATTERNS {
        for frame in frames.iter().step_by(frames.len() / 4) {
            let packet = if *language == 0 { &frame[..] } else { frame.get(14..).unwrap_or_default() };
            let input = [&[*language][..], text.as_bytes(), &[255], packet].concat();
            folder.add(&input)?;
            jit.add(&input)?;
        }
    }

    let mut summaries = Folder::new("summary")?;
    for dump in SUMMARIES {
        summaries.add(dump)?;
    }
    let mut folder = Folder::new("rewriter")?;
    for class in 0..6 {
        let records = (0..40u8).flat_map(|i| {
            let kind = [0, 3 | 2 << 3, 5, 6, 3 | 8, 7][usize::from(i % 6)];
            [i, i << 7, kind, i / 2 % 16, i % 3, 128 | i % 5, i, 40]
        });
        let text: &[u8] = [&b"pattern 9.9.9.9 1024-1030# - - 0 1, drop"[..], b""][usize::from(class) % 2];
        folder.add(&[&[class, class * 9], text, b"\0keep 1 0\0", &records.collect::<Vec<_>>()].concat())?;
    }

    let mut folder = Folder::new("script")?;
    SCRIPTS.iter().try_for_each(|s| folder.add(s.as_bytes()))?;

    let mut folder = Folder::new("control")?;
    fuzz::control::seeds().iter().try_for_each(|s| folder.add(s))?;
    let mut folder = Folder::new("bpdu")?;
    fuzz::bpdu::seeds().iter().try_for_each(|s| folder.add(s))?;

    let mut folder = Folder::new("archive")?;
    let member = |name: &str, data: &[u8]| (name.to_string(), data.to_vec());
    let long = "a-name-that-does-not-fit-into-sixteen-bytes";
    let sets = [
        vec![],
        vec![member("config", b"Idle -> Discard;\n")],
        vec![member("config", b"x"), member(long, b"yy"), member("#odd", b"")],
    ];
    for s in sets {
        folder.add(&castanet_lang_write(&s))?;
    }
    let gnu = format!("!<arch>\n{:<48}{:<10}`\n{long}/\n{:<48}{:<10}`\nabcd", "//", long.len() + 2, "/0", 4);
    folder.add(gnu.as_bytes())?;

    let mut folder = Folder::new("capture")?;
    for interface in 0..2 {
        let bytes = std::fs::read(root.join("conf/traces").join(trace::file_name(interface)))?;
        folder.add(&bytes[..2000])?;
    }
    for big in [false, true] {
        folder.add(&pcapng(big))?;
        for magic in [0xa1b2_c3d4_u32, 0xa1b2_3c4d, 0xa1b2_cd34] {
            folder.add(&pcap(magic, big))?;
        }
    }
    for t in fuzz::TARGETS {
        println!(
            "{}: {} files",
            t.name,
            std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(t.name))?.count()
        );
    }
    Ok(())
}

fn castanet_lang_write(members: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut out = b"!<arch>\n".to_vec();
    for (name, data) in members {
        let (field, extra) =
            if name.len() > 14 { (format!("#1/{}", name.len()), name.as_str()) } else { (name.clone(), "") };
        let size = data.len() + extra.len();
        out.extend(format!("{field:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 100_644).bytes());
        out.extend(extra.bytes().chain(data.iter().copied()));
        if size % 2 == 1 {
            out.push(b'\n');
        }
    }
    out
}

fn word(n: u32, big: bool) -> [u8; 4] {
    if big { n.to_be_bytes() } else { n.to_le_bytes() }
}

/// Two packets in a pcap file with this magic number.
fn pcap(magic: u32, big: bool) -> Vec<u8> {
    let version = if big { [0, 2, 0, 4] } else { [2, 0, 4, 0] };
    let mut out =
        [&word(magic, big)[..], &version, &word(0, big), &word(0, big), &word(65535, big), &word(1, big)]
            .concat();
    for n in [14u32, 3] {
        for field in [1_700_000_000, 5, n, 60] {
            out.extend(word(field, big));
        }
        if magic == 0xa1b2_cd34 {
            out.extend([0; 8]);
        }
        out.extend(vec![7; n as usize]);
    }
    out
}

/// A pcapng file with a section, an interface with options, and enhanced, simple and unknown blocks.
fn pcapng(big: bool) -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| {
        let n = u32::try_from(body.len()).unwrap_or(0) + 12;
        [&word(kind, big)[..], &word(n, big), body, &word(n, big)].concat()
    };
    let half = |n: u16| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let section = [&word(0x1a2b_3c4d, big)[..], &half(1), &half(0), &[255; 8]].concat();
    let interface =
        [&half(1)[..], &half(0), &word(0, big), &half(9), &half(1), &[9, 0, 0, 0], &half(0), &half(0)]
            .concat();
    let fields: Vec<u8> = [0, 0x0012_3456, 0x789a_bcde, 5, 60].iter().flat_map(|&n| word(n, big)).collect();
    let enhanced = [&fields[..], &[1, 2, 3, 4, 5, 0, 0, 0]].concat();
    let simple = [&word(4, big)[..], &[9; 4]].concat();
    [
        block(0x0a0d_0d0a, &section),
        block(1, &interface),
        block(6, &enhanced),
        block(3, &simple),
        block(77, &[1; 4]),
    ]
    .concat()
}
