// SPDX-License-Identifier: MIT OR Apache-2.0
#![allow(clippy::unwrap_used)]
use super::devices::{Outcome, Point, Results as Devices};
use super::figures::{DV, FC};
use super::measure::{Cost, Counted, Quartiles};
use super::*;
use castanet_element::spec::Reason;

#[test]
fn the_first_elements_pass_all_packets() {
    for n in 0..=ELEMENTS.len() {
        let text = base::prefix(n, 32).unwrap();
        let measured = router::with_text(text.as_bytes(), router::MEASURED).unwrap();
        let mut router = router::build(&measured, &Vec::new(), Mode::plain(32), None).unwrap();
        router.run().unwrap();
        // All packets of the warm-up and of one round reach the end, and none is dropped elsewhere.
        let packets = 4 * crate::fig8::PACKETS;
        let end = router.find("end").unwrap();
        let drops: Vec<_> = router.drops().into_iter().collect();
        assert_eq!(drops, [((end, Reason::Discarded), packets)], "{n}: {text}");
    }
    let whole = base::prefix(ELEMENTS.len(), 32).unwrap();
    for class in ["Classifier", "Paint", "PaintTee", "IPFragmenter", "ARPQuerier"] {
        assert_eq!(whole.matches(&format!(":: {class}(")).count(), 2, "{class}: {whole}");
    }
}

#[test]
fn simple_routers_pass_all_packets() {
    for queues in [false, true] {
        let text = base::simple(8, queues).unwrap();
        assert_eq!(text.matches(":: Queue").count(), if queues { 2 } else { 0 });
        let measured = router::with_text(text.as_bytes(), router::MEASURED).unwrap();
        assert_eq!(router::run(&measured, Mode::plain(8), 3, None).unwrap().len(), 3);
    }
    for sends in [false, true] {
        let text = base::simple_devices(sends, 3);
        assert_eq!(text.matches("CheckIPHeader").count(), 3);
        assert_eq!(text.contains("ToDevice"), sends);
    }
    assert_eq!(base::burdened(5).unwrap().matches(":: CheckIPHeader(14)").count(), 10);
    let between = base::router(Ends::Devices, 32).unwrap();
    assert_eq!(between.text.matches(":: FromDevice(").count(), 2);
    assert_eq!(between.text.matches(":: ToDevice(").count(), 2);
    assert!(!between.text.contains("MemSource") && !between.text.contains("Unqueue"));
}

fn cost(turns: [f64; 3], instructions: f64) -> Cost {
    Cost { turns: turns.into(), instructions: Some(instructions) }
}

#[test]
fn costs_are_compared_turn_by_turn() {
    let (a, b) = (cost([30.0, 60.0, 90.0], 300.0), cost([10.0, 20.0, 30.0], 150.0));
    assert_eq!(a.minus(&b).turns, [20.0, 40.0, 60.0]);
    assert_eq!(a.minus(&b).instructions, Some(150.0));
    assert_eq!(a.ratio(&b), (Quartiles { lower: 3.0, median: 3.0, upper: 3.0 }, Some(2.0)));
    assert_eq!(a.ratio(&Cost::default()), (Quartiles::default(), None));
}

#[test]
fn quartiles() {
    assert_eq!(Quartiles::of([]), Quartiles::default());
    assert_eq!(Quartiles::of([7.0]), Quartiles { lower: 7.0, median: 7.0, upper: 7.0 });
    let of_nine = Quartiles::of([9.0, 1.0, 8.0, 2.0, 7.0, 3.0, 6.0, 4.0, 1000.0]);
    assert_eq!(of_nine, Quartiles { lower: 3.0, median: 6.0, upper: 8.0 });
}

/// Results with every figure. The path of a configuration takes ten times its number.
fn results() -> Results {
    let mut costs = Costs::new();
    let mut add = |name: &str, ns: f64| costs.insert(name.to_string(), cost([ns; 3], 10.0 * ns));
    add(ENDS, 20.0);
    for (i, row) in ROWS.iter().chain(&MODULARITY).enumerate().filter(|(_, row)| !row.passes.contains(&DV)) {
        add(row.name, 20.0 + 10.0 * (i + 1) as f64);
    }
    add(BASE, 120.0);
    add(SIMPLE, 30.0);
    add(MONOLITH, 45.0);
    for n in 1..=ELEMENTS.len() {
        add(&prefix_name(n), 20.0 + 7.0 * n as f64);
    }
    let mut lines = figures::figure9(&costs);
    lines.extend(figures::tables(&costs));
    lines.extend(figures::modularity(&costs));
    lines.iter_mut().for_each(|l| l.batch = 32);
    let outcome = |input: f64, sent: f64| Outcome {
        input,
        sent,
        ring: (input - sent) * 0.75,
        queue: (input - sent) * 0.25,
        received: input,
        ns: 900.0,
        ..Outcome::default()
    };
    let point = |asked, input, sent| Point {
        asked,
        outcomes: vec![outcome(input, sent), outcome(input, sent * 0.9)],
    };
    let devices = Devices {
        routers: vec![SIMPLE.into(), BASE.into()],
        points: vec![point(5e5, 5e5, 5e5), point(1e6, 1e6, 8e5), point(0.0, 1.5e6, 7e5)],
        rounds: 3,
        trial: 0.1,
        generator: "live",
        processors: [0, 1],
        notes: Vec::new(),
    };
    Results { lines, devices: Some(devices), notes: vec!["mind the gap".into()] }
}

#[test]
fn figures_have_their_lines() {
    let r = results();
    let line = |figure, name: &str| r.lines.iter().find(|l| l.figure == figure && l.name == name).unwrap();
    let path = line(Figure::Path, "Base");
    assert_eq!((path.ns.median, path.instructions, path.paper), (100.0, Some(1000.0), Some(1657.0)));
    let fc = line(Figure::Path, "FC");
    assert_eq!((fc.ns.median, fc.ratio.median, fc.instruction_ratio), (20.0, 0.2, Some(0.2)));
    assert_eq!(line(Figure::Total, "FC").ns.median, 40.0);
    assert!(r.lines.iter().all(|l| l.name != "All" && l.name != "DV"), "a pass is missing");
    // The costs of the elements add up to that of the path to the queue.
    let elements: Vec<&Line> = r.lines.iter().filter(|l| l.figure == Figure::Elements).collect();
    assert_eq!(elements.len(), ELEMENTS.len() + 1);
    let (subtotal, elements) = elements.split_last().unwrap();
    assert!((elements.iter().map(|l| l.ns.median).sum::<f64>() - subtotal.ns.median).abs() < 1e-9);
    assert_eq!(subtotal.paper, Some(1455.0), "as TOCS Table II says");
    let tasks: f64 = r.lines.iter().filter(|l| l.figure == Figure::Tasks).take(3).map(|l| l.ns.median).sum();
    assert!((tasks - line(Figure::Tasks, "total").ns.median).abs() < 1e-9);
    assert_eq!(line(Figure::Tasks, "total").paper, Some(2798.0), "as TOCS Table I says");
    let d = r.devices.as_ref().unwrap();
    assert_eq!((d.peak(0), d.loss_free(0), d.overload(0)), (8e5, 5e5, 7e5));
    assert_eq!(d.loss_free(1), 0.0);
}

#[test]
fn nothing_measured_gives_no_lines() {
    let none = Costs::new();
    let lines = [figures::figure9(&none), figures::tables(&none), figures::modularity(&none)].concat();
    assert_eq!(lines, []);
    assert!(!svg(&Results::default()).contains("<rect x"));
}

#[test]
fn tables_align() {
    let text = report::table(&results());
    for title in
        ["ASPLOS Figure 9, forwarding path: ratios to Base; batch 32", "TOCS Table II", "TOCS section 6.4"]
    {
        assert!(text.contains(title), "{text}");
    }
    for block in text.split("\n\n").filter(|b| b.contains("ns a packet (quartiles)")) {
        let widths: Vec<usize> = block.trim_start().lines().skip(1).map(|l| l.chars().count()).collect();
        assert!(widths.windows(2).all(|w| w[0] == w[1]), "{block}");
    }
    let peak = text.lines().rfind(|l| l.starts_with("Base ")).unwrap();
    assert_eq!(peak.split_whitespace().collect::<Vec<_>>(), ["Base", "720.0", "0.0", "-", "630.0", "357"]);
    assert!(text.ends_with("note: mind the gap\n"));
}

/// Splits a line of CSV, whose fields may be quoted.
fn fields(line: &str) -> Vec<String> {
    let (mut all, mut quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => all.push(String::new()),
            c => all.last_mut().unwrap().push(c),
        }
    }
    all
}

#[test]
fn csv_and_json_say_the_same() {
    let r = results();
    let csv = report::csv(&r);
    let header = fields(csv.lines().next().unwrap());
    let column = |name: &str| header.iter().position(|h| h == name).unwrap();
    assert!(csv.lines().all(|l| fields(l).len() == header.len()), "{csv}");
    assert_eq!(csv.lines().count(), 1 + r.lines.len() + 2 * 3 * 5);
    let json = report::json(&r);
    let rows: Vec<Vec<String>> = csv.lines().skip(1).map(fields).collect();
    for (row, line) in rows.iter().zip(json["aspl"]["lines"].as_array().unwrap()) {
        assert_eq!(row[column("name")], line["name"].as_str().unwrap());
        assert_eq!(row[column("ns")].parse::<f64>().unwrap(), line["ns"]["median"].as_f64().unwrap());
    }
    // The outcomes of a point add up to its input.
    for point in rows[r.lines.len()..].chunks(5) {
        let rate: f64 = point.iter().map(|row| row[column("rate")].parse::<f64>().unwrap()).sum();
        assert!((rate - point[0][column("input")].parse::<f64>().unwrap()).abs() < 3.0, "{point:?}");
    }
    assert_eq!(json["aspl"]["devices"]["routers"][0]["peak"], 800_000.0);
}

#[test]
fn pictures_show_everything() {
    let r = results();
    let picture = svg(&r);
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
    for line in &r.lines {
        assert!(
            picture.contains(line.figure.title()) && picture.contains(&format!(">{}<", line.name)),
            "{}",
            line.name
        );
    }
    // The ideal line and one for each router in Figure 10; the ideal line and five outcomes in each of two Figures 11.
    assert_eq!(picture.matches("<polyline").count(), 3 + 2 * 6);
    for width in picture.split("width=\"").skip(1) {
        let width = width.split('"').next().unwrap();
        assert!(width == "100%" || width.parse::<f64>().unwrap() >= 0.0);
    }
}

#[test]
fn runs_as_text() {
    assert_eq!(
        format!("{:?}", Counted::parse("32,true,4,/a,b").unwrap()),
        "Counted { mode: Mode { batch: 32, optimize: true }, rounds: 4, file: \"/a,b\" }"
    );
    for text in ["", "32", "32,true", "32,true,4", "0,true,4,x", "257,true,4,x", "32,4,4,x", "32,false,x,y"] {
        assert!(Counted::parse(text).is_none(), "{text}");
    }
}

#[test]
fn configurations_are_measured_in_turn() {
    fn unchanged(configuration: &[u8], _: &Base) -> Result<Vec<u8>, String> {
        Ok(configuration.to_vec())
    }
    let passes = [Pass { name: FC, apply: unchanged }];
    let settings = Settings {
        parts: vec![Part::Passes, Part::Elements, Part::Modularity],
        seconds: 0.0,
        batches: vec![32],
        program: PathBuf::new(),
        counted: None,
        passes: &passes,
        code: None,
        devices: devices::Settings {
            part: Vec::new(),
            points: 1,
            rounds: 1,
            processors: None,
            generator: None,
        },
    };
    let r = run_all(&settings).unwrap();
    let names =
        |figure| r.lines.iter().filter(|l| l.figure == figure).map(|l| l.name.as_str()).collect::<Vec<_>>();
    assert_eq!(names(Figure::Path), ["Base", "FC", "Base (as loaded)", "Simple", "monolith"]);
    assert_eq!(names(Figure::Modularity), ["Base"]);
    assert_eq!(names(Figure::Elements).len(), 14);
    assert!(r.lines.iter().all(|l| l.instructions.is_none() && l.batch == 32));
    fn broken(_: &[u8], _: &Base) -> Result<Vec<u8>, String> {
        Err("no".into())
    }
    let passes = [Pass { name: FC, apply: broken }];
    let error = run_all(&Settings { passes: &passes, ..settings }).unwrap_err();
    assert_eq!(error, "FC, pass FC: no");
}
