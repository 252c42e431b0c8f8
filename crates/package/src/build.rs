// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet build-package`: compiles a crate of classes to a shared library.
//!
//! The crate is compiled against the compiled crates of this castanet, so that both have the same types. Cargo
//! is not used, because it would build other copies of these crates. Without cargo, no crate is downloaded.
//!
//! The shared library exports two symbols, which requires `unsafe`. This module writes the root crate of the library,
//! and that crate exports the symbols. So crates of classes may forbid `unsafe`.

pub use crate::compiler::BuildError;
use crate::compiler::{CompilerOutput, compile, right_compiler, run, with_path, write};
use crate::header::seal;
use crate::library::Library;
use crate::sdk::{CRATES, Sdk, is_bitcode};
use castanet_element::package::FLAGS;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Options of a build.
#[derive(Clone, Debug)]
pub struct Options {
    /// The directory of the crate.
    pub folder: PathBuf,
    /// The file to write; `None` for `NAME.castanet` in the current directory.
    pub output: Option<PathBuf>,
    /// Whether the crate is optimised. Castanet's own crates are used as they were compiled.
    pub release: bool,
    /// The directory of castanet's compiled crates; `None` for the default locations.
    pub sdk: Option<PathBuf>,
}

/// The result of a build.
#[derive(Clone, Debug)]
pub struct Built {
    /// The path of the package file.
    pub file: PathBuf,
    /// The size of the package file in bytes.
    pub bytes: usize,
    /// The names of the package's classes.
    pub classes: Vec<&'static str>,
    /// The compiler's warnings.
    pub warnings: String,
}

/// The contents of a crate's manifest.
struct Manifest {
    /// The crate name as a Rust identifier.
    name: String,
    edition: String,
    source: PathBuf,
    dependencies: Vec<String>,
}

impl Manifest {
    fn read(folder: &Path) -> Result<Manifest, BuildError> {
        let path = folder.join("Cargo.toml");
        let wrong = |what: String| BuildError::Manifest { path: path.clone(), what };
        let text = std::fs::read_to_string(&path).map_err(BuildError::file(&path))?;
        let table: toml::Table = text.parse().map_err(|e: toml::de::Error| wrong(e.to_string()))?;
        let package =
            table.get("package").and_then(|p| p.as_table()).ok_or_else(|| wrong("not a package".into()))?;
        let word = |t: Option<&toml::Table>, key: &str| Some(t?.get(key)?.as_str()?.to_string());
        let lib = table.get("lib").and_then(|l| l.as_table());
        let name = word(Some(package), "name").ok_or_else(|| wrong("the package has no name".into()))?;
        let name = word(lib, "name").unwrap_or(name).replace('-', "_");
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(plain) {
            return Err(wrong(format!("'{name}' is not a crate name")));
        }
        let scripted = package.get("build").is_some_and(|b| b.as_bool() != Some(false));
        if scripted || (!package.contains_key("build") && folder.join("build.rs").exists()) {
            return Err(wrong("the crate has a build script, which packages cannot have".into()));
        }
        // Settings inherited from a workspace are ignored, because the crate may be a copy outside its workspace.
        let edition = word(Some(package), "edition").unwrap_or_else(|| "2024".into());
        let source = word(lib, "path").unwrap_or_else(|| "src/lib.rs".into()).into();
        let dependencies = table.get("dependencies").and_then(|d| d.as_table());
        let dependencies = dependencies.map(|d| d.keys().map(|k| k.replace('-', "_")).collect());
        Ok(Manifest { name, edition, source, dependencies: dependencies.unwrap_or_default() })
    }

    /// The name that configurations require: the crate name without the prefix of Castanet's own crates.
    fn package(&self) -> &str {
        self.name.strip_prefix("castanet_").unwrap_or(&self.name)
    }
}

/// A hash of the crate's files and its build options. With it, the compiler tells the types of two versions of a crate
/// apart. This is necessary, because the fields of these types may differ.
fn identity(folder: &Path, how: &str) -> Result<String, BuildError> {
    let mut all = how.as_bytes().to_vec();
    let mut open = vec![folder.join("Cargo.toml"), folder.join("src")];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            let entries = std::fs::read_dir(&path).map_err(BuildError::file(&path))?;
            let mut entries: Vec<_> = entries.flatten().map(|e| e.path()).collect();
            entries.sort_by(|a, b| b.cmp(a));
            open.extend(entries);
        } else if let Ok(bytes) = std::fs::read(&path) {
            all.extend(path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().bytes());
            all.extend((bytes.len() as u64).to_le_bytes());
            all.extend(bytes);
        }
    }
    Ok(format!("{:032x}", crate::header::checksum(&all)))
}

/// The source of the shared library's root crate.
fn entry(manifest: &Manifest) -> String {
    let (name, package) = (&manifest.name, manifest.package());
    let mut out = String::new();
    let _ = write!(
        out,
        "use castanet_element::package::{{Package, header, header_length}};\n\
         const NAME: &str = \"{package}\";\n\
         #[unsafe(no_mangle)]\n\
         pub static CASTANET_PACKAGE_HEADER: [u8; header_length(NAME)] = header(NAME);\n\
         #[unsafe(no_mangle)]\n\
         pub static CASTANET_PACKAGE: Package = {name}::PACKAGE;\n"
    );
    out
}

struct Compile<'a> {
    manifest: &'a Manifest,
    folder: &'a Path,
    scratch: &'a Path,
    sdk: &'a Sdk,
    release: bool,
    identity: &'a str,
}

impl Compile<'_> {
    fn rustc(&self, element: &Path) -> Command {
        let mut c = compile(self.folder, self.scratch, self.sdk, self.release);
        c.args(["--edition", &self.manifest.edition]);
        c.arg("--extern").arg(with_path("castanet_element", element));
        c
    }

    /// Compiles the crate of classes and the root crate of the library against one compiled
    /// `castanet-element`. The inner error is the compiler's output.
    fn with(&self, element: &Path) -> Result<Result<(Vec<u8>, String), CompilerOutput>, BuildError> {
        let Manifest { name, source, dependencies, .. } = self.manifest;
        let classes = self.scratch.join(format!("lib{name}.rlib"));
        let mut c = self.rustc(element);
        c.args(["--crate-type", "rlib", "--crate-name", name, "-C"])
            .arg(format!("metadata={}", self.identity));
        for d in dependencies.iter().filter(|d| *d != "castanet_element") {
            if let Some(path) = offered(self.sdk, d) {
                c.arg("--extern").arg(with_path(d, path));
            }
        }
        c.arg(source).arg("-o").arg(&classes);
        let first = run(c)?;
        let warnings = String::from_utf8_lossy(&first.stderr).into_owned();
        if !first.status.success() {
            return Ok(Err(CompilerOutput(warnings)));
        }
        let entry_file = self.scratch.join("entry.rs");
        let written = self.scratch.join("package");
        std::fs::write(&entry_file, entry(self.manifest)).map_err(BuildError::file(&entry_file))?;
        let mut c = self.rustc(element);
        c.args(["--crate-type", "cdylib", "--crate-name"]).arg(format!("{name}_package"));
        c.arg("-C").arg(format!("metadata={}", self.identity));
        c.arg("--extern").arg(with_path(name, &classes));
        if self.release {
            c.args(["-C", "strip=debuginfo"]);
        }
        if std::fs::read(element).is_ok_and(|bytes| is_bitcode(&bytes)) {
            c.args(["-C", "lto=thin"]);
        }
        c.arg(&entry_file).arg("-o").arg(&written);
        let second = run(c)?;
        if !second.status.success() {
            return Ok(Err(CompilerOutput(String::from_utf8_lossy(&second.stderr).into_owned())));
        }
        let bytes = std::fs::read(&written).map_err(BuildError::file(&written))?;
        Ok(Ok((seal(bytes), warnings)))
    }
}

/// The newest file of a crate, by its Rust name; `None` if packages may not use the crate. Packages may use only the
/// crates that `castanet sdk` copies, even if the directory contains other crates.
fn offered<'a>(sdk: &'a Sdk, name: &str) -> Option<&'a Path> {
    if CRATES.contains(&name) { sdk.newest(name) } else { None }
}

/// A note about the unsupported dependencies that the compiler's output mentions; empty if it mentions none.
fn about_dependencies(manifest: &Manifest, sdk: &Sdk, said: &str) -> String {
    let missing = |d: &&String| offered(sdk, d).is_none() && said.contains(d.as_str());
    let missing: Vec<&str> = manifest.dependencies.iter().filter(missing).map(String::as_str).collect();
    match missing.as_slice() {
        [] => String::new(),
        some => format!(
            "\nnote: these dependencies are not among castanet's compiled crates, so the classes cannot use them: {}",
            some.join(", ")
        ),
    }
}

/// Returns the name of the package that a crate becomes.
///
/// # Errors
/// The manifest of the crate cannot be read, or is invalid.
pub fn name(folder: &Path) -> Result<String, BuildError> {
    Manifest::read(folder).map(|m| m.package().to_string())
}

/// Builds a package.
///
/// # Errors
/// The compiler's output, or what is missing.
pub fn build(options: &Options) -> Result<Built, BuildError> {
    let folder = std::path::absolute(&options.folder).map_err(BuildError::file(&options.folder))?;
    let manifest = Manifest::read(&folder)?;
    right_compiler(&folder)?;
    let sdk = Sdk::find(options.sdk.as_deref())?;
    let scratch = tempfile::tempdir().map_err(BuildError::Scratch)?;
    let how = format!("{}\n{}\n{FLAGS}", manifest.name, options.release);
    let identity = identity(&folder, &how)?;
    let compile = Compile {
        manifest: &manifest,
        folder: &folder,
        scratch: scratch.path(),
        sdk: &sdk,
        release: options.release,
        identity: &identity,
    };
    let name = manifest.package();
    let file = options.output.clone().unwrap_or_else(|| PathBuf::from(format!("{name}.castanet")));
    let shown = file.display().to_string();
    let mut failure = BuildError::Compile(String::new());
    for element in sdk.elements() {
        match compile.with(element)? {
            Ok((bytes, warnings)) => match Library::open(name, &shown, &bytes, |_| None) {
                Ok((library, _)) => {
                    let classes = library.classes().iter().map(|s| s.name).collect();
                    write(&file, &bytes, 0o644).map_err(BuildError::file(&file))?;
                    return Ok(Built { file, bytes: bytes.len(), classes, warnings });
                }
                Err(refusal) => {
                    failure = BuildError::OtherCrates { folder: sdk.folder().to_path_buf(), refusal };
                }
            },
            Err(output) if output.is_mixed() => failure = BuildError::Compile(output.0),
            Err(CompilerOutput(text)) => {
                let note = about_dependencies(&manifest, &sdk, &text);
                return Err(BuildError::Compile(format!("{}{note}", text.trim_end())));
            }
        }
    }
    Err(failure)
}
