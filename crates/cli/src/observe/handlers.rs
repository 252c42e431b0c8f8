// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads handlers of a router: over its control socket, or in the same process.

use crate::ctl::kinds::Kinds;
use castanet_control::Client;
use castanet_control::client::ClientError;
use castanet_element::remote::Remote;
use castanet_element::{CallError, Missing};
use castanet_runtime::Running;
use castanet_spec::ClassSpec;

/// An element of a router.
#[derive(Clone, Debug)]
pub struct Element {
    pub name: String,
    pub class: String,
    /// The declaration of the class. None if this program does not have the class, because the router has loaded it from
    /// a package.
    pub spec: Option<&'static ClassSpec>,
}

/// A router whose handlers can be read.
pub trait Handlers {
    /// Why a handler cannot be read.
    type Error: std::fmt::Display;
    /// Whether the router refused one call, so that others may still be answered.
    fn is_refusal(e: &Self::Error) -> bool;
    /// Reads a handler: the name of a global one, or `ELEMENT.HANDLER`.
    ///
    /// # Errors
    /// When the router refuses, or cannot be reached.
    fn read(&mut self, handler: &str) -> Result<String, Self::Error>;
    /// Returns the elements of the configuration.
    ///
    /// # Errors
    /// When the router cannot be reached.
    fn elements(&mut self) -> Result<Vec<Element>, Self::Error>;

    /// Reads a handler. Returns none if the router refuses.
    ///
    /// # Errors
    /// When the router cannot be reached.
    fn try_read(&mut self, handler: &str) -> Result<Option<String>, Self::Error> {
        match self.read(handler) {
            Ok(value) => Ok(Some(value)),
            Err(e) if Self::is_refusal(&e) => Ok(None),
            Err(e) => Err(e),
        }
    }
}

impl Handlers for Client {
    type Error = ClientError;

    fn is_refusal(e: &ClientError) -> bool {
        e.is_refusal()
    }

    fn read(&mut self, handler: &str) -> Result<String, ClientError> {
        self.read_text(handler, "")
    }

    fn elements(&mut self) -> Result<Vec<Element>, ClientError> {
        let known = Kinds::new();
        let mut out = Vec::new();
        for name in crate::ctl::elements(self)? {
            // A hot swap may remove the element in between.
            if let Some(class) = self.try_read(&format!("{name}.class"))? {
                let class = class.trim().to_string();
                let spec = known.class(&class);
                out.push(Element { name, class, spec });
            }
        }
        Ok(out)
    }
}

/// The router of this process.
pub struct Inside<'a>(pub &'a Running);

impl Handlers for Inside<'_> {
    type Error = CallError;

    fn is_refusal(e: &CallError) -> bool {
        !matches!(e, CallError::Missing(Missing::Router))
    }

    fn read(&mut self, handler: &str) -> Result<String, CallError> {
        match handler.rsplit_once('.') {
            Some((element, handler)) => self.0.read(Some(element), handler, ""),
            None => self.0.read(None, handler, ""),
        }
    }

    fn elements(&mut self) -> Result<Vec<Element>, CallError> {
        let shared = self.0.current().ok_or(Missing::Router)?;
        let element = |(i, info): (u32, &castanet_element::Info)| Element {
            name: info.name.to_string(),
            class: info.class.to_string(),
            spec: shared.spec(i),
        };
        Ok((0..).zip(shared.info.iter()).map(element).collect())
    }
}
