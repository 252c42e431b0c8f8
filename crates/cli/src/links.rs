// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet links`: makes links with the classic names.

use crate::args::Links;
use crate::classic::NAMES;
use crate::load::{complain, reason, write_out};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The kind of file at the path of a link.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    /// Nothing.
    Nothing,
    /// A link to this binary.
    Same,
    /// A link to another copy of this program, for example after an update.
    Older,
    /// Another file.
    Foreign,
    /// A folder; folders are never replaced.
    Folder,
}

fn found(link: &Path, binary: &Path) -> Found {
    let Ok(meta) = fs::symlink_metadata(link) else { return Found::Nothing };
    if meta.is_dir() {
        return Found::Folder;
    }
    let same = |a: &fs::Metadata, b: &fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
    if let (Ok(a), Ok(b)) = (fs::metadata(link), fs::metadata(binary))
        && same(&a, &b)
    {
        return Found::Same;
    }
    match fs::read_link(link) {
        Ok(target) if target.file_name() == binary.file_name() => Found::Older,
        _ => Found::Foreign,
    }
}

/// Makes one link atomically: a symbolic link, else a hard link, else a copy of the program. Returns the word
/// that reports which of the three it made.
fn make(link: &Path, binary: &Path) -> io::Result<&'static str> {
    let mut temporary = link.as_os_str().to_owned();
    temporary.push(format!(".new{}", std::process::id()));
    let temporary = PathBuf::from(temporary);
    let how = if std::os::unix::fs::symlink(binary, &temporary).is_ok() {
        "->"
    } else if fs::hard_link(binary, &temporary).is_ok() {
        "="
    } else {
        fs::copy(binary, &temporary)?;
        "is a copy of"
    };
    let done = fs::rename(&temporary, link);
    if done.is_err() {
        // The error of the renaming is reported, not an error of this clean-up.
        let _ = fs::remove_file(&temporary);
    }
    done.map(|()| how)
}

/// Makes the links.
pub fn main(args: &Links) -> ExitCode {
    match links(args) {
        Ok(text) => match write_out(None, &text) {
            Ok(()) => ExitCode::SUCCESS,
            Err(e) => {
                complain(&e);
                ExitCode::FAILURE
            }
        },
        Err(errors) => {
            errors.iter().for_each(|e| complain(e));
            ExitCode::FAILURE
        }
    }
}

/// Makes the links. If existing files prevent some of them, makes none. Returns a report, or the errors.
fn links(args: &Links) -> Result<String, Vec<String>> {
    let said = |path: &Path, e: &io::Error| vec![format!("{}: {}", path.display(), reason(e))];
    let binary =
        std::env::current_exe().and_then(fs::canonicalize).map_err(|e| said(Path::new("castanet"), &e))?;
    fs::create_dir_all(&args.folder).map_err(|e| said(&args.folder, &e))?;
    let all: Vec<(PathBuf, Found)> = NAMES
        .iter()
        .map(|name| args.folder.join(name))
        .map(|link| {
            let what = found(&link, &binary);
            (link, what)
        })
        .collect();
    let errors: Vec<String> = all
        .iter()
        .filter_map(|(link, what)| match what {
            Found::Folder => Some(format!("{} is a folder", link.display())),
            Found::Foreign if !args.force => {
                Some(format!("{} is another file; --force replaces it", link.display()))
            }
            _ => None,
        })
        .collect();
    if !errors.is_empty() {
        return Err(errors);
    }
    let mut out = String::new();
    for (link, what) in all {
        if what == Found::Same {
            let _ = writeln!(out, "{} exists already", link.display());
            continue;
        }
        let how = make(&link, &binary).map_err(|e| said(&link, &e))?;
        let _ = writeln!(out, "{} {how} {}", link.display(), binary.display());
    }
    Ok(out)
}
