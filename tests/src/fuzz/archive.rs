// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fuzz target for `ar` archives.

use super::at_most;
use castanet_lang::archive::{is_safe_name, read, write};

/// Parses bytes as an archive. Writing the members and parsing the result must give the same members.
pub fn archive(data: &[u8]) {
    let Ok(members) = read(at_most(data, 1 << 16)) else { return };
    assert!(members.iter().all(|(name, _)| is_safe_name(name)), "an unsafe name");
    match write(&members) {
        Ok(bytes) => assert_eq!(read(&bytes), Ok(members)),
        Err(e) => panic!("{e}: {members:?}"),
    }
}
