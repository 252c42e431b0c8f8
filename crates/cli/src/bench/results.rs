// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints the results of a measurement, and writes them to files.

use crate::load::write_out;
use clap::Args;
use std::path::PathBuf;

/// The options for results.
#[derive(Args)]
pub struct Results {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Write a table of all results to this file.
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Draw the results to this file.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

impl Results {
    /// Writes the files that the options name, and prints the results as JSON or as a table.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn show(
        &self,
        csv: impl FnOnce() -> String,
        svg: impl FnOnce() -> String,
        json: impl FnOnce() -> serde_json::Value,
        table: impl FnOnce() -> String,
    ) -> Result<(), String> {
        if let Some(file) = &self.csv {
            write_out(Some(file), &csv())?;
        }
        if let Some(file) = &self.svg {
            write_out(Some(file), &svg())?;
        }
        let text = if self.json { format!("{:#}\n", json()) } else { table() };
        write_out(None, &text)
    }
}
