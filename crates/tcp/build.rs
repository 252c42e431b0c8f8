// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the TCP of protocols/tcp to Rust, with all its extensions.

use castanet_diagnostic::Sources;
use castanet_diagnostic::render::render_pretty;
use castanet_prolac::load::{Extensions, Folder};
use castanet_prolac::optimise::Optimisations;
use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join("../../protocols/tcp");
    println!("cargo:rerun-if-changed={}", folder.display());
    let main = folder.join("tcp.pc");
    let mut sources = Sources::new();
    let file = sources.add(main.to_string_lossy(), std::fs::read_to_string(&main)?);
    let (program, problems) = castanet_prolac::analyse(&mut sources, file, &Folder, &Extensions::All);
    if !problems.is_empty() {
        return Err(render_pretty(&sources, &problems, false).into());
    }
    let compiled = castanet_prolac::rust::compile(&program, Optimisations::ALL);
    std::fs::write(Path::new(&std::env::var("OUT_DIR")?).join("protocol.rs"), compiled.text)?;
    Ok(())
}
