// SPDX-License-Identifier: MIT OR Apache-2.0
//! Snapshots of every diagnostic, in the pretty and the classic format, one for each file in `diagnostics/`.

use castanet_lang::render::{render_classic, render_pretty};
use castanet_lang::{NoLibrary, Options, Sources, Unknown, load_bytes};

const CLASSES: [&str; 9] = ["Counter", "Discard", "Idle", "Null", "Print", "Queue", "Script", "Strip", "Tee"];

#[test]
fn every_diagnostic() -> std::io::Result<()> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/diagnostics");
    let mut names: Vec<_> =
        std::fs::read_dir(folder)?.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>()?;
    names.retain(|n| n.extension().is_some_and(|e| e == "click"));
    names.sort();
    assert!(names.len() >= 60, "{}", names.len());
    for path in names {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut sources = Sources::new();
        let options =
            Options { classes: &CLASSES, defines: &[], library: &NoLibrary, unknown: Unknown::Error };
        let (_, diagnostics) =
            load_bytes(&mut sources, &format!("{name}.click"), &std::fs::read(&path)?, &options);
        assert!(!diagnostics.is_empty(), "{name} has no diagnostic");
        let (pretty, classic) =
            (render_pretty(&sources, &diagnostics, false), render_classic(&sources, &diagnostics));
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(name, format!("{pretty}\n{classic}"));
        });
    }
    Ok(())
}
