// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of folded compounds, and of drawings for Graphviz.

use super::*;

#[test]
fn compounds_fold_in_a_browser() {
    let (g, ..) = checked(NESTED);
    let drawing = svg(&g);
    let (body, _) = parts(&drawing);
    let frames = body.all(&|n| n.children.iter().any(|c| c.class() == "frame"));
    // A click on the element `head` toggles the class `folded` of its parent. The style then hides the contents of the
    // compound and shows the text that replaces them.
    assert_eq!(frames.len(), 5);
    for frame in frames {
        let classes: Vec<&str> =
            frame.children.iter().map(Node::class).filter(|c| !c.is_empty() && *c != "port").collect();
        assert_eq!(classes, ["frame", "head", "shut", "inside"]);
        let head = &frame.children[2];
        assert_eq!((head.attrs["tabindex"].as_str(), head.attrs["role"].as_str()), ("0", "button"));
        assert!(
            frame.children[3].text.ends_with(if frame.title().contains("Outer") {
                "4 elements"
            } else {
                "s"
            }) || frame.title().contains("{...}")
        );
    }
    let script = body.children.iter().find(|n| n.tag == "script").unwrap();
    for word in ["'.head'", "parentNode.classList.toggle('folded')", "'click'", "'keydown'"] {
        assert!(script.text.contains(word), "{word}");
    }
    let style = &body.children.iter().find(|n| n.tag == "style").unwrap().text;
    assert!(style.contains(".folded&gt;.inside") || style.contains(".folded>.inside"));
    // Elements outside a folded compound are not in its group `inside`.
    let inside = body.all(&|n| n.class() == "inside");
    assert!(
        inside.iter().all(|i| !i.has(&|n| n.title().starts_with("bad ::") || n.title().starts_with("s ::")))
    );
    let (g, ..) = checked(SMALL);
    assert!(!svg(&g).contains("<script>") && svg(&g).contains("role=\"img\""));
}

#[test]
fn compounds_are_folded_into_one_box() {
    let (g, ..) = checked(NESTED);
    let count = |drawing: &str| {
        let (body, _) = parts(drawing);
        let boxes = body.all(&|n| n.class().split(' ').next() == Some("box")).len();
        (body.all(&|n| n.class() == "box compound").len(), body.all(&|n| n.class() == "frame").len(), boxes)
    };
    assert_eq!(count(&svg(&g)), (0, 5, 15));
    let at_depth = |n| count(&Drawing::new(&g, &Fold::Depth(n)).unwrap().svg());
    assert_eq!(at_depth(0), count(&Drawing::new(&g, &Fold::All).unwrap().svg()));
    assert_eq!(at_depth(1), count(&folded(&g, &["Inner"])));
    assert_eq!(at_depth(2), count(&svg(&g)));
    assert_eq!(count(&folded(&g, &["one"])), (1, 3, 12));
    assert_eq!(count(&folded(&g, &["two/i"])), (1, 4, 13));
    assert_eq!(count(&folded(&g, &["Inner"])), (2, 3, 11));
    let all = Drawing::new(&g, &Fold::All).unwrap();
    assert_eq!(count(&all.svg()), (3, 0, 9));
    // Each output of a folded `Outer` has one line, whatever elements are inside.
    let (body, _) = parts(&all.svg());
    assert_eq!(body.all(&|n| n.class().starts_with("edge ")).len(), 9);
    assert!(body.has(&|n| n.text == "4 elements"));
    let error = Drawing::new(&g, &Fold::Named(vec!["on".into()])).unwrap_err();
    let listed = "no compound is named 'on': there are one, one/i, two, two/i, {...}@7";
    assert!(error.to_string().starts_with(&listed[..50]), "{error}");
    let (g, ..) = checked(SMALL);
    let error = Drawing::new(&g, &Fold::Named(vec!["on".into()])).unwrap_err();
    assert_eq!(error.to_string(), "no compound is named 'on': the configuration has none");
}

#[test]
fn graphviz_gets_clusters() {
    let (g, ..) = checked(NESTED);
    let dot = Drawing::new(&g, &Fold::None).unwrap().dot();
    assert_eq!(dot.matches("subgraph cluster_").count(), 5);
    assert_eq!(dot.matches(" -> e").count(), g.flat.connections.len());
    for e in 0..g.len() {
        assert_eq!(dot.matches(&format!("\ne{e} [")).count(), 1, "{}", g.name(e));
    }
    // The elements of a compound, and no others, are between its braces.
    let cluster = dot.split("label=\"two :: Outer\"").nth(1).unwrap();
    let mut depth = 1i32;
    let lines = cluster.lines().skip(1).take_while(|l| {
        depth += i32::from(l.ends_with('{')) - i32::from(*l == "}");
        depth > 0
    });
    let names: Vec<&str> = lines.filter_map(|l| l.split("tooltip=\"").nth(1)?.split(' ').next()).collect();
    assert_eq!(names, ["two/c", "two/i/q", "two/i/u", "two/i/Counter@3"]);
    for text in [
        "white box: other element",
        "dashed box: unknown class",
        "yellow frame: compound",
        "blue arrow: pull connection",
    ] {
        assert!(dot.contains(text), "{text}");
    }
    let dot = Drawing::new(&g, &Fold::All).unwrap().dot();
    assert_eq!((dot.matches("subgraph").count(), dot.matches("bold yellow box").count()), (0, 1));
    let mut random = Random(9);
    for _ in 0..100 {
        let dot = Drawing::new(&random_compounds(&mut random), &Fold::None).unwrap().dot();
        let quotes = dot.replace("\\\\", "").replace("\\\"", "").matches('"').count();
        assert!(
            quotes.is_multiple_of(2)
                && dot.lines().filter(|l| l.ends_with('{')).count()
                    == dot.lines().filter(|l| *l == "}").count()
        );
    }
}
