// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hot swap: functions for classes that take over files, descriptors or state from the old router.

use castanet_element::Watch;
use castanet_element::prelude::*;
use std::path::{Path, PathBuf};

/// Prints a warning that state of the old router is lost.
pub(crate) fn warn(warning: &str, cx: &mut Cx<'_>) {
    let at = cx.info().map_or(String::new(), |i| i.place.heading());
    cx.message(&format!("{at}While hot-swapping state into '{}':\n  warning: {warning}", cx.declaration()));
}

/// Returns a path that is the same for all names of a file, to be used as a key. The file need not exist.
pub(crate) fn file_key(name: &str) -> PathBuf {
    let path = Path::new(name);
    if name == "-" {
        return path.to_path_buf();
    }
    if let Ok(whole) = path.canonicalize() {
        return whole;
    }
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (parent.canonicalize(), path.file_name()) {
        (Ok(parent), Some(name)) => parent.join(name),
        _ => path.to_path_buf(),
    }
}

/// Returns a key for an input that can be read only once, such as standard input or a pipe. Returns `None` for a file
/// that can be opened again.
pub(crate) fn once_readable(name: &str) -> Option<String> {
    let once = name == "-" || std::fs::metadata(name).is_ok_and(|m| !m.is_file() && !m.is_dir());
    once.then(|| format!("input {}", file_key(name).display()))
}

/// The number of the timer that [`has_run`] uses. Elements must not use this number for their own timers. The timer
/// expires as soon as the router runs. In a router that is prepared for a hot swap but never runs, it does not expire.
const RUNS: u16 = u16::MAX;

/// Sets the timer that [`has_run`] uses. An element that calls `has_run` must call this function at initialisation.
pub(crate) fn watch_for_run(cx: &mut InitCx<'_>) {
    cx.set_timer(RUNS, i64::MIN);
}

/// Whether the router has run.
pub(crate) fn has_run(cx: &mut Cx<'_>) -> bool {
    cx.timer(RUNS).is_none()
}

/// Removes a file that was created for a router that never ran, if the file is still empty.
pub(crate) fn unmake(name: &str) {
    if std::fs::metadata(name).is_ok_and(|m| m.is_file() && m.len() == 0) {
        // If the file cannot be removed, an empty file stays, which does no harm.
        let _ = std::fs::remove_file(name);
    }
}

/// The watches of descriptors that the old element has handed to the new router. Only the router that made a watch can
/// end it, so the watches stay with the old element. If the swap fails and the descriptors return to the old element,
/// the old element ends these watches.
#[derive(Debug, Default)]
pub(crate) struct Left(Vec<Watch>);

impl Left {
    /// Keeps a watch whose descriptor another element takes over.
    pub(crate) fn keep(&mut self, watch: Watch) {
        self.0.push(watch);
    }
    /// Ends the kept watches. Must be called before the descriptors are watched again.
    pub(crate) fn end(&mut self, cx: &mut Cx<'_>) {
        self.0.drain(..).for_each(|watch| cx.unwatch(watch));
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! Makes elements of a router that is prepared while the old router still has their files open.
    #![allow(clippy::unwrap_used)]

    use castanet_element::build::Wiring;
    use castanet_element::kit::{Kit, Site};
    use castanet_element::prelude::*;
    use castanet_element::run_loop::{self, Internals as _};

    struct Alone;
    impl Wiring for Alone {
        fn note(&self, _: u32, _: Capability) -> Option<Note> {
            None
        }
        fn upstream(&self, _: u32, _: usize, _: Capability) -> (Vec<u32>, bool) {
            (Vec::new(), false)
        }
        fn downstream(&self, _: u32, _: usize, _: Capability) -> (Vec<u32>, bool) {
            (Vec::new(), true)
        }
    }

    /// Puts a new element with the configuration `config` into a kit. Initialises the element as a hot swap does while
    /// the old element still holds the same files.
    pub(crate) fn prepare<T: Build + Lifecycle>(
        kit: &mut Kit<T>,
        config: &str,
        inputs: usize,
        outputs: usize,
    ) {
        let mut names = Names::new();
        names.set_origin(Origin::Operator);
        let (mut site, push) = (Site::default(), [true; 4]);
        let mut cx = site.cx(T::SPEC, config, &names, &push[..inputs], &push[..outputs]);
        let args = T::Args::parse(config, cx.arg_cx()).0.unwrap();
        let element = T::build(args, &mut cx).ok().unwrap();
        kit.with(|e, cx| {
            *e = element;
            run_loop::initialise(cx.core(), 0, &Alone, true, |cx| e.initialise(cx)).0
        })
        .unwrap();
    }

    /// Moves open files, counts and state from one element to another, as a hot swap does.
    pub(crate) fn hand_over<T: Build + Lifecycle>(from: &mut Kit<T>, to: &mut Kit<T>) {
        assert!(from.element.holds().is_some());
        assert_eq!(from.element.holds(), to.element.holds());
        to.with(|e, cx| e.take_over(&mut from.element, cx)).unwrap();
        to.take_state_of(from).unwrap();
        from.handed_over();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn files_by_any_name() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        let other = dir.path().join("x").join("..").join("a");
        std::fs::create_dir(dir.path().join("x")).unwrap();
        let key = |p: &Path| file_key(p.to_str().unwrap());
        assert_eq!(key(&file), key(&other), "missing");
        std::fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&file, dir.path().join("b")).unwrap();
        assert_eq!(key(&file), key(&other));
        assert_eq!(key(&file), key(&dir.path().join("b")));
        assert_ne!(key(&file), key(&dir.path().join("c")));
        assert_eq!(file_key("-"), Path::new("-"));
        assert_eq!(
            file_key("missing"),
            std::env::current_dir().unwrap().canonicalize().unwrap().join("missing")
        );
    }
}
