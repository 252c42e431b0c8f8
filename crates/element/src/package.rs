// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packages: crates of classes that become shared libraries, which a running castanet can load.
//!
//! [`package!`](crate::package!) lists the classes of such a crate. `castanet build-package` generates the crate of the
//! shared library. The library exports the classes and a [`header`]. castanet can read the header without running code
//! of the library.
//!
//! A shared library contains its own copies of this crate, of the other API crates, and of the standard library. The
//! library and the program have the same types, but each has its own statics. This has two consequences. Packets must
//! come from the pools of the program ([`Host::pools`]). And only the copy of the standard library that raised a panic
//! can catch it, so the library catches its panics and raises them again in the program ([`Guard`]).

mod wrapped;

pub use wrapped::{Guard, Inner, Wrap, Wrapped};

use crate::build::{BuildCx, ConfigError};
use crate::class::{Action, Build, ClassDef, Element, Information, Instance, make};
use crate::run_loop::Core;
use castanet_packet::{Packet, pool};
use castanet_spec::{ArgCx, Names};
use std::any::{Any, TypeId};
use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::resume_unwind;
use std::sync::OnceLock;

/// The symbol of the header in a shared library.
pub const HEADER_SYMBOL: &str = "CASTANET_PACKAGE_HEADER";
/// The symbol of the [`Package`] in a shared library.
pub const PACKAGE_SYMBOL: &str = "CASTANET_PACKAGE";
/// The first bytes of a header. After them come the length of the whole header in bytes, as a little-endian `u32`, and
/// lines `KEY=VALUE`.
pub const MAGIC: &[u8; 16] = b"castanet-package";

/// The build facts of this crate (compiler, API, target and others), as lines `KEY=VALUE` of a header.
pub const BUILT: &str = concat!(
    "castanet=",
    env!("CARGO_PKG_VERSION"),
    "\ncompiler=",
    env!("CASTANET_COMPILER"),
    "\napi=",
    env!("CASTANET_API"),
    "\ntarget=",
    env!("CASTANET_TARGET"),
    "\nfeatures=",
    env!("CASTANET_FEATURES"),
    "\npanic=",
    env!("CASTANET_PANIC"),
    "\nprofile=",
    env!("CASTANET_PROFILE"),
    "\n"
);
/// The flags that the compiler was given when this crate was built, separated by spaces.
pub const FLAGS: &str = env!("CASTANET_FLAGS");

/// Returns the length in bytes of the header of package `name`.
pub const fn header_length(name: &str) -> usize {
    MAGIC.len() + 4 + "name=\n".len() + name.len() + BUILT.len()
}

/// Returns the header of package `name`. `N` must be the package's [`header_length`].
pub const fn header<const N: usize>(name: &str) -> [u8; N] {
    let mut out = [0; N];
    let length = (N as u32).to_le_bytes();
    let parts: [&[u8]; 6] = [MAGIC, &length, b"name=", name.as_bytes(), b"\n", BUILT.as_bytes()];
    let (mut part, mut at) = (0, 0);
    while part < parts.len() {
        let (bytes, mut i) = (parts[part], 0);
        while i < bytes.len() && at < N {
            out[at] = bytes[i];
            at += 1;
            i += 1;
        }
        part += 1;
    }
    out
}

/// The functions and pools that castanet provides to the libraries that it loads.
#[derive(Clone, Copy)]
pub struct Host {
    /// Prints the text of a panic in a library, before the library catches the panic.
    pub report: fn(&str),
    /// Panics in the program, with the given text as the panic message.
    pub raise: fn(String) -> !,
    /// The packet pools of the program, from which the library takes its packets.
    pub pools: pool::Lender,
}

static HOST: OnceLock<Host> = OnceLock::new();

/// What a shared library exports.
pub struct Package {
    /// The type ids of some API types, as the library sees them. castanet compares them with its own. If they differ,
    /// values passed between library and program would be misinterpreted.
    pub types: [TypeId; 3],
    /// The classes of the package.
    pub classes: &'static [ClassDef],
    /// Whether the library stays loaded when no router uses it any more.
    pub stays: bool,
    /// The function that castanet calls first, with its own functions and the name of the package.
    pub start: fn(Host, &str),
    /// The function that castanet calls last, before it unloads the library.
    pub end: fn(),
}

impl Package {
    /// Makes the export of a shared library with these classes.
    pub const fn new(classes: &'static [ClassDef], stays: bool) -> Package {
        Package { types: types(), classes, stays, start, end }
    }
}

fn start(host: Host, name: &str) {
    HOST.get_or_init(|| host);
    pool::borrow(host.pools);
    let name = name.to_string();
    // The default panic hook of the library cannot name the threads of the program, because the library has its own
    // copy of the standard library.
    std::panic::set_hook(Box::new(move |panic| {
        let trace = Backtrace::capture();
        let trace =
            if trace.status() == BacktraceStatus::Captured { format!("\n{trace}") } else { String::new() };
        (host.report)(&format!("package '{name}' {panic}{trace}"));
    }));
}

fn end() {
    drop(std::panic::take_hook());
}

#[cold]
fn raise(panic: Box<dyn Any + Send>) -> ! {
    let Some(host) = HOST.get() else { resume_unwind(panic) };
    let text = match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => panic.downcast_ref::<&str>().map_or("a panic without text", |t| *t).to_string(),
    };
    (host.raise)(text)
}

/// The type ids of some API types. They can differ between a program and a library, because each contains its own copy
/// of this crate.
pub const fn types() -> [TypeId; 3] {
    [TypeId::of::<Core>(), TypeId::of::<Packet>(), TypeId::of::<ArgCx<'static>>()]
}

/// Lists the classes of a crate that is built as a package, at its root:
///
/// ```text
/// castanet_element::package! {
///     action::<check_size::CheckSize>(),
///     element::<tally_switch::TallySwitch>(),
/// }
/// ```
///
/// The macro writes two constants: `CLASSES`, for a program that the crate is linked into, and `PACKAGE`, which the
/// shared library exports. The macro needs no `unsafe`, so a package may forbid it.
///
/// A library is unloaded when no router uses it. If its classes start threads that may outlive their element,
/// the library must stay loaded: write `stays;` before the classes.
#[macro_export]
macro_rules! package {
    (stays; $($classes:tt)+) => {
        $crate::package! { @ true, $($classes)+ }
    };
    (@ $stays:literal, $($kind:ident :: <$class:ty> ()),+ $(,)?) => {
        /// The classes of this crate, for a program that the crate is linked into.
        pub const CLASSES: &[$crate::ClassDef] = &[$($crate::$kind::<$class>()),+];
        /// What a shared library of this crate exports.
        pub const PACKAGE: $crate::package::Package =
            $crate::package::Package::new(&[$($crate::package::$kind::<$class>()),+], $stays);
    };
    ($($classes:tt)+) => {
        $crate::package! { @ false, $($classes)+ }
    };
}

fn made<T: Build>(config: &str, cx: &mut BuildCx<'_>) -> Result<Wrapped<T, Guard>, ConfigError> {
    Ok(Wrapped::new(Box::new(Guard.call(|| make::<T>(config, cx))?), Guard))
}

/// Like [`action`](crate::action), for a class in a shared library.
pub const fn action<T: Build + Action>() -> ClassDef {
    ClassDef {
        spec: T::SPEC,
        build: &|config, cx| Ok(Instance::Action(Box::new(made::<T>(config, cx)?))),
        inform: None,
    }
}

/// Like [`element`](crate::element), for a class in a shared library.
pub const fn element<T: Build + Element>() -> ClassDef {
    ClassDef {
        spec: T::SPEC,
        build: &|config, cx| Ok(Instance::Element(Box::new(made::<T>(config, cx)?))),
        inform: None,
    }
}

fn inform<T: Information>(config: &str, scope: &str, names: &mut Names) -> Result<(), ConfigError> {
    Guard.call(|| T::inform(config, scope, names))
}

/// Like [`information`](crate::information), for a class in a shared library.
pub const fn information<T: Information>() -> ClassDef {
    ClassDef { inform: Some(&inform::<T>), ..element::<T>() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_header_says_its_length_and_what_it_was_built_with() {
        const H: [u8; header_length("tally")] = header("tally");
        assert_eq!(&H[..16], MAGIC);
        assert_eq!(u32::from_le_bytes(H[16..20].try_into().unwrap()) as usize, H.len());
        let text = std::str::from_utf8(&H[20..]).unwrap();
        assert_eq!(text, format!("name=tally\n{BUILT}"));
        let values: Vec<_> = text.lines().map(|l| l.split_once('=').unwrap()).collect();
        let keys: Vec<_> = values.iter().map(|v| v.0).collect();
        assert_eq!(keys, ["name", "castanet", "compiler", "api", "target", "features", "panic", "profile"]);
        assert!(values.iter().all(|v| !v.1.is_empty()), "{text}");
        assert!(values[2].1.starts_with("rustc 1.") && values[3].1.len() == 32, "{text}");
    }
}
