// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws the terminal program: workers, the table of elements, the details of one element, and the keys.

use super::sample::{Row, Sample};
use super::state::{Sort, State};
use super::table::{TITLES, cells};
use crate::observe::rate_text;
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Paragraph, Table, TableState};

/// The largest number of workers that have a line of their own.
const WORKERS: usize = 4;
/// The height of the details of an element.
const DETAILS: u16 = 6;

/// The contents of a frame.
pub struct View<'a> {
    pub state: &'a State,
    pub now: &'a Sample,
    pub before: Option<&'a Sample>,
    /// The address of the router.
    pub address: &'a str,
    /// Whether colours may be used.
    pub color: bool,
}

/// Returns the last `width` values as a line of blocks. The highest value has the full height.
pub fn spark(
    values: impl DoubleEndedIterator<Item = u64> + ExactSizeIterator,
    width: usize,
    top: Option<u64>,
) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let skip = values.len().saturating_sub(width);
    let values: Vec<u64> = values.skip(skip).collect();
    let top = top.or_else(|| values.iter().max().copied()).unwrap_or(0).max(1);
    let block = |v: u64| match v {
        0 => ' ',
        v => {
            let height = (v.min(top) as f64 / top as f64 * BLOCKS.len() as f64).ceil() as usize;
            BLOCKS.get(height.saturating_sub(1)).copied().unwrap_or('█')
        }
    };
    let line: String = values.into_iter().map(block).collect();
    format!("{line:>width$}")
}

impl View<'_> {
    fn paint(&self, color: Color) -> Style {
        if self.color { Style::new().fg(color) } else { Style::new() }
    }

    /// Draws the frame.
    pub fn draw(&self, frame: &mut Frame<'_>) {
        let workers = self.now.reading.workers.len();
        let lines = workers.min(WORKERS) + usize::from(workers > WORKERS);
        let details = if self.state.followed.is_some() { DETAILS } else { 0 };
        let areas = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(lines as u16),
            Constraint::Min(3),
            Constraint::Length(details),
            Constraint::Length(1),
        ]);
        let [title, workers, table, details, keys] = areas.areas(frame.area());
        frame.render_widget(Paragraph::new(self.title()), title);
        frame.render_widget(Paragraph::new(self.workers()), workers);
        self.table(frame, table);
        if let Some(element) = &self.state.followed {
            self.details(frame, details, element);
        }
        frame.render_widget(Paragraph::new(self.keys()), keys);
    }

    fn title(&self) -> Line<'_> {
        let drops: f64 = self.state.rows.iter().map(|r| r.drop_rate).sum();
        let dropped = Span::styled(
            format!("dropped {}", rate_text(drops.round())),
            if drops > 0.0 { self.paint(Color::Red) } else { Style::new() },
        );
        let mut spans = vec![
            Span::styled(format!("{} ", self.address), Style::new().add_modifier(Modifier::BOLD)),
            Span::raw(format!(" {} of {} elements  ", self.state.rows.len(), self.state.all.len())),
            dropped,
        ];
        if self.state.typing || !self.state.filter.is_empty() {
            let cursor = if self.state.typing { "_" } else { "" };
            spans.push(Span::raw(format!("  filter: {}{cursor}", self.state.filter)));
        }
        if self.state.paused {
            spans.push(Span::styled("  paused", self.paint(Color::Yellow)));
        }
        Line::from(spans)
    }

    fn workers(&self) -> Vec<Line<'_>> {
        let loads = self.now.loads(self.before);
        let line = |(number, load): &(u32, crate::observe::workers::Load)| {
            let history = self.state.loads.get(number);
            let spark =
                spark(history.into_iter().flatten().copied().collect::<Vec<_>>().into_iter(), 20, Some(100));
            let percent = |share: f64| format!("{:>5.1} %", 100.0 * share);
            Line::from(vec![
                Span::raw(format!("worker {number:<3} ")),
                Span::styled(spark, self.paint(Color::Green)),
                Span::raw(format!(
                    "  work {}  poll {}  idle {}",
                    percent(load.work),
                    percent(load.poll),
                    percent(load.idle)
                )),
            ])
        };
        let mut lines: Vec<Line<'_>> = loads.iter().take(WORKERS).map(line).collect();
        if let Some(more) = loads.len().checked_sub(WORKERS).filter(|&n| n > 0) {
            let busy: f64 = loads.iter().skip(WORKERS).map(|l| l.1.poll + l.1.work).sum();
            lines.push(Line::raw(format!("{more} more workers, load {:.1} %", 100.0 * busy / more as f64)));
        }
        lines
    }

    fn table(&self, frame: &mut Frame<'_>, area: Rect) {
        let profile = self.now.has_profile();
        let wide = area.width >= 100;
        // Without a profile, the history takes the place of its columns.
        let history = if wide || !profile { usize::from(if wide { 24 } else { 14_u16 }) } else { 0 };
        let columns = if profile { TITLES.len() } else { TITLES.len() - 2 };
        let sorted = match self.state.sort {
            Sort::Name => 0,
            Sort::Packets => 2,
            Sort::Drops => 3,
            Sort::Held => 4,
            Sort::Time => 5,
            Sort::Configuration => usize::MAX,
        };
        let right = |i: usize, text: String| match i {
            0 | 1 => Line::raw(text),
            _ => Line::raw(text).alignment(Alignment::Right),
        };
        let header = TITLES.iter().take(columns).enumerate().map(|(i, title)| {
            let style = Style::new().add_modifier(Modifier::BOLD);
            let style = if i == sorted { style.add_modifier(Modifier::UNDERLINED) } else { style };
            Cell::from(right(i, title.to_string())).style(style)
        });
        let row = |r: &Row| {
            let values = if self.state.sort == Sort::Drops { &self.state.drops } else { &self.state.packets };
            let values: Vec<u64> = values.get(&r.element).into_iter().flatten().copied().collect();
            let spark = (history > 0).then(|| Cell::from(spark(values.into_iter(), history, None)));
            let texts = cells(r).into_iter().take(columns).enumerate();
            let cells = texts.map(|(i, text)| Cell::from(right(i, text)).style(self.style_of(r, i)));
            ratatui::widgets::Row::new(cells.chain(spark).collect::<Vec<_>>())
        };
        let mut widths = vec![Constraint::Fill(3), Constraint::Fill(2)];
        widths.extend([10, 10, 11, 7, 7].into_iter().take(columns - 2).map(Constraint::Length));
        widths.extend((history > 0).then_some(Constraint::Length(history as u16)));
        let table = Table::new(self.state.rows.iter().map(row).collect::<Vec<_>>(), widths)
            .header(ratatui::widgets::Row::new(header.collect::<Vec<_>>()))
            .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
        let mut selection = TableState::default().with_selected(Some(self.state.selected));
        frame.render_stateful_widget(table, area, &mut selection);
    }

    /// The style of a cell: drops that happen now and queues that are nearly full stand out.
    fn style_of(&self, row: &Row, column: usize) -> Style {
        let nearly_full = row.capacity.is_some_and(|c| c > 0 && row.held as f64 >= 0.9 * c as f64);
        match column {
            3 if row.drop_rate > 0.0 => self.paint(Color::Red),
            4 if nearly_full => self.paint(Color::Yellow),
            _ => Style::new(),
        }
    }

    fn details(&self, frame: &mut Frame<'_>, area: Rect, element: &str) {
        let row = self.state.rows.iter().find(|r| r.element == element);
        let width = usize::from(area.width).saturating_sub(44).clamp(1, 60);
        let history = |all: &std::collections::BTreeMap<String, super::state::History>| {
            spark(
                all.get(element).into_iter().flatten().copied().collect::<Vec<_>>().into_iter(),
                width,
                None,
            )
        };
        let number = |n: Option<u64>| n.map_or("-".to_string(), |n| n.to_string());
        let rate = |r: Option<f64>| r.map_or("-".to_string(), rate_text);
        let line = |name: &str, n: Option<u64>, r: Option<f64>, spark: String| {
            Line::raw(format!("{name:<8} {:>20} {:>10}  {spark}", number(n), rate(r)))
        };
        let reasons = self.now.reading.drops(self.before.map(|b| &b.reading));
        let reasons = reasons.iter().filter(|d| d.element == element).map(|d| {
            let rate = d.rate.map(|r| format!(", {}", rate_text(r))).unwrap_or_default();
            format!("{}: {}{rate}", d.reason, d.packets)
        });
        let reasons = reasons.collect::<Vec<_>>().join("   ");
        let lines = vec![
            line(
                "packets",
                row.and_then(|r| r.packets),
                row.and_then(|r| r.packet_rate),
                history(&self.state.packets),
            ),
            line("drops", row.map(|r| r.drops), row.map(|r| r.drop_rate), history(&self.state.drops)),
            Line::raw(format!("held     {:>20}", row.map_or("-".to_string(), |r| cells(r)[4].clone()))),
            Line::raw(format!("reasons  {}", if reasons.is_empty() { "-" } else { &reasons })),
        ];
        let class = row.map_or("", |r| r.class.as_str());
        let block =
            Block::new().borders(Borders::TOP | Borders::BOTTOM).title(format!(" {element} :: {class} "));
        frame.render_widget(Paragraph::new(lines).block(block), area);
    }

    fn keys(&self) -> Line<'_> {
        let keys = if self.state.typing {
            "type a part of a name, or a glob   Enter done   Esc all elements"
        } else {
            "sort p d h t n c   / filter   Enter follow   m measure   Space pause   q quit"
        };
        Line::styled(keys, Style::new().add_modifier(Modifier::DIM))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::sample::tests::sample;
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use std::time::Instant;

    fn drawn(state: &State, (width, height): (u16, u16), color: bool) -> (String, bool) {
        let start = Instant::now();
        let (before, now) = (sample(start, 500, 1), sample(start, 1000, 3));
        let view = View { state, now: &now, before: Some(&before), address: "router.sock", color };
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| view.draw(frame)).unwrap();
        let buffer = terminal.backend().buffer();
        let colored = buffer.content().iter().any(|c| c.fg != Color::Reset || c.bg != Color::Reset);
        let rows = buffer.content().chunks(width.into());
        let text =
            rows.map(|r| r.iter().map(|c| c.symbol()).collect::<String>().trim_end().to_string() + "\n");
        (text.collect(), colored)
    }

    fn state() -> State {
        let start = Instant::now();
        let (before, now) = (sample(start, 500, 1), sample(start, 1000, 3));
        let mut state = State { sort: Sort::Drops, ..State::default() };
        state.update(&before, None);
        state.update(&now, Some(&before));
        state
    }

    #[test]
    fn a_terminal_of_80_by_24_shows_everything() {
        let mut state = state();
        state.followed = Some("q".into());
        let (text, colored) = drawn(&state, (80, 24), true);
        insta::assert_snapshot!(text);
        assert!(colored);
    }

    #[test]
    fn without_colours_there_are_none() {
        assert!(!drawn(&state(), (80, 24), false).1);
    }

    #[test]
    fn any_size_is_drawn() {
        let mut state = state();
        state.filter = "x".repeat(300);
        for size in [(1, 1), (2, 30), (10, 3), (300, 2), (79, 23), (120, 50)] {
            for followed in [None, Some("q".to_string()), Some("gone".to_string())] {
                state.followed = followed;
                drawn(&state, size, true);
            }
        }
    }

    #[test]
    fn sparklines_are_as_wide_as_asked() {
        let line = |values: &[u64], width, top| spark(values.iter().copied(), width, top);
        assert_eq!(line(&[0, 1, 4, 8], 4, None), " ▁▄█");
        assert_eq!(line(&[0, 1, 4, 8], 2, None), "▄█");
        assert_eq!(line(&[8], 3, Some(16)), "  ▄");
        assert_eq!(line(&[u64::MAX, 1], 2, Some(10)), "█▁");
        assert_eq!(line(&[], 2, None), "  ");
    }
}
