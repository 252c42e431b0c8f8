// SPDX-License-Identifier: MIT OR Apache-2.0
//! ScheduleInfo: shares of the processor.

use super::{Definition, each_argument, no_element};
use castanet_element::prelude::*;

/// Gives tasks unequal shares of the processor.
///
/// Each argument is the name of an element and the share of its task, as a multiple of the ordinary share.
/// The ordinary share is 1 and stands for 1024 tickets of the stride scheduler.
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
    /// The name of an element and its share.
    #[arg(rest)]
    pub def: Vec<Definition>,
}

impl Element for ScheduleInfo {}

/// Tickets of an ordinary share, and the most that a task can have.
const TICKETS: f64 = 1024.0;
const MOST: f64 = 32_768.0;

impl Information for ScheduleInfo {
    fn inform(config: &str, scope: &str, names: &mut Names) -> Result<(), ConfigError> {
        each_argument(config, |words| {
            let [name, share] = words else { return Err("expected 'ELEMENT SHARE'".into()) };
            let cx = ArgCx { scope, names, origin: Origin::Operator };
            let tickets = f64::parse(share, &cx).map_err(|e| format!("share '{share}': {e}"))? * TICKETS;
            if !(0.0..=MOST).contains(&tickets) {
                return Err(format!("share '{share}': must be between 0 and {}", MOST / TICKETS).into());
            }
            let element = names.element(scope, name).ok_or_else(|| no_element(name, names))?;
            names.define_tickets(element, tickets.round().max(1.0) as u32);
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
