// SPDX-License-Identifier: MIT OR Apache-2.0
//! Merges the records of several workers in the order of their times.

/// The time, in nanoseconds, for which a worker counts as active after it has added a record. Records of one worker are
/// held back while another active worker may still add an earlier record.
pub(super) const HOLD: i64 = 50_000_000;

/// At most this many bytes of records are held back. When there are more, all are written.
const MOST: usize = 1 << 22;

/// Records in one buffer, each with a time.
#[derive(Default)]
pub(super) struct Records {
    bytes: Vec<u8>,
    /// For each record, its time in nanoseconds and its length in bytes.
    index: Vec<(i64, usize)>,
    /// The time at which the last records were added.
    added: i64,
}

impl Records {
    /// Appends records. `ends` are the offsets of their ends in `bytes`, and `times` their times. `now` is the current
    /// time. All times are in nanoseconds.
    pub(super) fn append(&mut self, bytes: &[u8], ends: &[usize], times: &[i64], now: i64) {
        self.bytes.extend_from_slice(bytes);
        let mut start = 0;
        self.index.extend(times.iter().zip(ends).map(|(&time, &end)| {
            let length = end.saturating_sub(std::mem::replace(&mut start, end));
            (time, length)
        }));
        self.added = now;
    }
    /// Returns the size of all records in bytes.
    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }
}

/// The records of one worker that have not been written yet.
#[derive(Default)]
struct Lane {
    records: Records,
    /// The number of records in `records` that have been written, and their size in bytes.
    written: (usize, usize),
    /// The time of the worker's latest record.
    latest: i64,
}

impl Lane {
    /// Moves the records of a worker to this lane.
    fn take_from(&mut self, new: &mut Records) {
        let Some(last) = new.index.last() else { return };
        self.latest = last.0;
        let (records, bytes) = std::mem::take(&mut self.written);
        self.records.index.drain(..records);
        self.records.bytes.drain(..bytes);
        self.records.added = new.added;
        if self.records.index.is_empty() {
            std::mem::swap(&mut self.records, new);
        } else {
            self.records.index.append(&mut new.index);
            self.records.bytes.append(&mut new.bytes);
        }
    }
    /// Returns the time of the first record that has not been written.
    fn head(&self) -> Option<i64> {
        self.records.index.get(self.written.0).map(|r| r.0)
    }
    /// Removes the first record that has not been written, and returns its bytes.
    fn next(&mut self) -> &[u8] {
        let (record, start) = self.written;
        let end = start.saturating_add(self.records.index.get(record).map_or(0, |r| r.1));
        self.written = (record.saturating_add(1), end);
        self.records.bytes.get(start..end).unwrap_or_default()
    }
    /// Returns the number of records that have not been written.
    fn len(&self) -> usize {
        self.records.index.len().saturating_sub(self.written.0)
    }
    /// Returns the size in bytes of the records that have not been written.
    fn size(&self) -> usize {
        self.records.size().saturating_sub(self.written.1)
    }
}

/// Merges the records of several workers. The records of each worker keep their order.
#[derive(Default)]
pub(super) struct Merge(Vec<Lane>);

impl Merge {
    /// Takes the new records of a worker.
    pub(super) fn take(&mut self, worker: usize, new: &mut Records) {
        if self.0.len() <= worker {
            self.0.resize_with(worker.saturating_add(1), Lane::default);
        }
        if let Some(lane) = self.0.get_mut(worker) {
            lane.take_from(new);
        }
    }
    /// Returns the number of records of all workers that have not been written.
    pub(super) fn len(&self) -> usize {
        self.0.iter().map(Lane::len).sum()
    }
    /// Whether all records of a worker have been written.
    pub(super) fn is_done(&self, worker: usize) -> bool {
        self.0.get(worker).is_none_or(|l| l.head().is_none())
    }
    /// Removes all records.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Calls `write` with records in the order of their times, as long as it succeeds. Without `now`, writes all
    /// records. With `now`, writes only the records that precede every record that an active worker may still add.
    pub(super) fn write<E>(
        &mut self,
        now: Option<i64>,
        mut write: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let limit = now.map_or(i64::MAX, |now| self.limit(now));
        loop {
            // Find the worker with the earliest record, and the time of the next record of another worker.
            let (mut first, mut second) = ((i64::MAX, None), i64::MAX);
            for lane in &mut self.0 {
                let Some(head) = lane.head() else { continue };
                if first.1.is_none() || head < first.0 {
                    second = first.0;
                    first = (head, Some(lane));
                } else {
                    second = second.min(head);
                }
            }
            let (time, Some(lane)) = first else { return Ok(()) };
            if time > limit {
                return Ok(());
            }
            write(lane.next())?;
            let until = second.min(limit);
            while lane.head().is_some_and(|time| time <= until) {
                write(lane.next())?;
            }
        }
    }
    /// Returns the time up to which active workers add no more records.
    fn limit(&self, now: i64) -> i64 {
        if self.0.iter().map(Lane::size).sum::<usize>() > MOST {
            return i64::MAX;
        }
        let active = self.0.iter().filter(|l| now.saturating_sub(l.records.added) <= HOLD);
        active.map(|l| l.latest).min().unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::Random;

    fn add(records: &mut Records, time: i64, now: i64) {
        let bytes = time.to_be_bytes();
        records.append(&bytes, &[8], &[time], now);
    }
    fn written(merge: &mut Merge, now: Option<i64>) -> Vec<i64> {
        let mut all = Vec::new();
        merge
            .write::<()>(now, |r| {
                all.push(i64::from_be_bytes(r.try_into().unwrap()));
                Ok(())
            })
            .unwrap();
        all
    }

    #[test]
    fn records_wait_for_active_workers() {
        let (mut merge, mut a, mut b) = (Merge::default(), Records::default(), Records::default());
        [10, 20, 30].iter().for_each(|t| add(&mut a, *t, 30));
        add(&mut b, 15, 15);
        merge.take(0, &mut a);
        merge.take(1, &mut b);
        assert_eq!(written(&mut merge, Some(40)), [10, 15], "worker 1 may add records later than 15");
        assert_eq!((merge.len(), merge.is_done(0), merge.is_done(1)), (2, false, true));
        add(&mut b, 25, 25);
        merge.take(1, &mut b);
        assert_eq!(written(&mut merge, Some(40)), [20, 25]);
        assert_eq!(written(&mut merge, Some(25 + HOLD)), []);
        assert_eq!(written(&mut merge, Some(26 + HOLD)), [30], "worker 1 is not active any more");
        [40, 50].iter().for_each(|t| add(&mut a, *t, 50));
        add(&mut b, 60, 60);
        merge.take(0, &mut a);
        merge.take(1, &mut b);
        assert_eq!(written(&mut merge, None), [40, 50, 60]);
        assert_eq!(merge.len(), 0);
    }

    #[test]
    fn records_of_any_workers_are_sorted() {
        let mut random = Random::new(2, "merge");
        for workers in [1, 2, 5] {
            let mut buffers: Vec<Records> = (0..workers).map(|_| Records::default()).collect();
            let (mut merge, mut all, mut got) = (Merge::default(), Vec::new(), Vec::new());
            for time in 0..20_000 {
                let worker = random.below(workers as u64) as usize;
                add(&mut buffers[worker], time, time);
                all.push(time);
                if random.below(100) == 0 {
                    // A buffer is taken when it is full; the others may be behind.
                    buffers.iter_mut().enumerate().for_each(|(i, b)| merge.take(i, b));
                    got.extend(written(&mut merge, Some(time)));
                }
            }
            assert!(got.len() > 19_000, "{}", got.len());
            buffers.iter_mut().enumerate().for_each(|(i, b)| merge.take(i, b));
            got.extend(written(&mut merge, None));
            assert_eq!(got, all);
        }
    }

    #[test]
    fn the_order_of_a_worker_stays_and_memory_is_bounded() {
        let (mut merge, mut a, mut b) = (Merge::default(), Records::default(), Records::default());
        [5, 3, 9, 1].iter().for_each(|t| add(&mut a, *t, 9));
        [4, 4, 2].iter().for_each(|t| add(&mut b, *t, 9));
        merge.take(0, &mut a);
        merge.take(1, &mut b);
        assert_eq!(written(&mut merge, None), [4, 4, 2, 5, 3, 9, 1]);
        add(&mut b, 1, 1);
        merge.take(1, &mut b);
        let mut records = 0;
        for time in 10.. {
            add(&mut a, time, 9);
            merge.take(0, &mut a);
            records += 1;
            if written(&mut merge, Some(9)).len() > 1 {
                break;
            }
        }
        assert_eq!(records, MOST / 8 + 1);
        // After an error, the rest can be removed.
        add(&mut a, 1, 1);
        merge.take(0, &mut a);
        assert_eq!(merge.write(None, |_| Err(7)), Err(7));
        merge.clear();
        assert_eq!(merge.len(), 0);
    }
}
