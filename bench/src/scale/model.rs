// SPDX-License-Identifier: MIT OR Apache-2.0
//! The models: the Universal Scalability Law, and three models of workers that share a lock.

/// The Universal Scalability Law (Gunther): throughput of N workers, relative to one, is
/// N / (1 + sigma (N - 1) + kappa N (N - 1)).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usl {
    /// Contention: the share of the work that is serial.
    pub sigma: f64,
    /// Coherence: the cost of agreement between each pair of workers.
    pub kappa: f64,
}

impl Usl {
    /// Throughput of `n` workers relative to one worker. `factor` multiplies both costs, `sigma` and `kappa`.
    pub fn speedup(self, n: usize, factor: f64) -> f64 {
        let n = n as f64;
        n / (1.0 + factor * (self.sigma + self.kappa * n) * (n - 1.0))
    }

    /// Fits both parameters to points (workers, throughput relative to one worker) by least squares. Neither parameter
    /// becomes negative. At least two different numbers of workers above 1 are needed to determine both parameters.
    /// Returns none if the points have fewer.
    pub fn fit(points: &[(usize, f64)]) -> Option<Usl> {
        // By the model, (N / throughput - 1) / (N - 1) is sigma + kappa N, a straight line over N.
        let line = points.iter().filter(|(n, s)| *n > 1 && *s > 0.0);
        let line: Vec<(f64, f64)> =
            line.map(|&(n, s)| (n as f64, (n as f64 / s - 1.0) / (n as f64 - 1.0))).collect();
        let count = line.len() as f64;
        let mean = |f: &dyn Fn(&(f64, f64)) -> f64| line.iter().map(f).sum::<f64>() / count.max(1.0);
        let (x, y) = (mean(&|p| p.0), mean(&|p| p.1));
        let spread = mean(&|p| (p.0 - x) * (p.0 - x));
        if spread <= 0.0 {
            return None;
        }
        let kappa = mean(&|p| (p.0 - x) * (p.1 - y)) / spread;
        // If one parameter would be negative, it is 0, and the other one is fitted alone.
        Some(if kappa < 0.0 {
            Usl { sigma: y.max(0.0), kappa: 0.0 }
        } else if y - kappa * x < 0.0 {
            Usl { sigma: 0.0, kappa: (mean(&|p| p.0 * p.1) / mean(&|p| p.0 * p.0)).max(0.0) }
        } else {
            Usl { sigma: y - kappa * x, kappa }
        })
    }

    /// The two extreme laws that agree with a measured throughput of two workers: all loss is contention, or all loss
    /// is coherence. A measurement with two workers determines only sigma + 2 kappa.
    pub fn extremes(of_two: f64) -> [Usl; 2] {
        let loss = (2.0 / of_two.max(1e-9) - 1.0).max(0.0);
        [Usl { sigma: loss, kappa: 0.0 }, Usl { sigma: 0.0, kappa: loss / 2.0 }]
    }
}

/// How workers contend for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meeting {
    /// Each time a worker acquires the lock, it waits for all others (Amdahl).
    Always,
    /// The times between acquisitions are random (a closed queue, solved by mean value analysis).
    Random,
    /// Workers take turns at the lock, in a fixed order. They wait only if the lock is saturated.
    Never,
}

impl Meeting {
    /// All models.
    pub const ALL: [Meeting; 3] = [Meeting::Always, Meeting::Random, Meeting::Never];

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Meeting::Always => "Amdahl",
            Meeting::Random => "queue",
            Meeting::Never => "turns",
        }
    }
}

/// A packet's time outside and under a lock, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// The time outside the lock.
    pub outside: f64,
    /// The time under the lock.
    pub under: f64,
}

impl Work {
    /// The nanoseconds of worker time per packet if `n` workers share the lock. `handover` is the additional time under
    /// the lock, per packet, if another worker held the lock before.
    pub fn cost(self, meeting: Meeting, handover: f64, n: usize) -> f64 {
        if n <= 1 {
            return self.outside + self.under;
        }
        let (workers, under) = (n as f64, self.under + handover);
        match meeting {
            Meeting::Always => self.outside + workers * under,
            Meeting::Never => (self.outside + under).max(workers * under),
            Meeting::Random => {
                let (mut waiting, mut stay) = (0.0, under);
                for i in 1..=n {
                    stay = under * (1.0 + waiting);
                    waiting = i as f64 * stay / (self.outside + stay).max(1e-9);
                }
                self.outside + stay
            }
        }
    }

    /// Throughput relative to one worker.
    pub fn speedup(self, meeting: Meeting, handover: f64, n: usize) -> f64 {
        n as f64 * self.cost(meeting, 0.0, 1) / self.cost(meeting, handover, n).max(1e-9)
    }
}

/// The measured time per packet of two workers that share a lock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The parts of the work, measured with one worker.
    pub work: Work,
    /// The worker time per packet in nanoseconds, measured with two workers.
    pub cost: f64,
}

impl Point {
    /// The error of a model for this point, relative to the measured cost.
    pub fn error(&self, meeting: Meeting, handover: f64) -> f64 {
        self.work.cost(meeting, handover, 2) / self.cost.max(1e-9) - 1.0
    }
}

/// The root of the mean square of the relative errors of a model.
pub fn error(points: &[Point], meeting: Meeting, handover: f64) -> f64 {
    let sum: f64 = points.iter().map(|p| p.error(meeting, handover).powi(2)).sum();
    (sum / points.len().max(1) as f64).sqrt()
}

/// Fits the hand-over time to points by least squares of relative errors. The result is never negative.
pub fn fit_handover(points: &[Point], meeting: Meeting) -> f64 {
    let most = points.iter().map(|p| p.cost).fold(0.0, f64::max);
    let (mut from, mut to) = (0.0, most);
    let mut best = 0.0;
    // Searches on a grid, then on finer grids around the best value. A descent could end in a wrong minimum: with
    // `Meeting::Never` the error has several minima.
    for _ in 0..6 {
        let step = (to - from) / 200.0;
        let grid = (0..=200).map(|i| from + f64::from(i) * step);
        let found = grid.min_by(|a, b| error(points, meeting, *a).total_cmp(&error(points, meeting, *b)));
        best = found.unwrap_or_default();
        (from, to) = ((best - step).max(0.0), best + step);
    }
    best
}

/// The sockets of a machine, and the cost of communication between them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// The number of cores per socket.
    pub socket: usize,
    /// The cost of communication between processor sockets, relative to that within a socket.
    pub factor: f64,
}

impl Machine {
    /// The mean cost of communication between two of `n` workers, relative to the cost within a processor socket.
    /// Workers fill one socket after the other, and all pairs of workers communicate equally often.
    pub fn factor(&self, n: usize) -> f64 {
        let socket = self.socket.max(1);
        let (full, rest) = (n / socket, n % socket);
        let pairs = |k: usize| (k * k.saturating_sub(1)) as f64;
        let within = full as f64 * pairs(socket) + pairs(rest);
        let all = pairs(n).max(1.0);
        if n <= 1 { 1.0 } else { (within + (all - within) * self.factor) / all }
    }
}
