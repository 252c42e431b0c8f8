// SPDX-License-Identifier: MIT OR Apache-2.0
//! Assigns tasks to workers, computes the workers that reach each element, and chooses the mode of each
//! element.

use crate::calls::{Calls, Path, Reach};
use crate::csr::Csr;
use crate::graph::{Graph, PortKind};
use castanet_spec::Workers;
use petgraph::unionfind::UnionFind;
use std::fmt::Write as _;

/// The mode of an element. It follows from the number of workers that reach the element and from its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The worker with this number owns the element. No other worker reaches the element.
    Owned(usize),
    /// Each worker has its own replica.
    Replicated,
    /// All workers share one concurrent state, and each has a handle to it.
    Shared,
    /// Several workers run one instance under a lock. The number is that of the home worker, which runs the element's
    /// task and timers and answers its handlers.
    Locked(usize),
}

/// The reason a task runs on its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Home,
    Source,
    Puller,
    /// The task runs on the worker of this other task, because both pull through a common element.
    With(usize),
    /// The task was moved from its group to this worker, because this worker would otherwise have no task.
    Apart,
}

/// The assignment of tasks and elements to workers.
///
/// A task with a home worker (StaticThreadSched) runs there. Other sources (tasks that do not pull) are distributed
/// round-robin. Tasks that pull through a common element stay together, so that everything between a queue and its
/// pullers belongs to one worker. If some tasks of such a group have home workers, the whole group goes to the home
/// worker of the first of them. A group without home workers goes to the worker with the fewest tasks. If some workers
/// still have no task, groups are separated. Elements that the separated tasks have in common are locked or shared. An
/// element that no task reaches belongs to worker 0.
#[derive(Clone, Debug)]
pub struct Placement {
    workers: usize,
    /// The tasks in element order, with their workers.
    tasks: Vec<(usize, usize, Reason)>,
    /// For each element, the workers that reach it.
    reached_by: Csr<usize>,
    modes: Vec<Mode>,
}

impl Placement {
    /// Assigns the tasks and computes the workers that reach each element.
    ///
    /// `home` gives the worker that the configuration requests for a task; numbers from `workers` on wrap
    /// around.
    pub fn new(
        graph: &Graph,
        workers: usize,
        home: &dyn Fn(usize) -> Option<usize>,
        tasks: &[usize],
    ) -> Placement {
        let workers = workers.max(1);
        let mut tasks: Vec<usize> = tasks.iter().copied().filter(|&t| t < graph.len()).collect();
        tasks.sort_unstable();
        tasks.dedup();
        let placed = assign(graph, workers, home, &tasks);
        let mut p = Placement { workers, tasks: placed, reached_by: Csr::default(), modes: Vec::new() };
        p.reached_by = p.reached(graph);
        p.modes = (0..graph.len()).map(|e| p.mode_for(graph, e)).collect();
        p
    }

    /// Returns for each element the workers that reach it, in order. An element that no worker reaches belongs to worker 0.
    fn reached(&self, graph: &Graph) -> Csr<usize> {
        if self.workers == 1 {
            return Csr::new(graph.len(), (0..graph.len()).map(|e| (e, 0)));
        }
        let calls = Calls::new(graph);
        let mut pairs: Vec<(usize, usize)> = Vec::with_capacity(graph.len());
        // For each element, the last worker that reaches it.
        let mut last: Vec<Option<usize>> = vec![None; graph.len()];
        for w in 0..self.workers {
            let mine = self.tasks_of(w);
            if mine.is_empty() {
                continue;
            }
            let reach = Reach::new(graph, &calls, &mine);
            let met = reach.order.iter().filter(|&&s| calls.enters(graph, s)).map(|&s| calls.owner(s));
            for e in mine.iter().copied().chain(met) {
                if last[e].replace(w) != Some(w) {
                    pairs.push((e, w));
                }
            }
        }
        pairs.extend(last.iter().enumerate().filter(|(_, w)| w.is_none()).map(|(e, _)| (e, 0)));
        Csr::new(graph.len(), pairs.iter().copied())
    }

    fn mode_for(&self, graph: &Graph, e: usize) -> Mode {
        // Nothing is known about an unknown class, so it is treated as exclusive, the strictest mode.
        let declared = graph.spec(e).map_or(Workers::Exclusive, |s| s.workers);
        match (self.reached_by.row(e), declared) {
            ([], _) => Mode::Owned(0),
            (&[w], _) => Mode::Owned(w),
            (_, Workers::Replicate) => Mode::Replicated,
            (_, Workers::Share) => Mode::Shared,
            (&[first, ..], Workers::Exclusive) => Mode::Locked(self.task_worker(e).unwrap_or(first)),
        }
    }

    /// The number of workers.
    pub fn workers(&self) -> usize {
        self.workers
    }
    /// The worker that runs the task of an element; `None` if it has no task.
    pub fn task_worker(&self, e: usize) -> Option<usize> {
        let found = self.tasks.binary_search_by_key(&e, |t| t.0).ok();
        found.and_then(|i| self.tasks.get(i)).map(|t| t.1)
    }
    /// The elements whose tasks a worker runs.
    pub fn tasks_of(&self, worker: usize) -> Vec<usize> {
        self.tasks.iter().filter(|t| t.1 == worker).map(|t| t.0).collect()
    }
    /// The workers that reach an element, in order. Never empty for an element of the graph.
    pub fn workers_of(&self, e: usize) -> &[usize] {
        self.reached_by.row(e)
    }
    /// The workers for which an instance of an element is built, in order. For a locked element this is only its home
    /// worker, for any other element all workers that reach it.
    pub fn owners_of(&self, e: usize) -> &[usize] {
        let by = self.workers_of(e);
        match self.mode(e) {
            Mode::Locked(home) => {
                by.iter().position(|&w| w == home).and_then(|i| by.get(i..=i)).unwrap_or(by)
            }
            _ => by,
        }
    }
    /// The mode of an element.
    pub fn mode(&self, e: usize) -> Mode {
        self.modes.get(e).copied().unwrap_or(Mode::Owned(0))
    }

    /// Formats two tables: for each task its worker, and for each element the workers that reach it, with their paths.
    pub fn explain(&self, graph: &Graph) -> String {
        let calls = Calls::new(graph);
        let mut tasks = vec![["TASK", "WORKER", "WHY"].map(String::from).to_vec()];
        for &(t, w, why) in &self.tasks {
            let why = match why {
                Reason::Home => "the configuration says so".to_string(),
                Reason::Source => "sources take turns".to_string(),
                Reason::Puller => "fewest tasks".to_string(),
                Reason::With(other) => format!("pulls through the same elements as {}", graph.name(other)),
                Reason::Apart => "the worker would have no task otherwise".to_string(),
            };
            tasks.push(vec![graph.declaration(t), w.to_string(), why]);
        }
        let mut elements = vec![["ELEMENT", "WORKERS", "MODE", "WHY"].map(String::from).to_vec()];
        let paths = Paths::new(graph, &calls, self);
        for e in 0..graph.len() {
            let by = self.workers_of(e);
            let list: Vec<_> = by.iter().map(usize::to_string).collect();
            let mode = match self.mode(e) {
                Mode::Owned(_) => "owned".to_string(),
                Mode::Replicated => "replicated".to_string(),
                Mode::Shared => "shared".to_string(),
                Mode::Locked(home) => format!("locked, home {home}"),
            };
            let mut row = vec![graph.declaration(e), list.join(" "), mode];
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
        let mut text = format!("{}\n{}", table(&tasks), table(&elements));
        for e in (0..graph.len()).filter(|&e| matches!(self.mode(e), Mode::Locked(_))) {
            text.push('\n');
            text.push_str(&self.explain_lock(graph, &calls, &paths, e));
        }
        text
    }

    /// Says why an element is locked, what that costs, and how to avoid it.
    fn explain_lock(&self, graph: &Graph, calls: &Calls, paths: &Paths, e: usize) -> String {
        let by = self.workers_of(e);
        let first = by.first().copied().unwrap_or(0);
        let tasks = by.iter().filter_map(|&w| paths.path(calls, self, e, w).elements.first().copied());
        let homes: Vec<String> = tasks.map(|t| format!("{} {first}", graph.name(t))).collect();
        format!(
            "{} has one instance for {} workers: each runs it under a lock, a batch at a time, and waits while \
             another one does.\nTo have it on one worker: StaticThreadSched({})\n",
            graph.declaration(e),
            by.len(),
            homes.join(", ")
        )
    }
}

fn path_text(graph: &Graph, path: &Path) -> String {
    let names: Vec<_> = path.elements.iter().map(|&e| graph.name(e)).collect();
    match names.as_slice() {
        [a, b, y, z] if path.left_out > 0 => format!("{a} -> {b} -> ({} more) -> {y} -> {z}", path.left_out),
        all => all.join(" -> "),
    }
}

/// Formats left-aligned columns, two blanks apart, without trailing blanks.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
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

/// For each worker, the states of the call graph that the worker reaches. Also, for each element, the first of these
/// states by which a call enters the element.
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
    /// A shortest path from a task of a worker to an element. If the element's own task runs on the worker,
    /// the path is the element alone. If the worker does not reach the element, the path is empty.
    fn path(&self, calls: &Calls, placement: &Placement, e: usize, worker: usize) -> Path {
        if placement.task_worker(e) == Some(worker) {
            return Path { elements: vec![e], left_out: 0 };
        }
        let entry =
            self.by_worker.get(worker).and_then(|(reach, entry)| Some((reach, entry.get(e).copied()??)));
        entry.map_or(Path { elements: Vec::new(), left_out: 0 }, |(reach, state)| reach.path(calls, state))
    }
}

/// Assigns each task to a worker.
fn assign(
    graph: &Graph,
    workers: usize,
    home: &dyn Fn(usize) -> Option<usize>,
    tasks: &[usize],
) -> Vec<(usize, usize, Reason)> {
    let mut placed: Vec<Option<(usize, Reason)>> = vec![None; tasks.len()];
    let mut load = vec![0usize; workers];
    for (i, &t) in tasks.iter().enumerate() {
        let Some(w) = home(t) else { continue };
        placed[i] = Some((w % workers, Reason::Home));
        load[w % workers] += 1;
    }
    let mut turn = 0;
    for (i, &t) in tasks.iter().enumerate() {
        if placed[i].is_none() && !pulls(graph, t) {
            placed[i] = Some((turn, Reason::Source));
            load[turn] += 1;
            turn = (turn + 1) % workers;
        }
    }
    let groups = pull_groups(graph, tasks);
    // For each group, its worker and the task that determined this worker.
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
            Some((w, other)) => (w, Reason::With(other)),
            None => {
                let w = load.iter().enumerate().min_by_key(|l| l.1).map_or(0, |l| l.0);
                group_home[groups[i]] = Some((w, t));
                (w, Reason::Puller)
            }
        };
        placed[i] = Some((w, why));
        load[w] += 1;
    }
    separate(&mut placed, &mut load);
    tasks.iter().zip(placed).filter_map(|(&t, p)| p.map(|(w, why)| (t, w, why))).collect()
}

/// Gives each worker without a task one task of the worker with the most tasks. Moves only tasks that were placed with
/// another task of their group, and leaves each worker at least one task.
fn separate(placed: &mut [Option<(usize, Reason)>], load: &mut [usize]) {
    for idle in 0..load.len() {
        if load[idle] > 0 {
            continue;
        }
        let apart =
            |p: &&mut Option<(usize, Reason)>| matches!(p, Some((w, Reason::With(_))) if load[*w] > 1);
        // Take a task from the worker with the most tasks.
        let Some(task) = placed.iter_mut().filter(apart).max_by_key(|p| p.map_or(0, |p| load[p.0])) else {
            return;
        };
        if let Some((worker, _)) = task.replace((idle, Reason::Apart)) {
            load[worker] -= 1;
            load[idle] += 1;
        }
    }
}

fn pulls(graph: &Graph, e: usize) -> bool {
    graph.points.inputs(e).any(|p| graph.kind(p) == PortKind::Pull && graph.peers(p).next().is_some())
}

/// Groups tasks whose pull paths have an element in common, directly or through other tasks. Returns for each task the
/// lowest task number of its group.
fn pull_groups(graph: &Graph, tasks: &[usize]) -> Vec<usize> {
    let mut sets = UnionFind::new(graph.len());
    for e in 0..graph.len() {
        // An element that accepts pushes and answers pulls from its store ends the pull path. So tasks that
        // have only such an element in common are not grouped.
        for p in graph.points.inputs(e).filter(|&p| graph.kind(p) == PortKind::Pull) {
            for (q, _) in graph.peers(p).filter(|c| graph.kind(c.0) == PortKind::Pull) {
                let f = graph.points.owner(q);
                if graph.points.inputs(f).all(|i| graph.kind(i) == PortKind::Pull) {
                    sets.union(e, f);
                }
            }
        }
    }
    let mut first = vec![None; graph.len()];
    tasks.iter().enumerate().map(|(i, &t)| *first[sets.find_mut(t)].get_or_insert(i)).collect()
}

#[cfg(test)]
#[path = "placement_tests.rs"]
mod tests;
