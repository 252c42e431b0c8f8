// SPDX-License-Identifier: MIT OR Apache-2.0
//! AnnotationInfo: gives names to packet annotations.

use super::{Definition, each_argument};
use castanet_element::prelude::*;
use castanet_spec::anno;

/// Names packet annotations, and checks that annotations do not overlap.
///
/// An argument `NAME ANNO [SIZE]` gives the name NAME to the annotation ANNO, which is given by an existing name or by
/// a byte offset. SIZE is in bytes. Without SIZE, the size depends on ANNO. If ANNO is a name, NAME has the size of
/// that annotation. If ANNO is an offset, NAME has the size that is required where NAME is used. Arguments of other
/// elements can use NAME for the annotation. An argument `CHECK_OVERLAP ANNO...` is an error if two of these
/// annotations share a byte; annotations without a size count as one byte. Names are valid in the compound that
/// contains the element, and in compounds inside it. `#` starts a comment.
///
/// # Ports
/// None.
///
/// # Example
/// ```click
/// AnnotationInfo(COLOR 40 1, CHECK_OVERLAP COLOR DST_IP);
/// InfiniteSource(LIMIT 5, STOP true) -> Paint(3, ANNO COLOR) -> CheckPaint(3, ANNO COLOR) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "AnnotationInfo", ports = "0/0", processing = "a/a", packets = "/", workers = replicate, information)]
pub struct AnnotationInfo {
    args: Args,
}

/// Arguments of AnnotationInfo.
#[derive(Args)]
pub struct Args {
    /// A name, its annotation and optionally a size, or `CHECK_OVERLAP` and annotations.
    #[arg(rest)]
    pub def: Vec<Definition>,
}

/// The offset and the size of an annotation, in bytes. The size is `None` if it depends on the argument that uses the
/// annotation.
type OffsetAndSize = (usize, Option<usize>);

/// Returns the offset and the size of an annotation that is given by a name or an offset.
fn find(scope: &str, text: &str, size: Option<usize>, names: &Names) -> Result<OffsetAndSize, ValueError> {
    let known = names.annotation(scope, text);
    let size = size.or(known.and_then(|a| a.1));
    let offset = known.map_or_else(|| text.to_string(), |a| a.0.to_string());
    anno::find(&offset, size.unwrap_or(1)).map(|offset| (offset, size))
}

/// Returns the words before the first word that starts with `#`.
fn before_comment(words: &[String]) -> &[String] {
    words.split(|w| w.starts_with('#')).next().unwrap_or_default()
}

/// Checks that no two annotations share a byte.
fn check_overlap(scope: &str, annotations: &[String], names: &Names) -> Result<(), ValueError> {
    let mut found: Vec<(&String, usize, usize)> = Vec::new();
    for text in annotations {
        let (offset, size) = find(scope, text, None, names)?;
        let size = size.unwrap_or(1);
        if let Some((other, ..)) = found.iter().find(|(_, o, s)| *o < offset + size && offset < o + s) {
            return Err(format!("annotations '{other}' and '{text}' overlap").into());
        }
        found.push((text, offset, size));
    }
    Ok(())
}

impl Element for AnnotationInfo {}

impl Information for AnnotationInfo {
    fn inform(config: &str, scope: &str, names: &mut Names) -> Result<(), ConfigError> {
        each_argument(config, |words| match before_comment(words) {
            [] => Ok(()),
            [word, annotations @ ..] if word == "CHECK_OVERLAP" => check_overlap(scope, annotations, names),
            [name, annotation, size @ ..] if size.len() < 2 => {
                let cx = ArgCx { scope, names, origin: Origin::Operator };
                let size = match size.first() {
                    Some(n) => match usize::parse(n, &cx) {
                        Ok(size) if (1..=anno::SIZE).contains(&size) => Some(size),
                        Ok(_) => {
                            return Err(
                                format!("size '{n}': an annotation has 1 to {} bytes", anno::SIZE).into()
                            );
                        }
                        Err(e) => return Err(format!("size '{n}': {e}").into()),
                    },
                    None => None,
                };
                let (offset, size) = find(scope, annotation, size, names)?;
                names.define_annotation(scope, name, offset, size);
                Ok(())
            }
            _ => Err("expected 'NAME ANNO [SIZE]' or 'CHECK_OVERLAP ANNO...'".into()),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::messages;
    use super::*;

    #[test]
    fn names_and_sizes() {
        let mut names = Names::new();
        let config =
            "A 40 1, B PAINT, C 12, D A 2, E DST_IP6 # comment\n, CHECK_OVERLAP A B C, CHECK_OVERLAP";
        AnnotationInfo::inform(config, "in/", &mut names).unwrap();
        let all = ["A", "B", "C", "D", "E"].map(|n| names.annotation("in/deep/", n));
        assert_eq!(all, [(40, Some(1)), (16, Some(1)), (12, None), (40, Some(2)), (0, Some(16))].map(Some));
        assert_eq!(names.annotation("", "A"), None, "names are known inside only");
        let cx = ArgCx { scope: "in/", names: &names, origin: Origin::Operator };
        assert_eq!((Anno1::parse("A", &cx), Anno4::parse("C", &cx)), (Ok(Anno1(40)), Ok(Anno4(12))));
        assert_eq!(Anno1::parse("C", &cx), Ok(Anno1(12)), "the size is that of the argument");
        assert_eq!(Anno4::parse("A", &cx).unwrap_err(), "annotation 'A' has 1 bytes, 4 wanted".into());
    }

    #[test]
    fn errors() {
        let bad = AnnotationInfo::inform(
            "A, A 1 2 3, A NOPE, A 47 2, A 1 x, A 48 0, CHECK_OVERLAP DST_IP 3, CHECK_OVERLAP 3 DST_IP, CHECK_OVERLAP 0 4 8",
            "",
            &mut Names::new(),
        );
        let shape = "expected 'NAME ANNO [SIZE]' or 'CHECK_OVERLAP ANNO...'";
        let want = [
            shape,
            shape,
            "no annotation named 'NOPE'",
            "annotation offset 47 leaves no room for 2 bytes of 48",
            "size 'x': invalid number",
            "size '0': an annotation has 1 to 48 bytes",
            "annotations 'DST_IP' and '3' overlap",
            "annotations '3' and 'DST_IP' overlap",
        ];
        assert_eq!(messages(bad), want);
    }
}
