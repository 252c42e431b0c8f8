// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the interpreter, and the number of steps that it takes.

use super::*;

/// The number of tests and of comparisons in searches that the interpreter makes for a packet. `transport` is the offset of its
/// transport header.
pub(crate) fn effort(program: &Program, data: &[u8], transport: usize) -> usize {
    let (steps, chains) = match &program.runner.fast {
        Fast::General(steps) => (steps, &Chains::default()),
        Fast::Chained(steps, chains) => (steps, chains),
        Fast::Values { values, .. } => return values.len().ilog2() as usize + 1,
        _ => return 1,
    };
    let (mut at, mut count, mut inside) = (program.root().raw(), 0, None);
    let mut found = None;
    while at & LEAF == 0 {
        count += 1;
        if let Some((number, position)) = chains.entered(at) {
            let chain = chains.get(number).unwrap();
            if inside.replace(number) != Some(number) {
                count += chain.comparisons();
                found = chain.search(|s| load(data, s, transport));
            }
            at = found.as_ref().unwrap().target(position);
        } else {
            let s = &steps[at as usize];
            at = if load(data, s, transport).unwrap() == s.value { s.yes } else { s.no };
        }
    }
    count
}

/// Patterns of two words, with few and with many tests of the first word: each packet takes the first pattern that
/// matches, and most programs have chains.
#[test]
fn chains_are_searched_from_every_entry() {
    let mut state = 0x5eed_0005u64;
    let mut below = |n: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n
    };
    let mut searched = 0;
    for count in [5, 12, 40, 300, 2000] {
        let range = count / 2 + 3;
        let rules: Vec<(usize, usize)> = (0..count).map(|_| (below(range), below(4))).collect();
        let texts: Vec<String> = rules.iter().map(|(a, b)| format!("0/{a:08x} 4/{b:08x}")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let program = Program::from_classifier(&texts).unwrap().0;
        searched += usize::from(matches!(program.runner.fast, Fast::Chained(..)));
        for (a, b) in (0..range + 2).flat_map(|a| (0..5).map(move |b| (a, b))) {
            let data = [(a as u32).to_be_bytes(), (b as u32).to_be_bytes()].concat();
            let want = rules.iter().position(|&rule| rule == (a, b));
            assert_eq!(program.classify(&data).port(), want, "{count} rules, {a} {b}");
        }
    }
    assert!(searched >= 3, "{searched} programs with chains");
}

/// Random steps, with chains that other steps enter anywhere, with values that occur again in a chain, and with masks of
/// different lengths.
#[test]
fn chains_end_where_their_steps_end() {
    let mut random = 0x5eed_0006u64;
    let mut below = |n: u32| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((random >> 33) as u32) % n
    };
    let (mut inside, mut mixed) = (0, 0);
    for round in 0..600 {
        let count = 40;
        let mut word = 0;
        let masks: &[u32] = [&[0xff][..], &[0xff, 0xfe, 0xf0, 0xfc, 0], &[0x0f, 0xf0, 0x3c, 0xff]][round % 3];
        let steps: Vec<FastStep> = (0..count)
            .map(|i| {
                if below(14) == 0 {
                    word = 4 - word;
                }
                let later = i + 1 + below(count);
                let yes = if later < count { later } else { LEAF | i };
                // In every other round, there are two lists, and the first one leads to the second one only by `yes`.
                let last = i + 1 == count || (round % 2 == 0 && i == 19);
                let no = if last { LEAF | (1000 + i) } else { i + 1 };
                let mask = masks[below(masks.len() as u32) as usize];
                let [mask, value] =
                    [mask, (below(13) * 21) & mask].map(|n: u32| u32::from_ne_bytes(n.to_be_bytes()));
                FastStep { offset: word, transport: 0, mask, value, yes, no }
            })
            .collect();
        let mut changed = steps.clone();
        let chains = Chains::new(&mut changed);
        let positions = changed.iter().filter_map(|s| Some(chains.entered(s.yes)?.1));
        inside += positions.filter(|&p| p > 0).count();
        mixed += usize::from(!chains.is_empty() && round % 3 == 1);
        let runner = Runner {
            kind: OffsetBase::Data,
            first: changed[0],
            fast: Fast::Chained(changed, chains),
            front: 8,
            transport: 0,
        };
        for (a, b) in (0..256u32).flat_map(|a| (0..256u32).step_by(21).map(move |b| (a, b))) {
            for (a, b) in [(a, b), (b, a)] {
                let data = [a.to_be_bytes(), b.to_be_bytes()].concat();
                let want = walk(&steps, 0, &data, 0).map(|leaf| Output(leaf & !LEAF));
                assert_eq!(Some(runner.fast(&data, 0)), want, "{steps:?} {a} {b}");
            }
        }
    }
    assert!(
        inside > 500 && mixed > 100,
        "chains were entered {inside} times behind their first step, {mixed} mixed"
    );
}

/// Filters of nets of all lengths. The first rule that matches decides, and no rule is tried.
#[test]
fn nets_of_different_lengths_are_searched() {
    let mut random = 0x5eed_0007u64;
    let mut next = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 32) as u32
    };
    let nets: Vec<(u32, u32)> = (0..800)
        .map(|_| {
            let mask = u32::MAX << (next() % 25);
            (next() & 0x0fff_ffff & mask, mask)
        })
        .collect();
    let rule = |(i, (net, mask)): (usize, &(u32, u32))| {
        let [net, mask] = [*net, *mask].map(std::net::Ipv4Addr::from);
        format!("{} src net {net} mask {mask}", i % 7)
    };
    let rules: Vec<String> = nets.iter().enumerate().map(rule).collect();
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    let program = Program::from_ip_filter(&rules, &crate::NoNames, 7).unwrap().0;
    let Fast::Chained(steps, chains) = &program.runner.fast else { panic!("{:?}", program.runner.fast) };
    let mut found = 0;
    for round in 0..20_000 {
        let (net, mask) = nets[round % nets.len()];
        let source = if round % 3 == 0 { next() & 0x0fff_ffff } else { net | (next() & !mask) };
        let mut packet = [0u8; 20];
        packet[0] = 0x45;
        packet[12..16].copy_from_slice(&source.to_be_bytes());
        let want = nets.iter().position(|(net, mask)| source & mask == *net).map(|i| i % 7);
        assert_eq!(program.classify_ip(&packet).port(), want, "{source:08x}");
        let end = walk(steps, program.runner.first.no, &packet, 20).unwrap();
        found += usize::from(chains.entered(end).is_some());
    }
    assert!(found > 19_000, "{found}");
}
