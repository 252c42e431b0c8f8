// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet ctl`: queries and changes a running router.

pub mod completion;
mod drops;
pub mod kinds;
mod list;
mod profile;
mod swap;
mod watch;

use crate::load::{complain, write_bytes};
use castanet_control::client::{Address, AddressError, ClientError};
use castanet_control::{Client, Token};
use castanet_lang::bytes::{encode, replaced};
use castanet_lang::read;
use clap::{Args, Subcommand};
pub use list::elements;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// `castanet ctl`.
#[derive(Args)]
#[command(after_help = "A handler is ELEMENT.HANDLER, or the name of a global one.\n\nExamples:\n  \
    castanet run -p 7777 router.click &\n  castanet ctl 7777 read c.count\n  \
    castanet ctl 7777 watch '*.count'\n  castanet ctl 7777 drops\n  castanet ctl 7777 swap new.click --dry-run\n\n\
    Exit codes: 0 done, 1 the router said no, 2 the command line was wrong, 3 no connection.")]
pub struct Ctl {
    #[command(flatten)]
    pub connection: Connection,
    #[command(subcommand)]
    pub what: What,
    /// Print JSON.
    #[arg(long, global = true)]
    pub json: bool,
}

/// How a client reaches a router.
#[derive(Args, Clone)]
pub struct Connection {
    /// The address of the router: HOST:PORT, PORT, or the file of a Unix socket.
    #[arg(value_parser = address)]
    pub address: Address,
    /// The file with the router's control token; default: $CASTANET_TOKEN_FILE.
    #[arg(long, global = true, value_name = "FILE")]
    pub token: Option<PathBuf>,
    /// Seconds to wait for a reply.
    #[arg(long, global = true, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub timeout: Duration,
}

impl Connection {
    /// Connects, and sends the token if there is one.
    ///
    /// # Errors
    /// When the token cannot be read or is wrong, or no router listens at the address.
    pub fn open(&self) -> Result<Client, Failure> {
        let named = || std::env::var_os("CASTANET_TOKEN_FILE").filter(|f| !f.is_empty()).map(PathBuf::from);
        let token = self.token.clone().or_else(named).map(|f| Token::read(&f)).transpose();
        let token = token.map_err(|e| e.to_string())?;
        let mut client = Client::connect(&self.address, self.timeout)?;
        if let Some(token) = token {
            client.authorise(&token)?;
        }
        Ok(client)
    }
}

/// The commands.
#[derive(Subcommand)]
pub enum What {
    /// Print the value of a handler.
    Read {
        /// The handler.
        handler: String,
        /// Parameters of the handler.
        #[arg(allow_hyphen_values = true, trailing_var_arg = true, value_parser = crate::args::any_text())]
        parameters: Vec<String>,
    },
    /// Write a handler.
    Write {
        /// The handler.
        handler: String,
        /// The value; `-` takes it from standard input.
        #[arg(allow_hyphen_values = true, trailing_var_arg = true, value_parser = crate::args::any_text())]
        value: Vec<String>,
    },
    /// List the elements with their classes, the handlers of one element, or the workers with their load.
    List {
        /// The element; `/` for global handlers; `workers` for the workers, if no element has this name.
        element: Option<String>,
    },
    /// Read handlers repeatedly, and show their values and rates.
    Watch(watch::Watch),
    /// Show what is dropped by which element and why, with rates, queues, held packets, and the load of workers.
    Drops(drops::Drops),
    /// Measure what each element costs for some time, and print a table.
    Profile(profile::Measure),
    /// Replace the running configuration (hot swap).
    Swap(swap::Swap),
    /// Load a package of classes.
    Load {
        /// The file or name of the package.
        package: PathBuf,
    },
    /// Ask the router to stop.
    Stop,
    /// Print completions of a word, one per line, for shells.
    #[command(hide = true)]
    Complete(completion::Words),
}

/// Parses the address of a router: HOST:PORT, PORT, or the file of a Unix socket.
pub fn address(text: &str) -> Result<Address, AddressError> {
    text.parse()
}

/// Parses a duration in seconds.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let s = text.strip_suffix('s').unwrap_or(text).parse::<f64>().ok();
    let s = s.filter(|s| (0.001..=1e6).contains(s)).ok_or("expected a number of seconds")?;
    Ok(Duration::from_secs_f64(s))
}

/// Why a command failed.
pub enum Failure {
    /// An error from the router, or of the connection to it.
    Client(ClientError),
    /// A local error.
    Here(String),
    /// An error whose message has been printed.
    Said,
}

impl From<ClientError> for Failure {
    fn from(e: ClientError) -> Failure {
        Failure::Client(e)
    }
}
impl From<String> for Failure {
    fn from(e: String) -> Failure {
        Failure::Here(e)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Client(e) => e.fmt(f),
            Failure::Here(e) => f.write_str(e),
            Failure::Said => Ok(()),
        }
    }
}

/// Runs a command.
pub fn main(a: &Ctl) -> ExitCode {
    exit(run(a))
}

/// Prints why a client failed, and returns its exit code.
pub fn exit(ended: Result<(), Failure>) -> ExitCode {
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Said) => ExitCode::FAILURE,
        Err(Failure::Here(e)) => {
            complain(&e);
            ExitCode::FAILURE
        }
        Err(Failure::Client(e)) => {
            complain(&e.to_string());
            if e.is_refusal() { ExitCode::FAILURE } else { ExitCode::from(3) }
        }
    }
}

fn run(a: &Ctl) -> Result<(), Failure> {
    // Local input is read before the router is contacted, so that an error in it has no effect on the router.
    let prepared = match &a.what {
        What::Write { value, .. } => value_of(value)?,
        What::Swap(s) => encode(&s.text(a.json)?).into_owned(),
        _ => Vec::new(),
    };
    let mut client = a.connection.open()?;
    match &a.what {
        What::Read { handler, parameters } => {
            let mut value = client.read(handler, &parameters.join(" "))?;
            if a.json {
                let value = String::from_utf8_lossy(&value);
                let value = kinds::json(&value, kinds::Kinds::new().of(&mut client, handler)?);
                value_out(&serde_json::json!({ "handler": handler, "value": value }))?;
            } else {
                if value.last() != Some(&b'\n') {
                    value.push(b'\n');
                }
                write_bytes(None, &value)?;
            }
        }
        What::Write { handler, .. } => done(a, &client.write(handler, &prepared)?)?,
        What::List { element } => list::list(&mut client, element.as_deref(), a.json)?,
        What::Watch(w) => watch::watch(&mut client, w, a.json)?,
        What::Drops(d) => drops::drops(&mut client, d, a.json)?,
        What::Profile(m) => profile::profile(&mut client, m, a.json)?,
        What::Swap(s) => s.swap(&mut client, &prepared, a)?,
        What::Load { package } => {
            // The router may run in another folder, so a file is named by its absolute path.
            let file = std::path::absolute(package).ok().filter(|f| f.exists());
            let name = file.unwrap_or_else(|| package.clone());
            done(a, &client.write("loadpackage", name.to_string_lossy().as_bytes()).map_err(swap::explain)?)?;
        }
        What::Stop => done(a, &client.write("stop", b"")?)?,
        What::Complete(words) => completion::complete(&mut client, words)?,
    }
    Ok(())
}

/// Reports success, but only with --json.
fn done(a: &Ctl, text: &str) -> Result<(), Failure> {
    if a.json { value_out(&serde_json::json!({ "done": replaced(text) })) } else { Ok(()) }
}

pub fn value_out(value: &serde_json::Value) -> Result<(), Failure> {
    Ok(write_bytes(None, format!("{value}\n").as_bytes())?)
}

/// Returns the value to write: the words of the command line, or standard input for `-`.
fn value_of(words: &[String]) -> Result<Vec<u8>, Failure> {
    match words {
        // The size limit is that of the largest possible value, a configuration for a hot swap.
        [dash] if dash == "-" => read::stream(std::io::stdin().lock(), read::MAX_CONFIGURATION)
            .map_err(|e| format!("standard input: {}", crate::load::reason(&e)).into()),
        words => Ok(encode(&words.join(" ")).into_owned()),
    }
}
