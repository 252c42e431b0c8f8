// SPDX-License-Identifier: MIT OR Apache-2.0
#![allow(clippy::unwrap_used)]
use super::*;

/// Results that are ideal except for one point.
fn results(what: &'static Definition) -> Results {
    let sample = |s: &definition::Series, load: f64| {
        let x = if what.name == "red" { load * 150.0 } else { load };
        Sample { load, x, y: (s.ideal)(x) }
    };
    let mut series: Vec<Vec<Sample>> =
        what.series().map(|s| loads(what.points, what.to).map(|l| sample(s, l)).collect()).collect();
    series[1][3].y += what.ends.1.max(1.0) * 0.01;
    Results { what, how: "made up".into(), series, notes: vec!["mind the gap".into()] }
}

#[test]
fn tables_align_and_name_what_is_furthest() {
    for what in &ALL {
        let r = results(what);
        let text = report::table(&r);
        for ((panel, title), block) in what.panels.iter().enumerate().zip(text.split("\n\n").skip(1)) {
            let block =
                if title.is_empty() { block } else { block.strip_prefix(&format!("{title}\n")).unwrap() };
            let rows: Vec<&str> = block.lines().collect();
            assert_eq!(rows.len(), what.points + 1, "{text}");
            assert!(rows[1..].iter().all(|l| l.len() == rows[1].len()), "{text}");
            for (s, _) in r.iter().filter(|(s, _)| s.panel == panel) {
                assert!(rows[0].contains(s.name), "{text}");
            }
        }
        let name = what.series().nth(1).unwrap().name;
        let last = text.lines().find(|l| l.starts_with("furthest")).unwrap();
        assert!(last.contains(": +") && last.contains(&format!("({name}")), "{last}");
        assert!(text.ends_with("note: mind the gap\n"));
    }
}

#[test]
fn csv_and_json_say_the_same() {
    for what in &ALL {
        let r = results(what);
        let (csv, json) = (report::csv(&r), report::json(&r));
        let series = json[what.name]["series"].as_array().unwrap();
        assert_eq!(csv.lines().count(), 1 + series.len() * what.points);
        let mut lines = csv.lines().skip(1);
        for (s, p) in series.iter().flat_map(|s| s["points"].as_array().unwrap().iter().map(move |p| (s, p)))
        {
            let words: Vec<&str> = lines.next().unwrap().split(',').collect();
            assert_eq!(words[1], s["name"]);
            for (word, field) in words[2..].iter().zip(["load", "x", "y", "ideal"]) {
                let (word, value) = (word.parse::<f64>().unwrap(), p[field].as_f64().unwrap());
                assert!((word - value).abs() < 1e-6, "{field}: {word} and {value}");
            }
        }
    }
}

#[test]
fn pictures_show_every_sample_inside_their_axes() {
    for what in &ALL {
        let r = results(what);
        let svg = svg(&r);
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        let series = what.series().count();
        assert_eq!(svg.matches("<circle").count(), series * what.points);
        assert_eq!(svg.matches("<polyline").count(), series);
        for s in what.series() {
            assert!(svg.contains(&format!(">{}<", s.label)), "{}", s.label);
        }
        let width: f64 = svg.split("width=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
        for cx in svg.split("cx=\"").skip(1) {
            let x: f64 = cx.split('"').next().unwrap().parse().unwrap();
            assert!((70.0..=width - 50.0).contains(&x), "{x} of {width}");
        }
    }
}

#[test]
fn loads_avoid_the_steps_of_the_ideal_curves() {
    assert_eq!(loads(4, 8.0).collect::<Vec<_>>(), [1.0, 3.0, 5.0, 7.0]);
    let diffserv = named("diffserv").unwrap();
    for step in [7_500.0, 12_500.0] {
        assert!(loads(diffserv.points, diffserv.to).all(|l| (l - step).abs() > 50.0));
    }
    assert!(named("nothing").is_none());
}

#[test]
fn what_runs_print_becomes_samples() {
    let diffserv = &named("diffserv").unwrap().files[0];
    let samples = (diffserv.read)(5.0, "a.count:\n1\n\nb.count:\n2\n\nc.count:\n3\n\nd.count:\n4\n").unwrap();
    assert_eq!(
        samples.iter().map(|s| (s.load, s.x, s.y)).collect::<Vec<_>>(),
        [1.0, 2.0, 3.0, 4.0].map(|y| (5.0, 5.0, y))
    );
    let red = &named("red").unwrap().files[0];
    let line = "one:  25 of 100 dropped, average 47.5\n";
    let samples = (red.read)(0.25, &line.repeat(6)).unwrap();
    assert_eq!((samples[5].x, samples[5].y), (47.5, 0.25));
    assert!((samples[5].load - 0.25).abs() < 0.01);
    // With three flows at this rate, a quarter of the packets exceeds the link rate of 100 packets a second.
    assert_eq!((red.value)(0.25), 44.0);
    for (file, text) in
        [(diffserv, "a.count:\n1\n"), (diffserv, ""), (red, line), (red, "x\nx\nx\nx\nx\nx\n")]
    {
        assert!((file.read)(1.0, text).is_none(), "{text}");
    }
}
