// SPDX-License-Identifier: MIT OR Apache-2.0
//! Snapshots of every diagnostic, one for each file in `diagnostics/`. A file may have several parts, which are the files of
//! the program; a line `==== NAME` precedes each but the first.
#![allow(clippy::unwrap_used)]

use castanet_diagnostic::Sources;
use castanet_diagnostic::render::render_pretty;
use castanet_prolac::load::{Extensions, Files};
use std::collections::BTreeMap;

struct Parts(BTreeMap<String, String>);

impl Files for Parts {
    fn read(&self, _: &str, name: &str) -> Result<(String, String), String> {
        let text = self.0.get(name).ok_or("no such file")?;
        Ok((name.to_string(), text.clone()))
    }
}

#[test]
fn every_diagnostic() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/diagnostics");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.retain(|n| n.extension().is_some_and(|e| e == "pc"));
    paths.sort();
    assert!(paths.len() >= 60, "{}", paths.len());
    for path in paths {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let mut parts = text.split("==== ");
        let main = parts.next().unwrap();
        let files =
            Parts(parts.map(|p| p.split_once('\n').unwrap()).map(|(n, t)| (n.into(), t.into())).collect());
        let mut sources = Sources::new();
        let file = sources.add(format!("{name}.pc"), main);
        let extensions = if name.starts_with("unknown-extension") {
            Extensions::Named(vec!["Slow-Strat".into()])
        } else {
            Extensions::All
        };
        let (_, diagnostics) = castanet_prolac::analyse(&mut sources, file, &files, &extensions);
        assert!(!diagnostics.is_empty(), "{name} has no diagnostic");
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(name, render_pretty(&sources, &diagnostics, false));
        });
    }
}
