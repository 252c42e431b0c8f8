// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shared parts of curve figures: axes with ticks and units, lines, marks, a legend.

use castanet_graph::drawing::escaped;
use std::fmt::Write;

/// A point in the units of the axes.
pub type Coordinates = (f64, f64);

/// A pair of axes and its position in the figure.
#[derive(Clone, Copy, Debug)]
pub struct Chart {
    /// The left edge, in pixels.
    pub left: f64,
    /// The top edge, in pixels.
    pub top: f64,
    /// The width, in pixels.
    pub width: f64,
    /// The height, in pixels.
    pub height: f64,
    /// The largest values on the two axes. Both axes start at 0.
    pub most: Coordinates,
}

/// The opening tag, title and background of a figure. Viewers show the title as the name of the figure.
pub fn open(title: &str, width: f64, height: f64) -> String {
    let title = escaped(title);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<title>{title}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    )
}

/// The closing tag of a figure.
pub const CLOSE: &str = "</svg>\n";

/// The distance between ticks, chosen so that about six ticks fit between 0 and `most`.
pub fn step(most: f64) -> f64 {
    let power = 10f64.powf((most.max(1e-9) / 6.0).log10().floor());
    [1.0, 2.0, 5.0].into_iter().map(|n| n * power).find(|s| most / s <= 7.0).unwrap_or(10.0 * power)
}

/// The ticks of an axis from 0 to `most`, with the number of digits after the point.
fn ticks(most: f64) -> impl Iterator<Item = (f64, usize)> {
    let step = step(most);
    let decimals = (-step.log10().floor()).max(0.0) as usize;
    let all = (0..).map(move |i| f64::from(i) * step).take_while(move |v| *v <= most * (1.0 + 1e-9));
    all.map(move |v| (v, decimals))
}

// Writing to a string cannot fail, so the results of `write!` in this file are ignored.
impl Chart {
    /// The horizontal position of a value, in pixels.
    pub fn x(&self, value: f64) -> f64 {
        self.left + self.width * (value / self.most.0).clamp(0.0, 1.0)
    }

    /// The vertical position of a value, in pixels.
    pub fn y(&self, value: f64) -> f64 {
        self.top + self.height * (1.0 - (value / self.most.1).clamp(0.0, 1.0))
    }

    /// Draws axes and grid. The labels name the quantities, with units.
    pub fn axes(&self, out: &mut String, across: &str, up: &str) {
        self.grid(out, true);
        self.frame(out, across, up);
    }

    /// Draws axes for groups of bars, which are to be labelled one by one: a grid only for the vertical axis. `right` is the value on a
    /// second scale, on the right and in Gbit/s, of 1 on the left.
    pub fn bar_axes(&self, out: &mut String, [across, up]: [&str; 2], right: Option<f64>) {
        self.grid(out, false);
        self.frame(out, across, up);
        let Some(right) = right else { return };
        let most = self.most.1 * right;
        let edge = self.left + self.width;
        for (value, decimals) in ticks(most) {
            let y = self.y(value / right);
            let _ = writeln!(
                out,
                "<line x1=\"{edge}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#888\"/>\
                 <text x=\"{}\" y=\"{:.1}\">{value:.decimals$}</text>",
                edge + 4.0,
                edge + 7.0,
                y + 4.0
            );
        }
        let (x, y) = (edge + 50.0, self.top + self.height / 2.0);
        let _ = writeln!(
            out,
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\" transform=\"rotate(-90 {x} {y})\">Gbit/s</text>"
        );
    }

    /// Draws the grid of the vertical axis, and, if `across` is set, that of the horizontal axis.
    fn grid(&self, out: &mut String, across: bool) {
        let (right, bottom) = (self.left + self.width, self.top + self.height);
        for (value, decimals) in ticks(self.most.1) {
            let y = self.y(value);
            let _ = writeln!(
                out,
                "<line x1=\"{}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{value:.decimals$}</text>",
                self.left,
                self.left - 6.0,
                y + 4.0
            );
        }
        for (value, decimals) in ticks(self.most.0).filter(|_| across) {
            let x = self.x(value);
            let _ = writeln!(
                out,
                "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{}\" y2=\"{bottom}\" stroke=\"#eee\"/>\
                 <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{value:.decimals$}</text>",
                self.top,
                bottom + 18.0
            );
        }
    }

    /// Draws the frame around the grid, and the labels of the axes.
    fn frame(&self, out: &mut String, across: &str, up: &str) {
        let (middle, line, aside) =
            (self.left + self.width / 2.0, self.top + self.height / 2.0, self.left - 52.0);
        let _ = writeln!(
            out,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#888\"/>\
             <text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{across}</text>\
             <text x=\"{aside}\" y=\"{line}\" text-anchor=\"middle\" transform=\"rotate(-90 {aside} {line})\">{up}</text>",
            self.left,
            self.top,
            self.width,
            self.height,
            self.top + self.height + 42.0
        );
    }

    /// Draws a line through points.
    pub fn line(&self, out: &mut String, places: impl IntoIterator<Item = Coordinates>, style: &str) {
        let places = places.into_iter().map(|(x, y)| format!("{:.1},{:.1}", self.x(x), self.y(y)));
        let places: Vec<String> = places.collect();
        let _ = writeln!(out, "<polyline points=\"{}\" fill=\"none\" {style}/>", places.join(" "));
    }

    /// Draws a mark with a tooltip.
    pub fn mark(&self, out: &mut String, (x, y): Coordinates, radius: f64, color: &str, says: &str) {
        let _ = writeln!(
            out,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius:.1}\" fill=\"{color}\"><title>{says}</title></circle>",
            self.x(x),
            self.y(y)
        );
    }
}

/// Draws an entry of a legend.
pub fn legend(out: &mut String, (x, y): Coordinates, color: &str, text: &str) {
    let _ = writeln!(
        out,
        "<rect x=\"{x}\" y=\"{y}\" width=\"12\" height=\"12\" fill=\"{color}\"/><text x=\"{}\" y=\"{}\">{text}</text>",
        x + 18.0,
        y + 10.0
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers() {
        for (most, want) in
            [(1.0, 0.2), (7.0, 1.0), (8.0, 2.0), (940.0, 200.0), (1400.0, 200.0), (1500.0, 500.0)]
        {
            assert!((step(most) - want).abs() < 1e-9, "{most}: {}", step(most));
        }
        let (mut out, chart) = (
            String::new(),
            Chart { left: 60.0, top: 10.0, width: 100.0, height: 100.0, most: (1.0, 7000.0) },
        );
        chart.axes(&mut out, "seconds", "packets");
        for text in [">0.0<", ">0.6<", ">1.0<", ">0<", ">7000<", ">seconds<", ">packets<"] {
            assert!(out.contains(text), "{text}: {out}");
        }
    }

    #[test]
    fn nothing_is_drawn_outside() {
        let chart = Chart { left: 60.0, top: 10.0, width: 100.0, height: 50.0, most: (2.0, 4.0) };
        assert_eq!((chart.x(-1.0), chart.x(1.0), chart.x(9.0)), (60.0, 110.0, 160.0));
        assert_eq!((chart.y(-1.0), chart.y(1.0), chart.y(9.0)), (60.0, 47.5, 10.0));
    }
}
