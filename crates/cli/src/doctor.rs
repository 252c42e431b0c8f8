// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet doctor`: finds what routers left behind on this host when they were killed. With `--mend` it
//! removes what it finds.

use crate::load::complain;
use castanet_io::device::owner::Fate;
use castanet_io::device::shield;
use clap::Args;
use std::fmt::Write;
use std::process::ExitCode;

/// `castanet doctor`.
#[derive(Args)]
pub struct Doctor {
    /// Remove what was found, as far as possible.
    #[arg(long)]
    pub mend: bool,
}

/// A function that repairs a finding.
type Mend = Box<dyn FnOnce() -> Result<(), String>>;

/// A result of a check.
struct Finding {
    what: String,
    /// The repair; `None` if there is nothing to repair, or if only the user can make the repair.
    mend: Option<Mend>,
    /// Whether the finding is harmless.
    fine: bool,
}

/// One check.
struct Check {
    /// The name of the check in its output lines.
    name: &'static str,
    /// The message when nothing is found.
    fine: &'static str,
    look: fn() -> Result<Vec<Finding>, String>,
}

/// All checks, in order.
const CHECKS: &[Check] =
    &[Check { name: "filters", fine: "no filter was left behind on a device", look: filters }];

/// Finds the filters with which routers, running or killed, hide the frames of devices from the host.
fn filters() -> Result<Vec<Finding>, String> {
    let found = shield::found().map_err(|e| e.to_string())?;
    let finding = |f: shield::Found| {
        let (device, pid) = (f.device.clone(), f.pid);
        let about = format!("{device}: the host receives nothing because of a filter of process {pid}");
        match f.fate {
            Fate::Alive => Finding { what: format!("{about}, which runs"), mend: None, fine: true },
            Fate::Ended => Finding {
                what: format!("{about}, which has ended"),
                mend: Some(Box::new(move || shield::remove(&f).map_err(|e| e.to_string()))),
                fine: false,
            },
            Fate::Unknown => Finding {
                what: format!(
                    "{about} of another process namespace, which may run; if not: tc qdisc del dev {device} clsact"
                ),
                mend: None,
                fine: true,
            },
        }
    };
    Ok(found.into_iter().map(finding).collect())
}

/// Runs checks, and repairs findings if `mend` is set. Returns the lines to print, and whether no fault
/// remains.
fn examine(checks: &[Check], mend: bool) -> (String, bool) {
    let (mut text, mut well) = (String::new(), true);
    for check in checks {
        let name = check.name;
        let mut line = |word: &str, what: &str| {
            let _ = writeln!(text, "{word:<7} {name}: {what}");
        };
        match (check.look)() {
            Err(e) => {
                well = false;
                line("unknown", &e);
            }
            Ok(all) if all.is_empty() => line("ok", check.fine),
            Ok(all) => {
                for f in all {
                    match f.mend {
                        _ if f.fine => line("ok", &f.what),
                        Some(act) if mend => match act() {
                            Ok(()) => line("mended", &f.what),
                            Err(e) => {
                                well = false;
                                line("wrong", &format!("{}; it cannot be mended: {e}", f.what));
                            }
                        },
                        act => {
                            well = false;
                            let help = if act.is_some() { "\n  help: castanet doctor --mend" } else { "" };
                            line("wrong", &format!("{}{help}", f.what));
                        }
                    }
                }
            }
        }
    }
    (text, well)
}

/// Runs all checks.
pub fn main(args: &Doctor) -> ExitCode {
    let (text, well) = examine(CHECKS, args.mend);
    if let Err(e) = crate::load::write_out(None, &text) {
        complain(&e);
        return ExitCode::FAILURE;
    }
    if well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(fine: bool, mend: Option<Mend>) -> Vec<Finding> {
        vec![Finding { what: "eth9: deaf".into(), mend, fine }]
    }

    #[test]
    fn lines_say_what_is_wrong_and_what_was_done() {
        type Look = fn() -> Result<Vec<Finding>, String>;
        let mendable: Look = || Ok(finding(false, Some(Box::new(|| Ok(())))));
        let stubborn: Look = || Ok(finding(false, Some(Box::new(|| Err("not permitted".into())))));
        let table: [(Look, bool, &str, bool); 7] = [
            (|| Ok(Vec::new()), false, "ok      a: all is well\n", true),
            (|| Ok(finding(true, None)), true, "ok      a: eth9: deaf\n", true),
            (|| Ok(finding(false, None)), true, "wrong   a: eth9: deaf\n", false),
            (mendable, false, "wrong   a: eth9: deaf\n  help: castanet doctor --mend\n", false),
            (mendable, true, "mended  a: eth9: deaf\n", true),
            (stubborn, true, "wrong   a: eth9: deaf; it cannot be mended: not permitted\n", false),
            (|| Err("no answer".into()), true, "unknown a: no answer\n", false),
        ];
        for (look, mend, text, well) in table {
            let check = Check { name: "a", fine: "all is well", look };
            assert_eq!(examine(&[check], mend), (text.to_string(), well));
        }
    }
}
