// SPDX-License-Identifier: MIT OR Apache-2.0
//! Suggestions for misspelt names: `did you mean`.

use strsim::osa_distance;

/// Names with more characters than this are not compared.
const LONGEST: usize = 64;

/// The entry of `names` nearest to `name`, if it is near enough to be a likely misspelling. Upper and lower
/// case count as equal, so that `QUEUE` is near to `Queue`. Of two names that are equally near, the one with
/// fewer differences in case wins.
pub fn nearest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = name.chars().take(LONGEST + 1).count();
    if length > LONGEST {
        return None;
    }
    // A third of the letters may differ, at most three.
    let limit = (length * 2).div_ceil(3).min(6) / 2;
    let small = name.to_ascii_lowercase();
    let best = names
        .into_iter()
        .filter(|n| *n != name && n.len().abs_diff(name.len()) <= limit)
        .map(|n| (osa_distance(&small, &n.to_ascii_lowercase()), n))
        .filter(|near| near.0 <= limit)
        .min_by_key(|&(d, n)| (d, osa_distance(name, n), n))?;
    Some(best.1)
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
            ("QUEUE", Some("Queue")),
            ("T", None),
            ("Zzzzzz", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, names), want, "{name}");
        }
        assert_eq!(nearest("aC", ["ab", "AB", "aB"]), Some("aB"), "the same capitals win");
        assert_eq!(nearest(&"x".repeat(65), ["x".repeat(66).as_str()]), None);
    }
}
