// SPDX-License-Identifier: MIT OR Apache-2.0
//! Elements that the driver (the program that runs the router) adds, such as the control sockets of the command line.
//! These elements are listed after those of the configuration and can only be read. No configuration contains them, so
//! swaps neither change nor close them.

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
