// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the TCP of protocols/tcp without inlining: each method stays a function.

#[path = "../../crates/tcp/compile.rs"]
mod compile;

use castanet_prolac::optimise::Optimisations;
use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let here = std::env::var("CARGO_MANIFEST_DIR")?;
    let plain = Optimisations { inline: false, path_inline: false, ..Optimisations::ALL };
    compile::compile(&Path::new(&here).join("../../protocols/tcp"), plain)
}
