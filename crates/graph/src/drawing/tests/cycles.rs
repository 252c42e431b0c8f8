// SPDX-License-Identifier: MIT OR Apache-2.0
//! Drawings of 64 elements with feedback: lines that lead up pass beside boxes, and no two of them share a way.

use super::dom::{self, Node};
use super::{parts, svg};
use crate::graph::Graph;
use crate::testing::{Random, checked};
use std::fmt::Write as _;

/// A chain of 64 elements. Tees along it lead back to classes that join their inputs, as ICMP errors do in an IP router.
fn with_feedback(random: &mut Random, loops: usize) -> Graph {
    let mut text = String::new();
    // Each loop begins at a tee that is below the element to which it leads.
    let joins: Vec<usize> = (0..loops).map(|_| 1 + random.below(40)).collect();
    for i in 1..63 {
        let class =
            if joins.contains(&i) { "Joined" } else { ["Strip", "Counter", "Check"][random.below(3)] };
        let _ = write!(text, "e{i} :: {class};");
    }
    text.push_str("s :: Source -> e1");
    (2..63).for_each(|i| {
        let _ = write!(text, " -> e{i}");
    });
    text.push_str(" -> t :: Tee -> Discard;");
    for (i, to) in joins.iter().enumerate() {
        let _ = write!(
            text,
            "t[{}] -> [{}] e{to};",
            i + 1,
            1 + joins.iter().take(i).filter(|j| *j == to).count()
        );
    }
    checked(&text).0
}

fn lines(body: &Node) -> Vec<(Vec<(f64, f64)>, String)> {
    let all = body.all(&|n| n.class().starts_with("edge "));
    all.into_iter().map(|n| (dom::along(&n.attrs["d"]), n.title().to_string())).collect()
}

#[test]
fn feedback_passes_beside_boxes_and_other_feedback() {
    let mut random = Random(64);
    for loops in [1, 3, 8, 12] {
        let g = with_feedback(&mut random, loops);
        assert_eq!(g.len(), 65);
        let drawing = svg(&g);
        if let Some(folder) = std::env::var_os("CASTANET_DRAWINGS") {
            std::fs::write(std::path::Path::new(&folder).join(format!("cycles-{loops}.svg")), &drawing)
                .unwrap();
        }
        let (body, _) = parts(&drawing);
        let boxes: Vec<[f64; 4]> = body
            .all(&|n| n.class().split(' ').next() == Some("box"))
            .into_iter()
            .map(dom::rectangle)
            .collect();
        let all = lines(&body);
        let mut up = 0;
        for (points, title) in &all {
            for (x, y) in points {
                let hit = boxes.iter().find(|b| *x > b[0] && *x < b[1] && *y > b[2] + 1.0 && *y < b[3] - 1.0);
                assert!(hit.is_none(), "{title} crosses a box at {x} {y}");
            }
            up += usize::from(points.first().is_some_and(|a| points.last().is_some_and(|b| b.1 < a.1)));
        }
        assert_eq!(up, loops, "each loop leads up");
        // Where lines run vertically, they keep a distance from each other.
        for (i, (a, one)) in all.iter().enumerate() {
            for (b, other) in all.iter().take(i) {
                let vertical =
                    |p: &[(f64, f64)]| (p[1].0 - p[0].0).abs() < 0.01 && (p[1].1 - p[0].1).abs() > 1.0;
                let same = a.windows(2).filter(|p| vertical(p)).find(|p| {
                    let (top, bottom) = (p[0].1.min(p[1].1), p[0].1.max(p[1].1));
                    b.windows(2).filter(|q| vertical(q)).any(|q| {
                        let (t, l) = (q[0].1.min(q[1].1), q[0].1.max(q[1].1));
                        (p[0].0 - q[0].0).abs() < 3.0 && t < bottom - 1.0 && l > top + 1.0
                    })
                });
                assert!(same.is_none(), "{one} and {other} share a way at {same:?}");
            }
        }
    }
}
