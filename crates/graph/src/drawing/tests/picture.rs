// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the positions for programs that draw by themselves.

use super::*;
use crate::drawing::Shown;

#[test]
fn a_picture_has_what_the_drawing_has() {
    for text in [SMALL, NESTED, &large()] {
        let (g, ..) = checked(text);
        for fold in [Fold::None, Fold::All] {
            let drawing = Drawing::new(&g, &fold).unwrap();
            let (picture, drawn) = (drawing.picture(), drawing.svg());
            let (body, _) = parts(&drawn);
            // The same lines, in the same order.
            let edges = body.all(&|n| n.class().starts_with("edge "));
            let paths: Vec<&str> = edges.iter().map(|n| n.attrs["d"].as_str()).collect();
            for line in &picture.lines {
                assert!(paths.contains(&line.path.as_str()), "{}", line.path);
                assert!(!line.connections.is_empty());
            }
            // Each element is in one box, in a folded compound, or alone.
            let mut boxes: BTreeSet<usize> = picture.alone.iter().copied().collect();
            for b in &picture.boxes {
                match &b.shown {
                    Shown::Element(e) => assert!(boxes.insert(*e), "{}", g.name(*e)),
                    Shown::Compound(path) => assert!(fold == Fold::All && !path.is_empty()),
                }
                let [x, y, width, height] = b.place;
                assert!(x >= 0.0 && y >= 0.0 && x + width <= picture.width && y + height <= picture.height);
                let inside = |p: &crate::drawing::PicturePort| p.x > x && p.x < x + width;
                assert!(b.inputs.iter().chain(&b.outputs).all(inside), "{}", b.title);
            }
            if fold == Fold::None {
                assert_eq!(boxes.len(), g.len());
                // Each connection between existing ports is drawn.
                let drawn: BTreeSet<usize> =
                    picture.lines.iter().flat_map(|l| l.connections.iter().copied()).collect();
                assert_eq!(drawn.len(), drawing.scene.connections);
            } else {
                assert!(picture.frames.is_empty());
            }
        }
    }
}
