// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet ctl ADDRESS swap`: replaces the configuration of a running router.

use super::{Ctl, Failure, done, value_out};
use crate::load::{Source, definition, elaborate, show, write_bytes};
use castanet_control::Client;
use castanet_control::client::ClientError;
use castanet_lang::bytes::{decode_vec, encode};
use castanet_lang::{Diagnostic, Unknown};
use clap::Args;

/// `castanet ctl ADDRESS swap`.
#[derive(Args)]
pub struct Swap {
    /// The configuration file (`-` is standard input), and variables as NAME=VALUE.
    #[arg(value_name = "FILE | NAME=VALUE", required = true)]
    pub words: Vec<String>,
    /// Only print which elements would be added, removed and changed, and whose state would move.
    #[arg(long)]
    pub dry_run: bool,
}

/// The name that the router's diagnostics give to a configuration received over a socket.
const SENT: &str = "config";

/// In the positions of a swap error, replaces the name [`SENT`] by the file's name.
fn renamed(e: ClientError, file: &str) -> ClientError {
    let ClientError::Refused { code, text } = e else { return e };
    let line = |line: &str| {
        let arrow = line.trim_start();
        let place = arrow.strip_prefix("--> ").or_else(|| arrow.strip_prefix("::: "));
        match place.and_then(|p| p.strip_prefix(SENT)).filter(|p| p.starts_with(':')) {
            Some(place) => {
                let indent = line.len() - arrow.len();
                let (blanks, mark) = (line.get(..indent).unwrap_or(""), arrow.get(..4).unwrap_or(""));
                format!("{blanks}{mark}{file}{place}")
            }
            None => line.to_string(),
        }
    };
    ClientError::Refused { code, text: text.lines().map(line).collect::<Vec<_>>().join("\n") }
}

impl Swap {
    /// Returns the configuration text to send. If the command line defines variables, the configuration is
    /// expanded here, because only the text is sent and not the variables. The values from the command line
    /// override definitions in the text.
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
            return Ok(decode_vec(source.bytes));
        }
        let (flat, sources, diagnostics, _) = elaborate(&source, None, Unknown::Opaque);
        show(&sources, &diagnostics, json);
        match diagnostics.iter().any(Diagnostic::is_error) {
            true => Err(Failure::Said),
            false => Ok(castanet_lang::print::driver(&flat)),
        }
    }

    /// Returns the file name if the file's text is sent unchanged; otherwise `None`. Only an unchanged text has the
    /// line numbers of the file.
    fn unchanged(&self) -> Option<&str> {
        match self.words.as_slice() {
            [file] if file != "-" => Some(file),
            _ => None,
        }
    }

    /// Performs the swap, or prints its plan.
    pub fn swap(&self, client: &mut Client, text: &[u8], a: &Ctl) -> Result<(), Failure> {
        let explain = |e| match self.unchanged() {
            Some(file) => explain(renamed(e, file)),
            None => explain(e),
        };
        if self.dry_run {
            let answer = client.write("swapplan", text).map_err(explain)?;
            // The first line reports success.
            let plan: Vec<&str> = answer.lines().skip(1).collect();
            if a.json {
                return value_out(&serde_json::json!({ "plan": plan }));
            }
            return Ok(write_bytes(None, &encode(&(plan.join("\n") + "\n")))?);
        }
        let text = client.write("hotconfig", text).map_err(explain)?;
        done(a, &text)
    }
}

/// Adds the likely reason to an error: a router without `-R` has no such handler, and TCP clients need the token.
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
                    "{text}: over a TCP port this needs the token ('castanet run --control-token FILE', 'castanet ctl --token FILE'); \
                 a Unix socket serves the user of the router"
                ),
            }
        }
        e => e,
    }
}
