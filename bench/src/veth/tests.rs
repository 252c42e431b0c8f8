// SPDX-License-Identifier: MIT OR Apache-2.0
#![allow(clippy::unwrap_used)]
use super::*;

fn results() -> Results {
    let cell = |offered: f64, forwarded: f64| Cell {
        offered,
        forwarded: Spread { median: forwarded, min: forwarded * 0.9, max: forwarded * 1.1 },
        lost: 1.0 - forwarded / offered,
        cpu: Spread { median: 1234.4, min: 1230.0, max: 1240.0 },
        disturbed: 0.01,
    };
    let point = |asked, offered, k, c| Point { asked, cells: vec![cell(offered, k), cell(offered, c)] };
    Results {
        names: ["kernel", "castanet"].map(str::to_string).into(),
        length: 60,
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
                loss_free: peak * 0.9,
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
    r.names.push("castanet-xdp".into());
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
    assert_eq!(svg(&r, "A & B").matches("<polyline").count(), 4);
}

#[test]
fn programs_are_beside_the_table() {
    let mut r = results();
    let cell = |ns: f64| Cell { cpu: Spread { median: ns, min: ns, max: ns }, ..r.points[2].cells[1] };
    let cells = [cell(150.0), cell(130.0), cell(100.0)];
    for (i, name) in ["castanet-xdp", FORWARDER, DROP].into_iter().enumerate() {
        r.names.push(name.into());
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
    assert!(svg(&r, "A & B").contains("y=\"40\""), "{}", svg(&r, "A & B"));
}

#[test]
fn routers_are_compared_with_each_other() {
    let mut r = results();
    assert_eq!(compare::table(&r), "");
    let names = ["castanet-xdp-route", "castanet-xdp-firewall-8-interfaces"];
    for (name, executed) in names.into_iter().zip([130, 195]) {
        r.names.push(name.into());
        r.capacities.push(Capacity { peak: 65.0 * executed as f64, loss_free: 130.0, ..Capacity::default() });
        r.points.iter_mut().for_each(|p| p.cells.push(p.cells[1]));
        let length = Some(Length { instructions: 800, executed });
        r.programs.push(Program { name: name.into(), length, ..Program::default() });
    }
    let router = |name: &str, base: Option<&str>| Contender {
        name: name.into(),
        way: Way::Drop,
        share: 1,
        pairs: 1,
        base: base.map(Into::into),
    };
    let routers = [router(names[0], None), router(names[1], Some(names[0]))];
    let times = |name: &str| Some(if name == names[0] { &[20.0][..] } else { &[30.0] });
    r.compared = compare::all(&routers, times);
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
    r.compared = compare::all(&routers, |_| None);
    assert!(
        compare::table(&r).contains("1.50       1.00                         -"),
        "{}",
        compare::table(&r)
    );
}

#[test]
fn pairs_have_interfaces() {
    assert_eq!(interfaces(0), ADDRESSES.map(|(d, a)| (d.to_string(), a.to_string())));
    let four = interfaces(4);
    assert_eq!((four.len(), four[7].0.as_str(), four[7].1.as_str()), (8, "out4", "10.0.7.1/24"));
}

#[test]
fn csv_and_json_say_the_same() {
    let r = results();
    let (csv, json) = (report::csv(&r), report::json(&r));
    assert_eq!(csv.lines().count(), 1 + 2 * r.points.len());
    assert_eq!(
        csv.lines().nth(6),
        Some("castanet,0,1900000,780000,702000,858000,0.589474,1234.4,1230.0,1240.0,,,800000,720000")
    );
    assert_eq!(json["veth"]["points"][2]["routers"]["castanet"]["forwarded"]["median"], 780_000.0);
    assert_eq!(json["veth"]["capacities"]["kernel"]["peak"], 940_000.0);
}

#[test]
fn pictures_stay_inside() {
    let svg = svg(&results(), "A & B");
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    assert!(svg.contains("<title>A &amp; B</title>"), "{svg}");
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
        part: Vec::new(),
        routers: vec![Contender {
            name: "castanet".into(),
            way: Way::Sockets,
            share: 1,
            pairs: 1,
            base: None,
        }],
        seconds: 30.0,
        points: 10,
        rounds: 3,
        length: 60,
        tolerance: 0.0,
        processors: None,
        steer: true,
        generator: None,
    };
    let trials = 2.0 * (11.0 + 33.0 + 14.0);
    assert!((trials * (s.trial() + AROUND) - 30.0).abs() < 1e-6);
    s.routers.push(s.routers[0].clone());
    assert!((1.5 * trials * (s.trial() + AROUND) - 30.0).abs() < 1e-6);
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
