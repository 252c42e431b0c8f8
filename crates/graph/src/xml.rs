// SPDX-License-Identifier: MIT OR Apache-2.0
//! Configurations as XML, in the document type of click2xml.
//!
//! `configuration`, and `compound` inside `elementclass`, hold `elementclass`, `element` and `connection` in the order
//! of the text. The alternatives of an overloaded class are a chain of classes of the same name: each refers to the
//! next one by `overloadclassid`. The document type has no requirements, so these are processing instructions,
//! `<?require package "p"?>`.

mod read;
mod write;

pub use read::{BadXml, to_text};
pub use write::{flat, structured};

/// The namespace of the tags.
const NAMESPACE: &str = "http://www.lcdf.org/click/xml/";
/// The target of the processing instructions that hold requirements.
const REQUIRE: &str = "require";

#[cfg(test)]
mod tests;
