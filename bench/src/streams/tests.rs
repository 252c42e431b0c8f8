// SPDX-License-Identifier: MIT OR Apache-2.0
#![allow(clippy::unwrap_used)]

use super::*;

fn results() -> Results {
    let quartiles = |median: f64| Quartiles { lower: 0.9 * median, median, upper: 1.1 * median };
    let measured = |name: &str, offloads, rate: f64| Measured {
        name: name.into(),
        offloads,
        rate: quartiles(rate),
        ratio: quartiles(rate / 20.0),
        latency: quartiles(50.0),
    };
    Results {
        trials: 5,
        routers: vec![
            measured("kernel", Offloads::Defaults, 20.0),
            measured("packet", Offloads::Off, 5.0),
            measured("af-xdp", Offloads::Completed, 10.0),
        ],
    }
}

#[test]
fn tables_show_everything() {
    let text = report::table(&results());
    let lines: Vec<&str> = text.lines().skip(1).collect();
    assert!(lines.len() == 4 && lines.iter().all(|l| l.len() == lines[0].len()), "{text}");
    let words: Vec<&str> = lines[2].split_whitespace().collect();
    assert_eq!(words.join(" "), "packet off 5.00 (4.50 to 5.50) 0.25 50.0 (45.0 to 55.0)");
}

#[test]
fn csv_and_json_say_the_same() {
    let (csv, json) = (report::csv(&results()), report::json(&results()));
    assert_eq!(csv.lines().count(), 1 + 3 * 3);
    assert!(csv.contains("\naf-xdp,completed by the hosts,rate,Gb/s,10.0000,9.0000,11.0000\n"), "{csv}");
    assert_eq!(json["streams"]["routers"][2]["gbps"]["median"], 10.0);
    assert_eq!(json["streams"]["routers"][1]["offloads"], "off");
}

#[test]
fn pictures_have_a_bar_for_each_router() {
    let picture = svg(&results());
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
    assert_eq!(picture.matches("<rect x=").count(), 3);
    assert!(picture.contains(">af-xdp, completed by the hosts<"), "{picture}");
}
