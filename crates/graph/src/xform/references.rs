// SPDX-License-Identifier: MIT OR Apache-2.0
//! Elements whose names occur in the configuration strings of others.

use castanet_lang::{Flat, args};
use castanet_spec::{ArgSpec, ClassSpecs};
use std::collections::{HashMap, HashSet};

/// What occurs in the names of argument types whose words may be names of elements. A class whose elements an argument names is a
/// type, too.
const NAMING: [&str; 6] = ["element", "handler", "script", "rewriter", "definition", "route table"];

/// For each element that is named in a configuration string, the element whose configuration string names it. A name counts
/// before a dot, as in `counter.reset`. Alone, it counts only in arguments that may name elements, and in those of unknown
/// classes.
pub(super) fn references(flat: &Flat, classes: &dyn ClassSpecs) -> HashMap<String, String> {
    let names: HashSet<&str> = flat.elements.iter().map(|e| e.name.as_str()).collect();
    let mut found = HashMap::new();
    for e in flat.elements.iter().filter(|e| !e.config.is_empty()) {
        let spec = classes.spec(&e.class);
        let mut position = 0;
        for range in args::split(&e.config) {
            let arg = args::cleaned(&e.config, range);
            let (text, argument) = declared(spec.map_or(&[], |s| s.args), &arg, &mut position);
            let naming = spec.is_none()
                || argument.is_some_and(|a| {
                    NAMING.iter().any(|n| a.type_name.contains(n)) || classes.spec(a.type_name).is_some()
                });
            let is_part = |c: char| c.is_alphanumeric() || "_@/.:".contains(c);
            for word in text.split(|c| !is_part(c)).filter(|w| !w.contains(':')) {
                let name = match word.split_once('.') {
                    Some((name, _)) => name,
                    None if naming => word,
                    None => continue,
                };
                if let Some(target) = find_from(&names, e.scope(), name)
                    && target != e.name
                {
                    found.entry(target).or_insert_with(|| e.name.clone());
                }
            }
        }
    }
    found
}

/// Looks a name up from a scope outward.
fn find_from(names: &HashSet<&str>, mut scope: &str, name: &str) -> Option<String> {
    if name.is_empty() {
        return None;
    }
    loop {
        let full = format!("{scope}{name}");
        if names.contains(full.as_str()) {
            return Some(full);
        }
        if scope.is_empty() {
            return None;
        }
        scope = outer(scope);
    }
}

/// Returns the scope around a scope: `a/` for `a/b/`.
pub(super) fn outer(scope: &str) -> &str {
    let inner = scope.strip_suffix('/').unwrap_or("");
    inner.rfind('/').and_then(|i| scope.get(..=i)).unwrap_or("")
}

/// Returns the value of an argument, without its keyword, and the declaration of the argument. `position` counts the
/// arguments without keyword.
fn declared<'a>(specs: &'a [ArgSpec], arg: &'a str, position: &mut usize) -> (&'a str, Option<&'a ArgSpec>) {
    use castanet_spec::ArgKind::{Keyword, Rest};
    if let Some((keyword, value)) = args::keyword(arg)
        && let Some(spec) = specs.iter().find(|s| s.name == keyword || s.aliases.contains(&keyword))
    {
        return (arg.get(value).unwrap_or(""), Some(spec));
    }
    let spec = specs.iter().filter(|s| s.kind != Keyword).nth(*position);
    *position += 1;
    (arg, spec.or_else(|| specs.iter().find(|s| s.kind == Rest)))
}

#[cfg(test)]
mod tests {
    use super::outer;

    #[test]
    fn scopes_around_scopes() {
        for (scope, want) in [("", ""), ("a/", ""), ("a/b/", "a/"), ("a/b/c/", "a/b/")] {
            assert_eq!(outer(scope), want);
        }
    }
}
