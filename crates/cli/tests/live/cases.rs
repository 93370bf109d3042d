//! Programs that pauses have broken elsewhere, under a policy that pauses: with every freezer, as
//! the caller and as an ordinary user.

use std::process::Command;

use super::support::{Backend, Place, User, program, skip};

/// Stops its worker several times, as batch systems do, and looks whether it ran all the same.
const OWN_STOPS: &str = "\
import os, signal, subprocess, sys, time
def used(pid):
    words = open(f'/proc/{pid}/stat').read().rsplit(')', 1)[1].split()
    return int(words[11]) + int(words[12])
worker = subprocess.Popen([sys.executable, '-c', 'while True: pass'])
for _ in range(3):
    time.sleep(0.2)
    os.kill(worker.pid, signal.SIGSTOP)
    while open(f'/proc/{worker.pid}/stat').read().rsplit(')', 1)[1].split()[0] != 'T':
        time.sleep(0.01)
    before = used(worker.pid)
    time.sleep(0.5)
    if used(worker.pid) > before:
        sys.exit('it ran while it was stopped')
    os.kill(worker.pid, signal.SIGCONT)
worker.kill()
worker.wait()
print('ok')
";
/// Takes a worker that is stopped for a failed one, as test runners do.
const AWAITS_STOPS: &str = "\
import os, subprocess, sys
burn = 'x = 0\\nfor i in range(2_000_000): x ^= i'
worker = subprocess.Popen([sys.executable, '-c', burn])
_, how = os.waitpid(worker.pid, os.WUNTRACED)
print('ok' if how == 0 else f'the worker ended with {how}')
";
/// Tells its user of every SIGCONT, as `mpirun` does, and leaves the work to a child; with an
/// argument, works itself. A pause that begins as the handler is made does not count: it ends
/// before the loop does.
const HEARS_CONTINUES: &str = "\
import signal, subprocess, sys, time
heard = []
signal.signal(signal.SIGCONT, lambda *_: heard.append('SIGCONT'))
made = time.monotonic()
while time.monotonic() < made + 0.002:
    pass
heard.clear()
burn = 'x = 0\\nfor i in range(2_000_000): x ^= i'
if len(sys.argv) > 1:
    exec(burn)
else:
    subprocess.run([sys.executable, '-c', burn], check=True)
print(*(heard or ['ok']))
";
const POLLS: &str = include_str!("turns/polls.c");

/// Every freezer that is here, with a place of the caller's, and signals with one of an ordinary
/// user's.
fn places() -> Vec<(Place, Backend)> {
    let own = Backend::here().into_iter().map(|backend| (Place::new(), backend));
    own.chain([(Place::of(User::ordinary()), Backend("signals"))]).collect()
}

/// Three instances take turns of 20 ms; each says `ok`, and nothing is left.
fn three_say_ok(place: &Place, backend: Backend, script: &str) {
    let threads = cosched_linux::kernel::affinity::get(0).unwrap().len();
    let tables = ["a", "b", "c"].map(|name| program(name, &format!("threads = {threads}"), script));
    let options = format!("--policy gang --quantum 20ms --freezer {}", backend.0);
    let ended = place.run(&tables, &options).ended();
    for name in ["a", "b", "c"] {
        let said = place.read(&format!("out/{name}.stdout"));
        assert_eq!(said, "ok\n", "{backend:?}: {}", ended.stderr);
    }
    place.nothing_is_left_of(&ended.with(0));
}

#[test]
fn no_wait_for_events_ends_early() {
    for (place, backend) in places() {
        place.write("polls.c", POLLS);
        let mut compiler = Command::new("gcc");
        compiler.args(["-pthread", "-o"]).args([place.path("polls"), place.path("polls.c")]);
        let Ok(status) = compiler.status() else { return skip("there is no gcc") };
        assert!(status.success());
        three_say_ok(&place, backend, "exec ./polls paused");
    }
}

#[test]
fn programs_that_a_program_stops_stay_stopped() {
    for (place, backend) in places() {
        place.write("stops.py", OWN_STOPS);
        three_say_ok(&place, backend, "exec python3 stops.py");
    }
}

/// With signals, they are not paused while they wait.
#[test]
fn parents_that_wait_for_stops_see_none() {
    for (place, backend) in places() {
        place.write("awaits.py", AWAITS_STOPS);
        three_say_ok(&place, backend, "exec python3 awaits.py");
    }
}

#[test]
fn processes_that_catch_sigcont_see_none() {
    for script in ["exec python3 hears.py", "python3 hears.py alone; exit"] {
        for (place, backend) in places() {
            place.write("hears.py", HEARS_CONTINUES);
            three_say_ok(&place, backend, script);
        }
    }
}

/// `script` stops itself when its child is stopped, and nothing would continue it; nor under
/// another name.
#[test]
fn a_command_that_stops_itself_is_left_running() {
    let found = Command::new("sh").args(["-c", "command -v script"]).output().unwrap();
    if !found.status.success() {
        return skip("there is no `script`");
    }
    let original = String::from_utf8(found.stdout).unwrap();
    let command = "script -qc 'python3 burn.py' /dev/null; echo ok";
    for script in [command, "python3 hides.py", &command.replace("script", "./copied")] {
        for (place, backend) in places() {
            if script.contains("copied") {
                std::fs::copy(original.trim(), place.path("copied")).unwrap();
            }
            place.write("burn.py", "x = 0\nfor i in range(2_000_000): x ^= i\n");
            place.write("hides.py", format!("import os\nos.system(\"{command}\")\n"));
            three_say_ok(&place, backend, script);
        }
    }
}

#[test]
fn a_run_inside_a_run_ends_well() {
    for (place, backend) in places() {
        let cosched = place.executable().display().to_string();
        let work = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
        let inner = format!(
            "mkdir $$ && cd $$ && {cosched} run --policy gang --quantum 10ms --out out -- \
             sh -c '{work}' ::: sh -c '{work}' > all 2>&1 && echo ok || cat all"
        );
        three_say_ok(&place, backend, &inner);
    }
}
