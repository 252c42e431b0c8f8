// SPDX-License-Identifier: MIT OR Apache-2.0
//! Elements that the driver (the program that runs the router) adds, such as the control sockets of the command line.
//! Lists show them after the elements of the configuration. Their handlers can only be read. They are not part of any
//! configuration, so hot swaps neither change nor close them.

/// An element that the driver adds.
#[derive(Clone, Debug)]
pub struct DriverElement {
    /// The name of the element.
    pub name: String,
    /// The class of the element, as lists show it.
    pub class: &'static str,
    /// The configuration string of the element, as lists show it.
    pub config: String,
    /// The read handlers of the element's class and their values, in the order in which they are listed.
    pub values: Vec<(&'static str, String)>,
}
