// SPDX-License-Identifier: MIT OR Apache-2.0
//! The origin of a configuration or of a handler call, and the rights that follow from it.

use crate::flags::HandlerFlags;

/// The source of a configuration or of a handler call.
///
/// Code that loads configurations, opens files by name or calls stored handlers checks the rights of an `Origin`.
/// So every new way into the router has to state its origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The operator: the command line, the files that it names, signals, and scripts of the operator's configuration.
    Operator,
    /// A client on a Unix socket or in the mounted folder. Its process runs as root or as the user of the router.
    User,
    /// A client that has shown the token of the operator. It may be on another host.
    Authorised,
    /// Any other client on this host.
    Anonymous,
    /// Any other client. It connects to a TCP port, but not from the loopback address. This origin has the fewest
    /// rights. It is the default, so that code that sets no origin grants only these rights.
    #[default]
    Network,
}

impl Origin {
    /// Whether this origin may call handlers at all.
    pub fn may_call(self) -> bool {
        self != Origin::Network
    }
    /// Whether this origin may replace the configuration.
    pub fn may_reconfigure(self) -> bool {
        matches!(self, Origin::Operator | Origin::User | Origin::Authorised)
    }
    /// Whether this origin may name files that the router opens. It may be limited to files below one folder, see
    /// [`Origin::may_name_any_file`].
    pub fn may_name_files(self) -> bool {
        matches!(self, Origin::Operator | Origin::User | Origin::Authorised)
    }
    /// Whether this origin may name files outside the folder that the operator gives to clients.
    pub fn may_name_any_file(self) -> bool {
        matches!(self, Origin::Operator | Origin::User)
    }
    /// Whether configurations of this origin may require libraries and packages from anywhere in the file
    /// system.
    pub fn may_require_anything(self) -> bool {
        self == Origin::Operator
    }
    /// Whether this origin may write a handler with these flags.
    pub fn may_write(self, flags: HandlerFlags) -> bool {
        self.may_call()
            && (!flags.contains(HandlerFlags::RECONFIGURES) || self.may_reconfigure())
            && (!flags.contains(HandlerFlags::OPENS_FILES) || self.may_name_files())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_has_no_right() {
        let origin = crate::Names::new().origin();
        assert_eq!(origin, Origin::default());
        assert!(
            !origin.may_call() && !origin.may_write(HandlerFlags::READ_WRITE) && !origin.may_reconfigure()
        );
        assert!(!origin.may_name_files() && !origin.may_name_any_file() && !origin.may_require_anything());
    }

    #[test]
    fn rights() {
        for (origin, plain, files, reconfigures, any_file, everywhere) in [
            (Origin::Operator, true, true, true, true, true),
            (Origin::User, true, true, true, true, false),
            (Origin::Authorised, true, true, true, false, false),
            (Origin::Anonymous, true, false, false, false, false),
            (Origin::Network, false, false, false, false, false),
        ] {
            let write = |flags| origin.may_write(HandlerFlags::parse(flags));
            assert_eq!((write("rw"), write("wF"), write("wR")), (plain, files, reconfigures), "{origin:?}");
            assert_eq!(origin.may_name_any_file(), any_file, "{origin:?}");
            assert_eq!((origin.may_call(), origin.may_require_anything()), (plain, everywhere), "{origin:?}");
        }
    }
}
