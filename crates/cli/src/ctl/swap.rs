// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hot swap: another configuration for a running router.

use super::{Ctl, Failure, done, value_out};
use crate::load::{Source, definition, elaborate, show, write_bytes};
use castanet_control::Client;
use castanet_control::client::ClientError;
use castanet_lang::{Diagnostic, Unknown};
use clap::Args;

/// `castanet ctl ADDRESS swap`.
#[derive(Args)]
pub struct Swap {
    /// The configuration file (`-` is standard input), and variables as NAME=VALUE.
    #[arg(value_name = "FILE | NAME=VALUE", required = true)]
    pub words: Vec<String>,
    /// Only say what would be added, removed and changed, and whose state would move.
    #[arg(long)]
    pub dry_run: bool,
}

impl Swap {
    /// The text for the router: the file as it stands; with variables it is expanded here, because a configuration cannot
    /// define again what its file defines.
    pub fn text(&self, json: bool) -> Result<String, Failure> {
        let (mut defines, mut files) = (Vec::new(), Vec::new());
        for w in &self.words {
            match definition(w) {
                Some(d) => defines.push(d),
                None => files.push(w),
            }
        }
        let [file] = files.as_slice() else {
            return Err(Failure::Here("swap: name one configuration file, or - for standard input".into()));
        };
        let source = Source::file(file, defines)?;
        if source.defines.is_empty() {
            let text = String::from_utf8(source.bytes);
            return text.map_err(|_| Failure::Here(format!("{}: it is not UTF-8", source.name)));
        }
        let (flat, sources, diagnostics, _) = elaborate(&source, None, Unknown::Opaque);
        show(&sources, &diagnostics, json);
        match diagnostics.iter().any(Diagnostic::is_error) {
            true => Err(Failure::Said),
            false => Ok(castanet_lang::print::driver(&flat)),
        }
    }

    /// Swaps, or asks what that would do.
    pub fn swap(&self, client: &mut Client, text: &[u8], a: &Ctl) -> Result<(), Failure> {
        if self.dry_run {
            let answer = client.write("swapplan", text).map_err(explain)?;
            // The first line says that it was done.
            let plan: Vec<&str> = answer.lines().skip(1).collect();
            if a.json {
                return value_out(&serde_json::json!({ "plan": plan }));
            }
            return Ok(write_bytes(None, (plan.join("\n") + "\n").as_bytes())?);
        }
        let text = client.write("hotconfig", text).map_err(explain)?;
        done(a, &text)
    }
}

/// A router that has no such handler was not started to be reconfigured.
pub(super) fn explain(e: ClientError) -> ClientError {
    match e {
        ClientError::Refused { code: code @ castanet_control::code::NO_HANDLER, text } => {
            ClientError::Refused {
                code,
                text: format!(
                    "{text}: this router does not allow reconfiguration; 'castanet run -R' starts one that does"
                ),
            }
        }
        ClientError::Refused { code: code @ castanet_control::code::PERMISSION, text } => {
            ClientError::Refused {
                code,
                text: format!(
                    "{text}: by a TCP port this takes the token ('castanet run --control-token FILE', 'castanet ctl --token FILE'); \
                 a Unix socket serves the user of the router"
                ),
            }
        }
        e => e,
    }
}
