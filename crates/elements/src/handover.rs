// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hot swap: what classes that take something over from the old router have in common.

use castanet_element::Watch;
use castanet_element::prelude::*;
use std::path::{Path, PathBuf};

/// Warns that something of the old router is lost.
pub(crate) fn warn(warning: &str, cx: &mut Cx<'_>) {
    let place = cx.info().map_or(String::new(), |i| i.place.clone());
    let place = if place.is_empty() { place } else { format!("{place}: ") };
    cx.message(&format!(
        "{place}While hot-swapping state into '{}':\n  warning: {warning}",
        cx.declaration()
    ));
}

/// What tells files apart that have several names. The file itself need not exist.
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

/// The key of what can be read once only: the standard input, pipes. None for a file that anybody can open again.
pub(crate) fn once_readable(name: &str) -> Option<String> {
    let once = name == "-" || std::fs::metadata(name).is_ok_and(|m| !m.is_file() && !m.is_dir());
    once.then(|| format!("input {}", file_key(name).display()))
}

/// The timer of elements that have no use for one: it expires as soon as the router runs, which one that was only prepared
/// never does.
const RUNS: u16 = u16::MAX;

/// To be said at initialisation by who asks [`has_run`].
pub(crate) fn watch_for_run(cx: &mut InitCx<'_>) {
    cx.set_timer(RUNS, i64::MIN);
}

/// Whether the router has run.
pub(crate) fn has_run(cx: &mut Cx<'_>) -> bool {
    cx.timer(RUNS).is_none()
}

/// Removes a file that was made for a router that never ran.
pub(crate) fn unmake(name: &str) {
    if std::fs::metadata(name).is_ok_and(|m| m.is_file() && m.len() == 0) {
        // If it cannot be removed an empty file stays, which hurts nobody.
        let _ = std::fs::remove_file(name);
    }
}

/// The watch of a descriptor that was handed to another router. Only the router that made a watch can end it, so it stays with
/// its element, which ends it when the descriptor comes back because the swap failed.
#[derive(Debug, Default)]
pub(crate) struct Left(Option<Watch>);

impl Left {
    /// Keeps the watch of what another element takes.
    pub(crate) fn keep(&mut self, watch: Watch) {
        self.0 = Some(watch);
    }
    /// Ends the watch that was kept, before the descriptor is watched anew.
    pub(crate) fn end(&mut self, cx: &mut Cx<'_>) {
        if let Some(watch) = self.0.take() {
            cx.unwatch(watch);
        }
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! Elements of a router that is prepared while another one has open what they hold.
    #![allow(clippy::unwrap_used)]

    use castanet_element::build::Wiring;
    use castanet_element::kit::{Kit, Site};
    use castanet_element::prelude::*;
    use castanet_element::seam::{self, Seam as _};

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

    /// Puts an element into a kit, in place of the one there is, that inherits what it holds.
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
            seam::initialise(cx.core(), 0, &Alone, true, |cx| e.initialise(cx)).0
        })
        .unwrap();
    }

    /// Moves what is open from one element to another, as at a hot swap.
    pub(crate) fn hand_over<T: Build + Lifecycle>(from: &mut Kit<T>, to: &mut Kit<T>) {
        assert!(from.element.holds().is_some());
        assert_eq!(from.element.holds(), to.element.holds());
        to.with(|e, cx| e.take_over(&mut from.element, cx)).unwrap();
        castanet_element::count::move_counts(&mut from.element, &mut to.element);
        to.with(|e, cx| e.take_state(&mut from.element, cx)).unwrap();
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
