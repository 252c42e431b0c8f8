// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the TCP of protocols/tcp with all optimisations.

mod compile;

use castanet_prolac::optimise::Optimisations;
use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let here = std::env::var("CARGO_MANIFEST_DIR")?;
    compile::compile(&Path::new(&here).join("../../protocols/tcp"), Optimisations::ALL)
}
