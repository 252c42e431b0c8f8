// SPDX-License-Identifier: MIT OR Apache-2.0
//! The formula of random early detection (Floyd and Jacobson 1993).

/// The arguments of a gentle RED.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Red {
    /// The queue length up to which no packet is dropped.
    pub min: f64,
    /// The queue length at which the probability is `max_p`.
    pub max: f64,
    /// The drop probability at `max`.
    pub max_p: f64,
}

impl Red {
    /// The drop probability, without the correction that spaces drops evenly (section 4).
    pub fn probability(self, average: f64) -> f64 {
        let Red { min, max, max_p } = self;
        if average <= min {
            0.0
        } else if average <= max {
            max_p * (average - min) / (max - min)
        } else {
            (max_p + (1.0 - max_p) * (average - max) / max).min(1.0)
        }
    }

    /// The share of packets dropped: the inverse of the mean distance between drops. If the drop probability is
    /// p, each distance up to 1/p is equally likely (section 7, method 2).
    pub fn share(self, average: f64) -> f64 {
        let p = self.probability(average);
        if p <= 0.0 {
            return 0.0;
        }
        let whole = (1.0 / p).floor();
        let mean = p * whole * (whole + 1.0) / 2.0 + (1.0 - p * whole) * (whole + 1.0);
        1.0 / mean
    }
}

#[cfg(test)]
mod tests {
    use super::Red;

    #[test]
    fn follows_the_paper() {
        let red = Red { min: 20.0, max: 80.0, max_p: 0.2 };
        for (average, p) in
            [(0.0, 0.0), (20.0, 0.0), (50.0, 0.1), (80.0, 0.2), (120.0, 0.6), (160.0, 1.0), (500.0, 1.0)]
        {
            assert!((red.probability(average) - p).abs() < 1e-12, "{average}");
            // The share is approximately 2p / (1 + p), and exactly that if 1/p is a whole number.
            let share = red.share(average);
            assert!((share - 2.0 * p / (1.0 + p)).abs() < 0.05, "{average}: {share}");
            if [0.1, 0.2, 1.0].contains(&p) {
                assert!((share - 2.0 * p / (1.0 + p)).abs() < 1e-9, "{average}: {share}");
            }
        }
    }
}
