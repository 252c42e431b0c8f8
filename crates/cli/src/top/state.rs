// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of the terminal program: what is shown, in which order, and what keys change.

use super::sample::{Row, Sample};
use crate::requests::matcher;
use clap::ValueEnum;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::collections::{BTreeMap, HashSet, VecDeque};

/// The number of samples that sparklines show.
const HISTORY: usize = 60;

/// The order of the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// The most packets per second first.
    #[default]
    Packets,
    /// The most dropped packets per second first.
    Drops,
    /// The most packets held first.
    Held,
    /// The most time first, if a profile was begun.
    Time,
    /// By name.
    Name,
    /// In the order of the configuration.
    Configuration,
}

impl Sort {
    /// Sorts rows. Rows that are equal keep the order of the configuration.
    pub fn sort(self, rows: &mut [Row]) {
        let by = |f: fn(&Row) -> (f64, u64)| {
            move |a: &Row, b: &Row| {
                let (a, b) = (f(a), f(b));
                b.0.total_cmp(&a.0).then(b.1.cmp(&a.1))
            }
        };
        match self {
            Sort::Packets => {
                rows.sort_by(by(|r| (r.packet_rate.unwrap_or(-1.0), r.packets.unwrap_or(0))));
            }
            Sort::Drops => rows.sort_by(by(|r| (r.drop_rate, r.drops))),
            Sort::Held => rows.sort_by(by(|r| (r.held as f64, 0))),
            Sort::Time => rows.sort_by(by(|r| (r.time.unwrap_or(-1.0), 0))),
            Sort::Name => rows.sort_by(|a, b| a.element.cmp(&b.element)),
            Sort::Configuration => {}
        }
    }
}

/// The command of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Draw again.
    Draw,
    Quit,
    /// Begin or end a profile.
    Profile,
}

/// The last values of an element or a worker.
pub type History = VecDeque<u64>;

/// The state of the screen.
#[derive(Default)]
pub struct State {
    pub sort: Sort,
    /// Only rows are shown whose element or class matches: a glob, or a part of the name.
    pub filter: String,
    /// Whether keys are characters of the filter.
    pub typing: bool,
    /// Whether the table stays as it is.
    pub paused: bool,
    /// The element whose details are shown.
    pub followed: Option<String>,
    /// The selected row.
    pub selected: usize,
    /// The rows that are shown.
    pub rows: Vec<Row>,
    /// The rows of all elements, in the order of the configuration.
    pub all: Vec<Row>,
    pub packets: BTreeMap<String, History>,
    pub drops: BTreeMap<String, History>,
    pub loads: BTreeMap<u32, History>,
}

/// Whether a row matches a filter.
pub fn matches(row: &Row, filter: &str) -> bool {
    if !filter.contains(['*', '?', '[']) {
        return row.element.contains(filter) || row.class.contains(filter);
    }
    let matches = matcher(filter);
    matches(&row.element) || matches(&row.class)
}

fn remember<K: Ord>(all: &mut BTreeMap<K, History>, key: K, value: f64) {
    let history = all.entry(key).or_default();
    history.push_back(value.round().max(0.0) as u64);
    while history.len() > HISTORY {
        history.pop_front();
    }
}

impl State {
    /// Takes a sample.
    pub fn update(&mut self, now: &Sample, before: Option<&Sample>) {
        self.all = now.rows(before);
        for row in &self.all {
            remember(&mut self.packets, row.element.clone(), row.packet_rate.unwrap_or(0.0));
            remember(&mut self.drops, row.element.clone(), row.drop_rate);
        }
        // Elements that hot swaps have removed are forgotten.
        let here: HashSet<&String> = self.all.iter().map(|r| &r.element).collect();
        self.packets.retain(|name, _| here.contains(name));
        self.drops.retain(|name, _| here.contains(name));
        for (worker, load) in now.loads(before) {
            remember(&mut self.loads, worker, 100.0 * (load.poll + load.work));
        }
        self.arrange();
    }

    /// Filters and sorts the rows. The selection stays on its element while one is followed.
    fn arrange(&mut self) {
        self.rows = self.all.iter().filter(|r| matches(r, &self.filter)).cloned().collect();
        self.sort.sort(&mut self.rows);
        let followed = self.rows.iter().position(|r| Some(&r.element) == self.followed.as_ref());
        self.selected = followed.unwrap_or(self.selected).min(self.rows.len().saturating_sub(1));
    }

    /// Takes a key.
    pub fn key(&mut self, key: KeyEvent) -> Action {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Action::Quit;
        }
        if self.typing {
            match key.code {
                KeyCode::Enter => self.typing = false,
                KeyCode::Esc => {
                    self.typing = false;
                    self.filter.clear();
                }
                KeyCode::Backspace => drop(self.filter.pop()),
                KeyCode::Char(c) if !c.is_control() && self.filter.len() < 200 => self.filter.push(c),
                _ => {}
            }
            self.arrange();
            return Action::Draw;
        }
        match key.code {
            KeyCode::Char('q') => return Action::Quit,
            KeyCode::Esc if self.followed.is_some() => self.followed = None,
            KeyCode::Esc if !self.filter.is_empty() => self.filter.clear(),
            KeyCode::Esc => return Action::Quit,
            KeyCode::Char('m') => return Action::Profile,
            KeyCode::Char('/') => self.typing = true,
            KeyCode::Char(' ') => self.paused = !self.paused,
            KeyCode::Char('p') => self.sort = Sort::Packets,
            KeyCode::Char('d') => self.sort = Sort::Drops,
            KeyCode::Char('h') => self.sort = Sort::Held,
            KeyCode::Char('t') => self.sort = Sort::Time,
            KeyCode::Char('n') => self.sort = Sort::Name,
            KeyCode::Char('c') => self.sort = Sort::Configuration,
            KeyCode::Enter | KeyCode::Char('f') => {
                let here = self.rows.get(self.selected).map(|r| r.element.clone());
                self.followed = if self.followed == here { None } else { here };
            }
            KeyCode::Up | KeyCode::Char('k') => self.move_to(self.selected.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.move_to(self.selected.saturating_add(1)),
            KeyCode::PageUp => self.move_to(self.selected.saturating_sub(10)),
            KeyCode::PageDown => self.move_to(self.selected.saturating_add(10)),
            KeyCode::Home => self.move_to(0),
            KeyCode::End => self.move_to(usize::MAX),
            _ => {}
        }
        self.arrange();
        Action::Draw
    }

    /// Selects a row. If an element is followed, the one of this row is followed instead.
    fn move_to(&mut self, row: usize) {
        self.selected = row.min(self.rows.len().saturating_sub(1));
        if self.followed.is_some() {
            self.followed = self.rows.get(self.selected).map(|r| r.element.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::tests::sample;
    use super::*;
    use std::time::Instant;

    fn press(state: &mut State, keys: &str) -> Action {
        let mut last = Action::Draw;
        for c in keys.chars() {
            let code = match c {
                '\n' => KeyCode::Enter,
                '\x1b' => KeyCode::Esc,
                '\x08' => KeyCode::Backspace,
                c => KeyCode::Char(c),
            };
            last = state.key(KeyEvent::new(code, KeyModifiers::NONE));
        }
        last
    }

    #[test]
    fn keys_sort_filter_and_follow() {
        let start = Instant::now();
        let (before, now) = (sample(start, 500, 1), sample(start, 1000, 3));
        let mut s = State::default();
        s.update(&before, None);
        s.update(&now, Some(&before));
        let names = |s: &State| s.rows.iter().map(|r| r.element.as_str()).collect::<Vec<_>>().join(" ");
        for (key, want) in [
            ("p", "in c out q ttl"),
            ("d", "q ttl in c out"),
            ("h", "q out in c ttl"),
            ("t", "ttl in c q out"),
            ("n", "c in out q ttl"),
            ("c", "in c q ttl out"),
        ] {
            press(&mut s, key);
            assert_eq!(names(&s), want, "{key}");
        }
        press(&mut s, "jjf");
        assert_eq!(s.followed.as_deref(), Some("q"));
        press(&mut s, "d");
        assert_eq!((s.selected, s.followed.as_deref()), (0, Some("q")), "the selection follows the element");
        press(&mut s, "j");
        assert_eq!(s.followed.as_deref(), Some("ttl"));
        press(&mut s, "/Dev");
        assert_eq!((names(&s).as_str(), s.selected), ("in out", 0), "classes match too");
        press(&mut s, "\x08\x08\x08[iq]*");
        assert_eq!(names(&s), "q in");
        press(&mut s, "\x08\x08\x08\x08\x08nothing\n");
        assert_eq!((names(&s).as_str(), s.selected, s.typing), ("", 0, false));
        assert_eq!(press(&mut s, "jkf"), Action::Draw, "no row to follow");
        assert_eq!(press(&mut s, "\x1b"), Action::Draw);
        assert_eq!(names(&s).len(), "q ttl in c out".len());
        assert_eq!(press(&mut s, "/q\x1b"), Action::Draw);
        assert!(s.filter.is_empty());
        assert_eq!(press(&mut s, "m"), Action::Profile);
        press(&mut s, " ");
        assert!(s.paused);
        assert_eq!(press(&mut s, "\x1b"), Action::Quit);
        assert_eq!(press(&mut s, "q"), Action::Quit);
        assert_eq!(s.key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), Action::Quit);
    }

    #[test]
    fn the_history_is_bounded_and_forgets_what_has_gone() {
        let start = Instant::now();
        let mut s = State::default();
        for n in 0..100 {
            s.update(&sample(start, 100 * n, n), None);
        }
        assert_eq!((s.packets["in"].len(), s.loads[&0].len()), (HISTORY, HISTORY));
        let mut other = sample(start, 20_000, 1);
        other.elements.remove(0);
        s.update(&other, None);
        assert!(!s.packets.contains_key("in") && s.packets.contains_key("q"));
    }
}
