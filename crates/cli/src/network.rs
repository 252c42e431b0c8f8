// SPDX-License-Identifier: MIT OR Apache-2.0
//! The routers and links of a network, from the command line to one configuration.

use crate::classes::Available;
use crate::load::{Source, elaborate_in};
use castanet_graph::network::link::is_router_name;
use castanet_graph::network::{Component, Link, Order, combine};
use castanet_lang::elaborate::Globals;
use castanet_lang::{Diagnostic, Flat, Sources, Unknown};

use std::path::Path;

/// The routers and the links between them.
#[derive(Default)]
pub struct Network {
    /// The name of each router, and its configuration.
    pub routers: Vec<(String, Source)>,
    /// The links.
    pub links: Vec<Link>,
}

impl Network {
    /// Handles a word of the command line: a link (`A.eth0=B.eth1`), or a file with or without the name of its router
    /// (`A=FILE`). A file without a name gives its own to the router: `a.click` is router `a`.
    ///
    /// # Errors
    /// The file cannot be read, or the word is none of these.
    pub fn word(&mut self, word: &str) -> Result<(), String> {
        match word.split_once('=') {
            Some((from, to)) if from.contains('.') && to.contains('.') && !Path::new(word).exists() => {
                self.links.push(word.parse()?);
                Ok(())
            }
            Some((name, file)) if !name.contains(['.', '/']) => self.file(Some(name), file),
            _ => self.file(None, word),
        }
    }

    /// Adds a router from a file.
    ///
    /// # Errors
    /// The file cannot be read, or the router has no name.
    pub fn file(&mut self, name: Option<&str>, file: &str) -> Result<(), String> {
        let stem = Path::new(file).file_stem().map(|s| s.to_string_lossy().into_owned());
        let name = match name {
            Some(name) => name.to_string(),
            None => stem.filter(|s| is_router_name(s)).ok_or_else(|| {
                format!(
                    "'{file}': the file's name cannot be the name of a router; give it one, as in A={file}"
                )
            })?,
        };
        self.routers.push((name, Source::file(file, Vec::new())?));
        Ok(())
    }
}

/// A combined configuration.
pub struct Combined {
    /// The configuration.
    pub flat: Flat,
    /// The texts of all routers.
    pub sources: Sources,
}

/// Combines routers to one configuration. `show` is called with the diagnostics of each router.
///
/// # Errors
/// The errors of links and names. Empty if a router has errors, which have been shown.
pub fn combined(
    network: Network,
    available: &Available,
    unknown: Unknown,
    order: Order,
    show: impl Fn(&Sources, &[Diagnostic]),
) -> Result<Combined, Vec<String>> {
    let mut sources = Sources::new();
    let mut components = Vec::new();
    let mut failed = false;
    // The packages of all routers stay loaded until the classes of the whole network are known.
    let mut held = Vec::new();
    for (name, source) in &network.routers {
        let (loaded, texts, classes) = elaborate_in(available, source, unknown, Globals::Substitute);
        show(&texts, &loaded.diagnostics);
        failed |= loaded.diagnostics.iter().any(Diagnostic::is_error);
        let mut flat = loaded.flat;
        flat.shift_files(sources.append(texts));
        components.push(Component { name: name.clone(), flat });
        held.push(classes);
    }
    if failed {
        return Err(Vec::new());
    }
    let classes = available.packages.classes(available.built_in.registry().clone());
    let flat = combine(components, &network.links, &classes, order)
        .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    Ok(Combined { flat, sources })
}
