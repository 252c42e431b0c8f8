// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rates beside lines.

use super::dom::{self, Node};
use super::{Drawing, Fold, NESTED, SMALL, large, parts};
use crate::testing::checked;

const RATE_WIDTH: f64 = 5.5;

fn texts(body: &Node) -> Vec<&Node> {
    body.all(&|n| n.class() == "rate")
}

#[test]
fn rates_stand_beside_the_outputs_and_cover_nothing() {
    for text in [SMALL, NESTED, &large()] {
        let g = checked(text).0;
        let n = g.flat.connections.len();
        let rates = (0..n).map(|c| Some(1_234_567.0 + c as f64)).collect();
        let drawing = Drawing::new(&g, &Fold::None).unwrap().with_rates(rates).svg();
        let (body, legend) = parts(&drawing);
        assert!(legend.has(&|n| n.text == "packets per second"));
        let boxes: Vec<[f64; 4]> = body
            .all(&|n| n.class().split(' ').next() == Some("box"))
            .into_iter()
            .map(dom::rectangle)
            .collect();
        let area = |t: &Node| {
            let (x, y) = (t.number("x"), t.number("y"));
            [x, x + t.text.chars().count() as f64 * RATE_WIDTH, y - 7.0, y]
        };
        let all: Vec<[f64; 4]> = texts(&body).into_iter().map(area).collect();
        assert!(!all.is_empty());
        let apart = |a: &[f64; 4], b: &[f64; 4]| a[1] <= b[0] || b[1] <= a[0] || a[3] <= b[2] || b[3] <= a[2];
        for (i, a) in all.iter().enumerate() {
            assert!(boxes.iter().all(|b| apart(a, b)), "{a:?} covers a box");
            assert!(all.iter().take(i).all(|b| apart(a, b)), "{a:?} covers another rate");
        }
    }
}

#[test]
fn only_known_rates_are_shown() {
    let g = checked(SMALL).0;
    let mut rates = vec![None; g.flat.connections.len()];
    rates[0] = Some(12_345.0);
    let drawing = Drawing::new(&g, &Fold::None).unwrap().with_rates(rates);
    let svg = drawing.svg();
    let (body, _) = parts(&svg);
    let shown: Vec<&str> = texts(&body).into_iter().map(|t| t.text.as_str()).collect();
    assert_eq!(shown, ["12.3k"]);
    assert!(svg.contains("; 12.3k packets per second</title>"));
    assert!(drawing.dot().contains("[label=\"12.3k\"]"), "{}", drawing.dot());
    let without = Drawing::new(&g, &Fold::None).unwrap();
    assert!(!without.svg().contains("class=\"rate\"") && !without.dot().contains("label=\"12.3k\""));
}
