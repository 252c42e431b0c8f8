// SPDX-License-Identifier: MIT OR Apache-2.0
//! The token with which a TCP client gets the rights of the operator.

use crate::reason;
use std::fs::File;
use std::hint::black_box;
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Minimum length; a shorter token could be guessed.
const SHORTEST: usize = 16;
/// Maximum length.
const LONGEST: usize = 1024;

/// A secret shared by the operator and clients. It is never printed.
#[derive(Clone)]
pub struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

impl PartialEq for Token {
    fn eq(&self, other: &Token) -> bool {
        self.matches(other.0.as_bytes())
    }
}
impl Eq for Token {}

impl std::str::FromStr for Token {
    type Err = String;
    fn from_str(text: &str) -> Result<Token, String> {
        let text = text.trim();
        match text.len() {
            SHORTEST..=LONGEST if text.bytes().all(|b| b.is_ascii_graphic()) => Ok(Token(text.into())),
            SHORTEST..=LONGEST => Err("a token is one word of printable ASCII characters".into()),
            _ => Err(format!("a token has {SHORTEST} to {LONGEST} characters")),
        }
    }
}

impl Token {
    /// Reads a token file. It must belong to the user of this process or to root, and other users must not have access.
    ///
    /// # Errors
    /// When the file cannot be read, other users could read or change it, or its content is no token.
    pub fn read(path: &Path) -> Result<Token, String> {
        let failed = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
        let system = |e: std::io::Error| failed(&reason(&e));
        // Non-blocking, because opening a pipe without a writer would block.
        let nonblock = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let file = File::options().read(true).custom_flags(nonblock).open(path).map_err(system)?;
        // Checks the open file, so that it cannot be replaced between check and read.
        let about = file.metadata().map_err(system)?;
        if !about.is_file() {
            return Err(failed(&"not a regular file"));
        }
        let me = rustix::process::geteuid().as_raw();
        if about.uid() != me && about.uid() != 0 {
            return Err(failed(&"the token file belongs to another user"));
        }
        if about.mode() & 0o077 != 0 {
            let mode = about.mode() & 0o777;
            return Err(failed(&format!(
                "other users can access the token file (mode {mode:04o}); 'chmod 600' it"
            )));
        }
        let mut text = String::new();
        file.take(2 * LONGEST as u64).read_to_string(&mut text).map_err(system)?;
        text.parse().map_err(|e: String| failed(&e))
    }

    /// Whether a client sent this token. The time of the comparison does not depend on the position of a difference.
    pub fn matches(&self, given: &[u8]) -> bool {
        let own = self.0.as_bytes();
        let mut differ = u8::from(own.len() != given.len());
        for (i, &b) in own.iter().enumerate() {
            differ = black_box(differ | (b ^ given.get(i).copied().unwrap_or(0)));
        }
        differ == 0
    }

    /// The text, for sending it to a router.
    pub(crate) fn secret(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn tokens_match_themselves_alone() {
        let token: Token = " 0123456789abcdef\n".parse().unwrap();
        assert!(token.matches(b"0123456789abcdef"));
        for other in [
            "",
            "0123456789abcdeg",
            "1123456789abcdef",
            "0123456789abcde",
            "0123456789abcdef0",
            "1023456789abcdef",
        ] {
            assert!(!token.matches(other.as_bytes()), "{other}");
        }
        assert!(!token.matches(b"0123456789abcdef\0"));
        assert_eq!(format!("{token:?}"), "Token");
        for bad in ["short", "0123456789 abcdef", &"x".repeat(1025), "0123456789abcde\u{e9}"] {
            assert!(bad.parse::<Token>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_token_file_that_others_can_reach_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        std::fs::write(&file, "0123456789abcdef\n").unwrap();
        for (mode, good) in
            [(0o600, true), (0o400, true), (0o640, false), (0o604, false), (0o620, false), (0o666, false)]
        {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(Token::read(&file).is_ok(), good, "{mode:o}");
        }
        assert!(Token::read(folder.path()).unwrap_err().ends_with("not a regular file"));
        assert!(Token::read(&folder.path().join("none")).unwrap_err().ends_with("No such file or directory"));
    }
}
