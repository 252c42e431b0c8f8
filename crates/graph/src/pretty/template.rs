// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fills in a template: HTML with tags `<? NAME ?>`.

/// Replaces each tag of a template by its text. Words after the name of a tag are ignored. `<?xml ... ?>` stays as it
/// is, and so does a tag without an end. Returns the page, and the names for which `text` returned `None`; these tags
/// are left out.
pub(super) fn fill(template: &str, mut text: impl FnMut(&str) -> Option<String>) -> (String, Vec<String>) {
    let (mut out, mut unknown) = (String::with_capacity(template.len()), Vec::new());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("<?") {
        out.push_str(before);
        let Some((tag, behind)) = after.split_once("?>") else {
            rest = rest.get(before.len()..).unwrap_or("");
            break;
        };
        rest = behind;
        match tag.split_whitespace().next() {
            Some("xml") => {
                out.push_str("<?");
                out.push_str(tag);
                out.push_str("?>");
            }
            name => {
                let name = name.unwrap_or("");
                match text(name) {
                    Some(text) => out.push_str(&text),
                    None if unknown.iter().any(|u| u == name) => {}
                    None => unknown.push(name.to_string()),
                }
            }
        }
    }
    out.push_str(rest);
    (out, unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags() {
        let filled = |template: &str| fill(template, |name| (name == "a").then(|| "<? b ?>".to_string()));
        for (template, want, unknown) in [
            ("", "", &[][..]),
            ("x<?a?>y", "x<? b ?>y", &[]),
            ("<?xml version=\"1.0\"?><?\na  more?>", "<?xml version=\"1.0\"?><? b ?>", &[]),
            ("<? c ?><? c ?><?d?>.", ".", &["c", "d"]),
            ("<??>", "", &[""]),
            ("x <? a", "x <? a", &[]),
            ("?> <? a ?> <?", "?> <? b ?> <?", &[]),
        ] {
            assert_eq!(
                filled(template),
                (want.to_string(), unknown.iter().map(|u| u.to_string()).collect()),
                "{template}"
            );
        }
    }
}
