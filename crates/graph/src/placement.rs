// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which worker runs which task, which workers reach which element, and what that makes of the element.

use crate::calls::{Calls, Path, Reach};
use crate::check::with_origin;
use crate::graph::{Graph, Kind};
use castanet_lang::Diagnostic;
use castanet_spec::Workers;
use std::fmt::Write as _;

/// What the number of workers that reach an element makes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One worker owns it.
    Owned(usize),
    /// Each worker has its own.
    Replicated,
    /// Each worker has a handle on one concurrent state.
    Shared,
}

/// Why a task runs on its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Home,
    Source,
    Puller,
    /// Pulls through elements that this task pulls through too.
    With(usize),
}

/// Tasks and elements on workers.
///
/// A task with a home of its own (StaticThreadSched) runs there. Of the others, sources (tasks that pull from nobody) go to
/// the workers in turn. Tasks that pull through common elements stay together, so that between a queue and those who
/// pull from it everything belongs to one worker: they follow the first of them that has a home, and otherwise go to the
/// worker with the fewest tasks. An element that no task reaches belongs to worker 0.
#[derive(Clone, Debug)]
pub struct Placement {
    workers: usize,
    tasks: Vec<(usize, usize, Why)>,
    task_worker: Vec<Option<usize>>,
    reached_by: Vec<Vec<usize>>,
    modes: Vec<Mode>,
}

impl Placement {
    /// Places the tasks, and finds out which workers reach which element.
    ///
    /// `home` gives the worker that the configuration wants for a task. Errors name exclusive elements that several
    /// workers reach, with a path from a task of each.
    pub fn new(
        graph: &Graph,
        workers: usize,
        home: &dyn Fn(usize) -> Option<usize>,
        tasks: &[usize],
    ) -> (Placement, Vec<Diagnostic>) {
        let workers = workers.max(1);
        let mut tasks: Vec<usize> = tasks.iter().copied().filter(|&t| t < graph.len()).collect();
        tasks.sort_unstable();
        tasks.dedup();
        let calls = Calls::new(graph);
        let mut diagnostics = Vec::new();
        let placed = assign(graph, workers, home, &tasks, &mut diagnostics);
        let mut task_worker = vec![None; graph.len()];
        for &(t, w, _) in &placed {
            task_worker[t] = Some(w);
        }
        let mut p = Placement {
            workers,
            tasks: placed,
            task_worker,
            reached_by: vec![Vec::new(); graph.len()],
            modes: vec![Mode::Owned(0); graph.len()],
        };
        for w in 0..workers {
            let mine = p.tasks_of(w);
            if mine.is_empty() {
                continue;
            }
            let reach = Reach::new(graph, &calls, &mine);
            let met = reach.order.iter().filter(|&&s| calls.enters(graph, s)).map(|&s| calls.owner(s));
            for e in mine.iter().copied().chain(met) {
                if p.reached_by[e].last() != Some(&w) {
                    p.reached_by[e].push(w);
                }
            }
        }
        p.choose_modes(graph, &calls, &mut diagnostics);
        (p, diagnostics)
    }

    fn choose_modes(&mut self, graph: &Graph, calls: &Calls, diagnostics: &mut Vec<Diagnostic>) {
        let mut exclusive = Vec::new();
        for (e, by) in self.reached_by.iter_mut().enumerate() {
            // A class that is not known cannot be asked; it is treated as the most careful would be.
            let declared = graph.spec(e).map_or(Workers::Exclusive, |s| s.workers);
            self.modes[e] = match (by.as_slice(), declared) {
                ([], _) => {
                    by.push(0);
                    Mode::Owned(0)
                }
                (&[w], _) => Mode::Owned(w),
                (_, Workers::Replicate(_)) => Mode::Replicated,
                (_, Workers::Share) => Mode::Shared,
                (&[first, ..], Workers::Exclusive) => {
                    exclusive.push(e);
                    Mode::Owned(first)
                }
            };
        }
        if exclusive.is_empty() {
            return;
        }
        let paths = Paths::new(graph, calls, self);
        for e in exclusive {
            let by = &self.reached_by[e];
            let list = match by.as_slice() {
                [a, b] => format!("workers {a} and {b}"),
                _ => format!("{} workers", by.len()),
            };
            let d = graph.declaration(e);
            let span = graph.element(e).map(|x| x.span);
            let mut error =
                Diagnostic::error(format!("'{d}' can serve one worker, but {list} reach it"), span);
            let mut homes = Vec::new();
            for &w in by.iter().take(SHOWN_WORKERS) {
                let path = paths.path(calls, self, e, w);
                let Some(task) = path.elements.first().and_then(|&t| graph.element(t)) else { continue };
                homes.push(format!("{} {}", task.name, by.first().copied().unwrap_or(0)));
                let way = path_text(graph, &path);
                error = error.label(format!("worker {w} comes from this task: {way}"), task.span);
            }
            let help = format!("run these tasks on one worker: StaticThreadSched({})", homes.join(", "));
            diagnostics.push(with_origin(graph, e, error).help(help).help("or run with one worker: -j 1"));
        }
    }

    /// How many workers there are.
    pub fn workers(&self) -> usize {
        self.workers
    }
    /// The worker that runs the task of an element; none if it has no task.
    pub fn task_worker(&self, e: usize) -> Option<usize> {
        self.task_worker.get(e).copied().flatten()
    }
    /// The elements whose tasks a worker runs.
    pub fn tasks_of(&self, worker: usize) -> Vec<usize> {
        self.tasks.iter().filter(|t| t.1 == worker).map(|t| t.0).collect()
    }
    /// The workers that reach an element, in order; never none for an element of the graph.
    pub fn workers_of(&self, e: usize) -> &[usize] {
        self.reached_by.get(e).map_or(&[], Vec::as_slice)
    }
    /// What the workers make of an element.
    pub fn mode(&self, e: usize) -> Mode {
        self.modes.get(e).copied().unwrap_or(Mode::Owned(0))
    }

    /// Two tables for people: which worker runs which task, and which workers reach which element by which path.
    pub fn explain(&self, graph: &Graph) -> String {
        let calls = Calls::new(graph);
        let mut tasks = vec![["TASK", "WORKER", "WHY"].map(String::from).to_vec()];
        for &(t, w, why) in &self.tasks {
            let why = match why {
                Why::Home => "the configuration says so".to_string(),
                Why::Source => "sources take turns".to_string(),
                Why::Puller => "fewest tasks".to_string(),
                Why::With(other) => format!("pulls through the same elements as {}", graph.name(other)),
            };
            tasks.push(vec![graph.declaration(t), w.to_string(), why]);
        }
        let mut elements = vec![["ELEMENT", "WORKERS", "MODE", "WHY"].map(String::from).to_vec()];
        let paths = Paths::new(graph, &calls, self);
        for e in 0..graph.len() {
            let by = self.workers_of(e);
            let list: Vec<_> = by.iter().map(usize::to_string).collect();
            let mode = match self.mode(e) {
                Mode::Owned(_) if by.len() > 1 => "conflict",
                Mode::Owned(_) => "owned",
                Mode::Replicated => "replicated",
                Mode::Shared => "shared",
            };
            let mut row = vec![graph.declaration(e), list.join(" "), mode.to_string()];
            for (i, &w) in by.iter().enumerate() {
                if i > 0 {
                    row = vec![String::new(); 3];
                }
                let path = paths.path(&calls, self, e, w);
                let way = match path.elements.as_slice() {
                    [] => "no task reaches it".to_string(),
                    [_] => "its task runs there".to_string(),
                    _ => path_text(graph, &path),
                };
                row.push(if by.len() > 1 { format!("{w}: {way}") } else { way });
                elements.push(row.clone());
            }
        }
        format!("{}\n{}", table(&tasks), table(&elements))
    }
}

/// More workers than these are not listed in an error.
const SHOWN_WORKERS: usize = 8;

fn path_text(graph: &Graph, path: &Path) -> String {
    let names: Vec<_> = path.elements.iter().map(|&e| graph.name(e)).collect();
    match names.as_slice() {
        [a, b, y, z] if path.left_out > 0 => format!("{a} -> {b} -> ({} more) -> {y} -> {z}", path.left_out),
        all => all.join(" -> "),
    }
}

/// Left-aligned columns, two blanks apart, no blanks at line ends.
fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |i: usize| rows.iter().filter_map(|r| r.get(i)).map(|c| c.chars().count()).max().unwrap_or(0);
    let widths: Vec<_> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, "{cell:width$}  ");
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// Where each worker's calls first enter each element.
struct Paths {
    by_worker: Vec<(Reach, Vec<Option<usize>>)>,
}

impl Paths {
    fn new(graph: &Graph, calls: &Calls, placement: &Placement) -> Paths {
        let by_worker = (0..placement.workers).map(|w| {
            let reach = Reach::new(graph, calls, &placement.tasks_of(w));
            let mut entry = vec![None; graph.len()];
            for &s in reach.order.iter().filter(|&&s| calls.enters(graph, s)) {
                entry[calls.owner(s)].get_or_insert(s);
            }
            (reach, entry)
        });
        Paths { by_worker: by_worker.collect() }
    }
    /// The elements on a shortest path from a task of a worker; the element alone if its own task runs there, none if the
    /// worker does not reach it.
    fn path(&self, calls: &Calls, placement: &Placement, e: usize, worker: usize) -> Path {
        if placement.task_worker(e) == Some(worker) {
            return Path { elements: vec![e], left_out: 0 };
        }
        let entry =
            self.by_worker.get(worker).and_then(|(reach, entry)| Some((reach, entry.get(e).copied()??)));
        entry.map_or(Path { elements: Vec::new(), left_out: 0 }, |(reach, state)| reach.path(calls, state))
    }
}

/// Gives each task a worker.
fn assign(
    graph: &Graph,
    workers: usize,
    home: &dyn Fn(usize) -> Option<usize>,
    tasks: &[usize],
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<(usize, usize, Why)> {
    let mut placed: Vec<Option<(usize, Why)>> = vec![None; tasks.len()];
    let mut load = vec![0usize; workers];
    for (i, &t) in tasks.iter().enumerate() {
        let Some(w) = home(t) else { continue };
        if w >= workers {
            let message = format!("'{}' wants worker {w}, but there are {workers}", graph.declaration(t));
            let span = graph.element(t).map(|e| e.span);
            let help = format!("it runs on worker {}; workers are numbered from 0", w % workers);
            diagnostics.push(Diagnostic::warning(message, span).help(help));
        }
        placed[i] = Some((w % workers, Why::Home));
        load[w % workers] += 1;
    }
    let mut turn = 0;
    for (i, &t) in tasks.iter().enumerate() {
        if placed[i].is_none() && !pulls(graph, t) {
            placed[i] = Some((turn, Why::Source));
            load[turn] += 1;
            turn = (turn + 1) % workers;
        }
    }
    let groups = pull_groups(graph, tasks);
    // For each group its worker and the task that took it there.
    let mut group_home: Vec<Option<(usize, usize)>> = vec![None; tasks.len()];
    for (i, &t) in tasks.iter().enumerate() {
        if let (Some((w, _)), true) = (placed[i], pulls(graph, t)) {
            group_home[groups[i]].get_or_insert((w, t));
        }
    }
    for (i, &t) in tasks.iter().enumerate() {
        if placed[i].is_some() {
            continue;
        }
        let (w, why) = match group_home[groups[i]] {
            Some((w, other)) => (w, Why::With(other)),
            None => {
                let w = load.iter().enumerate().min_by_key(|l| l.1).map_or(0, |l| l.0);
                group_home[groups[i]] = Some((w, t));
                (w, Why::Puller)
            }
        };
        placed[i] = Some((w, why));
        load[w] += 1;
    }
    tasks.iter().zip(placed).filter_map(|(&t, p)| p.map(|(w, why)| (t, w, why))).collect()
}

fn pulls(graph: &Graph, e: usize) -> bool {
    graph.points.inputs(e).any(|p| graph.kind(p) == Kind::Pull && graph.peers(p).next().is_some())
}

/// For each task the lowest task that it shares an element on its pull side with, by union of elements.
fn pull_groups(graph: &Graph, tasks: &[usize]) -> Vec<usize> {
    let mut parent: Vec<usize> = (0..graph.len()).collect();
    for e in 0..graph.len() {
        // Calls end in an element that takes pushes and answers pulls from its store, so it ties nobody together.
        for p in graph.points.inputs(e).filter(|&p| graph.kind(p) == Kind::Pull) {
            for (q, _) in graph.peers(p).filter(|c| graph.kind(c.0) == Kind::Pull) {
                let f = graph.points.owner(q);
                if graph.points.inputs(f).all(|i| graph.kind(i) == Kind::Pull) {
                    let (a, b) = (root(&mut parent, e), root(&mut parent, f));
                    parent[a.max(b)] = a.min(b);
                }
            }
        }
    }
    let mut first = vec![None; graph.len()];
    tasks
        .iter()
        .enumerate()
        .map(|(i, &t)| {
            let r = root(&mut parent, t);
            *first[r].get_or_insert(i)
        })
        .collect()
}

/// The representative of a set; the way to it is halved as it is walked.
fn root(parent: &mut [usize], mut e: usize) -> usize {
    while parent[e] != e {
        parent[e] = parent[parent[e]];
        e = parent[e];
    }
    e
}

#[cfg(test)]
#[path = "placement_tests.rs"]
mod tests;
