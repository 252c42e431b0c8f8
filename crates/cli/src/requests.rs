// SPDX-License-Identifier: MIT OR Apache-2.0
//! Handlers of the option `-h`: `ELEMENT.HANDLER`, where the element may be a glob or a class.

use castanet_runtime::Router;

/// The values of handlers, and the errors.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// For standard output.
    pub text: String,
    /// Lines for standard error.
    pub errors: Vec<String>,
}

/// Whether a text matches a glob of `*`, `?` and `[...]`. Only the last `*` is retried, so the time is at most quadratic.
pub fn matches(glob: &str, text: &str) -> bool {
    let (g, t): (Vec<char>, Vec<char>) = (glob.chars().collect(), text.chars().collect());
    let (mut i, mut j, mut star) = (0, 0, None);
    while j < t.len() {
        let (ok, next) = match (g.get(i), t.get(j)) {
            (Some('*'), _) => {
                star = Some((i, j));
                i += 1;
                continue;
            }
            (Some('?'), _) => (true, i + 1),
            (Some('['), Some(&c)) => one_of(&g, i, c),
            (Some(a), Some(b)) => (a == b, i + 1),
            _ => (false, i),
        };
        if ok {
            (i, j) = (next, j + 1);
        } else if let Some((si, sj)) = star {
            (i, j, star) = (si + 1, sj + 1, Some((si, sj + 1)));
        } else {
            return false;
        }
    }
    g.get(i..).is_none_or(|rest| rest.iter().all(|&c| c == '*'))
}

/// Whether the set that starts at `g[i]` contains `c`, and the index after the set. An unclosed `[` is a plain character.
fn one_of(g: &[char], i: usize, c: char) -> (bool, usize) {
    let Some(end) = g.iter().skip(i + 2).position(|&x| x == ']').map(|n| n + i + 2) else {
        return (c == '[', i + 1);
    };
    let set = g.get(i + 1..end).unwrap_or_default();
    let (not, set) = match set {
        ['!' | '^', rest @ ..] if !rest.is_empty() => (true, rest),
        s => (false, s),
    };
    let mut found = false;
    let mut k = 0;
    while let Some(&a) = set.get(k) {
        match (set.get(k + 1), set.get(k + 2)) {
            (Some('-'), Some(&b)) => {
                found |= (a..=b).contains(&c);
                k += 3;
            }
            _ => {
                found |= a == c;
                k += 1;
            }
        }
    }
    (found != not, end + 1)
}

/// The elements that a request matches, and whether its answer is printed in blocks.
fn elements(router: &Router, pattern: &str) -> Result<(Vec<u32>, bool), String> {
    let shared = router.shared();
    if let Some(e) = router.find(pattern) {
        return Ok((vec![e], false));
    }
    let all = 0..shared.graph.len() as u32;
    let named = |f: &dyn Fn(u32) -> bool| all.clone().filter(|&e| f(e)).collect::<Vec<_>>();
    if pattern.contains(['*', '?', '[']) {
        return Ok((named(&|e| matches(pattern, shared.graph.name(e as usize))), true));
    }
    let class = named(&|e| shared.graph.element(e as usize).is_some_and(|x| x.class == pattern));
    if class.is_empty() { Err(format!("no element '{pattern}'")) } else { Ok((class, true)) }
}

/// Answers requests in order. A single request for one element prints the raw value; several requests, or a pattern, print blocks.
pub fn answer(router: &mut Router, requests: &[String]) -> Answers {
    let mut out = Answers::default();
    let mut values: Vec<(String, String)> = Vec::new();
    let mut blocks = requests.len() > 1;
    for request in requests {
        let Some((pattern, handler)) = request.rsplit_once('.') else {
            match router.read(None, request, "") {
                Ok(v) => values.push((request.clone(), v)),
                Err(_) => out.errors.push(wrong(router, None, request)),
            }
            continue;
        };
        match elements(router, pattern) {
            Ok((found, many)) => {
                blocks |= many;
                for e in found {
                    let name = format!("{}.{handler}", router.shared().graph.name(e as usize));
                    match router.read(Some(e), handler, "") {
                        Ok(v) => values.push((name, v)),
                        Err(_) if many => {}
                        Err(_) => out.errors.push(wrong(router, Some(e), handler)),
                    }
                }
            }
            Err(e) => out.errors.push(e),
        }
    }
    for (name, value) in values {
        if blocks {
            out.text += &format!("{name}:\n");
        }
        out.text += &value;
        if !value.ends_with('\n') {
            out.text.push('\n');
        }
        if blocks {
            out.text.push('\n');
        }
    }
    out
}

fn wrong(router: &Router, element: Option<u32>, handler: &str) -> String {
    let shared = router.shared();
    let name = shared.handler_name(element, handler);
    let declared =
        element.and_then(|e| shared.spec(e)).and_then(|s| s.all_handlers().find(|h| h.name == handler));
    let global = castanet_runtime::handlers::GLOBAL.iter().any(|g| element.is_none() && g.0 == handler);
    if declared.is_some_and(|h| !h.readable()) || global {
        format!("'{name}' is a write handler")
    } else {
        format!("no '{name}' handler")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs() {
        for (g, t, want) in [
            ("*", "", true),
            ("*", "abc", true),
            ("a*c", "abbc", true),
            ("a*c", "abbd", false),
            ("?", "", false),
            ("a?c", "abc", true),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[^a]x", "bx", true),
            ("[]]", "]", true),
            ("[", "[", true),
            ("c*.d*", "c.d", true),
            ("**", "x", true),
            ("", "x", false),
        ] {
            assert_eq!(matches(g, t), want, "{g} {t}");
        }
        let evil = "*a".repeat(200);
        assert!(!matches(&evil, &"a".repeat(150)));
    }
}
