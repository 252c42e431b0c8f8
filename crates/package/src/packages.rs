// SPDX-License-Identifier: MIT OR Apache-2.0
//! The packages of a process: searching, loading, and supplying their classes to routers.

use crate::header::Refusal;
use crate::library::{Content, Library};
use castanet_element::{ClassDef, Classes};
use castanet_lang::{ClassNames, Diagnostic, Flat};
use castanet_spec::{ClassSpec, ClassSpecs};
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

/// The maximum size of a library, in bytes.
const LARGEST: u64 = 1 << 30;
/// The file extensions of packages.
pub const EXTENSIONS: [&str; 2] = ["castanet", "so"];

/// The packages of a process. A process should have only one object of this type, because two would load the
/// same content twice.
pub struct Packages {
    clickpath: Option<String>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The loaded libraries, in loading order. Loading a library removes the entries of unloaded ones.
    loaded: Vec<Weak<Library>>,
    /// The libraries that [`Packages::keep`] has loaded. [`Packages::settle`] removes them.
    kept: Vec<Arc<Library>>,
    /// The exported classes of each library file that was ever loaded. They stay after the library is unloaded. The
    /// key is the checksum of the file.
    contents: HashMap<u128, Content>,
}

/// The directory of packages installed with this castanet: `lib/castanet` beside the directory of the program.
pub fn installed() -> PathBuf {
    let exe = std::env::current_exe().unwrap_or_default();
    let prefix = exe.parent().and_then(Path::parent).unwrap_or(Path::new("/usr/local"));
    prefix.join("lib").join("castanet")
}

impl Packages {
    /// Creates the packages of a process. `clickpath` is the value of `CLICKPATH`; `None` if it is not set.
    pub fn new(clickpath: Option<&str>) -> Arc<Packages> {
        Arc::new(Packages { clickpath: clickpath.map(str::to_string), state: Mutex::default() })
    }

    /// The value of `CLICKPATH`, if it is set.
    pub fn clickpath(&self) -> Option<&str> {
        self.clickpath.as_deref()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// The directories searched for a package, in order: each directory of `CLICKPATH` and its subdirectory `lib`,
    /// then the directory of the configuration, then [`installed`]. An empty entry of `CLICKPATH` stands for the
    /// directory of the configuration.
    pub fn folders(&self, configuration: &str) -> Vec<PathBuf> {
        let beside = Path::new(configuration).parent().unwrap_or(Path::new("")).to_path_buf();
        let mut all = Vec::new();
        for entry in self.clickpath.as_deref().unwrap_or("").split(':') {
            match entry {
                "" => all.push(beside.clone()),
                entry => all.extend([PathBuf::from(entry), Path::new(entry).join("lib")]),
            }
        }
        all.extend([beside, installed()]);
        let mut seen = std::collections::HashSet::new();
        all.retain(|p| seen.insert(p.clone()));
        all
    }

    /// The file of a package: `name` itself if it is a path, otherwise the first match in the directories.
    fn find(&self, name: &str, configuration: &str) -> Result<PathBuf, Refusal> {
        let extension = Path::new(name).extension().is_some_and(|e| EXTENSIONS.iter().any(|x| e == *x));
        if name.contains('/') || extension {
            return Ok(PathBuf::from(name));
        }
        let folders = self.folders(configuration);
        for folder in &folders {
            for extension in EXTENSIONS {
                let path = folder.join(format!("{name}.{extension}"));
                if path.is_file() {
                    return Ok(path);
                }
            }
        }
        let shown = |p: &PathBuf| if p.as_os_str().is_empty() { ".".into() } else { p.display().to_string() };
        let places: Vec<String> = folders.iter().map(shown).collect();
        Err(Refusal {
            message: format!("can't find required package '{name}.uo'"),
            notes: vec![format!("in CLICKPATH or '{}'", installed().display())],
            help: format!(
                "'{name}.castanet' and '{name}.so' were searched for in {}; 'castanet build-package DIR' builds a package from a crate",
                places.join(", ")
            ),
        })
    }

    /// Loads a package by the name that configurations require, or by the path of its file. Does not load the
    /// same content twice.
    ///
    /// # Errors
    /// The reason it cannot be found or used.
    pub fn load(&self, name: &str, configuration: &str) -> Result<Arc<Library>, Refusal> {
        let path = match self.find(name, configuration) {
            Ok(path) => path,
            // The file may have been removed after the package was loaded. In that case, the loaded package is used.
            Err(missing) => return self.alive().into_iter().rev().find(|l| l.name() == name).ok_or(missing),
        };
        self.open(&path)
    }

    /// Loads a package from a file. A bare word refers to a file in the current directory, if it exists.
    ///
    /// # Errors
    /// The reason it cannot be found or used.
    pub fn load_file(&self, file: &str) -> Result<Arc<Library>, Refusal> {
        let path = Path::new(file);
        if path.exists() { self.open(path) } else { self.load(file, "") }
    }

    fn open(&self, path: &Path) -> Result<Arc<Library>, Refusal> {
        let from = path.display().to_string();
        let unreadable = |why: String| Refusal::new(format!("{from}: the package cannot be read: {why}"), "");
        let about = std::fs::metadata(path).map_err(|e| unreadable(e.to_string()))?;
        if !about.is_file() {
            return Err(unreadable("it is not a file".into()));
        }
        let bytes = castanet_lang::read::file(path, LARGEST).map_err(|e| unreadable(e.to_string()))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        // Locked while the library is opened, so that the same content is not loaded twice.
        let mut state = self.state();
        let (library, content) =
            Library::open(&name, &from, &bytes, |sum| state.contents.get(&sum).cloned())?;
        state.contents.insert(library.sum(), content);
        state.loaded.retain(|l| l.upgrade().is_some_and(|l| !Arc::ptr_eq(&l, &library)));
        state.loaded.push(Arc::downgrade(&library));
        if library.stays() {
            std::mem::forget(library.clone());
        }
        Ok(library)
    }

    /// Loads a package for future configurations, whether or not they require it, and returns its classes. It
    /// stays loaded until [`settle`](Packages::settle).
    ///
    /// # Errors
    /// The reason it cannot be found or used.
    pub fn keep(&self, name: &str) -> Result<Vec<&'static str>, Refusal> {
        let library = self.load(name, "")?;
        let classes = library.classes().iter().map(|s| s.name).collect();
        let mut state = self.state();
        let old = std::mem::take(&mut state.kept);
        let (gone, mut kept): (Vec<_>, Vec<_>) = old.into_iter().partition(|l| l.name() == library.name());
        kept.push(library);
        state.kept = kept;
        drop(state);
        // Unloading runs code of the library, so the lock is released first.
        drop(gone);
        Ok(classes)
    }

    /// Releases the packages that [`keep`](Packages::keep) has loaded. Call this after a swap, when the router holds
    /// the packages that it uses.
    pub fn settle(&self) {
        let kept = std::mem::take(&mut self.state().kept);
        drop(kept);
    }

    /// The loaded libraries, the most recent one last.
    pub fn alive(&self) -> Vec<Arc<Library>> {
        self.state().loaded.iter().filter_map(Weak::upgrade).collect()
    }

    /// The names of the loaded packages, for the global handler `packages`.
    pub fn names(&self) -> Vec<String> {
        let mut all: Vec<_> = self.alive().iter().map(|l| l.name().to_string()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The classes for a new configuration: those of `base` and those of all loaded packages.
    pub fn classes(&self, base: Arc<dyn Classes>) -> WithPackages {
        WithPackages { base, libraries: self.alive() }
    }

    /// Loads the packages that a configuration requires and adds them to its classes. Returns an error for each
    /// package that is not available.
    pub fn require(
        &self,
        flat: &Flat,
        configuration: &str,
        provided: &dyn Fn(&str) -> bool,
        classes: &mut WithPackages,
    ) -> Vec<Diagnostic> {
        let mut errors = Vec::new();
        let wanted = |name: &str, kind: &str| kind == "package" && !provided(name);
        for (i, (_, name)) in flat.requirements.iter().enumerate().filter(|(_, r)| wanted(&r.1, &r.0)) {
            match self.load(name, configuration) {
                Ok(library) => classes.add(library),
                Err(refusal) => {
                    let d = diagnostic(name, refusal);
                    // Add the position of the requirement as a label. The classic format must not show this position,
                    // and shows no labels.
                    errors.push(match flat.required_at.get(i) {
                        Some(at) => d.label("required here", *at),
                        None => d,
                    });
                    let d = Diagnostic::error(format!("requirement '{name}' not available"), None);
                    errors.push(d.consequence());
                }
            }
        }
        errors
    }
}

/// Converts a refusal to a diagnostic.
pub fn diagnostic(name: &str, refusal: Refusal) -> Diagnostic {
    let mut d = Diagnostic::error(refusal.message, None);
    d = d.context(format!("While loading package '{name}':"), None);
    for note in refusal.notes {
        d = d.note(note, None);
    }
    if refusal.help.is_empty() { d } else { d.help(refusal.help) }
}

/// A set of classes, together with the classes of packages. The set keeps the
/// libraries loaded. A router keeps the set that it was built with.
#[derive(Clone)]
pub struct WithPackages {
    base: Arc<dyn Classes>,
    libraries: Vec<Arc<Library>>,
}

impl WithPackages {
    /// Adds a package. Its classes take precedence over others of the same name.
    pub fn add(&mut self, library: Arc<Library>) {
        self.libraries.retain(|l| !Arc::ptr_eq(l, &library));
        self.libraries.push(library);
    }
    /// Removes the packages that a configuration neither requires nor uses. If several packages have a required
    /// name or a used class, only the last one is kept. The router keeps the remaining packages loaded.
    pub fn used_by(mut self, flat: &Flat) -> WithPackages {
        let required = |l: &Library| flat.requirements.iter().any(|(k, n)| k == "package" && named(l, n));
        let newest: Vec<bool> = self
            .libraries
            .iter()
            .enumerate()
            .map(|(i, l)| {
                let later = self.libraries.get(i + 1..).unwrap_or_default();
                let hidden = |class: &str| later.iter().any(|l| l.get(class).is_some());
                let uses = flat.elements.iter().any(|e| l.get(&e.class).is_some() && !hidden(&e.class));
                uses || required(l) && !later.iter().any(|x| x.name() == l.name())
            })
            .collect();
        let mut newest = newest.into_iter();
        self.libraries.retain(|_| newest.next().unwrap_or(true));
        self
    }
    /// The packages, the most recent one last.
    pub fn libraries(&self) -> &[Arc<Library>] {
        &self.libraries
    }
    /// The classes of all packages.
    pub fn specs(&self) -> Vec<&'static ClassSpec> {
        self.libraries.iter().flat_map(|l| l.classes()).collect()
    }
}

/// Whether a requirement refers to a library, by name or by file path.
fn named(library: &Library, requirement: &str) -> bool {
    library.name() == requirement || library.file() == requirement
}

impl ClassNames for WithPackages {
    fn knows(&self, name: &str) -> bool {
        self.get(name).is_some()
    }
    fn names(&self) -> Vec<&str> {
        let mut all = self.base.names();
        for spec in self.specs() {
            all.push(spec.name);
            all.extend(spec.aliases);
        }
        all.sort_unstable();
        all.dedup();
        all
    }
}

impl ClassSpecs for WithPackages {
    fn spec(&self, name: &str) -> Option<&'static ClassSpec> {
        self.get(name).map(|d| d.spec)
    }
}

impl Classes for WithPackages {
    fn get(&self, name: &str) -> Option<ClassDef> {
        self.libraries.iter().rev().find_map(|l| l.get(name)).or_else(|| self.base.get(name))
    }
    fn devices(&self) -> Option<castanet_spec::names::Devices> {
        self.base.devices()
    }
}
