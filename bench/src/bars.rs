// SPDX-License-Identifier: MIT OR Apache-2.0
//! Horizontal bars, each with its label and value.

use std::fmt::Write;

/// The width of a picture.
pub const WIDTH: f64 = 760.0;
const LEFT: f64 = 190.0;
const BAR: f64 = 16.0;

/// A bar: its label, value, text and colour.
pub type Bar<'a> = (&'a str, f64, String, &'a str);

// Writing to a string cannot fail, so the results of `write!` in this file are ignored.

/// Writes the title of a part of a picture, at this height.
pub fn heading(out: &mut String, top: f64, title: &str) {
    let y = top + 12.0;
    let _ = writeln!(out, "<text x=\"10\" y=\"{y:.1}\" font-weight=\"bold\">{title}</text>");
}

/// Draws bars with a title, from this height on. Returns the height where the next part begins.
pub fn draw(out: &mut String, top: f64, title: &str, all: &[Bar<'_>]) -> f64 {
    heading(out, top, title);
    let most = all.iter().map(|b| b.1).fold(1e-9, f64::max);
    let mut y = top + 24.0;
    for (name, value, says, color) in all {
        let width = (WIDTH - LEFT - 230.0) * (value / most).clamp(0.0, 1.0);
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{2:.1}\" text-anchor=\"end\">{name}</text>\
             <rect x=\"{LEFT}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{color}\"/>\
             <text x=\"{3:.1}\" y=\"{2:.1}\">{says}</text>",
            LEFT - 8.0,
            BAR - 2.0,
            y + BAR - 4.0,
            LEFT + width + 6.0,
        );
        y += BAR + 4.0;
    }
    y + 20.0
}
