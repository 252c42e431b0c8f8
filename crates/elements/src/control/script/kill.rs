// SPDX-License-Identifier: MIT OR Apache-2.0
//! The function `kill`: signals to processes.

use super::number::value;
use super::script_type::signal;
use castanet_element::prelude::*;
use rustix::process::{Pid, kill_current_process_group, kill_process, kill_process_group, test_kill_process};

/// Sends a signal to processes. -N stands for process group N, and 0 for the process group of this program. Signal 0
/// only checks that a process exists, and is not possible for groups.
pub(super) fn kill(words: &[&str]) -> Result<(), HandlerError> {
    let Some((first, rest)) = words.split_first().filter(|w| !w.1.is_empty()) else {
        return Err("expected a signal and processes".into());
    };
    let number = signal(first);
    if number.is_none() && *first != "0" {
        return Err(format!("unknown signal '{first}'").into());
    }
    for word in rest {
        let no_process = || format!("'{word}' is not a process");
        let n: i32 = value(word).ok_or_else(no_process)?;
        let target = n.checked_abs().ok_or_else(no_process)?;
        let done = match (number, Pid::from_raw(target)) {
            (Some(s), Some(p)) if n > 0 => kill_process(p, s),
            (Some(s), Some(p)) => kill_process_group(p, s),
            (Some(s), None) => kill_current_process_group(s),
            (None, Some(p)) if n > 0 => test_kill_process(p),
            _ => return Err(no_process().into()),
        };
        done.map_err(|e| ElementError::system(*word)(e.into()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn signals_to_processes() {
        let me = std::process::id().to_string();
        assert_eq!(kill(&["0", &me]), Ok(()));
        assert_eq!(kill(&["SIGCONT", &me]), Ok(()));
        assert_eq!(kill(&["CONT", &me, &me]), Ok(()));
        for bad in [&["CONT"][..], &[], &["FOO", &me], &["CONT", "x"], &["0", "0"], &["CONT", "-2147483648"]]
        {
            assert!(kill(bad).is_err(), "{bad:?}");
        }
        assert_eq!(kill(&["0", "2147483647"]), Err("2147483647: No such process".into()));
    }
}
