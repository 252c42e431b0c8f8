// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of `castanet run --mount` with cat, echo and find, in shells inside namespaces in which every user may
//! mount.
#![allow(clippy::unwrap_used)]

use castanet_tests::binary::castanet;
use std::process::{Command, Stdio};

/// The beginning of every script. Routers end by themselves if a script is killed.
const PRELUDE: &str = r#"
cat >router.click <<'END'
elementclass Pair { input -> c :: Counter -> output }
source :: RatedSource(RATE 1000) -> p :: Pair -> q :: Queue(100) -> c :: Counter -> Discard;
Script(wait 90s, write stop);
END
cat >idle.click <<'END'
Idle -> q :: Queue -> c :: Counter -> Discard;
Script(wait 90s, write stop);
END
P=
trap 'test -z "$P" || kill -KILL $P 2>/dev/null || :' EXIT
fail() { echo "failed: $*"; exit 1; }
# Starts a router; $P is its process.
start() {
    "$CASTANET" run -q -R --mount mnt "${1-router.click}" 2>messages &
    P=$!
    until test -e mnt/version; do
        kill -0 $P 2>/dev/null || fail "no router: $(cat messages)"
        sleep 0.01
    done
}
# Whether something is mounted, as the kernel says.
mounted() { grep -q "$PWD/mnt .* castanet-" /proc/self/mountinfo; }
# Waits until nothing is mounted, and the folder as empty as it was.
empty() {
    i=0
    while mounted; do
        i=$((i + 1))
        test $i -lt 1000 || fail 'still mounted'
        sleep 0.01
    done
    test -z "$(ls -A mnt)" || fail 'not empty'
}
# The process that unmounts after the router.
unmounter() { cat /proc/$P/task/*/children; }
mkdir mnt
"#;

/// Runs a script in a temporary directory and returns its output.
fn script(name: &str, text: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    if let Err(e) = std::fs::File::options().read(true).write(true).open("/dev/fuse") {
        println!("SKIP {name}: /dev/fuse: {e}");
        return None;
    }
    let unshare = ["unshare", "--user", "--map-root-user", "--mount"];
    let here = Command::new("unshare").args(&unshare[1..]).arg("true").stderr(Stdio::null()).status();
    if !here.is_ok_and(|s| s.success()) {
        println!("SKIP {name}: no user namespaces here");
        return None;
    }
    let output = Command::new("timeout")
        .args(["-s", "KILL", "60"])
        .args(unshare)
        .args(["sh", "-euc", &format!("{PRELUDE}{text}")])
        .current_dir(folder.path())
        .env("CASTANET", castanet())
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{name}: {}\n{stdout}{stderr}", output.status);
    Some(stdout.into_owned())
}

#[test]
fn cat_echo_and_find() {
    let text = r#"
start
(cd mnt && find ./c* | sort && find p -name 'c*' | sort)
stat -c '%A %n' mnt/c mnt/c/count mnt/c/reset mnt/q/capacity mnt/stop
head -n 3 mnt/list
cat mnt/config | cmp - router.click
cat mnt/2/class mnt/p/c/name mnt/q/capacity
echo 55 >mnt/q/capacity
cat mnt/q/capacity
env echo nonsense >mnt/q/capacity || echo refused
echo x | tee mnt/c/count || echo refused
sleep 0.1
test "$(cat mnt/p/c/count)" -gt 10 || fail 'nothing counted'
echo >mnt/p/c/reset
test "$(cat mnt/p/c/count)" -lt 1000 || fail 'not reset'
mkdir mnt/new || echo refused
grep -rs '^55$' mnt | sort || :
echo >mnt/stop
wait $P
echo ended $?
empty
cat messages
"#;
    let Some(said) = script("cat_echo_and_find", text) else { return };
    let expected = "./c\n./c/bit_rate\n./c/byte_count\n./c/byte_count_call\n./c/byte_rate\n./c/class\n./c/config\n\
        ./c/count\n./c/count_call\n./c/handlers\n./c/name\n./c/ports\n./c/rate\n./c/reset\n./c/reset_counts\n./classes\n\
        ./config\np/c\np/c/class\np/c/config\np/c/count\np/c/count_call\n\
        dr-xr-xr-x mnt/c\n-r--r--r-- mnt/c/count\n--w------- mnt/c/reset\n-rw-r--r-- mnt/q/capacity\n--w------- mnt/stop\n\
        6\nsource\nq\nQueue\np/c\n100\n55\nrefused\nx\nrefused\nrefused\nmnt/q/capacity:55\nmnt/q/config:55\nended 0\n\
        mnt/q/capacity: invalid number\n";
    assert_eq!(said, expected);
}

#[test]
fn a_configuration_written_to_hotconfig_takes_the_place_of_the_old_one() {
    let text = r#"
start
until test "$(cat mnt/c/count)" -gt 10; do sleep 0.01; done
sed 's/p :: Pair -> q/q/' router.click >new.click
cat new.click >mnt/hotconfig
test ! -e mnt/p || fail 'p is still there'
cmp mnt/config new.click
env echo 'bogus(' >mnt/hotconfig || echo refused
before=$(cat mnt/c/count)
test $before -gt 10 || fail 'the count is lost'
until test "$(cat mnt/c/count)" -gt $before; do sleep 0.01; done
# Held open, listed, written and swapped at the same time.
for i in 1 2 3 4; do (for j in $(seq 25); do cat $(test $((j % 2)) = 0 && echo router.click || echo new.click ) >mnt/hotconfig || cat messages; find mnt >/dev/null 2>&1 || :; done) & pids="${pids-} $!"; done
wait $pids
cat mnt/c/count >/dev/null
echo >mnt/stop
wait $P
echo ended $?
empty
"#;
    let Some(said) = script("hotconfig", text) else { return };
    assert_eq!(said, "refused\nended 0\n");
}

#[test]
fn a_killed_router_leaves_no_dead_mount() {
    let text = r#"
for signal in KILL ABRT TERM INT; do
    start
    exec 5<mnt/c/count
    { cd mnt/c; sleep 0.3 & cd ../..; }
    kill -$signal $P
    wait $P 2>/dev/null || :
    empty
    exec 5<&-
done
# With what would have cleaned up killed as well, the next router does.
start
kill -KILL $(unmounter) $P
wait $P 2>/dev/null || :
ls mnt 2>/dev/null && fail 'no dead mount to begin with'
start
cat messages
test -n "$(cat mnt/c/count)"
kill $P
wait $P || :
empty
# A signal for all of them, as from a terminal or a service manager.
start
U=$(unmounter)
kill -HUP $U
kill -TERM $U $P
wait $P || :
empty
# Whoever is to clean up does so once, and not what others mounted since.
start
umount -l mnt
mount -t tmpfs mine mnt
kill -KILL $P
wait $P 2>/dev/null || :
sleep 0.2
grep -c ' - tmpfs mine' /proc/self/mountinfo
"#;
    let Some(said) = script("a_killed_router_leaves_no_dead_mount", text) else { return };
    assert_eq!(said, "mnt: unmounted the handlers of a router that was killed\n1\n");
}

#[test]
fn folders_that_cannot_be_used_are_refused() {
    let text = r#"
try() { "$CASTANET" run -q --mount "$1" router.click 2>&1 && fail "$1 was used" || :; }
try none
touch file
try file
mkdir -p full/of
try full
start
try mnt 2>&1 | sed 's/-[0-9]*)/-PID)/'
kill $P
wait $P || :
empty
# Somebody who may open the device, but not mount; shells' own commands need no path.
PATH=/none
/usr/bin/unshare --user --map-root-user "$CASTANET" run -q -R --mount mnt router.click 2>messages && fail mounted
while read -r said; do echo "${said%%"$PWD"/*}${said#*"$PWD"/}"; done <messages
"#;
    let Some(said) = script("folders_that_cannot_be_used_are_refused", text) else { return };
    let wrong: Vec<&str> = said.lines().filter_map(|l| l.split_once("--mount: ")).map(|l| l.1).collect();
    let expected = [
        "none: no such directory; create it first with mkdir",
        "file: not a directory; handlers are mounted on an empty directory",
        "full: the directory is not empty; handlers are mounted on an empty directory",
        "mnt: the handlers of another router are mounted here (castanet-PID)",
        "mnt: only root may mount, and `fusermount3`, which mounts for other users, is not installed (Debian: fuse3)",
    ];
    assert_eq!(wrong, expected);
}

#[test]
fn the_data_path_goes_on_under_readers_and_writers() {
    let text = r#"
cat >fast.click <<'END'
InfiniteSource -> c :: Counter -> q :: Queue(100) -> Unqueue -> d :: Counter -> Discard;
Script(wait 90s, write stop);
END
start fast.click
for i in 1 2 3 4; do
    (while cat mnt/c/count mnt/d/rate mnt/flatconfig; do :; done) >/dev/null 2>&1 &
    (while env echo $i >mnt/q/capacity; do head -c 9999 /dev/urandom >mnt/q/capacity || :; done) >/dev/null 2>&1 &
done
last=$(cat mnt/d/count)
for i in 1 2 3 4 5; do
    sleep 0.2
    now=$(cat mnt/d/count)
    test "$now" -gt "$last" || fail "$last then $now"
    last=$now
done
# They still read and write while it stops.
echo >mnt/stop
wait $P
echo ended $?
empty
"#;
    let Some(said) = script("the_data_path_goes_on_under_readers_and_writers", text) else { return };
    assert_eq!(said, "ended 0\n");
}

#[test]
#[ignore = "measures time; run by .ci/long"]
fn nobody_uses_processor_time_when_nobody_asks() {
    let text = r#"
start idle.click
cat mnt/c/count
U=$(unmounter)
# How often the threads of the router and of what watches it went to sleep.
sleeps() {
    sum=0
    for n in $(sed -n 's/^voluntary_ctxt_switches:[^0-9]*//p' /proc/$P/task/*/status /proc/$U/status); do
        sum=$((sum + n))
    done
    echo $sum
}
before=$(sleeps)
sleep 1
after=$(sleeps)
test $((after - before)) -le 3 || fail "$before then $after"
kill $P
wait $P || :
empty
"#;
    let Some(said) = script("an_idle_mount_uses_no_cpu_time", text) else { return };
    assert_eq!(said, "0\n");
}

/// Returns the blocks of a language in a Markdown text.
fn blocks<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    text.split(&fence).skip(1).filter_map(|rest| rest.split_once("```")).map(|b| b.0).collect()
}

#[test]
fn the_document_shows_real_output() {
    let file = castanet_tests::binary::root().join("docs/mount.md");
    let text = std::fs::read_to_string(file).unwrap();
    let (configuration, shown) = (blocks(&text, "click").concat(), blocks(&text, "console").concat());
    let commands: Vec<&str> = shown.lines().filter_map(|l| l.strip_prefix("$ ")).collect();
    assert!(commands.len() > 5, "{commands:?}");
    let mut text = format!("cat >router.click <<'END'\n{configuration}END\nset +e\nstart\nsleep 0.3\n");
    for command in commands {
        // The router's messages go to a file, which is emptied before each command and printed before the
        // command's output.
        text += &format!(
            "echo '$ {}'\n: >messages\n({command}) >out 2>errors\ncat messages out\nsed 's/^sh: [0-9]*: //' errors\n",
            command.replace('\'', "'\\''")
        );
    }
    text += "wait $P\nempty\n";
    let Some(said) = script("the_document_shows_real_output", &text) else { return };
    let said: String = said.lines().filter(|l| !l.is_empty()).map(|l| format!("{l}\n")).collect();
    assert_eq!(said, shown);
}
