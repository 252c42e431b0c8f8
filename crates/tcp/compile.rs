// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the TCP of protocols/tcp to Rust, with all its extensions. Part of build scripts.

use castanet_diagnostic::Sources;
use castanet_diagnostic::render::render_pretty;
use castanet_prolac::load::{Extensions, Folder};
use castanet_prolac::optimise::Optimisations;
use std::error::Error;
use std::path::Path;

/// Writes `protocol.rs` to the output folder of the build script. `folder` is protocols/tcp.
///
/// # Errors
/// The TCP has errors, or a file cannot be read or written.
pub fn compile(folder: &Path, optimisations: Optimisations) -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed={}", folder.display());
    let main = folder.join("tcp.pc");
    let mut sources = Sources::new();
    let file = sources.add(main.to_string_lossy(), std::fs::read_to_string(&main)?);
    let (program, problems) = castanet_prolac::analyse(&mut sources, file, &Folder, &Extensions::All);
    if !problems.is_empty() {
        return Err(render_pretty(&sources, &problems, false).into());
    }
    let compiled = castanet_prolac::rust::compile(&program, optimisations);
    std::fs::write(Path::new(&std::env::var("OUT_DIR")?).join("protocol.rs"), compiled.text)?;
    Ok(())
}
