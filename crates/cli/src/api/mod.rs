// SPDX-License-Identifier: MIT OR Apache-2.0
//! The HTTP API of a router, and the document that describes it.
//!
//! The modules, bottom up:
//!
//! - `problem`: why a request cannot be answered
//! - `router`, `near`, `far`: calls to the router
//! - `graph`, `configurations`, `answers`, `traces`: the answers
//! - `watch`: repeated readings of the router
//! - `routes`: which request gets which answer
//! - `document`: the OpenAPI document of the routes

mod answers;
pub mod configurations;
mod document;
mod far;
pub mod graph;
mod near;
mod problem;
pub mod router;
mod routes;
mod traces;
mod watch;

pub use configurations::Context;
pub use document::document;
pub use far::Far;
pub use near::Near;
pub use problem::Problem;
pub use router::Router;
pub use routes::{Answer, Call, Found, Route, find, queries};
pub use watch::Watch;

/// The router, and how new configurations for it are read.
pub struct Api {
    /// The router.
    pub router: Router,
    /// How new configurations are read.
    pub context: Context,
    /// Whether clients with the token may write.
    pub writable: bool,
}
