// SPDX-License-Identifier: MIT OR Apache-2.0
//! The token that lets a TCP client reconfigure the router and name files.

use crate::reason;
use std::fs::File;
use std::hint::black_box;
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Minimum length of a token, in characters. A shorter token could be guessed.
const SHORTEST: usize = 16;
/// Maximum length of a token, in characters.
const LONGEST: usize = 1024;

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The text is too short or too long.
    #[error("a token has {SHORTEST} to {LONGEST} characters")]
    Length,
    /// The text has characters that a token cannot have.
    #[error("a token is one word of printable ASCII characters")]
    Characters,
    /// The token file cannot be read.
    #[error("{}: {}", .0.display(), reason(.1))]
    File(PathBuf, #[source] std::io::Error),
    /// The token file is a directory, a pipe or a device.
    #[error("{}: not a regular file", .0.display())]
    NoFile(PathBuf),
    /// The token file belongs neither to the user of this process nor to root.
    #[error("{}: the token file belongs to another user", .0.display())]
    Owner(PathBuf),
    /// Other users can access the token file. The second value is the mode of the file.
    #[error("{name}: other users can access the token file (mode {1:04o}); 'chmod 600' it", name = .0.display())]
    Mode(PathBuf, u32),
    /// The content of the token file is not a valid token.
    #[error("{name}: {1}", name = .0.display())]
    Content(PathBuf, Box<TokenError>),
}

/// Converts to an I/O error that contains this error.
impl From<TokenError> for std::io::Error {
    fn from(e: TokenError) -> Self {
        let kind = match &e {
            TokenError::File(_, source) => source.kind(),
            TokenError::Owner(_) | TokenError::Mode(..) => ErrorKind::PermissionDenied,
            TokenError::NoFile(_) => ErrorKind::InvalidInput,
            TokenError::Length | TokenError::Characters | TokenError::Content(..) => ErrorKind::InvalidData,
        };
        std::io::Error::new(kind, e)
    }
}

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
    type Err = TokenError;
    fn from_str(text: &str) -> Result<Token, TokenError> {
        let text = text.trim();
        match text.len() {
            SHORTEST..=LONGEST if text.bytes().all(|b| b.is_ascii_graphic()) => Ok(Token(text.into())),
            SHORTEST..=LONGEST => Err(TokenError::Characters),
            _ => Err(TokenError::Length),
        }
    }
}

impl Token {
    /// Reads a token file. It must belong to the user of this process or to root, and other users must not have access.
    ///
    /// # Errors
    /// When the file cannot be read or is not a regular file, when another user owns it or can access it, or when its
    /// content is not a valid token.
    pub fn read(path: &Path) -> Result<Token, TokenError> {
        let name = || path.to_path_buf();
        let system = |e: std::io::Error| TokenError::File(name(), e);
        // Non-blocking, because opening a pipe without a writer would block.
        let nonblock = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let file = File::options().read(true).custom_flags(nonblock).open(path).map_err(system)?;
        // Check the opened file, so that it cannot be replaced between check and read.
        let about = file.metadata().map_err(system)?;
        if !about.is_file() {
            return Err(TokenError::NoFile(name()));
        }
        let me = rustix::process::geteuid().as_raw();
        if about.uid() != me && about.uid() != 0 {
            return Err(TokenError::Owner(name()));
        }
        if about.mode() & 0o077 != 0 {
            return Err(TokenError::Mode(name(), about.mode() & 0o777));
        }
        let mut text = String::new();
        file.take(2 * LONGEST as u64).read_to_string(&mut text).map_err(system)?;
        text.parse().map_err(|e| TokenError::Content(name(), Box::new(e)))
    }

    /// Whether `given` is this token. The time of the comparison does not depend on the position of a
    /// difference.
    pub fn matches(&self, given: &[u8]) -> bool {
        let own = self.0.as_bytes();
        let mut differ = u8::from(own.len() != given.len());
        for (i, &b) in own.iter().enumerate() {
            differ = black_box(differ | (b ^ given.get(i).copied().unwrap_or(0)));
        }
        differ == 0
    }

    /// Returns the text, to be sent to a router.
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
        assert!(Token::read(folder.path()).unwrap_err().to_string().ends_with("not a regular file"));
        assert!(
            Token::read(&folder.path().join("none"))
                .unwrap_err()
                .to_string()
                .ends_with("No such file or directory")
        );
    }
}
