// SPDX-License-Identifier: MIT OR Apache-2.0
//! A loaded library. Only this module runs code of a library.

use crate::header::{Header, Refusal, check};
use crate::intern;
use castanet_devirtualized::{CODE_SYMBOL, Exported};
use castanet_element::class::{Inform, Make};
use castanet_element::package::{Host, PACKAGE_SYMBOL, Package, Wrap, Wrapped, types};
use castanet_element::{BuildCx, ClassDef, ConfigError, Instance};
use castanet_packet::pool;
use castanet_spec::{ClassSpec, Names};
use libloading::os::unix::{Library as Code, RTLD_LOCAL, RTLD_NOW};
use parking_lot::Mutex;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use std::any::TypeId;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::sync::{Arc, Weak};

/// An exported class: a class of a library in a form for use outside the library. It is never freed. If a
/// library with the same content is loaded later, the exported class is used again.
#[derive(Clone, Copy)]
pub(crate) struct ExportedClass {
    def: ClassDef,
}

/// The library that the exported classes of one [`Content`] come from. The `Weak` is empty while the library is not
/// loaded.
type Link = Arc<Mutex<Weak<Library>>>;

/// The part of a library that is kept after it is unloaded: its exported classes, and the link to the library. The
/// link is set again if a file with the same bytes is loaded again.
#[derive(Clone)]
pub(crate) struct Content {
    link: Link,
    classes: Arc<[ExportedClass]>,
}

impl Content {
    /// The library, if it is loaded.
    pub fn library(&self) -> Option<Arc<Library>> {
        library_of(&self.link)
    }
}

fn library_of(link: &Link) -> Option<Arc<Library>> {
    link.lock().upgrade()
}

/// A loaded package. Dropping the last reference unloads it.
pub struct Library {
    name: String,
    file: String,
    sum: u128,
    header: Header,
    exported: Arc<[ExportedClass]>,
    /// The classes inside the library.
    // INVARIANT: `inside` points into `_code`. `_code` is declared later, so it is dropped later.
    inside: Vec<ClassDef>,
    stays: bool,
    end: fn(),
    _code: Code,
    /// The memory file that the code is mapped from. It stays open, so that no other library gets the same
    /// path: the dynamic loader identifies libraries by path.
    _memory: File,
}

impl std::fmt::Debug for Library {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Library({} from {})", self.name, self.file)
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        (self.end)();
    }
}

/// Resumes, in the program, a panic that happened inside a library. The panic message has been printed already.
fn raise(text: String) -> ! {
    std::panic::resume_unwind(Box::new(text))
}

/// Prints a panic message of a library in the format of the standard library.
fn report(text: &str) {
    castanet_runtime::panic_began();
    let thread = std::thread::current();
    let line = format!("\nthread '{}': {text}\n", thread.name().unwrap_or("<unnamed>"));
    // If standard error is closed, the message is lost.
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

/// Copies a library to memory, so that exactly the checked bytes are mapped even if the file changes.
fn memory(name: &str, file: &[u8]) -> std::io::Result<File> {
    let mut plain: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || "-_".contains(*c)).collect();
    plain.truncate(64);
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let memory = memfd_create(format!("castanet-package-{plain}"), flags)?;
    let mut memory = File::from(memory);
    memory.write_all(file)?;
    fcntl_add_seals(&memory, SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL)?;
    Ok(memory)
}

impl Library {
    /// Loads a library, unless it is loaded already. `known` gets the checksum of the file, and returns the
    /// [`Content`] of the library with this checksum if it was ever loaded.
    pub(crate) fn open(
        name: &str,
        from: &str,
        file: &[u8],
        known: impl FnOnce(u128) -> Option<Content>,
    ) -> Result<(Arc<Library>, Content), Refusal> {
        let (header, sum) = check(from, file)?;
        let known = known(sum);
        if let Some(content) = &known
            && let Some(library) = content.library()
        {
            return Ok((library, content.clone()));
        }
        let failed = |why: String| {
            Refusal::new(
                format!("{from}: the package cannot be loaded: {why}"),
                "it must be built for this machine; build it here with 'castanet build-package DIR'",
            )
        };
        let memory = memory(name, file).map_err(|e| failed(e.to_string()))?;
        let path = format!("/proc/self/fd/{}", memory.as_raw_fd());
        // SAFETY: opening a library runs its constructors. `check` has verified that the file is unchanged
        // output of `build-package`, which links a crate of classes with Rust's standard library. The
        // constructors of the standard library only read the program's arguments.
        let code =
            unsafe { Code::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(|e| failed(e.to_string()))?;
        // SAFETY: `build-package` writes the crate that exports this symbol with this type. The header states
        // that both sides have the same compiler and the same source of the type.
        let package = unsafe { code.get::<*const Package>(PACKAGE_SYMBOL.as_bytes()) };
        let package: *const Package = *package.map_err(|e| failed(e.to_string()))?;
        // SAFETY: the pointer is the address of a static of the library, which is mapped as long as `code` lives. The
        // reference ends in this function.
        let Some(package) = (unsafe { package.as_ref() }) else { return Err(failed("it is empty".into())) };
        if package.types != types() {
            return Err(Library::other_copies(from));
        }
        (package.start)(Host { report, raise, pools: pool::lender() }, name);
        let (inside, stays, end) = (package.classes.to_vec(), package.stays, package.end);
        let content = known.unwrap_or_else(|| export(&inside));
        let library = Arc::new(Library {
            name: name.to_string(),
            file: from.to_string(),
            sum,
            header,
            exported: content.classes.clone(),
            inside,
            stays,
            end,
            _code: code,
            _memory: memory,
        });
        *content.link.lock() = Arc::downgrade(&library);
        Ok((library, content))
    }

    /// The refusal of a library with other copies of castanet's crates.
    pub(crate) fn other_copies(from: &str) -> Refusal {
        Refusal::new(
            format!("{from}: the package was built with different copies of castanet's crates"),
            "build it with 'castanet build-package DIR' of this castanet; building it with cargo alone does not work",
        )
    }
    /// The address of the exported code.
    fn exported(&self) -> Option<*const Exported> {
        // SAFETY: `code::build` writes the crate that exports this symbol with this type. The name in the header, which
        // `code` has checked, states that both sides have the same source of the type.
        unsafe { self._code.get::<*const Exported>(CODE_SYMBOL.as_bytes()) }.ok().map(|e| *e)
    }
    /// Whether the exported code has these types.
    pub(crate) fn has_types(&self, types: [TypeId; 2]) -> bool {
        // SAFETY: the pointer is the address of a static of the library, which is loaded as long as `self` lives.
        self.exported().and_then(|e| unsafe { e.as_ref() }).is_some_and(|e| e.types == types)
    }
    /// The compiled code of a configuration, if this library has it. The library stays loaded from now on.
    pub(crate) fn code(self: &Arc<Self>) -> Option<&'static Exported> {
        std::mem::forget(self.clone());
        // SAFETY: the pointer is the address of a static of the library. The library is never unloaded, because a
        // reference to it was leaked.
        self.exported().and_then(|e| unsafe { e.as_ref() })
    }

    /// The package name that configurations require.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// The file that the library was loaded from.
    pub fn file(&self) -> &str {
        &self.file
    }
    /// The build parameters of the library.
    pub fn header(&self) -> &Header {
        &self.header
    }
    /// Whether the library must never be unloaded, because its classes start threads that may outlive their elements.
    pub(crate) fn stays(&self) -> bool {
        self.stays
    }
    pub(crate) fn sum(&self) -> u128 {
        self.sum
    }
    /// The class with this name or alias.
    pub fn get(&self, name: &str) -> Option<ClassDef> {
        let named = |s: &ClassSpec| s.name == name || s.aliases.contains(&name);
        self.exported.iter().find(|c| named(c.def.spec)).map(|c| c.def)
    }
    /// The classes of the library, sorted by name.
    pub fn classes(&self) -> Vec<&'static ClassSpec> {
        let mut all: Vec<_> = self.exported.iter().map(|c| c.def.spec).collect();
        all.sort_by_key(|s| s.name);
        all
    }
}

/// Holds the library on behalf of an element.
struct Held {
    _library: Arc<Library>,
}

impl Wrap for Held {
    #[inline]
    fn call<R>(&self, f: impl FnOnce() -> R) -> R {
        f()
    }
}

fn gone(spec: &ClassSpec) -> ConfigError {
    format!("the package of class '{}' was unloaded", spec.name).into()
}

/// Wraps the classes of a library for use outside it. Declarations are copied. Each element keeps a reference to the
/// library, so that it stays loaded.
fn export(inside: &[ClassDef]) -> Content {
    let link = Link::default();
    let classes = inside.iter().enumerate().map(|(i, def)| {
        let (spec, informs) = (intern::spec(def.spec), def.inform.is_some());
        let to = link.clone();
        let build: &'static Make = Box::leak(Box::new(move |config: &str, cx: &mut BuildCx<'_>| {
            let library = library_of(&to).ok_or_else(|| gone(spec))?;
            let def = library.inside.get(i).copied().ok_or_else(|| gone(spec))?;
            let made = (def.build)(config, cx)?;
            let held = Held { _library: library };
            Ok(match made {
                Instance::Action(a) => Instance::Action(Box::new(Wrapped::new(a, held))),
                Instance::Element(e) => Instance::Element(Box::new(Wrapped::new(e, held))),
            })
        }));
        let to = link.clone();
        let inform: &'static Inform =
            Box::leak(Box::new(move |config: &str, scope: &str, names: &mut Names| {
                let library = library_of(&to).ok_or_else(|| gone(spec))?;
                match library.inside.get(i).and_then(|d| d.inform) {
                    Some(inform) => inform(config, scope, names),
                    None => Ok(()),
                }
            }));
        ExportedClass { def: ClassDef { spec, build, inform: informs.then_some(inform) } }
    });
    let classes = classes.collect();
    Content { link, classes }
}
