// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet top`: what a running router does, in a terminal that is drawn again and again, as one table, or as JSON.

pub mod sample;
mod state;
mod table;
mod view;

use crate::ctl::{Connection, Failure, seconds, value_out};
use crate::load::write_out;
use crate::trace::interrupted;
use castanet_control::Client;
use clap::Args;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use sample::Sample;
use state::{Action, Sort, State, matches};
use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use view::View;

/// How long a signal to end may have to wait.
const SIGNALS: Duration = Duration::from_millis(100);

/// `castanet top`.
#[derive(Args)]
#[command(
    after_help = "Keys: p d h t n c sort by packets, drops, held packets, time, name, configuration; / filters; \
    arrows select and Enter follows an element; m begins or ends the measurement of time; Space pauses; q quits.\n\n\
    Examples:\n  castanet top router.sock\n  castanet top 7777 --once --sort drops\n\n\
    Exit codes: 0 done, 1 an error, 2 the command line was wrong, 3 no connection to the router."
)]
pub struct Top {
    #[command(flatten)]
    pub connection: Connection,
    /// Seconds between two readings.
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub interval: Duration,
    /// The order of the elements.
    #[arg(long, value_enum, value_name = "ORDER", default_value_t = Sort::Packets)]
    pub sort: Sort,
    /// Show only elements whose name or class matches this glob, or has this text in it.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub filter: String,
    /// Measure what elements cost meanwhile.
    #[arg(long)]
    pub profile: bool,
    /// Print one table, for scripts.
    #[arg(long)]
    pub once: bool,
    /// Print one JSON object per reading; with --once, a single one.
    #[arg(long)]
    pub json: bool,
}

/// Shows a router until the user quits.
pub fn main(a: &Top) -> ExitCode {
    crate::ctl::exit(top(a))
}

fn top(a: &Top) -> Result<(), Failure> {
    let interactive = !a.once && !a.json;
    if interactive && !(std::io::stdout().is_terminal() && std::io::stdin().is_terminal()) {
        return Err("standard output is no terminal; --once prints one table, --json one object per reading"
            .to_string()
            .into());
    }
    let stop = interrupted()?;
    let mut client = a.connection.open()?;
    let mut profile = a.profile;
    if profile {
        client.write("profile", b"true")?;
    }
    let ended = match interactive {
        true => screen(a, &mut client, &mut profile, &stop),
        false => print(a, &mut client, &stop),
    };
    if profile && !matches!(&ended, Err(Failure::Client(e)) if !e.is_refusal()) {
        client.write("profile", b"false")?;
    }
    ended
}

/// Prints tables or objects.
fn print(a: &Top, client: &mut Client, stop: &AtomicBool) -> Result<(), Failure> {
    let mut before = Sample::of(client, None)?;
    loop {
        let due = Instant::now() + a.interval;
        while !stop.load(Ordering::Relaxed) && Instant::now() < due {
            std::thread::sleep(due.saturating_duration_since(Instant::now()).min(SIGNALS));
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let now = Sample::of(client, Some(&before))?;
        let mut rows = now.rows(Some(&before));
        rows.retain(|r| matches(r, &a.filter));
        a.sort.sort(&mut rows);
        if a.json {
            value_out(&table::json(&rows, &now, Some(&before)))?;
        } else {
            write_out(None, &table::text(&rows, &now, Some(&before)))?;
        }
        if a.once {
            return Ok(());
        }
        before = now;
    }
}

/// Draws on the terminal until the user quits.
fn screen(a: &Top, client: &mut Client, profile: &mut bool, stop: &AtomicBool) -> Result<(), Failure> {
    let first = Sample::of(client, None)?;
    let wrong = |e: std::io::Error| format!("the terminal: {}", crate::load::reason(&e));
    // This also restores the terminal if the program panics.
    let mut terminal = ratatui::try_init().map_err(wrong)?;
    let ended = follow(a, (client, profile), &mut terminal, first, stop);
    ratatui::restore();
    ended
}

fn follow(
    a: &Top,
    (client, profile): (&mut Client, &mut bool),
    terminal: &mut DefaultTerminal,
    first: Sample,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let wrong = |e: std::io::Error| format!("the terminal: {}", crate::load::reason(&e));
    let address = a.connection.address.to_string();
    let color = crate::load::allows_color();
    let mut state = State { sort: a.sort, filter: a.filter.clone(), ..State::default() };
    state.update(&first, None);
    let (mut before, mut now): (Option<Sample>, Sample) = (None, first);
    let mut due = Instant::now() + a.interval;
    let mut changed = true;
    loop {
        if std::mem::take(&mut changed) {
            let view = View { state: &state, now: &now, before: before.as_ref(), address: &address, color };
            terminal.draw(|frame| view.draw(frame)).map_err(wrong)?;
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let left = due.saturating_duration_since(Instant::now());
        let wait = left.min(SIGNALS);
        if event::poll(wait).map_err(wrong)? {
            if let Event::Key(key) = event::read().map_err(wrong)?
                && key.kind != KeyEventKind::Release
            {
                match state.key(key) {
                    Action::Draw => {}
                    Action::Quit => return Ok(()),
                    Action::Profile => {
                        client.write("profile", if *profile { b"false" } else { b"true" })?;
                        *profile = !*profile;
                    }
                }
            }
            changed = true;
            continue;
        }
        if wait < left {
            continue;
        }
        changed = true;
        due = Instant::now() + a.interval;
        if !state.paused {
            let next = Sample::of(client, Some(&now))?;
            state.update(&next, Some(&now));
            before = Some(std::mem::replace(&mut now, next));
        }
    }
}
