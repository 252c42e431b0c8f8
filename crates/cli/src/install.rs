// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet install` and `castanet uninstall`: a router that runs in the background, with its elements in the kernel as far as
//! possible, as click-install and click-uninstall did with a router in the kernel.

use crate::args::Configuration;
use crate::kernel::{Driver, Pin};
use crate::load::complain;
use castanet_control::Client;
use castanet_control::client::Address;
use castanet_io::device::owner::{Fate, Owner};
use castanet_io::device::xdp::{DEFAULT_FOLDER, remove_left};
use clap::{Args, ValueEnum as _};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// The hidden subcommand that runs the router in a session of its own, so that it outlives the terminal.
const PART: &str = "install-part";
/// How long the router may take to start or to end.
const PATIENCE: Duration = Duration::from_secs(60);
/// The interval between two checks whether the router has started or ended.
const INTERVAL: Duration = Duration::from_millis(10);

/// The folder in which an installed router has its control socket, its process ID and its messages.
#[derive(Args, Clone, Debug)]
pub struct Place {
    /// The folder for the control socket, the process ID and the messages of the router.
    #[arg(long, value_name = "DIR", default_value = "/run/castanet")]
    pub state: PathBuf,
}

/// Arguments of `castanet install`.
#[derive(Args)]
pub struct Install {
    #[command(flatten)]
    pub configuration: Configuration,
    /// Replace an installed router by a hot swap, which keeps its state, its driver and its mount. Without this option, the
    /// installed router ends first. If none is installed, the router starts.
    #[arg(long)]
    pub hot: bool,
    /// How devices receive and send, as for 'castanet run'.
    #[arg(long, value_enum, value_name = "DRIVER", default_value = "xdp")]
    pub driver: Driver,
    /// Show the handlers as files in this folder.
    #[arg(long, value_name = "DIR")]
    pub mount: Option<PathBuf>,
    #[command(flatten)]
    pub pin: Pin,
    #[command(flatten)]
    pub place: Place,
}

/// Arguments of `castanet uninstall`.
#[derive(Args)]
pub struct Uninstall {
    #[command(flatten)]
    pub place: Place,
}

/// Arguments of the hidden subcommand.
#[derive(Args)]
pub struct Part {
    #[command(flatten)]
    run: crate::args::Run,
}

impl Part {
    /// Runs the router.
    pub fn main(&self) -> ExitCode {
        if let Err(e) = nix::unistd::setsid() {
            complain(&format!("{PART}: {}", e.desc()));
            return ExitCode::FAILURE;
        }
        crate::run::main(&self.run, crate::classes::BuiltIn::all())
    }
}

impl Place {
    fn socket(&self) -> PathBuf {
        self.state.join("control")
    }
    fn log(&self) -> PathBuf {
        self.state.join("messages")
    }
    fn pid(&self) -> PathBuf {
        self.state.join("pid")
    }
    /// The file that names the folder of `--pin`.
    fn pin(&self) -> PathBuf {
        self.state.join("pin")
    }
    /// Ends the programs of an installed router that has died. Returns whether there were any.
    fn end_left(&self) -> Result<bool, String> {
        let named = std::fs::read_to_string(self.pin()).ok().map(|t| PathBuf::from(t.trim_end_matches('\n')));
        let folder = named.unwrap_or_else(|| DEFAULT_FOLDER.into());
        let left = remove_left(&folder).map_err(|e| e.to_string())?;
        if let Some(dropped) = left {
            println!(
                "uninstalled: the router had died, and its programs ended now; they have dropped {dropped} packets that \
                 needed it"
            );
            self.forget();
        }
        Ok(left.is_some())
    }
    /// Removes the files that are about a router which runs.
    fn forget(&self) {
        for file in [self.pid(), self.pin()] {
            let _ = std::fs::remove_file(file);
        }
    }
    /// A connection to the installed router, if there is one.
    fn client(&self) -> Option<Client> {
        Client::connect(&Address::Unix(self.socket()), PATIENCE).ok()
    }
    /// The process of the installed router.
    fn owner(&self) -> Option<Owner> {
        Owner::of(std::fs::read_to_string(self.pid()).ok()?.trim().parse().ok()?)
    }
    /// The messages of the router.
    fn messages(&self) -> String {
        std::fs::read_to_string(self.log()).unwrap_or_default()
    }
}

/// Waits until something holds. Returns false if it takes too long.
fn wait(mut holds: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !holds() {
        if start.elapsed() > PATIENCE {
            return false;
        }
        std::thread::sleep(INTERVAL);
    }
    true
}

fn done(result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            complain(&e);
            ExitCode::FAILURE
        }
    }
}

/// Installs a router.
pub fn main(a: &Install) -> ExitCode {
    done(install(a))
}

/// Ends the installed router.
pub fn uninstall_main(a: &Uninstall) -> ExitCode {
    done(match a.place.client() {
        Some(client) => uninstall(&a.place, client),
        None => match a.place.end_left() {
            Ok(true) => Ok(()),
            Ok(false) => {
                Err(format!("no router is installed: nothing listens at {}", a.place.socket().display()))
            }
            Err(e) => Err(e),
        },
    })
}

/// The words that name the configuration on a command line.
fn words(c: &Configuration) -> Vec<String> {
    let mut words = Vec::new();
    let mut option = |name: &str, value: &Option<String>| {
        if let Some(value) = value {
            words.extend([name.to_string(), value.clone()]);
        }
    };
    option("--expression", &c.expression);
    option("--file", &c.file);
    option("--clickpath", &c.clickpath);
    words.extend(c.packages.iter().flat_map(|p| ["--package".to_string(), p.clone()]));
    words.push("--".into());
    words.extend(c.words.iter().cloned());
    words
}

fn install(a: &Install) -> Result<(), String> {
    let place = &a.place;
    let failed = |what: &Path, e: std::io::Error| format!("{}: {}", what.display(), crate::load::reason(&e));
    std::fs::create_dir_all(&place.state).map_err(|e| failed(&place.state, e))?;
    if let Some(mut client) = place.client() {
        if a.hot {
            return swap(a, &mut client);
        }
        // Errors are found before the running router ends.
        check(a)?;
        uninstall(place, client)?;
    }
    let log = File::create(place.log()).map_err(|e| failed(&place.log(), e))?;
    let errors = log.try_clone().map_err(|e| failed(&place.log(), e))?;
    let driver = a.driver.to_possible_value().map_or(String::new(), |v| v.get_name().to_string());
    let mut command = Command::new("/proc/self/exe");
    command.arg(PART).args(["--driver", &driver, "-q", "-R", "-u"]).arg(place.socket());
    if let Some(mount) = &a.mount {
        command.arg("--mount").arg(mount);
    }
    if let Some(folder) = &a.pin.pin {
        command.arg(format!("--pin={}", folder.display()));
    }
    command.args(words(&a.configuration)).stdin(Stdio::null()).stdout(log).stderr(errors);
    let mut child = command.spawn().map_err(|e| failed(Path::new("/proc/self/exe"), e))?;
    std::fs::write(place.pid(), format!("{}\n", child.id())).map_err(|e| failed(&place.pid(), e))?;
    started(place, &mut child)?;
    if let Some(folder) = &a.pin.pin {
        let text = format!("{}\n", folder.display());
        std::fs::write(place.pin(), text).map_err(|e| failed(&place.pin(), e))?;
    }
    print!("{}", place.messages());
    println!("installed; 'castanet ctl {}' talks to it", place.socket().display());
    Ok(())
}

/// Waits until the router runs.
fn started(place: &Place, child: &mut Child) -> Result<(), String> {
    let mut ended = false;
    let ready = wait(|| {
        ended = !matches!(child.try_wait(), Ok(None));
        ended || place.client().is_some()
    });
    if ready && !ended {
        return Ok(());
    }
    let messages = place.messages();
    if !ended {
        let _ = child.kill();
        return Err(format!("the router did not start within {} s\n{messages}", PATIENCE.as_secs()));
    }
    Err(format!("the router did not start\n{}", messages.trim_end()))
}

/// Checks the configuration.
fn check(a: &Install) -> Result<(), String> {
    let mut command = Command::new("/proc/self/exe");
    command.arg("check").args(words(&a.configuration));
    let out = command.output().map_err(|e| crate::load::reason(&e))?;
    let text = String::from_utf8_lossy(&out.stderr);
    if out.status.success() {
        Ok(())
    } else {
        Err(format!("the installed router goes on:\n{}", text.trim_end()))
    }
}

/// Replaces the installed router by a hot swap.
fn swap(a: &Install, client: &mut Client) -> Result<(), String> {
    let source = crate::load::Source::read(&a.configuration)?;
    let (flat, sources, diagnostics, _) =
        crate::load::elaborate(&source, a.configuration.clickpath.as_deref(), castanet_lang::Unknown::Opaque);
    crate::load::show(&sources, &diagnostics, a.configuration.json);
    if diagnostics.iter().any(castanet_lang::Diagnostic::is_error) {
        return Err("the installed router goes on".into());
    }
    let text = castanet_lang::print::driver(&flat);
    client.write("hotconfig", text.as_bytes()).map_err(|e| format!("the installed router goes on: {e}"))?;
    println!("swapped");
    Ok(())
}

/// Ends a router, and waits until it has ended.
fn uninstall(place: &Place, mut client: Client) -> Result<(), String> {
    let owner = place.owner();
    client.write("stop", b"").map_err(|e| e.to_string())?;
    drop(client);
    let gone = || owner.is_none_or(|o| o.fate() != Fate::Alive) && place.client().is_none();
    if !wait(gone) {
        // A script of the configuration may keep the router from stopping.
        let alive = owner.filter(|o| o.fate() == Fate::Alive);
        let pid = alive.and_then(|o| i32::try_from(o.pid).ok()).and_then(Pid::from_raw);
        let pid = pid.ok_or("the router does not end")?;
        kill_process(pid, Signal::KILL).map_err(|e| e.to_string())?;
        if !wait(gone) {
            return Err("the router does not end".into());
        }
    }
    place.forget();
    println!("uninstalled");
    Ok(())
}
