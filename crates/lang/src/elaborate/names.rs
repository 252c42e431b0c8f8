// SPDX-License-Identifier: MIT OR Apache-2.0
//! Suggestions for misspelt names: `did you mean`.

/// The entry of `names` nearest to `name`, if it is near enough to be a likely misspelling.
pub fn nearest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted: Vec<char> = name.chars().take(65).collect();
    if wanted.len() > 64 {
        return None;
    }
    // A third of the letters may differ; a difference in case counts as half a letter.
    let limit = (wanted.len() * 2).div_ceil(3).clamp(1, 6);
    let best = names
        .into_iter()
        .filter(|n| *n != name && n.len().abs_diff(name.len()) <= 6)
        .map(|n| (distance(&wanted, n), n))
        .min_by_key(|&(d, n)| (d, n))?;
    (best.0 <= limit).then_some(best.1)
}

/// Edit distance with transpositions, in steps of one half.
fn distance(a: &[char], b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let change = |x: char, y: char| match () {
        () if x == y => 0,
        () if x.eq_ignore_ascii_case(&y) => 1,
        () => 2,
    };
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).map(|n| n * 2).collect();
    for (i, &x) in a.iter().enumerate() {
        let mut next = Vec::with_capacity(row.len());
        next.push((i + 1) * 2);
        for (j, (&y, pair)) in b.iter().zip(row.windows(2)).enumerate() {
            let (diagonal, up) = (pair.first().copied().unwrap_or(0), pair.last().copied().unwrap_or(0));
            let left = next.last().copied().unwrap_or(0);
            let mut best = (diagonal + change(x, y)).min(up + 2).min(left + 2);
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(&y) && b.get(j - 1) == Some(&x) && x != y;
            if let (true, Some(&d)) = (swapped, before.get(j.wrapping_sub(1))) {
                best = best.min(d + 2);
            }
            next.push(best);
        }
        before = std::mem::replace(&mut row, next);
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_meant() {
        let names = ["Counter", "Queue", "Discard", "IPFilter", "Tee"];
        for (name, want) in [
            ("Conter", Some("Counter")),
            ("counter", Some("Counter")),
            ("Coutner", Some("Counter")),
            ("Qeueu", Some("Queue")),
            ("ipfilter", Some("IPFilter")),
            ("Discrad", Some("Discard")),
            ("T", None),
            ("Zzzzzz", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, names), want, "{name}");
        }
        assert_eq!(distance(&['a', 'b'], "ba"), 2);
        assert_eq!(distance(&[], "ba"), 4);
        assert_eq!(distance(&['a'], "A"), 1);
    }
}
