// SPDX-License-Identifier: MIT OR Apache-2.0
#![allow(clippy::unwrap_used)]
use super::model::{Machine, Meeting, Point, Usl, Work, error, fit_handover};
use super::*;

fn near(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-3 * b.abs().max(1e-3), "{a} is not {b}");
}

#[test]
fn the_law_is_recovered_from_its_own_points() {
    for (sigma, kappa) in [(0.0, 0.0), (0.05, 0.0), (0.0, 0.002), (0.03, 0.0007), (0.4, 0.01)] {
        let law = Usl { sigma, kappa };
        let points: Vec<(usize, f64)> = [1, 2, 4, 8, 16].map(|n| (n, law.speedup(n, 1.0))).into();
        let fit = Usl::fit(&points).unwrap();
        near(fit.sigma, sigma);
        near(fit.kappa, kappa);
    }
    near(Usl { sigma: 0.1, kappa: 0.01 }.speedup(4, 1.0), 4.0 / (1.0 + 0.3 + 0.12));
    near(Usl { sigma: 0.1, kappa: 0.01 }.speedup(4, 2.0), 4.0 / (1.0 + 0.6 + 0.24));
}

#[test]
fn two_workers_do_not_determine_the_law() {
    assert_eq!(Usl::fit(&[(1, 1.0), (2, 1.8)]), None);
    assert_eq!(Usl::fit(&[(2, 1.8), (2, 1.7)]), None);
    let both = Usl::extremes(1.8);
    for law in both {
        near(law.speedup(2, 1.0), 1.8);
    }
    let [contention, coherence] = both.map(|law| law.speedup(64, 1.0));
    assert!(contention > 2.0 * coherence, "{contention} {coherence}");
    // A relative throughput above 2 with two workers is noise. It must not give a negative cost.
    assert_eq!(Usl::extremes(2.1), [Usl::default(); 2]);
}

#[test]
fn parameters_of_the_law_are_not_negative() {
    // Throughput that grows faster than the number of workers, throughput whose growth accelerates, and throughput that
    // collapses.
    for points in
        [[(2, 2.2), (4, 4.9), (8, 11.0)], [(2, 1.2), (4, 3.0), (8, 7.9)], [(2, 1.99), (4, 2.0), (8, 1.0)]]
    {
        let fit = Usl::fit(&points).unwrap();
        assert!(fit.sigma >= 0.0 && fit.kappa >= 0.0, "{fit:?}");
    }
}

#[test]
fn costs_at_a_lock() {
    let work = Work { outside: 70.0, under: 30.0 };
    for meeting in Meeting::ALL {
        near(work.cost(meeting, 5.0, 1), 100.0);
    }
    near(work.cost(Meeting::Always, 5.0, 2), 70.0 + 2.0 * 35.0);
    near(work.cost(Meeting::Never, 5.0, 2), 105.0);
    near(work.cost(Meeting::Never, 5.0, 10), 350.0);
    // The other worker holds the lock for 35 of every 105 ns, so this worker waits for it with this probability (closed
    // queue).
    near(work.cost(Meeting::Random, 5.0, 2), 70.0 + 35.0 * (1.0 + 35.0 / 105.0));
    // All models have the same limit of throughput: one packet per time under the lock.
    for meeting in Meeting::ALL {
        let limit = work.speedup(meeting, 5.0, 4096);
        assert!((limit - 100.0 / 35.0).abs() < 0.01, "{meeting:?} {limit}");
    }
}

/// Points of a sweep that a model describes exactly.
fn synthetic(meeting: Meeting, handover: f64) -> Vec<Point> {
    let point = |outside| {
        let work = Work { outside, under: 60.0 };
        Point { work, cost: work.cost(meeting, handover, 2) }
    };
    [1140.0, 340.0, 120.0, 40.0].map(point).into()
}

#[test]
fn the_hand_over_is_recovered_and_the_right_model_fits_best() {
    for truth in Meeting::ALL {
        let points = synthetic(truth, 25.0);
        near(fit_handover(&points, truth), 25.0);
        for other in Meeting::ALL {
            let found = error(&points, other, fit_handover(&points, other));
            assert_eq!(found < 1e-3, other == truth, "{truth:?} fitted as {other:?}: {found}");
        }
    }
    near(fit_handover(&synthetic(Meeting::Always, 0.0), Meeting::Always), 0.0);
}

#[test]
fn sockets() {
    let machine = Machine { socket: 4, factor: 3.0 };
    near(machine.factor(1), 1.0);
    near(machine.factor(4), 1.0);
    // Of 56 ordered pairs, 24 are within a socket.
    near(machine.factor(8), (24.0 + 32.0 * 3.0) / 56.0);
    near(machine.factor(5), (12.0 + 8.0 * 3.0) / 20.0);
    near(Machine { socket: 4, factor: 1.0 }.factor(64), 1.0);
}

fn row(name: &str, model: Model, [one, two]: [f64; 2], base: Option<f64>, target: Option<f64>) -> Row {
    let exact = |n| Spread { median: n, min: n, max: n };
    Row {
        name: name.into(),
        model,
        ns: [one, two].map(exact),
        extra: exact(two - one),
        rate: [exact(1e9 / one), exact(2e9 / two)],
        cpu: [one, two].map(exact),
        left: exact(one / two),
        base: base.map(exact),
        waited: exact(0.0),
        target,
    }
}

#[test]
fn the_range_of_the_rounds_is_that_of_the_prediction() {
    let mut shared = row("shared", Model::Shared, [50.0, 55.0], None, None);
    shared.left = Spread { median: 0.9, min: 0.8, max: 1.05 };
    let mut pairs = row("pairs", Model::Pairs, [50.0, 55.0], None, None);
    pairs.left = shared.left;
    let results = analyse(&settings(Vec::new()), vec![shared, pairs], Vec::new(), Vec::new());
    let four: Vec<[f64; 2]> = results.predictions.iter().map(|p| p.cores[0]).collect();
    // The lowest prediction attributes the whole loss with two workers (25 % more time per packet) to coherence. The
    // highest prediction assumes no loss.
    near(four[0][0], 4.0 / (1.0 + 0.125 * 12.0));
    near(four[0][1], 4.0);
    near(four[1][0], 3.2);
    near(four[1][1], 4.2);
}

fn settings(shipped: Vec<Shipped>) -> Settings {
    Settings { seconds: 0.0, rounds: 1, machine: Machine { socket: 64, factor: 1.0 }, shipped }
}

/// Results whose sweep follows the model of a queue with a hand-over of 20 ns.
fn results() -> Results {
    let kinds = vec![
        row("chains", Model::Nothing, [50.0, 50.0], None, None),
        row("shared", Model::Shared, [50.0, 55.0], None, None),
        row(CROSS, Model::Pairs, [100.0, 130.0], None, None),
        row(RETURN, Model::Pairs, [120.0, 160.0], None, None),
        row("sources", Model::SerialRest, [100.0, 110.0], Some(80.0), None),
        row("pullers", Model::SerialBase, [100.0, 110.0], Some(20.0), None),
    ];
    let shares = FITTED.into_iter().chain(LEFT_OUT).map(|percent| {
        let work = Work { outside: 60.0 / percent * 100.0 - 60.0, under: 60.0 };
        let cost = work.cost(Meeting::Random, 20.0, 2);
        row(
            "locked work",
            Model::Lock,
            [work.outside + 60.0, cost],
            Some(work.outside),
            Some(percent / 100.0),
        )
    });
    analyse(&settings(Vec::new()), kinds, shares.collect(), Vec::new())
}

#[test]
fn predictions_follow_the_models() {
    let results = results();
    let best = results.best().unwrap();
    assert_eq!(best.meeting, Meeting::Random);
    near(best.handover, 20.0);
    near(results.freed_elsewhere, 30.0 - 40.0 / 2.0);
    let at = |name: &str, cores: usize| {
        let p = results.predictions.iter().find(|p| p.name == name).unwrap();
        p.cores[CORES.iter().position(|n| *n == cores).unwrap()]
    };
    let all = |[low, high]: [f64; 2], [l, h]: [f64; 2]| {
        near(low, l);
        near(high, h);
    };
    all(at("chains", 64), [64.0, 64.0]);
    all(at("shared", 4), [4.0 / (1.0 + 0.05 * 12.0), 4.0 / (1.0 + 0.1 * 3.0)]);
    all(at(CROSS, 8), [8.0 * 100.0 / 130.0; 2]);
    // The puller takes 20 ns for each packet, or 30 ns if the whole extra cost falls on it.
    all(at("sources", 64), [100.0 / 30.0, 100.0 / 20.0]);
    all(at("pullers", 64), [100.0 / 30.0, 100.0 / 20.0]);
    all(at("pullers", 4), [100.0 / 30.0, 4.0 * 100.0 / 110.0]);
    all(at("locked work, 60 %", 64), [100.0 / 80.0; 2]);
}

#[test]
fn reports() {
    let mut results = results();
    results
        .shipped
        .push((row("ip-router", Model::Shared, [80.0, 82.0], None, None), "shared: 3 Queue".into()));
    let table = report::table(&results);
    for text in
        ["chains", "ip-router: shared: 3 Queue", "45 %, left out", "closed queue", "4 to", "10.0 ns of"]
    {
        assert!(table.contains(text), "{text}: {table}");
    }
    let csv = report::csv(&results);
    assert!(csv.lines().all(|l| l.split(',').count() >= 6), "{csv}");
    assert!(csv.contains("predicted,\"chains\",64,64.0000,64.0000,64.0000"), "{csv}");
    let json = report::json(&results);
    assert_eq!(json["scale"]["kinds"][1]["extra_ns"]["median"], 5.0);
    assert_eq!(json["scale"]["predictions"][0]["cores"][4]["high"], 64.0);
    let picture = svg(&results);
    assert!(picture.starts_with("<svg") && picture.contains("locked work, 60 %") && !picture.contains("NaN"));
}

#[test]
fn every_configuration_delivers_packets() {
    let shares = [(20, 0), (20, 5)].map(|(steps, elements)| cases::locked(steps, elements, None));
    for case in cases::all().into_iter().chain(shares) {
        let found = rounds(&case, 1, Duration::from_millis(4)).unwrap();
        let round = found.first().unwrap();
        assert!(round.one.rate > 0.0 && round.two.rate > 0.0, "{}: {round:?}", case.name);
        assert_eq!(round.base.is_some(), case.base.is_some(), "{}", case.name);
    }
}

#[test]
fn a_configuration_with_an_error_is_reported_by_name() {
    let mut case = cases::locked(1, 1, None);
    case.text = "this is not -> known".into();
    let error = quiet(&case, &case.text, 1, Duration::ZERO).unwrap_err();
    assert!(error.starts_with("locked work, 1 workers: "), "{error}");
}
