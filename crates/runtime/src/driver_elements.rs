// SPDX-License-Identifier: MIT OR Apache-2.0
//! Elements that the driver (the program that runs the router) adds, such as the control sockets of the command line.
//! These elements are listed after those of the configuration and can only be read. No configuration contains them, so
//! swaps neither change nor close them.

use crate::handlers::{ELEMENT, missing, without_parameters};
use castanet_element::CallError;
use std::fmt::Write as _;

/// An element of the driver.
#[derive(Clone, Debug)]
pub struct DriverElement {
    /// Its name.
    pub name: String,
    /// The class that it is shown with.
    pub class: &'static str,
    /// Its configuration string.
    pub config: String,
    /// The read handlers of its class, with their values, in the order of the listing.
    pub values: Vec<(&'static str, String)>,
}

impl DriverElement {
    /// Reads a handler.
    ///
    /// # Errors
    /// When there is no such handler, or it takes no parameters.
    pub fn read(&self, handler: &str, parameters: &str) -> Result<String, CallError> {
        let name = format!("{}.{handler}", self.name);
        let value = match handler {
            "name" => self.name.clone(),
            "class" => self.class.to_string(),
            "config" => self.config.clone(),
            "ports" => "0 inputs\n0 outputs\n".to_string(),
            "handlers" => {
                let own = self.values.iter().map(|v| (v.0, "r"));
                own.chain(ELEMENT.iter().map(|h| (h.name, h.flags))).fold(String::new(), |mut s, (n, f)| {
                    let _ = writeln!(s, "{n}\t{f}");
                    s
                })
            }
            _ => {
                let own = self.values.iter().find(|v| v.0 == handler);
                own.ok_or_else(|| missing(&name, "read"))?.1.clone()
            }
        };
        without_parameters(&name, parameters).map(|()| value)
    }
}
