// SPDX-License-Identifier: MIT OR Apache-2.0
//! Links between routers, as users give them: `A.eth0=B.eth1`.

use std::fmt;
use std::str::FromStr;

/// One end of a link.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct End {
    /// The name of the router.
    pub router: String,
    /// The name of an element of the router, or of a device.
    pub device: String,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.router, self.device)
    }
}

impl FromStr for End {
    type Err = String;
    fn from_str(text: &str) -> Result<End, String> {
        match text.trim().split_once('.') {
            Some((router, device)) if is_router_name(router) && !device.is_empty() => {
                Ok(End { router: router.into(), device: device.into() })
            }
            _ => Err(format!("'{text}' is not ROUTER.DEVICE, as in A.eth0")),
        }
    }
}

/// A link between two routers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The end that sends.
    pub from: End,
    /// The end that receives.
    pub to: End,
    /// Whether frames also travel the other way.
    pub both: bool,
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.from, if self.both { "==" } else { "=" }, self.to)
    }
}

impl FromStr for Link {
    type Err = String;
    /// Reads `A.eth0=B.eth1`, a link from A to B, or `A.eth0==B.eth1`, a link in both directions.
    fn from_str(text: &str) -> Result<Link, String> {
        let both = text.contains("==");
        let ends = text.split_once(if both { "==" } else { "=" });
        let (from, to) =
            ends.ok_or_else(|| format!("'{text}' is not a link, such as A.eth0=B.eth1 or A.eth0==B.eth1"))?;
        Ok(Link { from: from.parse()?, to: to.parse()?, both })
    }
}

/// Whether a text can be the name of a router: letters, digits, `_` and `@`, with a letter or `_` first.
pub fn is_router_name(name: &str) -> bool {
    let first = name.bytes().next();
    first.is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'@')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_users_write() {
        for (text, want) in [
            ("A.eth0=B.eth1", Ok("A.eth0=B.eth1")),
            ("A.eth0==B.eth1", Ok("A.eth0==B.eth1")),
            ("A.one/to=B.eth0.5", Ok("A.one/to=B.eth0.5")),
            ("_a@1.x= b.y ", Ok("_a@1.x=b.y")),
            ("A.eth0", Err("'A.eth0' is not a link, such as A.eth0=B.eth1 or A.eth0==B.eth1")),
            ("A=B.eth0", Err("'A' is not ROUTER.DEVICE, as in A.eth0")),
            ("A.=B.eth0", Err("'A.' is not ROUTER.DEVICE, as in A.eth0")),
            ("A.x=1.y", Err("'1.y' is not ROUTER.DEVICE, as in A.eth0")),
            ("A.x=B/c.y", Err("'B/c.y' is not ROUTER.DEVICE, as in A.eth0")),
        ] {
            assert_eq!(text.parse::<Link>().map(|l| l.to_string()), want.map(Into::into).map_err(Into::into));
        }
    }
}
