// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of classes, which elements share.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// The name of a class. Clones share the text, because a configuration may have very many elements of few classes.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassName(Arc<str>);

impl ClassName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Deref for ClassName {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<&str> for ClassName {
    fn from(name: &str) -> ClassName {
        ClassName(name.into())
    }
}

impl From<String> for ClassName {
    fn from(name: String) -> ClassName {
        ClassName(name.into())
    }
}

impl PartialEq<str> for ClassName {
    fn eq(&self, other: &str) -> bool {
        *self.0 == *other
    }
}

impl PartialEq<&str> for ClassName {
    fn eq(&self, other: &&str) -> bool {
        *self.0 == **other
    }
}

impl fmt::Display for ClassName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ClassName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}
