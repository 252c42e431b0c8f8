// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the command line to a checked graph: reads, elaborates and checks configurations, and prints diagnostics.

use crate::args::Configuration;
use crate::classes::{Available, BuiltIn};
use crate::control::FromClients;
use crate::provides::Kinds;
pub use castanet_control::reason;
use castanet_element::Classes;
use castanet_graph::Graph;
use castanet_lang::bytes::{encode, line};
use castanet_lang::elaborate::{Globals, Library, undefined_variables};
use castanet_lang::library::{Confined, SearchPath};
use castanet_lang::{ClassNames as _, Diagnostic, Flat, Sources, Unknown, read};
use castanet_package::WithPackages;
use std::ffi::OsStr;
use std::io::{IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// The text of a configuration and its context.
pub struct Source {
    /// The name of the configuration in messages.
    pub name: String,
    /// The bytes of the configuration.
    pub bytes: Vec<u8>,
    /// Variables from the command line.
    pub defines: Vec<(String, String)>,
    /// Packages from the command line.
    pub packages: Vec<String>,
    /// Which libraries and packages the configuration may require.
    pub reach: Reach,
}

/// Which libraries and packages a configuration may require.
#[derive(Clone, Debug, Default)]
pub enum Reach {
    /// All libraries and packages, because the configuration is the operator's.
    #[default]
    Everywhere,
    /// Only the libraries that the operator allows to clients.
    Client(FromClients),
}

/// Splits a word of the command line such as `RATE=10` into name and value. `None` if the word defines no
/// variable.
pub fn definition(word: &str) -> Option<(String, String)> {
    let (name, value) = word.split_once('=')?;
    let ok = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    ok.then(|| (name.to_string(), value.to_string()))
}

impl Configuration {
    /// Whether the configuration is a file, which can be reread.
    pub fn is_file(&self) -> bool {
        let mut named = self.words.iter().filter(|w| definition(w).is_none()).chain(&self.file);
        self.expression.is_none() && named.next().is_some_and(|f| f != "-")
    }
}

impl Source {
    /// Reads the configuration that the command line names. The error is a line for standard error.
    pub fn read(c: &Configuration) -> Result<Source, String> {
        let (mut defines, mut files) = (Vec::new(), Vec::new());
        for w in &c.words {
            match definition(w) {
                Some(d) => defines.push(d),
                None => files.push(w.clone()),
            }
        }
        files.extend(c.file.clone());
        let given = files.len() + usize::from(c.expression.is_some());
        if given > 1 {
            return Err("router configuration specified twice".into());
        }
        let source = match (&c.expression, files.first()) {
            (Some(text), _) => Source::text("config", text, defines),
            (None, Some(file)) => Source::file(file, defines)?,
            (None, None) => {
                return Err(
                    "no configuration given: name a file, - for standard input, or use -e TEXT".into()
                );
            }
        };
        Ok(Source { packages: c.packages.clone(), ..source })
    }

    /// Makes a source from a text that is not in a file.
    pub fn text(name: &str, text: &str, defines: Vec<(String, String)>) -> Source {
        Source::of(name, encode(text).into_owned(), defines)
    }

    fn of(name: &str, bytes: Vec<u8>, defines: Vec<(String, String)>) -> Source {
        Source { name: name.into(), bytes, defines, packages: Vec::new(), reach: Reach::Everywhere }
    }

    /// Reads a file, or standard input for `-`.
    pub fn file(file: &str, defines: Vec<(String, String)>) -> Result<Source, String> {
        let (name, done) = if file == "-" {
            ("<stdin>", read::stream(std::io::stdin().lock(), read::MAX_CONFIGURATION))
        } else {
            (file, read::file(Path::new(OsStr::from_bytes(&encode(file))), read::MAX_CONFIGURATION))
        };
        let bytes = done.map_err(|e| format!("{name}: {}", reason(&e)))?;
        Ok(Source::of(name, bytes, defines))
    }
}

/// A loaded configuration, possibly with errors.
pub struct Loaded {
    /// The source texts, for diagnostics.
    pub sources: Sources,
    /// The checked graph.
    pub graph: Graph,
    /// All errors and warnings.
    pub diagnostics: Vec<Diagnostic>,
    /// Errors of the graph. They are kept here, and not reported, if there are errors of the language.
    pub held_back: Vec<Diagnostic>,
    /// Whether there are errors of the language, such as syntax errors.
    pub misread: bool,
    /// The text of the configuration.
    pub text: Arc<str>,
    /// The known classes.
    pub classes: Arc<dyn Classes>,
}

impl Loaded {
    /// Whether there are errors, so that the configuration cannot run.
    pub fn failed(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }
}

/// Elaborates a source: parses it, and expands compounds and variables.
pub fn elaborate(
    source: &Source,
    clickpath: Option<&str>,
    unknown: Unknown,
) -> (Flat, Sources, Vec<Diagnostic>, Arc<dyn Classes>) {
    let (loaded, sources, classes) = elaborate_with(source, clickpath, unknown, Globals::Substitute);
    (loaded.flat, sources, loaded.diagnostics, classes)
}

/// Elaborates a source. `globals` says what happens to variables of the file scope. A missing package is an
/// error only if `unknown` is [`Unknown::Error`].
pub fn elaborate_with(
    source: &Source,
    clickpath: Option<&str>,
    unknown: Unknown,
    globals: Globals,
) -> (castanet_lang::elaborate::Loaded, Sources, Arc<dyn Classes>) {
    elaborate_in(&BuiltIn::all().available(clickpath), source, unknown, globals)
}

/// The error when a client's configuration requires a package that it may not load.
pub const NO_PACKAGES: &str =
    "clients may not load packages; 'castanet run --allow-packages' starts a router that allows it";

/// Elaborates a source with the classes and packages of this process. The configuration can use the classes of all loaded
/// packages, and packages that it requires are loaded. The returned set keeps only the packages that the
/// configuration uses.
pub fn elaborate_in(
    available: &Available,
    source: &Source,
    unknown: Unknown,
    globals: Globals,
) -> (castanet_lang::elaborate::Loaded, Sources, Arc<dyn Classes>) {
    let Available { built_in, packages } = available;
    let base = built_in.registry();
    let mut classes = packages.classes(base.clone());
    let mut wrong: Vec<Diagnostic> = Vec::new();
    for name in &source.packages {
        match packages.load_file(name) {
            Ok(library) => classes.add(library),
            Err(refusal) => wrong.push(castanet_package::packages::diagnostic(name, refusal)),
        }
    }
    let anywhere = SearchPath::new(packages.clickpath());
    let confined;
    let library: &dyn Library = match &source.reach {
        Reach::Everywhere => &anywhere,
        Reach::Client(allowed) => {
            confined = Confined::new(allowed.library_path.as_deref());
            &confined
        }
    };
    let read_with = |classes: &WithPackages, unknown: Unknown| {
        let mut sources = Sources::new();
        let options = castanet_lang::Options { classes, defines: &source.defines, library, unknown };
        let loaded = castanet_lang::elaborate::load_bytes_with(
            &mut sources,
            &source.name,
            &source.bytes,
            &options,
            globals,
        );
        (loaded, sources)
    };
    let read = |classes: &WithPackages| read_with(classes, unknown);
    let (mut loaded, mut sources) = read(&classes);
    // The first elaboration finds out which packages are required. If some of them are loaded now, more classes are
    // known, so the source is elaborated again.
    let before = classes.libraries().len();
    let provided = |name: &str| crate::provides::has(base.as_ref(), name, Kinds::All);
    let missing = match &source.reach {
        Reach::Client(allowed) if !allowed.allow_packages => {
            let loaded_already = |name: &str| classes.libraries().iter().any(|l| l.name() == name);
            let required = loaded.flat.requirements.iter().filter(|r| r.0 == "package").map(|r| r.1.as_str());
            let refused = required.filter(|name| !provided(name) && !loaded_already(name));
            refused.map(|name| Diagnostic::error(format!("package '{name}': {NO_PACKAGES}"), None)).collect()
        }
        _ => packages.require(&loaded.flat, &source.name, &provided, &mut classes),
    };
    if classes.libraries().len() > before {
        (loaded, sources) = read(&classes);
    }
    // Tools that accept unknown classes do not need the packages.
    if unknown == Unknown::Error {
        wrong.extend(missing);
    }
    if unknown == Unknown::Error
        && available.is_minimal()
        && loaded.diagnostics.iter().any(Diagnostic::is_error)
    {
        let (opaque, _) = read_with(&classes, Unknown::Opaque);
        wrong.extend(available.lacking(&opaque.flat, |name| classes.knows(name)));
    }
    // Errors of packages come first, because they explain why classes are unknown.
    loaded.diagnostics.splice(..0, wrong);
    let classes = Arc::new(classes.used_by(&loaded.flat));
    (loaded, sources, classes)
}

/// Whether elements of the class have their own variables. In their configuration strings, a `$` may stand for such a
/// variable, so it is not reported as an undefined variable of the configuration.
pub fn is_script(spec: &castanet_spec::ClassSpec) -> bool {
    spec.args.iter().any(|a| a.type_name == "script instruction")
}

/// Elaborates and checks a source. If there are errors of the language, errors of the graph are left out, because they
/// may be consequences.
pub fn load(source: &Source, clickpath: Option<&str>, unknown: Unknown) -> Loaded {
    load_in(&BuiltIn::all().available(clickpath), source, unknown)
}

/// Like [`load`], with the classes and packages of this process.
pub fn load_in(available: &Available, source: &Source, unknown: Unknown) -> Loaded {
    let (loaded, sources, classes) = elaborate_in(available, source, unknown, Globals::Substitute);
    let (flat, mut diagnostics) = (loaded.flat, loaded.diagnostics);
    let defined = loaded.defines.iter().chain(&source.defines).map(|d| d.0.as_str());
    let defined: Vec<&str> = defined.collect();
    let text = sources.shared_text(flat.file);
    if unknown == Unknown::Error {
        let fixed = |class: &str| classes.spec(class).is_some_and(|spec| !is_script(spec));
        let elements = flat.elements.iter().filter(|e| e.config.contains('$') && fixed(&e.class));
        diagnostics.extend(elements.flat_map(|e| undefined_variables(e, &defined)));
    }
    let (graph, mut held_back) = Graph::new(flat, classes.as_ref());
    held_back.iter_mut().for_each(|d| d.flat = true);
    let misread = diagnostics.iter().any(Diagnostic::is_error);
    if !misread {
        diagnostics.append(&mut held_back);
    }
    Loaded { sources, graph, diagnostics, held_back, misread, text, classes }
}

/// Whether the environment allows colours (<https://no-color.org>).
pub fn allows_color() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

/// Whether to print colours on standard error.
pub fn color() -> bool {
    let set = |n: &str| std::env::var_os(n).is_some_and(|v| !v.is_empty());
    allows_color() && (set("CLICOLOR_FORCE") || std::io::stderr().is_terminal())
}

/// Prints diagnostics on standard error, for people or as JSON.
pub fn show(sources: &Sources, diagnostics: &[Diagnostic], json: bool) {
    if diagnostics.is_empty() {
        return;
    }
    let text = if json {
        crate::json::lines(sources, diagnostics)
    } else {
        castanet_lang::render::render_pretty(sources, diagnostics, color())
    };
    // If standard error is closed, the error cannot be reported.
    let _ = std::io::stderr().lock().write_all(&encode(&text));
}

/// Prints a line on standard error, as `castanet: ...`.
pub fn complain(text: &str) {
    let _ = std::io::stderr().lock().write_all(&line(&format!("castanet: {text}")));
}

/// Returns the exit code of a subcommand that has ended well, or after errors that it has printed. Prints an error that it
/// returns.
pub fn exit(ended: Result<bool, String>) -> ExitCode {
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            complain(&e);
            ExitCode::FAILURE
        }
    }
}

/// Returns the bytes of a configuration: its text, or an archive of the text and `members` if there are any.
pub fn archived(text: &str, members: &[(String, Vec<u8>)]) -> Result<Vec<u8>, String> {
    let text = encode(text).into_owned();
    if members.is_empty() {
        return Ok(text);
    }
    let mut all = vec![("config".to_string(), text)];
    all.extend(members.iter().cloned());
    castanet_lang::archive::write(&all).map_err(|e| e.to_string())
}

/// Writes text to a file, or to standard output for `None` or `-`.
pub fn write_out(output: Option<&Path>, text: &str) -> Result<(), String> {
    write_bytes(output, &encode(text))
}

/// Writes bytes to a file, or to standard output for `None` or `-`.
pub fn write_bytes(output: Option<&Path>, bytes: &[u8]) -> Result<(), String> {
    match output {
        Some(p) if p.as_os_str() != "-" => {
            std::fs::write(p, bytes).map_err(|e| format!("{}: {}", p.display(), reason(&e)))
        }
        _ => {
            let mut out = std::io::stdout().lock();
            out.write_all(bytes)
                .and_then(|()| out.flush())
                .map_err(|e| format!("standard output: {}", reason(&e)))
        }
    }
}
