// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figures: which configurations they compare, and the values of the papers.

use super::base::ELEMENTS;
use super::measure::{Cost, Quartiles};
use std::collections::HashMap;

/// A figure or table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Figure {
    /// ASPLOS 2002, Figure 8, from memory to memory.
    Breakdown,
    /// ASPLOS 2002, Figure 9: the forwarding path.
    Path,
    /// ASPLOS 2002, Figure 9: the path, and what the packets come from and go to.
    Total,
    /// TOCS 2000, Table I.
    Tasks,
    /// TOCS 2000, Table II.
    Elements,
    /// TOCS 2000, section 6.4.
    Modularity,
    /// ASPLOS 2002, Figure 8, between devices.
    Devices,
}

impl Figure {
    /// The name in CSV and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Figure::Breakdown => "asplos-8",
            Figure::Path => "asplos-9-path",
            Figure::Total => "asplos-9-total",
            Figure::Tasks => "tocs-table-1",
            Figure::Elements => "tocs-table-2",
            Figure::Modularity => "tocs-6.4",
            Figure::Devices => "asplos-8-devices",
        }
    }
    /// The title of the table.
    pub fn title(self) -> &'static str {
        match self {
            Figure::Breakdown => "ASPLOS Figure 8, memory to memory: shares of the total",
            Figure::Path => "ASPLOS Figure 9, forwarding path: ratios to Base",
            Figure::Total => "ASPLOS Figure 9, path, sources and sinks: ratios to Base",
            Figure::Tasks => "TOCS Table I, memory to memory: shares of the total",
            Figure::Elements => "TOCS Table II: shares of the subtotal",
            Figure::Modularity => "TOCS section 6.4, forwarding path: ratios to Base",
            Figure::Devices => {
                "ASPLOS Figure 8, between devices (processor time of the router's process): shares of the total"
            }
        }
    }
}

/// A line of a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The figure.
    pub figure: Figure,
    /// The batch size; 0 where it depends on what the devices have ready.
    pub batch: usize,
    /// The name of the configuration, element or part that was measured.
    pub name: String,
    /// Nanoseconds per packet.
    pub ns: Quartiles,
    /// The ratio to the line that the figure compares with, in nanoseconds.
    pub ratio: Quartiles,
    /// Instructions per packet, if counted.
    pub instructions: Option<f64>,
    /// The ratio in instructions.
    pub instruction_ratio: Option<f64>,
    /// Nanoseconds in the paper, where its text gives them.
    pub paper: Option<f64>,
    /// The ratio in the paper.
    pub paper_ratio: Option<f64>,
}

impl Line {
    /// A line for a cost, compared with another one. The paper's value is compared with `paper_of`.
    fn new(figure: Figure, name: &str, cost: &Cost, of: &Cost, paper: Option<f64>, paper_of: f64) -> Line {
        let (ratio, instruction_ratio) = cost.ratio(of);
        Line {
            figure,
            batch: 0,
            name: name.to_string(),
            ns: cost.ns(),
            ratio,
            instructions: cost.instructions,
            instruction_ratio,
            paper,
            paper_ratio: paper.map(|p| p / paper_of),
        }
    }
}

/// A configuration of Figure 9 or of section 6.4.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The name, as in the paper.
    pub name: &'static str,
    /// The passes that make it, in order.
    pub passes: &'static [&'static str],
    /// Nanoseconds of the path in the paper, where its text gives them.
    pub path: Option<f64>,
    /// Nanoseconds of path and devices in the paper.
    pub total: Option<f64>,
    /// Whether it is optimised as it is loaded.
    pub optimize: bool,
}

const fn row(name: &'static str, passes: &'static [&'static str], path: Option<f64>) -> Row {
    Row { name, passes, path, total: None, optimize: false }
}

const fn loaded(name: &'static str, passes: &'static [&'static str]) -> Row {
    Row { name, passes, path: None, total: None, optimize: true }
}

/// ARP elimination on links between routers.
pub const MR: &str = "MR";
/// Combination elements.
pub const XF: &str = "XF";
/// Fast classifiers.
pub const FC: &str = "FC";
/// Devirtualisation.
pub const DV: &str = "DV";
/// Eight elements that do nothing.
pub const NO_OPS: &str = "8 no-ops";

/// The router without any pass.
pub const BASE: &str = "Base";
/// The simplest router.
pub const SIMPLE: &str = "Simple";
/// The hand-written forwarder.
pub const MONOLITH: &str = "monolith";
/// Sources and sinks alone.
pub const ENDS: &str = "sources and sinks";
/// Sources and sinks alone, optimised as they are loaded.
pub const ENDS_LOADED: &str = "sources and sinks (as loaded)";

/// The configurations of Figure 9. Section 8.2 of the paper gives the path of Base, All and MR+All in numbers, and says that FC takes
/// 3 % less.
pub const ROWS: [Row; 9] = [
    Row { name: BASE, passes: &[], path: Some(1657.0), total: Some(2905.0), optimize: false },
    row("FC", &[FC], Some(1657.0 * 0.97)),
    row("DV", &[DV], None),
    row("XF", &[XF], None),
    row("XF+FC", &[XF, FC], None),
    row("All", &[XF, FC, DV], Some(1101.0)),
    row("MR", &[MR], None),
    row("MR+XF+FC", &[MR, XF, FC], None),
    row("MR+All", &[MR, XF, FC, DV], Some(1061.0)),
];

/// Configurations of Figure 9 as `castanet run` runs them: optimised as they are loaded. All others run as with `--no-optimize`.
pub const LOADED: [Row; 3] = [
    loaded("Base (as loaded)", &[]),
    loaded("All (as loaded)", &[XF, FC, DV]),
    loaded("MR+All (as loaded)", &[MR, XF, FC, DV]),
];

/// The configurations of section 6.4, with the time of their push path there.
pub const MODULARITY: [Row; 3] = [
    row(BASE, &[], Some(1570.0)),
    row("combination elements", &[XF], Some(1030.0)),
    row("combination elements and 8 no-ops", &[XF, NO_OPS], Some(1580.0)),
];

/// The tasks of TOCS Table I between memory and memory, with the paper's nanoseconds. What its devices do is all in the first one.
const TASKS: [(&str, f64); 3] = [
    ("sources and sinks (paper: devices)", 528.0 + 90.0 + 161.0 + 351.0),
    ("push through the forwarding path", 1565.0),
    ("push to and pull from the queue", 103.0),
];

/// The costs of what was measured, by name.
pub type Costs = HashMap<String, Cost>;

/// The name of a path that ends behind its first `n` elements.
pub fn prefix_name(n: usize) -> String {
    if n == 0 { ENDS.to_string() } else { format!("first {n}") }
}

fn cost<'a>(costs: &'a Costs, name: &str) -> Option<&'a Cost> {
    costs.get(name)
}

/// The lines of Figures 8 and 9, for those configurations that were measured.
pub fn figure9(costs: &Costs) -> Vec<Line> {
    let (Some(base), Some(ends)) = (cost(costs, BASE), cost(costs, ENDS)) else { return Vec::new() };
    let path = base.minus(ends);
    let mut lines = vec![
        Line::new(Figure::Breakdown, ENDS, ends, base, Some(701.0 + 547.0), 2905.0),
        Line::new(Figure::Breakdown, "forwarding path", &path, base, Some(1657.0), 2905.0),
        Line::new(Figure::Breakdown, "total", base, base, Some(2905.0), 2905.0),
    ];
    let extra = [SIMPLE, MONOLITH].map(|name| row(name, &[], None));
    let rows: Vec<&Row> = ROWS.iter().chain(&LOADED).chain(&extra).collect();
    for row in &rows {
        let ends = if row.optimize { cost(costs, ENDS_LOADED) } else { Some(ends) };
        let Some((total, ends)) = cost(costs, row.name).zip(ends) else { continue };
        lines.push(Line::new(Figure::Path, row.name, &total.minus(ends), &path, row.path, 1657.0));
    }
    for row in rows {
        let Some(total) = cost(costs, row.name) else { continue };
        lines.push(Line::new(Figure::Total, row.name, total, base, row.total, 2905.0));
    }
    lines
}

/// The lines of TOCS Tables I and II.
pub fn tables(costs: &Costs) -> Vec<Line> {
    let all = (0..=ELEMENTS.len()).map(|n| cost(costs, &prefix_name(n))).collect::<Option<Vec<_>>>();
    let (Some(all), Some(base)) = (all, cost(costs, BASE)) else { return Vec::new() };
    let (Some(ends), Some(push)) = (all.first(), all.last()) else { return Vec::new() };
    let subtotal = push.minus(ends);
    let tasks = [(*ends).clone(), subtotal.clone(), base.minus(push)];
    let paper: f64 = TASKS.iter().map(|t| t.1).sum();
    let line = |((name, ns), cost): (&(&str, f64), &Cost)| {
        Line::new(Figure::Tasks, name, cost, base, Some(*ns), paper)
    };
    let mut lines: Vec<Line> = TASKS.iter().zip(&tasks).map(line).collect();
    lines.push(Line::new(Figure::Tasks, "total", base, base, Some(paper), paper));
    let paper: f64 = ELEMENTS.iter().map(|e| e.1).sum();
    for ((before, after), (name, ns)) in all.iter().zip(all.iter().skip(1)).zip(ELEMENTS) {
        lines.push(Line::new(Figure::Elements, name, &after.minus(before), &subtotal, Some(ns), paper));
    }
    lines.push(Line::new(Figure::Elements, "subtotal", &subtotal, &subtotal, Some(paper), paper));
    lines
}

/// The lines of TOCS section 6.4, for those configurations that were measured.
pub fn modularity(costs: &Costs) -> Vec<Line> {
    let (Some(base), Some(ends)) = (cost(costs, BASE), cost(costs, ENDS)) else { return Vec::new() };
    let path = base.minus(ends);
    let line = |row: &Row| {
        let total = cost(costs, row.name)?;
        Some(Line::new(Figure::Modularity, row.name, &total.minus(ends), &path, row.path, 1570.0))
    };
    MODULARITY.iter().filter_map(line).collect()
}
