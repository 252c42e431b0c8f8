// SPDX-License-Identifier: MIT OR Apache-2.0
//! A large shared table: a class of the tests counts packets in one of 65,536 records, which the kernel and user level share.

use crate::frames::Random;
use crate::world::World;
use crate::{Frames, compare};
use castanet_element::Attached;
use castanet_element::kernel::{Code, Lowered, Size, Table, TableSpec};
use castanet_element::prelude::*;
use std::sync::Arc;

const RECORDS: usize = 1 << 16;
/// Records of 16 bytes: the number of packets, and the sum of their lengths.
const TABLE: TableSpec = TableSpec::shared(2 * RECORDS as u32);

/// Counts packets by the first two bytes of their data.
#[derive(Class)]
#[class(name = "Histogram", ports = "1/1", processing = "h/h", packets = "any/same", workers = exclusive)]
#[class(handlers, lifecycle, kernel, takes_state = "the numbers", build, drops(TooShort))]
pub struct Histogram {
    numbers: Vec<[u64; 2]>,
    words: Option<Arc<dyn Table>>,
}

impl Build for Histogram {
    fn build(_: Self::Args, _: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(Histogram { numbers: vec![[0; 2]; RECORDS], words: None })
    }
}

impl Histogram {
    fn all(&self) -> Vec<[u64; 2]> {
        match &self.words {
            None => self.numbers.clone(),
            Some(w) => (0..RECORDS).map(|i| [0, 1].map(|n| w.word(2 * i + n).unwrap())).collect(),
        }
    }
}

#[handlers]
impl Histogram {
    /// The records that are not 0.
    #[read]
    fn numbers(&mut self) -> castanet_element::spec::Table {
        let all = self.all();
        let shown = all.iter().enumerate().filter(|(_, n)| n[0] != 0);
        let lines: Vec<String> = shown.map(|(i, [n, bytes])| format!("{i} {n} {bytes}")).collect();
        Table(lines.join("\n"))
    }
}

impl Lifecycle for Histogram {
    fn take_state(&mut self, old: &mut Self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        self.numbers = old.all();
        Ok(())
    }
}

impl Element for Histogram {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        for p in batch.drain() {
            let Some(first) = p.data().first_chunk().map(|b| u16::from_le_bytes(*b)) else {
                cx.drop(p, Reason::TooShort);
                continue;
            };
            let (at, more) = (usize::from(first), [1, p.len() as u64]);
            for (n, more) in more.into_iter().enumerate() {
                match &self.words {
                    None => self.numbers[at][n] += more,
                    Some(words) => assert!(words.add_to_word(2 * at + n, more).is_some()),
                }
            }
            cx.emit(0, p);
        }
    }
}

impl InKernel for Histogram {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        let short = code.label();
        code.need(2, short);
        let length = code.length();
        // The upper bits must be cut off: there is no such record.
        let first = code.load(0, Size::Half);
        let index = code.compute(castanet_element::kernel::Arithmetic::Or, first, 0x70_0000u32);
        let record = code.shared_record(0, TABLE, index, 16);
        code.add_to_entry(record, 0, 1u32);
        code.add_to_entry(record, 8, length);
        code.next(0);
        code.bind(short);
        code.drop(Reason::TooShort as u16);
        Ok(())
    }
    fn attach(&mut self, to: Attached) {
        if let Attached::Table(_, words) = to {
            for (i, numbers) in self.numbers.iter().enumerate().filter(|(_, n)| n[0] != 0) {
                assert!(words.set_word(2 * i, numbers[0]) && words.set_word(2 * i + 1, numbers[1]));
            }
            assert_eq!((words.word(2 * RECORDS), words.set_word(2 * RECORDS, 1)), (None, false));
            self.words = Some(words);
        }
    }
}

/// A large shared table has the same numbers in the end, with packets that come up among the others, and after a hot swap.
pub fn tables_in(world: fn() -> World) {
    let text = "FromDevice(eth0) -> Strip(28) -> h :: Histogram -> Observe(a);
        FromDevice(eth1) -> Counter(COUNT_CALL 1000000 stop) -> Strip(26) -> Strip(2) -> h;";
    let swapped = format!("{text} Script(wait 500300us, write hotconfig 1); {}\n{text}", crate::swaps::NEXT);
    let mut random = Random::new(1);
    let frames: Frames =
        (0..1000).map(|_| (if random.one_in(8) { "eth1" } else { "eth0" }, random.frame())).collect();
    for text in [text, &swapped] {
        compare(text, &frames, world).check_shared_tables();
    }
}

#[test]
fn shared_tables() {
    tables_in(World::default);
}
