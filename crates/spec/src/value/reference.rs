// SPDX-License-Identifier: MIT OR Apache-2.0
//! References to elements, handlers and files.

use super::{ArgValue, Show, ValueError};
use crate::arg::ArgCx;
use crate::origin::Origin;
use castanet_lang::{args as text, library};
use std::path::Path;

/// An element of the configuration, by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ElementRef(pub usize);

impl ArgValue for ElementRef {
    const TYPE: &'static str = "element";
    fn parse(t: &str, cx: &ArgCx<'_>) -> Result<ElementRef, ValueError> {
        let name = text::unquote(t);
        cx.names.element(cx.scope, &name).map(ElementRef).ok_or_else(|| {
            let error = ValueError::from(format!("'{name}' does not name an element"));
            match cx.names.nearest_element(&name) {
                Some(near) => error.did_you_mean(near),
                None => error.help("write the name of an element, as it is declared"),
            }
        })
    }
}

/// A call of a handler: `[element.]handler [value]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerRef {
    /// The element's index; none for a global handler.
    pub element: Option<usize>,
    /// The element's name as written; empty for a global handler.
    pub element_name: String,
    /// The handler's name.
    pub handler: String,
    /// The value, as written.
    pub value: String,
    /// The origin of the call. The call has the rights of this origin.
    pub origin: Origin,
}

impl ArgValue for HandlerRef {
    const TYPE: &'static str = "handler";
    fn parse(t: &str, cx: &ArgCx<'_>) -> Result<HandlerRef, ValueError> {
        let t = t.trim();
        let end = t.find(char::is_whitespace).unwrap_or(t.len());
        let (call, value) = (t.get(..end).unwrap_or(""), t.get(end..).unwrap_or("").trim());
        if call.is_empty() {
            return Err("expected a handler name".into());
        }
        let (element_name, handler) = call.rsplit_once('.').unwrap_or(("", call));
        let element = if element_name.is_empty() {
            None
        } else {
            let i = cx.names.element(cx.scope, element_name);
            Some(i.ok_or_else(|| {
                let error = ValueError::from(format!("no element named '{element_name}'"));
                match cx.names.nearest_element(element_name) {
                    Some(near) => error.did_you_mean(format!("{near}.{handler}")),
                    None => {
                        error.help("write ELEMENT.HANDLER, with the name of an element as it is declared")
                    }
                }
            })?)
        };
        Ok(HandlerRef {
            element,
            element_name: element_name.to_string(),
            handler: handler.to_string(),
            value: value.to_string(),
            origin: cx.origin,
        })
    }
}

impl Show for HandlerRef {
    fn show(&self) -> String {
        let dot = if self.element_name.is_empty() { "" } else { "." };
        let space = if self.value.is_empty() { "" } else { " " };
        format!("{}{dot}{}{space}{}", self.element_name, self.handler, self.value)
    }
}

/// A file name, with `~` expanded and `//` reduced to `/`. `-` stays as it is. If the name comes from a client that has
/// shown the operator's token ([`Origin::Authorised`]), the file must lie below the folder that the operator named for
/// such clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filename(pub String);

impl Filename {
    /// Parses a file name in which `-` stands for a file of that name, not for a standard stream.
    pub fn of_file(t: &str, cx: &ArgCx<'_>) -> Result<Filename, ValueError> {
        let plain = text::unquote(t) == "-";
        Filename::parse(if plain { "./-" } else { t }, cx)
    }
}

/// Returns the path of a file that a client names. It must lie below `folder`.
fn confined(name: &str, folder: Option<&Path>) -> Result<String, ValueError> {
    let Some(folder) = folder else {
        return Err(format!(
            "'{name}': a client on TCP may name no file; the operator allows those of a folder by --library-path"
        )
        .into());
    };
    let path = library::below(folder, Path::new(name)).and_then(|p| p.into_os_string().into_string().ok());
    Ok(path.ok_or_else(|| {
        format!(
            "'{name}': a client on TCP may name only files of the operator's folder (--library-path), by paths from there, and none in a \
             directory that any user may write"
        )
    })?)
}

/// The home directory of `user`, from /etc/passwd. If `user` is empty, the value of $HOME.
fn home_of(user: &str) -> Option<String> {
    if user.is_empty() {
        return std::env::var("HOME").ok();
    }
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let line = users.lines().find(|l| l.split(':').next() == Some(user))?;
    line.split(':').nth(5).map(str::to_string)
}

impl ArgValue for Filename {
    const TYPE: &'static str = "filename";
    const TEXT: bool = true;
    fn parse(t: &str, cx: &ArgCx<'_>) -> Result<Filename, ValueError> {
        if !cx.origin.may_name_files() {
            return Err("this client may not name files".into());
        }
        let mut name = text::unquote(t);
        if name.is_empty() {
            return Err("file name is empty".into());
        }
        if castanet_lang::bytes::has_escapes(&name) {
            return Err("file name is not UTF-8".into());
        }
        if name != "-" && !cx.origin.may_name_any_file() {
            return confined(&name, cx.names.folder()).map(Filename);
        }
        if let Some(rest) = name.strip_prefix('~') {
            let user = rest.split('/').next().unwrap_or_default();
            if let Some(home) = home_of(user) {
                name.replace_range(..=user.len(), &home);
            }
        }
        while name.contains("//") {
            name = name.replace("//", "/");
        }
        Ok(Filename(name))
    }
}

impl Show for Filename {
    fn show(&self) -> String {
        self.0.clone()
    }
}
