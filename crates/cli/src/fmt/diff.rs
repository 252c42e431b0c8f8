// SPDX-License-Identifier: MIT OR Apache-2.0
//! The difference between a text and its formatted form.

use similar::TextDiff;
use std::time::Instant;

/// The largest text that is compared thoroughly, in lines. The time of the comparison grows with the square of the
/// number of changed lines.
const MOST_LINES: usize = 5000;

/// Returns the difference as a unified diff, which `patch` accepts. In a large text, everything between the first and
/// the last difference counts as changed.
pub fn unified(name: &str, before: &str, after: &str) -> String {
    let mut comparison = TextDiff::configure();
    if before.lines().count().max(after.lines().count()) > MOST_LINES {
        // At its deadline, the comparison ends with what is common at the start and the end of both texts.
        comparison.deadline(Instant::now());
    }
    let diff = comparison.diff_lines(before, after);
    diff.unified_diff().header(name, &format!("{name} (formatted)")).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_texts_are_compared_in_linear_time() {
        let lines = |word: &str| (0..100_000).fold(String::new(), |s, n| s + word + &n.to_string() + "\n");
        let (before, after) = (format!("a\n{}b", lines("c")), format!("a\n{}b", lines("d")));
        let diff = unified("f", &before, &after);
        assert!(
            diff.starts_with("--- f\n+++ f (formatted)\n@@ -1,100002 +1,100002 @@\n a\n-c0\n"),
            "{diff:.100}"
        );
        assert!(diff.ends_with("+d99999\n b\n\\ No newline at end of file\n"));
    }
}
