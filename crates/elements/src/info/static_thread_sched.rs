// SPDX-License-Identifier: MIT OR Apache-2.0
//! StaticThreadSched: assigns tasks to workers.

use super::{Definition, each_with_warnings, no_element_or_compound};
use castanet_element::prelude::*;

/// Assigns the tasks of elements to workers.
///
/// Each argument is a name and the number of a worker, counted from 0. The name is that of an element or of a compound.
/// A compound stands for all elements inside it. Tasks that are not named are placed as `castanet explain` shows. If
/// there is no worker with this number, a warning says which worker runs the task instead.
///
/// # Ports
/// None.
///
/// # Example
/// ```click
/// StaticThreadSched(a 0, b 0);
/// a :: InfiniteSource(LIMIT 100) -> c :: Counter -> Discard;
/// b :: InfiniteSource(LIMIT 100, STOP true) -> c;
/// ```
#[derive(Class)]
#[class(name = "StaticThreadSched", ports = "0/0", processing = "a/a", packets = "/")]
#[class(workers = replicate, information)]
pub struct StaticThreadSched {
    args: Args,
}

/// Arguments of StaticThreadSched.
#[derive(Args)]
pub struct Args {
    /// The name of an element or compound and the worker of its tasks; -1 leaves the choice to the router.
    #[arg(rest)]
    pub def: Vec<Definition>,
}

impl Element for StaticThreadSched {}

impl Information for StaticThreadSched {
    fn inform(config: &str, scope: &str, names: &mut Names) -> Result<(), ConfigError> {
        each_with_warnings(config, |words, warnings| {
            let [name, worker] = words else { return Err("expected 'ELEMENT WORKER'".into()) };
            let cx = ArgCx { scope, names, origin: Origin::Operator };
            let home = match i32::parse(worker, &cx).map_err(|e| format!("worker '{worker}': {e}"))? {
                // The router chooses the worker.
                -1 => None,
                n => match usize::try_from(n) {
                    Ok(n) => Some(n),
                    Err(_) => return Err(format!("worker '{worker}': must be at least -1").into()),
                },
            };
            let name = name.trim_end_matches('/');
            let elements = match names.element(scope, name) {
                Some(e) => vec![e],
                None => names.elements_in(&format!("{scope}{name}/")),
            };
            if elements.is_empty() {
                return Err(no_element_or_compound(name, names).into());
            }
            if let Some(home) = home
                && let Some(workers) = names.workers().filter(|&n| n > 0 && home >= n)
            {
                let message = format!("thread preference {home} out of range");
                let help = format!(
                    "it runs on worker {}: workers are numbered from 0 to {}",
                    home % workers,
                    workers - 1
                );
                warnings.push((message, help));
            }
            if let Some(home) = home {
                elements.into_iter().for_each(|e| names.define_home(e, home));
            }
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
        names.define_element("s", 1, "InfiniteSource");
        names.define_element("in/s", 2, "InfiniteSource");
        names.define_element("in/deep/s", 3, "InfiniteSource");
        names
    }

    #[test]
    fn elements_and_compounds() {
        let mut n = names();
        StaticThreadSched::inform("s 1, in 2", "", &mut n).unwrap();
        assert_eq!((n.home(1), n.home(2), n.home(3)), (Some(1), Some(2), Some(2)));
        let mut n = names();
        StaticThreadSched::inform("s -1, in/s 2", "", &mut n).unwrap();
        assert_eq!((n.home(1), n.home(2)), (None, Some(2)));
        let mut n = names();
        StaticThreadSched::inform("deep/ 4", "in/", &mut n).unwrap();
        assert_eq!((n.home(1), n.home(2), n.home(3)), (None, None, Some(4)));
    }

    #[test]
    fn an_unknown_name_is_one_error() {
        let mut n = names();
        n.set_workers(1);
        let said = messages(StaticThreadSched::inform("foo 7", "", &mut n));
        assert_eq!(said, ["'foo/' does not name an element"]);
    }

    #[test]
    fn a_worker_that_does_not_exist_is_a_warning() {
        let warnings = |workers| {
            let mut n = names();
            n.set_workers(workers);
            let said = StaticThreadSched::inform("s 1, in/s 7", "", &mut n).err().unwrap_or_default().0;
            assert_eq!((n.home(1), n.home(2)), (Some(1), Some(7)));
            assert!(said.iter().all(|w| w.warning));
            said.into_iter().map(|w| w.message).collect::<Vec<_>>()
        };
        assert_eq!(warnings(1), ["thread preference 1 out of range", "thread preference 7 out of range"]);
        assert_eq!(warnings(2), ["thread preference 7 out of range"]);
        assert_eq!(warnings(8), [""; 0]);
    }

    #[test]
    fn errors() {
        let bad = StaticThreadSched::inform("s, t -1, s x, s -2, s 1 2", "", &mut names());
        let texts = messages(bad);
        assert_eq!(texts.len(), 5);
        assert_eq!(texts[0], "expected 'ELEMENT WORKER'");
        assert!(texts[1].starts_with("'t/' does not name an element"), "{}", texts[1]);
        assert_eq!(texts[2..4], ["worker 'x': invalid number", "worker '-2': must be at least -1"]);
    }
}
