// SPDX-License-Identifier: MIT OR Apache-2.0
//! The times of a run. Every minute begins with a calm stretch with only ordinary traffic, hot swaps and handler reads.
//! Disturbances follow. They end early enough for the network to recover.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The length of the calm stretch of each minute.
pub const CALM: Duration = Duration::from_secs(15);
/// A minute.
pub const MINUTE: Duration = Duration::from_secs(60);
/// The last part of a calm stretch. A packet that is sent in this part may still be on its way when a disturbance
/// begins.
const MARGIN: Duration = Duration::from_secs(1);
/// The first seconds of a run, in which the spanning tree opens its ports and neighbours are resolved.
pub const WARM_UP: Duration = Duration::from_secs(3);

/// Whether a packet that is sent this long after the start must arrive.
pub fn is_calm(since_start: Duration) -> bool {
    let within = since_start.as_millis() % MINUTE.as_millis();
    since_start >= WARM_UP && within < (CALM - MARGIN).as_millis()
}

/// The machine's time in milliseconds since 1970. The start of the run is passed to other processes in this form.
pub fn unix_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// A generator of random numbers (xorshift64*), initialised from a seed and a name.
pub struct Dice(u64);

impl Dice {
    /// Creates a generator; different names give different numbers.
    pub fn new(seed: u64, name: &str) -> Dice {
        // The FNV-1a hash.
        let hash = |h: u64, b: u8| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3);
        let name = name.bytes().fold(0xcbf2_9ce4_8422_2325, hash);
        Dice((name ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1)
    }
    /// Returns the next random number, of 64 bits.
    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }
    /// Returns a random number below `n`; 0 if `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.number()).unwrap_or(0).checked_rem(n).unwrap_or(0)
    }
}
