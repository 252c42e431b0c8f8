// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads whole files with a size limit. The program reads every text file through this module, for two reasons:
//! a name can stand for a device or a pipe that never ends, and the memory for a parsed text is many times its
//! size.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Size limit for a configuration, library or archive: 64 MiB. Generated configurations have some megabytes.
/// The syntax tree of a text takes many times the memory of the text.
pub const MAX_CONFIGURATION: u64 = 64 << 20;

/// Reads a file of at most `most` bytes.
///
/// # Errors
/// When the file cannot be read, or when it is larger than `most`. In the latter case the message names the limit.
/// At most one byte beyond the limit is read.
pub fn file(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let about = file.metadata()?;
    if about.is_file() && about.len() > most {
        return Err(too_large(most));
    }
    stream(file, most)
}

/// Reads a stream of at most `most` bytes to its end.
///
/// # Errors
/// As for [`file()`].
pub fn stream(from: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut from = from.take(most);
    from.read_to_end(&mut bytes)?;
    if bytes.len() as u64 == most {
        from.set_limit(1);
        if from.read(&mut [0])? > 0 {
            return Err(too_large(most));
        }
    }
    Ok(bytes)
}

/// The error for a file of more than `most` bytes.
fn too_large(most: u64) -> io::Error {
    let limit = match most {
        m if m >= 1 << 20 && m % (1 << 20) == 0 => format!("{} MiB", m >> 20),
        m => format!("{m} bytes"),
    };
    io::Error::new(io::ErrorKind::FileTooLarge, format!("File too large: the limit is {limit}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_stops_at_the_limit() -> io::Result<()> {
        let message = |most| stream(io::repeat(0), most).map_err(|e| e.to_string());
        assert_eq!(message(5), Err("File too large: the limit is 5 bytes".into()));
        assert_eq!(message(1 << 20), Err("File too large: the limit is 1 MiB".into()));
        assert_eq!(stream(&b"12345"[..], 5)?, b"12345");
        assert!(stream(&b"123456"[..], 5).is_err());
        assert_eq!(stream(&b""[..], 0)?, b"");
        assert!(stream(&b"1"[..], 0).is_err());
        Ok(())
    }

    #[test]
    fn files_and_devices_have_the_same_limit() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("x");
        std::fs::write(&path, b"12345")?;
        assert_eq!(file(&path, 5)?, b"12345");
        assert_eq!(file(&path, 4).map_err(|e| e.kind()), Err(io::ErrorKind::FileTooLarge));
        assert_eq!(file(Path::new("/dev/null"), 0)?, b"");
        assert_eq!(
            file(Path::new("/dev/zero"), 4096).map_err(|e| e.kind()),
            Err(io::ErrorKind::FileTooLarge)
        );
        assert!(file(dir.path(), 5).is_err());
        // A sparse file is refused by its size, without reading it.
        File::create(&path)?.set_len(1 << 40)?;
        assert_eq!(file(&path, 4096).map_err(|e| e.kind()), Err(io::ErrorKind::FileTooLarge));
        Ok(())
    }
}
