// SPDX-License-Identifier: MIT OR Apache-2.0
//! ScheduleInfo: gives tasks unequal shares of the processor.

use super::{Definition, each_argument, no_element};
use castanet_element::prelude::*;

/// Gives tasks unequal shares of the processor.
///
/// Each argument is the name of an element and the share of its task, as a multiple of the ordinary share. The ordinary
/// share is 1 and stands for 1024 tickets of the stride scheduler. If the name is that of a compound, the number is a
/// factor for the shares of all elements inside it. The share of an element is multiplied by the factors of all
/// compounds around it.
///
/// In the configurations of the Click paper (SOSP 1999), `ScheduleLinux` gives Linux its share of the processor.
/// Outside the kernel this is not necessary, so `ScheduleLinux` has no effect.
///
/// # Ports
/// None.
///
/// # Example
/// ```click
/// ScheduleInfo(a 1, b 2.5);
/// a :: InfiniteSource -> Discard;
/// b :: InfiniteSource(LIMIT 100, STOP true) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "ScheduleInfo", aliases("ScheduleLinux"), ports = "0/0", processing = "a/a", packets = "/", workers = replicate, information)]
pub struct ScheduleInfo {
    args: Args,
}

/// Arguments of ScheduleInfo.
#[derive(Args)]
pub struct Args {
    /// The name of an element or compound and its share.
    #[arg(rest)]
    pub def: Vec<Definition>,
}

impl Element for ScheduleInfo {}

impl Information for ScheduleInfo {
    fn inform(config: &str, scope: &str, names: &mut Names) -> Result<(), ConfigError> {
        each_argument(config, |words| {
            let [name, share] = words else { return Err("expected 'ELEMENT SHARE'".into()) };
            let cx = ArgCx { scope, names, origin: Origin::Operator };
            let text = share;
            let share = f64::parse(text, &cx).map_err(|e| format!("share '{text}': {e}"))?;
            if !(0.0..=Names::LARGEST_SHARE).contains(&share) {
                return Err(format!("share '{text}': must be between 0 and {}", Names::LARGEST_SHARE).into());
            }
            let name = name.trim_end_matches('/');
            if let Some(element) = names.element(scope, name) {
                names.define_share(element, "", share);
                return Ok(());
            }
            let compound = format!("{scope}{name}/");
            let elements = names.elements_in(&compound);
            if elements.is_empty() {
                return Err(no_element(name, names).into());
            }
            elements.into_iter().for_each(|e| names.define_share(e, &compound, share));
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::messages;
    use super::*;

    fn names() -> Names {
        let mut names = Names::new();
        names.define_element("source", 1, "InfiniteSource");
        names.define_element("in/source", 2, "InfiniteSource");
        names
    }

    #[test]
    fn tickets_by_scope() {
        let mut names = names();
        ScheduleInfo::inform("source 2.5", "", &mut names).unwrap();
        ScheduleInfo::inform("source 0.0001", "in/", &mut names).unwrap();
        assert_eq!((names.tickets(1), names.tickets(2)), (Some(2560), Some(1)));
        ScheduleInfo::inform("in/source 1", "", &mut names).unwrap();
        assert_eq!(names.tickets(2), Some(1024));
    }

    #[test]
    fn shares_multiply_down_the_compounds() {
        let mut n = names();
        n.define_element("in/deep/s", 3, "InfiniteSource");
        ScheduleInfo::inform("in 0.5, in/deep/ 0.25, in/deep/s 2", "", &mut n).unwrap();
        assert_eq!((n.tickets(1), n.tickets(2), n.tickets(3)), (None, Some(512), Some(256)));
        // A second definition of the same name replaces the first one.
        ScheduleInfo::inform("deep 0.5", "in/", &mut n).unwrap();
        assert_eq!(n.tickets(3), Some(512));
        ScheduleInfo::inform("in 32, in/deep 32", "", &mut n).unwrap();
        assert_eq!(n.tickets(3), Some(32_768));
    }

    #[test]
    fn errors() {
        let bad = ScheduleInfo::inform(
            "source, sourcf 1, source x, source -1, source 33, source 1 2",
            "",
            &mut names(),
        );
        assert_eq!(
            messages(bad),
            [
                "expected 'ELEMENT SHARE'",
                "'sourcf' does not name an element, did you mean 'source'?",
                "share 'x': invalid number",
                "share '-1': must be between 0 and 32",
                "share '33': must be between 0 and 32",
                "expected 'ELEMENT SHARE'",
            ]
        );
    }
}
