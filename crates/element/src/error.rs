// SPDX-License-Identifier: MIT OR Apache-2.0
//! The errors of elements, except those of handlers: errors at initialisation, in hot swaps and at cleanup.

use crate::handler::HandlerError;
use castanet_spec::ValueError;
use std::error::Error;
use std::{io, iter};

/// Why an operation of an element failed: its initialisation, a change of its arguments, taking over state or
/// resources in a hot swap, or its cleanup.
#[derive(Debug, thiserror::Error)]
pub enum ElementError {
    /// The configuration of the element cannot work in this router or on this system.
    #[error("{0}")]
    Config(String),
    /// The operating system returned an error for a file, a device or a socket.
    #[error("{}", about(subject, source))]
    System {
        /// The name of the file, device or socket. Empty if the text of `source` contains the name already.
        subject: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The element stopped before it had read all of its input or written all of its output. It has shown the reason in
    /// a message.
    #[error("{0}")]
    Incomplete(String),
}

/// The text of an operating-system error, without the suffix ` (os error N)` that Rust adds.
pub fn reason(e: &io::Error) -> String {
    let mut text = e.to_string();
    if let Some(number) = e.raw_os_error()
        && let Some(words) = text.strip_suffix(&format!(" (os error {number})"))
    {
        text.truncate(words.len());
    }
    text
}

fn about(subject: &str, source: &io::Error) -> String {
    if subject.is_empty() { reason(source) } else { format!("{subject}: {}", reason(source)) }
}

impl ElementError {
    /// Makes an error about a file, a device or a socket. The text of `e` must already contain the name of the file,
    /// device or socket.
    pub fn refused<E: Into<io::Error>>(e: E) -> ElementError {
        ElementError::System { subject: String::new(), source: e.into() }
    }
    /// Returns a function that turns an operating-system error about the file `subject` into an [`ElementError`].
    pub fn system(subject: impl Into<String>) -> impl FnOnce(io::Error) -> ElementError {
        move |source| ElementError::System { subject: subject.into(), source }
    }
    /// Returns the text of Click's message for this error. None if castanet uses the same text.
    pub(crate) fn classic(&self) -> Option<&'static str> {
        match self {
            ElementError::System { source, .. } if source.kind() == io::ErrorKind::AddrInUse => {
                Some("bind: Address already in use")
            }
            _ => None,
        }
    }
    /// Returns advice for common file errors. Empty for all other errors. The advice depends on the errno of the error
    /// or of one of its causes. The [`io::ErrorKind`] is not enough: [`io::ErrorKind::PermissionDenied`] also stands
    /// for EPERM, where a change of file permissions does not help.
    pub(crate) fn help(&self) -> &'static str {
        const ENOENT: i32 = 2;
        const EACCES: i32 = 13;
        let causes = iter::successors(Some(self as &(dyn Error + 'static)), |&e| e.source());
        match causes.filter_map(|e| e.downcast_ref()).find_map(io::Error::raw_os_error) {
            Some(ENOENT) => {
                "check the name; names that do not begin with '/' are looked up in the folder that castanet was started in"
            }
            Some(EACCES) => "give the user that castanet runs as access to it",
            _ => "",
        }
    }
    /// Returns the same error without references into a shared library. An [`io::Error`] may refer to code and
    /// constants of the library that made it, and the library may be unloaded before the error is dropped.
    pub(crate) fn detached(self) -> ElementError {
        match self {
            ElementError::System { subject, source } => {
                let source = match source.raw_os_error() {
                    Some(number) => io::Error::from_raw_os_error(number),
                    None => io::Error::new(source.kind(), source.to_string()),
                };
                ElementError::System { subject, source }
            }
            // These variants hold only text, so they refer to no library.
            ElementError::Config(_) | ElementError::Incomplete(_) => self,
        }
    }
}

impl From<io::Error> for ElementError {
    fn from(source: io::Error) -> Self {
        ElementError::refused(source)
    }
}
impl From<String> for ElementError {
    fn from(message: String) -> Self {
        ElementError::Config(message)
    }
}
impl From<&str> for ElementError {
    fn from(message: &str) -> Self {
        ElementError::Config(message.to_string())
    }
}
impl From<ValueError> for ElementError {
    fn from(e: ValueError) -> Self {
        ElementError::Config(e.into())
    }
}

/// Lets a handler use `?` on code that returns [`ElementError`].
impl From<ElementError> for HandlerError {
    fn from(e: ElementError) -> Self {
        HandlerError::Failed(e.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_leave_out_the_number_of_the_error() {
        let missing = || io::Error::from_raw_os_error(2);
        assert_eq!(ElementError::from(missing()).to_string(), "No such file or directory");
        assert_eq!(ElementError::system("a")(missing()).to_string(), "a: No such file or directory");
        assert_eq!(
            HandlerError::from(ElementError::system("a")(missing())).to_string(),
            "a: No such file or directory"
        );
    }

    #[test]
    fn the_number_of_the_error_decides_about_help() {
        let of = |number| ElementError::from(io::Error::from_raw_os_error(number));
        assert!(of(2).help().starts_with("check the name;") && of(2).detached().help() == of(2).help());
        assert_eq!(of(13).help(), "give the user that castanet runs as access to it");
        assert_eq!(ElementError::from(io::Error::other(of(2))).help(), of(2).help());
        let kind_only = io::Error::new(io::ErrorKind::NotFound, "no such device");
        for other in [of(1), of(98), kind_only.into(), "No such file or directory".into()] {
            assert_eq!(other.help(), "", "{other}");
        }
    }

    #[test]
    fn a_detached_error_has_kind_number_and_text_but_no_foreign_code() {
        let source = |e: ElementError| match e.detached() {
            ElementError::System { source, .. } => source,
            e => io::Error::other(e),
        };
        let number = source(io::Error::from_raw_os_error(13).into());
        assert_eq!((number.kind(), number.raw_os_error()), (io::ErrorKind::PermissionDenied, Some(13)));
        let foreign = io::Error::new(io::ErrorKind::NotFound, ElementError::from("of the library"));
        let own = source(foreign.into());
        assert_eq!((own.kind(), own.to_string().as_str()), (io::ErrorKind::NotFound, "of the library"));
        assert!(own.get_ref().is_some_and(|e| !e.is::<ElementError>()));
    }
}
