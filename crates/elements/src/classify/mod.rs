// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classifiers: classes that choose the output of each packet by its contents.

use castanet_element::{ClassDef, element};

pub mod classifier;
pub mod ip_classifier;
pub mod ip_filter;
pub(crate) mod patterns;
mod rule_file;

/// The classes of this family.
pub const CLASSES: &[ClassDef] = &[
    element::<classifier::Classifier>(),
    element::<ip_classifier::IpClassifier>(),
    element::<ip_filter::IpFilter>(),
];
