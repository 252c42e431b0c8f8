// SPDX-License-Identifier: MIT OR Apache-2.0
//! The outputs that scripts print to, and the files that they read.

use castanet_element::ElementError;
use castanet_lang::bytes::{decode_vec, encode};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

/// The longest file that `cat` reads, in bytes.
const LONGEST: u64 = 16 << 20;

/// Standard output, or its replacement in tests.
pub struct Output(Box<dyn Write + Send>);

impl Default for Output {
    fn default() -> Output {
        Output(Box::new(std::io::stdout()))
    }
}

impl Output {
    /// Makes an output that prints to `w`.
    #[cfg(test)]
    pub fn to(w: impl Write + Send + 'static) -> Output {
        Output(Box::new(w))
    }
    /// Writes text to a file, or to standard output if the name is `-`, and flushes it. Callers pass only names that
    /// were checked as a `Filename`.
    #[allow(clippy::disallowed_methods)]
    pub fn put(&mut self, file: &str, append: bool, text: &str) -> Result<(), ElementError> {
        let bytes = encode(text);
        if file == "-" {
            let done = self.0.write_all(&bytes).and_then(|()| self.0.flush());
            return done.map_err(ElementError::system("<stdout>"));
        }
        let mut options = OpenOptions::new();
        let options = options.create(true).write(true).append(append).truncate(!append);
        let done = options.open(file).and_then(|mut f| f.write_all(&bytes));
        done.map_err(ElementError::system(file))
    }
}

/// Returns the text of a file.
pub fn read(file: &str) -> Result<String, ElementError> {
    let bytes = castanet_lang::read::file(Path::new(file), LONGEST).map_err(ElementError::system(file))?;
    Ok(decode_vec(bytes))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    struct Broken;
    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::from_raw_os_error(32))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn files_start_anew_or_grow() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.txt");
        let path = path.to_str().unwrap();
        let mut out = Output::default();
        out.put(path, true, "a").unwrap();
        out.put(path, true, "b").unwrap();
        assert_eq!(read(path).unwrap(), "ab");
        out.put(path, false, "c").unwrap();
        assert_eq!(read(path).unwrap(), "c");
        let missing = format!("{path}/x");
        assert_eq!(
            out.put(&missing, false, "c").unwrap_err().to_string(),
            format!("{missing}: Not a directory")
        );
        assert_eq!(read("/nonexistent").unwrap_err().to_string(), "/nonexistent: No such file or directory");
    }

    #[test]
    fn a_broken_pipe_is_an_error() {
        assert_eq!(Output::to(Broken).put("-", false, "x").unwrap_err().to_string(), "<stdout>: Broken pipe");
    }
}
