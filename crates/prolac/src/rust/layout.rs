// SPDX-License-Identifier: MIT OR Apache-2.0
//! Indentation of the printed program.

/// The brackets of a line outside strings, characters and comments: how many it closes before it opens any, and how many
/// it leaves open or closed in all.
fn brackets(line: &str) -> (usize, i32) {
    let (mut closes, mut depth, mut lowest) = (0usize, 0i32, 0i32);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                while let Some(c) = chars.next() {
                    match c {
                        '\\' => {
                            chars.next();
                        }
                        '"' => break,
                        _ => {}
                    }
                }
            }
            '/' if chars.peek() == Some(&'/') => break,
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => {
                depth -= 1;
                if depth < lowest {
                    lowest = depth;
                    closes += 1;
                }
            }
            _ => {}
        }
    }
    (closes, depth)
}

/// Indents each line by the brackets that are open before it. Several brackets that one line opens indent once.
pub(super) fn indented(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    // For each line with open brackets, how many it opened.
    let mut open: Vec<usize> = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.is_empty() {
            out.push('\n');
            continue;
        }
        let (mut closes, depth) = brackets(line);
        let opens = (depth + closes as i32).max(0) as usize;
        // The open brackets that remain of a line whose brackets this one closes in part.
        let mut left = 0;
        while closes > 0 {
            let Some(last) = open.pop() else { break };
            left = last.saturating_sub(closes);
            closes = closes.saturating_sub(last);
        }
        out.push_str(&"    ".repeat(open.len()));
        out.push_str(line);
        out.push('\n');
        if opens + left > 0 {
            open.push(opens + left);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_indent() {
        let two = "f({\na\n}, {\nb\n})\nc";
        assert_eq!(indented(two), "f({\n    a\n}, {\n    b\n})\nc\n");
        let text = "a {\nb(c, {\nd;\n// {\n\"{\\\"{\";\n});\n} else {\ne\n}\nf";
        let want = "a {\n    b(c, {\n        d;\n        // {\n        \"{\\\"{\";\n    });\n} else {\n    e\n}\nf\n";
        assert_eq!(indented(text), want);
    }
}
