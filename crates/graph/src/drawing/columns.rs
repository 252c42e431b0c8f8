// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses horizontal positions in a drawing, so that connected boxes are aligned, long edges are straight, and boxes do
//! not overlap.

use super::layout::Cells;

impl Cells {
    fn distance(&self, a: usize, b: usize) -> f64 {
        let gap = match (a < self.boxes, b < self.boxes) {
            (true, true) => 24.0,
            (false, false) => 14.0,
            _ => 18.0,
        };
        (self.width[a] + self.width[b]) / 2.0 + gap
    }

    /// Sets the horizontal middle of each box. Layer by layer, boxes move towards the boxes they are connected to. The
    /// boxes of a layer keep their order and their minimum distances.
    pub(crate) fn place(&mut self, rows: &[Vec<usize>]) {
        for row in rows {
            let mut at = 0.0;
            for (i, &c) in row.iter().enumerate() {
                at += i.checked_sub(1).and_then(|i| row.get(i)).map_or(0.0, |&p| self.distance(p, c));
                self.x[c] = at;
            }
        }
        let rounds = if self.layer.len() > 5000 { 6 } else { 40 };
        for round in 0..rounds {
            let last = round + 4 >= rounds;
            for step in 0..rows.len() {
                let down = round % 2 == 0;
                let row = &rows[if down { step } else { rows.len() - 1 - step }];
                let wanted: Vec<(f64, f64)> = row.iter().map(|&c| self.wanted(c, down, last)).collect();
                self.place_row(row, &wanted);
            }
        }
    }

    /// Straightens long edges where the boxes beside them leave enough space, then repositions the boxes.
    pub(crate) fn straighten(&mut self, rows: &[Vec<usize>], chains: &[Vec<usize>]) {
        let mut sides: Vec<[Option<usize>; 2]> = vec![[None; 2]; self.x.len()];
        for w in rows.iter().flat_map(|r| r.windows(2)) {
            sides[w[0]][1] = Some(w[1]);
            sides[w[1]][0] = Some(w[0]);
        }
        for _ in 0..8 {
            for chain in chains {
                self.straighten_one(chain, &sides);
            }
            for row in rows {
                let fixed =
                    |c: usize| if c < self.boxes { self.wanted(c, true, true) } else { (self.x[c], 1000.0) };
                let wanted: Vec<(f64, f64)> = row.iter().map(|&c| fixed(c)).collect();
                self.place_row(row, &wanted);
            }
        }
        let left = (0..self.x.len()).map(|c| self.x[c] - self.width[c] / 2.0).fold(f64::INFINITY, f64::min);
        if left.is_finite() {
            self.x.iter_mut().for_each(|x| *x -= left);
        }
    }

    fn straighten_one(&mut self, chain: &[usize], sides: &[[Option<usize>; 2]]) {
        let mut start = 0;
        while start < chain.len() {
            let (mut low, mut high, mut sum) = (f64::NEG_INFINITY, f64::INFINITY, 0.0);
            let mut end = start;
            for &c in &chain[start..] {
                let [left, right] = sides[c];
                let l = left.map_or(low, |n| (self.x[n] + self.distance(n, c)).max(low));
                let h = right.map_or(high, |n| (self.x[n] - self.distance(c, n)).min(high));
                if l > h {
                    break;
                }
                (low, high) = (l, h);
                sum += self.x[c];
                end += 1;
            }
            if end > start {
                let x = (sum / (end - start) as f64).clamp(low, high);
                for &c in &chain[start..end] {
                    self.x[c] = x;
                }
            }
            start = end.max(start + 1);
        }
    }

    fn place_row(&mut self, row: &[usize], wanted: &[(f64, f64)]) {
        let gaps: Vec<f64> = row.windows(2).map(|w| self.distance(w[0], w[1])).collect();
        for (&c, x) in row.iter().zip(nearest_allowed(wanted, &gaps)) {
            self.x[c] = x;
        }
    }

    /// Whether the edge between two connected boxes is the only edge at the bottom of the upper box and the only edge
    /// at the top of the lower box.
    fn only_pair(&self, a: usize, b: usize) -> bool {
        let (upper, lower) = if self.layer[a] < self.layer[b] { (a, b) } else { (b, a) };
        self.below[upper].len() == 1 && self.above[lower].len() == 1
    }

    /// The preferred horizontal position of a cell (a box, or a point of an edge), and the weight of this preference.
    /// Points of long edges have the greatest weight, which keeps these edges straight.
    fn wanted(&self, c: usize, down: bool, both: bool) -> (f64, f64) {
        let (first, second) =
            if down { (&self.above[c], &self.below[c]) } else { (&self.below[c], &self.above[c]) };
        let (mut sum, mut weight) = (0.0, 0.0);
        let lists = if both || first.is_empty() {
            [first.as_slice(), second.as_slice()]
        } else {
            [first.as_slice(), &[]]
        };
        for &(n, own, theirs) in lists.into_iter().flatten() {
            let w = match (c < self.boxes, n < self.boxes) {
                (false, false) => 8.0,
                (true, true) if self.only_pair(c, n) => 6.0,
                (true, true) => 2.0,
                _ => 1.0,
            };
            sum += w * (self.x[n] + theirs - own);
            weight += w;
        }
        if weight == 0.0 { (self.x[c], 0.01) } else { (sum / weight, weight) }
    }
}

/// Of all positions that keep the order and the gaps, returns those closest to the preferred ones (weighted least
/// squares). Uses the pool-adjacent-violators algorithm.
fn nearest_allowed(wanted: &[(f64, f64)], gaps: &[f64]) -> Vec<f64> {
    // Each pool holds neighbouring positions that share one mean: (mean, weight, number of positions). The sum of the
    // gaps before a position is subtracted from the position.
    let mut pools: Vec<(f64, f64, usize)> = Vec::new();
    let mut offset = 0.0;
    let mut offsets = Vec::with_capacity(wanted.len());
    for (i, &(x, w)) in wanted.iter().enumerate() {
        offset += i.checked_sub(1).and_then(|i| gaps.get(i)).copied().unwrap_or(0.0);
        offsets.push(offset);
        let mut pool = (x - offset, w, 1);
        while let Some(&(mean, weight, members)) = pools.last() {
            if mean <= pool.0 {
                break;
            }
            pools.pop();
            let sum = weight + pool.1;
            pool = ((mean * weight + pool.0 * pool.1) / sum, sum, members + pool.2);
        }
        pools.push(pool);
    }
    let means = pools.into_iter().flat_map(|(mean, _, members)| std::iter::repeat_n(mean, members));
    means.zip(offsets).map(|(mean, offset)| mean + offset).collect()
}

#[cfg(test)]
mod tests {
    use super::nearest_allowed;

    #[test]
    fn places_keep_their_distance() {
        assert_eq!(nearest_allowed(&[(0.0, 1.0), (100.0, 1.0)], &[10.0]), [0.0, 100.0]);
        assert_eq!(nearest_allowed(&[(0.0, 1.0), (0.0, 1.0)], &[10.0]), [-5.0, 5.0]);
        assert_eq!(nearest_allowed(&[(50.0, 3.0), (0.0, 1.0)], &[10.0]), [35.0, 45.0]);
        assert_eq!(nearest_allowed(&[], &[]), [0.0; 0]);
    }
}
