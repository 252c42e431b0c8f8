// SPDX-License-Identifier: MIT OR Apache-2.0
//! The environment of a test: its own user and mount namespace, in a process that is killed after a time limit.

use super::fake::Fake;
use castanet_mount::{Mount, Options};
use parking_lot::Mutex;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The environment variable that holds the name of the test in the test's process.
const INSIDE: &str = "CASTANET_MOUNT_TEST";
/// A test that takes longer than this has a deadlock.
const LIMIT: Duration = Duration::from_secs(100);

/// Runs a test in its own namespaces, in which every user may mount.
pub fn apart(name: &str, test: impl FnOnce()) {
    if std::env::var(INSIDE).is_ok_and(|inside| inside == name) {
        return test();
    }
    if let Err(e) = std::fs::File::options().read(true).write(true).open("/dev/fuse") {
        println!("SKIP {name}: /dev/fuse: {e}");
        return;
    }
    let unshare = ["--user", "--map-root-user", "--mount"];
    if !Command::new("unshare").args(unshare).arg("true").status().is_ok_and(|s| s.success()) {
        println!("SKIP {name}: no user namespaces here");
        return;
    }
    let mut child = Command::new("unshare")
        .args(unshare)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(INSIDE, name)
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let end = Instant::now() + LIMIT;
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if Instant::now() > end => {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("{name}: no end after {LIMIT:?}");
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    assert!(status.success(), "{name}: {status}");
}

/// A mounted fake router.
pub struct Mounted {
    pub fake: Arc<Fake>,
    pub said: Arc<Mutex<Vec<String>>>,
    // Declared before `folder`, so that it is unmounted before the directory is removed.
    pub mount: Option<Mount>,
    pub folder: tempfile::TempDir,
}

/// Mounts a fake router on a directory.
pub fn mount_on(folder: &Path, fake: &Arc<Fake>) -> (Mount, Arc<Mutex<Vec<String>>>) {
    let said = Arc::new(Mutex::new(Vec::new()));
    let hears = said.clone();
    let say = Box::new(move |text: &str| hears.lock().push(text.to_string()));
    let mount = Mount::new(Options { folder, remote: fake.clone(), report: say, watchdog: None }).unwrap();
    (mount, said)
}

/// Mounts a fake router with these elements.
pub fn mounted(elements: &[&str]) -> Mounted {
    let folder = tempfile::tempdir().unwrap();
    let fake = Fake::new(elements);
    let (mount, said) = mount_on(folder.path(), &fake);
    Mounted { fake, said, mount: Some(mount), folder }
}

impl Mounted {
    /// A shell that runs a script in the mounted directory.
    pub fn shell(&self, script: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.env("LC_ALL", "C").env("D", self.folder.path()).stdin(Stdio::null());
        shell.arg("-c").arg(format!("cd \"$D\"; {script}"));
        shell
    }
    /// Runs a script.
    pub fn run(&self, script: &str) -> Output {
        self.shell(script).output().unwrap()
    }
    /// The combined output of a script.
    pub fn says(&self, script: &str) -> String {
        let out = self.run(&format!("exec 2>&1; {script}"));
        String::from_utf8_lossy(&out.stdout).into_owned()
    }
    /// The recorded writes, as `handler=text`.
    pub fn written(&self) -> Vec<String> {
        self.fake.take().into_iter().map(|(name, text)| format!("{name}={text}")).collect()
    }
    /// Unmounts.
    pub fn unmount(&mut self) {
        drop(self.mount.take());
        assert_eq!(std::fs::read_dir(self.folder.path()).unwrap().count(), 0, "an empty folder again");
    }
}
