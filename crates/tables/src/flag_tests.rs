// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the flag on one thread. The tests in `models` use several threads.

use crate::Flag;

#[test]
fn raising_returns_whether_the_flag_was_down() {
    for flag in [Flag::new(), Flag::default()] {
        assert!(!flag.is_up());
        for _ in 0..2 {
            assert!(flag.raise() && flag.is_up());
            assert!(!flag.raise() && flag.is_up());
            flag.lower();
            assert!(!flag.is_up());
            flag.lower();
            assert!(!flag.is_up());
        }
    }
}
