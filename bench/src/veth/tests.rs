// SPDX-License-Identifier: MIT OR Apache-2.0
#![allow(clippy::unwrap_used)]
use super::measure::{AROUND, Trial, cell};
use super::*;

fn subject(name: &str) -> Subject {
    Subject { name: name.into(), router: name.into(), traffic: Traffic::plain(60) }
}

fn results() -> Results {
    let cell = |offered: f64, forwarded: f64| Cell {
        offered,
        forwarded: Spread { median: forwarded, min: forwarded * 0.9, max: forwarded * 1.1 },
        received: None,
        lost: 1.0 - forwarded / offered,
        cpu: Spread { median: 1234.4, min: 1230.0, max: 1240.0 },
        disturbed: 0.01,
    };
    let point = |asked, offered, k, c| Point { asked, cells: vec![cell(offered, k), cell(offered, c)] };
    Results {
        figure: None,
        subjects: ["kernel", "castanet"].map(subject).into(),
        rounds: 3,
        trial: 0.25,
        tolerance: 0.001,
        processors: [0, 1],
        steered: true,
        generator: Generator::Live,
        points: vec![point(5e5, 5e5, 5e5, 5e5), point(1e6, 1e6, 9.4e5, 8e5), point(0.0, 1.9e6, 9.3e5, 7.8e5)],
        capacities: [9.4e5, 8e5]
            .map(|peak| Capacity {
                peak,
                loss_free: Some(peak * 0.9),
                overload: 1.9e6,
                survives: peak * 0.99,
                cpu: 1000.0,
            })
            .into(),
        programs: Vec::new(),
        compared: Vec::new(),
        notes: vec!["mind the gap".into()],
    }
}

#[test]
fn tables_align() {
    let text = report::table(&results());
    let lines: Vec<&str> = text.lines().collect();
    let rates: Vec<&str> = lines.iter().skip(4).take(4).copied().collect();
    assert!(rates.iter().all(|l| l.len() == rates[0].len()), "{text}");
    assert_eq!(
        rates[2].split_whitespace().collect::<Vec<_>>(),
        ["1000.0", "940.0", "6.00%", "1234", "800.0", "20.00%", "1234"]
    );
    assert!(rates[3].trim_start().starts_with("flood "), "{text}");
    let ratio = lines.iter().find(|l| l.trim_start().starts_with("ratio")).unwrap();
    assert_eq!(ratio.split_whitespace().collect::<Vec<_>>(), ["ratio", "0.85", "0.85"]);
    assert!(text.ends_with("note: mind the gap\n"));
}

#[test]
fn further_routers_get_columns_and_ratios() {
    let mut r = results();
    r.subjects.push(subject("castanet-xdp"));
    let mut more = r.capacities[1];
    more.peak *= 2.0;
    r.capacities.push(more);
    r.points.iter_mut().for_each(|p| p.cells.push(p.cells[1]));
    let text = report::table(&r);
    let rates: Vec<&str> = text.lines().skip(4).take(4).collect();
    assert!(rates.iter().all(|l| l.len() == rates[0].len()), "{text}");
    let ratios: Vec<_> = text.lines().skip_while(|l| !l.trim_start().starts_with("ratio")).skip(1).collect();
    assert!(ratios[0].ends_with("0.85") && ratios[1].contains(" 1.70 "), "{text}");
    assert_eq!(report::csv(&r).lines().count(), 1 + 3 * r.points.len());
    assert_eq!(svg(&r).matches("<polyline").count(), 4);
}

#[test]
fn programs_are_beside_the_table() {
    let mut r = results();
    let cell = |ns: f64| Cell { cpu: Spread { median: ns, min: ns, max: ns }, ..r.points[2].cells[1] };
    let cells = [cell(150.0), cell(130.0), cell(100.0)];
    for (i, name) in ["castanet-xdp", FORWARDER, DROP].into_iter().enumerate() {
        r.subjects.push(subject(name));
        r.capacities.push(r.capacities[1]);
        r.points.iter_mut().for_each(|p| p.cells.push(cells[i]));
        r.programs.push(Program {
            name: name.into(),
            time: Spread { median: 40.0, min: 39.0, max: 42.0 },
            length: Some(Length { instructions: 800, executed: 130 }),
            stayed: (i == 0).then_some(0.9999),
        });
    }
    let text = report::table(&r);
    let line = text.lines().find(|l| l.contains("40.0 (39.0 to 42.0)")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words[0], "castanet-xdp");
    assert_eq!(words[5..8], ["130", "800", "99.99%"]);
    assert_eq!(words[words.len() - 3..], ["8.23", "50.0", "1.67"]);
    assert!(report::csv(&r).lines().any(|l| l.starts_with("castanet-xdp,") && l.contains(",40.0,130,")));
    let json = &report::json(&r)["veth"]["programs"];
    assert_eq!(json["castanet-xdp"]["net_ns"], 50.0);
    assert_eq!(json[FORWARDER]["stayed"], serde_json::Value::Null);
    // Six routers have two rows of legends.
    assert!(svg(&r).contains("y=\"40\""), "{}", svg(&r));
}

#[test]
fn routers_are_compared_with_each_other() {
    let mut r = results();
    assert_eq!(compare::table(&r), "");
    let names = ["castanet-xdp-route", "castanet-xdp-firewall-8-interfaces"];
    for (name, executed) in names.into_iter().zip([130, 195]) {
        r.subjects.push(subject(name));
        r.capacities.push(Capacity {
            peak: 65.0 * executed as f64,
            loss_free: Some(130.0),
            ..Capacity::default()
        });
        r.points.iter_mut().for_each(|p| p.cells.push(p.cells[1]));
        let length = Some(Length { instructions: 800, executed });
        r.programs.push(Program { name: name.into(), length, ..Program::default() });
    }
    let router = |name: &str, base: Option<&str>| Contender {
        name: name.into(),
        way: Way::Drop,
        share: 1,
        pairs: 1,
        switched: false,
        base: base.map(Into::into),
    };
    let routers = [router(names[0], None), router(names[1], Some(names[0]))];
    let subjects = [0, 1].map(|place| (place, subject(names[place])));
    let times = |name: &str| Some(if name == names[0] { &[20.0][..] } else { &[30.0] });
    r.compared = compare::all(&routers, &subjects, times);
    assert_eq!(r.compared.len(), 1);
    let text = report::table(&r);
    let line = text.lines().find(|l| l.contains("10.0 (10.0 to 10.0)")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words[..4], [names[1], names[0], "1.50", "1.00"]);
    assert_eq!(words[4..], ["10.0", "(10.0", "to", "10.0)", "1.50", "(1.50", "to", "1.50)", "+65", "1.50"]);
    // The name is wider than its column, and the columns align all the same.
    let rates: Vec<&str> = text.lines().skip(4).take(4).collect();
    assert!(rates.iter().all(|l| l.len() == rates[0].len()), "{text}");
    let json = &report::json(&r)["veth"]["compared"][0];
    assert_eq!((&json["executed_ratio"], &json["run_ns_more"]["median"]), (&1.5.into(), &10.0.into()));
    // Without times, as for routers that are not programs, the rates remain.
    r.compared = compare::all(&routers, &subjects, |_| None);
    assert!(
        compare::table(&r).contains("1.50       1.00                         -"),
        "{}",
        compare::table(&r)
    );
}

#[test]
fn csv_and_json_say_the_same() {
    let r = results();
    let (csv, json) = (report::csv(&r), report::json(&r));
    assert_eq!(csv.lines().count(), 1 + 2 * r.points.len());
    assert_eq!(
        csv.lines().nth(6),
        Some(
            "castanet,0,1900000,780000,702000,858000,0.589474,1234.4,1230.0,1240.0,,,800000,720000,60,1,one,,0.524160"
        )
    );
    assert_eq!(json["veth"]["points"][2]["routers"]["castanet"]["forwarded"]["median"], 780_000.0);
    assert_eq!(json["veth"]["capacities"]["kernel"]["peak"], 940_000.0);
}

#[test]
fn pictures_stay_inside() {
    let svg = svg(&results());
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    assert!(svg.contains("<title>Forwarded against offered rate</title>"), "{svg}");
    // A line for each router, and one for a perfect router.
    assert_eq!(svg.matches("<polyline").count(), 3);
    assert_eq!(svg.matches("<circle").count(), 6);
    for cx in svg.split("cx=\"").skip(1) {
        let x: f64 = cx.split('"').next().unwrap().parse().unwrap();
        assert!((70.0..=630.0).contains(&x));
    }
}

#[test]
fn trials_fill_the_time() {
    let mut s = Settings {
        program: PathBuf::new(),
        figure: None,
        notes: Vec::new(),
        part: Vec::new(),
        kernel: KernelTask::Route,
        traffic: vec![Traffic::plain(60)],
        routers: vec![Contender {
            name: "castanet".into(),
            way: Way::Sockets,
            share: 1,
            pairs: 1,
            switched: false,
            base: None,
        }],
        seconds: 30.0,
        points: 10,
        search: true,
        count_received: false,
        rounds: 3,
        tolerance: 0.0,
        processors: None,
        steer: true,
        generator: None,
    };
    let trials = 2.0 * (11.0 + 33.0 + 16.0);
    assert!((trials * (s.trial() + AROUND) - 30.0).abs() < 1e-6);
    s.routers.push(s.routers[0].clone());
    assert!((1.5 * trials * (s.trial() + AROUND) - 30.0).abs() < 1e-6);
    // Two kinds of traffic take twice as many trials but for those that determine the maximum rate. Without a search there are fewer.
    s.traffic.push(Traffic::plain(1514));
    assert!((3.0 * (trials - 2.0 * 5.0) * (s.trial() + AROUND) - 30.0).abs() < 1e-6);
    (s.search, s.points) = (false, 0);
    assert!((6.0 * (1.0 + 3.0) * (s.trial() + AROUND) - 30.0).abs() < 1e-6);
    s.seconds = 0.0;
    assert_eq!(s.trial(), 0.02);
    s.seconds = 1e9;
    assert_eq!(s.trial(), 10.0);
}

#[test]
fn calm_trials_count() {
    let trial = |forwarded: f64, disturbed: f64| Trial { forwarded, disturbed, ..Trial::default() };
    for (trials, want) in [
        (vec![trial(1.0, 0.5), trial(9.0, 0.0), trial(7.0, 0.01), trial(2.0, 0.4)], 8.0),
        (vec![trial(1.0, 0.5), trial(5.0, 0.3), trial(2.0, 0.4)], 5.0),
        (vec![trial(3.0, 1.0)], 3.0),
        (vec![], 0.0),
    ] {
        assert_eq!(cell(&trials).forwarded.median, want);
    }
}

/// Results in saturation of a router and the kernel, with this traffic.
fn saturated(figure: Figure, traffic: &[Traffic]) -> Results {
    let mut r = Results { figure: Some(figure), subjects: Vec::new(), capacities: Vec::new(), ..results() };
    let mut cells = Vec::new();
    for router in ["kernel", "castanet"] {
        for t in traffic {
            let name = format!("{router}-{}-{}-{}", t.length, t.flows, t.both_ways);
            r.subjects.push(Subject { name, router: router.into(), traffic: *t });
            r.capacities.push(Capacity::default());
            let rate = 1e5 * (cells.len() + 1) as f64;
            cells.push(Cell {
                offered: 3.0 * rate,
                received: Some(2.0 * rate),
                forwarded: Spread { median: rate, min: rate, max: rate },
                ..Cell::default()
            });
        }
    }
    r.points = vec![Point { asked: 0.0, cells }];
    r
}

#[test]
fn bars_stand_in_groups() {
    let flows = [1, 2, 3, 4].map(|flows| Traffic { flows, ..Traffic::plain(60) });
    let r = saturated(Figure::Hpsr6a, &flows);
    let text = report::table(&r);
    // The values of the paper stand beside ours, and "-" where its text has none.
    let row = |first: &str| -> Vec<String> {
        let line =
            text.lines().skip_while(|l| !l.starts_with("flows")).find(|l| l.trim_start().starts_with(first));
        line.unwrap().split_whitespace().map(str::to_string).collect()
    };
    assert_eq!(row("1 "), ["1", "100.0", "500.0", "650.0", "650.0"]);
    assert_eq!(row("3 "), ["3", "300.0", "700.0", "-", "1800.0"]);
    assert!(text.contains("castanet-60-4-false     2400.0     1600.0      800.0"), "{text}");
    assert!(text.contains("HPSR 2005, section IV-D"), "{text}");
    let csv = report::csv(&r);
    assert!(csv.lines().any(|l| l.starts_with("castanet,0,2400000,800000,") && l.ends_with(",60,4,one,1600000,0.537600")), "{csv}");
    let json = &report::json(&r)["veth"];
    assert_eq!(json["figure"]["rows"][1]["values"]["castanet"], 600.0);
    assert_eq!(json["figure"]["rows"][1]["paper"]["Click 2005"], 1200.0);
    assert_eq!(json["subjects"]["castanet-60-2-false"]["flows"], 2);
    // Three rates for each of eight bars, two legends and the background, and the frame.
    let svg = svg(&r);
    assert_eq!(svg.matches("<rect ").count(), 3 * 8 + 2 + 1 + 1, "{svg}");
    assert!(svg.contains(">Gbit/s<") && svg.contains("castanet, 3: received 1400.000"), "{svg}");
}

#[test]
fn payloads_have_rates_on_a_wire() {
    let t = |length, both_ways| Traffic { length, flows: 4, both_ways };
    let r = saturated(Figure::Hpsr6b, &[t(60, false), t(1514, false), t(60, true), t(1514, true)]);
    let grid = figures::Grid::of(&r).unwrap();
    assert_eq!((grid.across.1, grid.unit), (vec![46, 1500], "Gbit/s"));
    let names: Vec<&str> = grid.series.iter().map(|s| s.0.as_str()).collect();
    assert_eq!(names, ["kernel", "kernel, both ways", "castanet", "castanet, both ways"]);
    assert!((grid.series[1].1[1].unwrap().value - 4e5 * 8.0 * 1538.0 / 1e9).abs() < 1e-9);
    assert!(svg(&r).contains(">1500<"));
}

#[test]
fn what_is_not_on_an_axis_is_in_the_name() {
    let t = |length, flows| Traffic { flows, ..Traffic::plain(length) };
    let mut r = saturated(Figure::Hpsr7, &[t(60, 1), t(60, 2), t(124, 1), t(124, 2)]);
    let names = |r: &Results| -> Vec<String> {
        figures::Grid::of(r).unwrap().series.into_iter().map(|s| s.0).filter(|n| n.starts_with('k')).collect()
    };
    assert_eq!(names(&r), ["kernel, 60 bytes", "kernel, 124 bytes"]);
    r.figure = None;
    assert_eq!(names(&r), ["kernel, 1 flow", "kernel, 2 flows"]);
}

#[test]
fn frame_sizes_have_a_line_for_each_router() {
    let mut r = saturated(Figure::Sosp16, &[60, 124, 1514].map(Traffic::plain));
    // The maximum over all rates counts, not the rate in saturation.
    let mut more = r.points[0].clone();
    more.cells[0].forwarded.median = 9e5;
    r.points.insert(0, Point { asked: 1e6, ..more });
    let text = report::table(&r);
    let line = text.lines().find(|l| l.trim_start().starts_with("60 ")).unwrap();
    assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["60", "900.0", "400.0", "73.0"]);
    let svg = svg(&r);
    assert_eq!((svg.matches("<polyline").count(), svg.matches("<circle").count()), (2, 6));
}

#[test]
fn figures_have_names_and_titles() {
    for figure in Figure::ALL {
        assert_eq!(figure.name().parse(), Ok(figure));
        let (paper, number) = figure.name().split_once('-').unwrap();
        assert!(figure.title().starts_with(&paper.to_uppercase()), "{}", figure.title());
        let number = number.trim_end_matches(|c: char| c.is_alphabetic());
        assert!(figure.title().contains(&format!("Figure {number}")), "{}", figure.title());
        let r = saturated(figure, &[Traffic::plain(60)]);
        assert!(svg(&r).contains("</svg>"));
        assert!(report::table(&r).contains(figure.title()));
    }
    assert!("tocs-18".parse::<Figure>().is_err());
}
