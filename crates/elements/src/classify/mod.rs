// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classifiers: classes that choose the output of each packet by its contents.

use castanet_element::{ClassDef, element};

mod ahead;
pub mod classifier;
pub mod fast_classifier;
pub mod ip_classifier;
pub mod ip_filter;
mod kernel;
pub(crate) mod patterns;
mod rule_file;

pub use ahead::program;

/// The classes of this family.
pub const CLASSES: &[ClassDef] = &[
    element::<classifier::Classifier>(),
    element::<fast_classifier::FastClassifier>(),
    element::<ip_classifier::IpClassifier>(),
    element::<ip_filter::IpFilter>(),
];
