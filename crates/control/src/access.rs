// SPDX-License-Identifier: MIT OR Apache-2.0
//! Access of clients to handlers: which handlers they may call, and the replies to calls.

use crate::code;
use castanet_element::spec::HandlerFlags;
use castanet_element::spec::Origin;
use castanet_element::{CallError, Remote};
use std::collections::HashMap;
use std::sync::Arc;

/// A handler that a client named.
#[derive(Debug)]
pub struct Target {
    /// The handler's element; `None` for global handlers.
    pub element: Option<String>,
    /// The handler's name, without the element.
    pub handler: String,
    /// The handler's full name, for replies.
    pub name: String,
    /// Whether the handler can be read.
    pub readable: bool,
    /// Whether the handler can be written.
    pub writable: bool,
    /// The handler's flags, which decide which clients may write the handler.
    flags: HandlerFlags,
}

/// Why a handler cannot be called: the code and the text of the reply. The text may have several lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(pub u16, pub String);

/// Largest number of cached names; beyond it the cache is cleared.
const KNOWN: usize = 4096;
/// The longest name that is cached, in bytes.
const LONGEST: usize = 256;

/// Calls handlers of a router, and caches their flags, so that a call is a single request to a worker.
pub struct Access {
    remote: Arc<dyn Remote>,
    known: HashMap<String, Arc<Target>>,
    /// The number of hot swaps when the cache was last cleared. The cache is cleared again after a hot swap or a
    /// change of `proxy`.
    swaps: u64,
    proxy: Option<String>,
}

/// Prepares a text for a reply: on one line, and shortened.
pub(crate) fn shown(text: &str) -> String {
    const MOST: usize = 200;
    let mut out = String::new();
    for (i, c) in text.chars().enumerate() {
        if i == MOST {
            out.push_str("...");
            break;
        }
        if c.is_control() { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}

impl Access {
    /// Creates the access to a router.
    pub fn new(remote: Arc<dyn Remote>) -> Access {
        Access { remote, known: HashMap::new(), swaps: 0, proxy: None }
    }
    /// The router.
    pub fn remote(&self) -> &Arc<dyn Remote> {
        &self.remote
    }

    /// Finds a handler by its name: `element.handler`, or a global handler. An element may be given by its
    /// number, counted from 1. With a proxy, the whole name is the name of a handler of the proxy.
    ///
    /// # Errors
    /// When there is no such handler, or clients may not call it.
    pub fn find(&mut self, name: &str, proxy: Option<&str>) -> Result<Arc<Target>, Refusal> {
        if self.remote.has_ended() {
            return Err(Refusal(code::NO_ROUTER, "No router installed".into()));
        }
        let swaps = self.remote.swaps();
        if swaps != self.swaps || proxy != self.proxy.as_deref() || self.known.len() >= KNOWN {
            self.known.clear();
            self.swaps = swaps;
            self.proxy = proxy.map(Into::into);
        }
        if let Some(known) = self.known.get(name) {
            return Ok(known.clone());
        }
        let target = Arc::new(match proxy {
            Some(p) => self.look_up(Some(p), name, name)?,
            None => self.split(name)?,
        });
        if name.len() <= LONGEST {
            self.known.insert(name.into(), target.clone());
        }
        Ok(target)
    }

    fn split(&self, name: &str) -> Result<Target, Refusal> {
        let Some((element, handler)) = name.split_once('.') else {
            return self.look_up(None, name, name);
        };
        let number = element.parse::<usize>().ok().filter(|_| element.bytes().all(|b| b.is_ascii_digit()));
        let found = match number {
            Some(n) => match n.checked_sub(1).and_then(|n| self.remote.elements().into_iter().nth(n)) {
                Some(e) => self.look_up(Some(&e), handler, &format!("{e}.{handler}")),
                None => Err(no_element(element)),
            },
            None => self.look_up(Some(element), handler, name),
        };
        match found {
            // Some global handlers have a dot in their names, so look for a global handler with the whole name.
            Err(Refusal(code::NO_ELEMENT, text)) => {
                self.look_up(None, name, name).map_err(|_| Refusal(code::NO_ELEMENT, text))
            }
            found => found,
        }
    }

    fn look_up(&self, element: Option<&str>, handler: &str, name: &str) -> Result<Target, Refusal> {
        // An element with a handler `*` accepts any handler name.
        let flags = match self.remote.flags(element, handler) {
            None if handler != "*" => self.remote.flags(element, "*"),
            flags => flags,
        };
        let flags = match (flags, element) {
            // Private handlers (flag p) are for scripts only.
            (Some(f), _) if !f.contains(HandlerFlags::PRIVATE) => f,
            (None, Some(e)) if !self.remote.elements().iter().any(|x| x == e) => return Err(no_element(e)),
            _ => return Err(Refusal(code::NO_HANDLER, format!("No handler named '{}'", shown(name)))),
        };
        Ok(Target {
            element: element.map(Into::into),
            handler: handler.into(),
            name: name.into(),
            readable: flags.is_readable(),
            writable: flags.is_writable(),
            flags,
        })
    }

    /// Finds a handler that can be read.
    ///
    /// # Errors
    /// When there is no such handler.
    pub fn readable(&mut self, name: &str, proxy: Option<&str>) -> Result<Arc<Target>, Refusal> {
        let t = self.find(name, proxy)?;
        if t.readable {
            return Ok(t);
        }
        Err(Refusal(code::PERMISSION, format!("Handler '{}' write-only", shown(&t.name))))
    }

    /// Finds a handler that can be written.
    ///
    /// # Errors
    /// When there is no such handler, when the client may only read, or when it may not write this handler.
    pub fn writable(
        &mut self,
        name: &str,
        proxy: Option<&str>,
        readonly: bool,
        from: Origin,
    ) -> Result<Arc<Target>, Refusal> {
        let t = self.find(name, proxy)?;
        if readonly || (t.writable && !from.may_write(t.flags)) {
            return Err(denied(&t));
        }
        if t.writable {
            return Ok(t);
        }
        Err(Refusal(code::PERMISSION, format!("Handler '{}' read-only", shown(&t.name))))
    }

    /// Whether there is an element with this name or number.
    pub fn has_element(&self, name: &str) -> bool {
        let all = self.remote.elements();
        let number = name.parse::<usize>().ok();
        all.iter().any(|e| e == name) || number.is_some_and(|n| (1..=all.len()).contains(&n))
    }

    /// Reads a handler.
    ///
    /// # Errors
    /// When the handler returns an error.
    pub fn read(&self, t: &Target, parameters: &str) -> Result<String, Refusal> {
        let value = self.remote.read(t.element.as_deref(), &t.handler, parameters);
        value.map_err(|e| self.refusal("Read", t, &e))
    }

    /// Writes a handler. Returns its answer, which is empty for most handlers.
    ///
    /// # Errors
    /// When the handler returns an error.
    pub fn write(&self, from: Origin, t: &Target, value: &str) -> Result<String, Refusal> {
        let done = self.remote.write(from, t.element.as_deref(), &t.handler, value);
        done.map_err(|e| self.refusal("Write", t, &e))
    }

    fn refusal(&self, kind: &str, t: &Target, e: &CallError) -> Refusal {
        if self.remote.has_ended() {
            return Refusal(code::NO_ROUTER, "No router installed".into());
        }
        if matches!(e, CallError::Denied(_)) {
            return denied(t);
        }
        Refusal(code::HANDLER, format!("{kind} handler '{}' error:\n{e}", shown(&t.name)))
    }
}

fn denied(t: &Target) -> Refusal {
    Refusal(code::PERMISSION, format!("Permission denied for '{}'", shown(&t.name)))
}

fn no_element(name: &str) -> Refusal {
    Refusal(code::NO_ELEMENT, format!("No element named '{}'", shown(name)))
}
