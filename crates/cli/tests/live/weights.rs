//! Programs of different weights under `faithful`: nice values, where they can be undone.

use cosched_core::{Aspect, Refusal};
use cosched_linux::kernel::sched_attr;
use cosched_results::result::DeviationResult;

use super::support::{Place, User, eventually, program};

/// A program that writes its process number, and waits for a file.
fn waits(name: &str, keys: &str) -> String {
    program(name, keys, &format!("echo $$ > {name}.pid; while [ ! -e go ]; do sleep 0.01; done"))
}

/// Without the permission to lower the nice value again, cosched does not raise it, and says so.
#[test]
fn a_lighter_program_gets_a_higher_nice_value_if_undoable() {
    for user in [User::Caller, User::ordinary()] {
        let may = matches!(user, User::Caller) && rustix::process::geteuid().is_root();
        let place = Place::of(user);
        let tables = [waits("heavy", "threads = 1"), waits("light", "threads = 1\nweight = 0.5")];
        let cosched = place.run(&tables, "--policy faithful");
        let nice = |name: &str| {
            let pid = std::fs::read_to_string(place.path(&format!("{name}.pid"))).ok()?;
            sched_attr::get(pid.trim().parse().ok()?).ok().map(|attr| attr.nice)
        };
        let steps = if may { 3 } else { 0 };
        eventually("both at work", || {
            nice("light").zip(nice("heavy")).is_some_and(|(light, heavy)| light - heavy == steps)
        });
        // A nice value that is not given shows nowhere else.
        eventually("refusal", || may || cosched.said().contains("may not raise priorities"));
        place.write("go", "");
        let ended = cosched.ended().with(0);
        let refused = |deviation: &DeviationResult| {
            (deviation.what, deviation.why) == (Aspect::Nice, Refusal::NotPermitted)
        };
        let deviations = ended.result().deviations;
        assert_eq!(deviations.iter().any(refused), !may, "{deviations:?}");
        place.nothing_is_left_of(&ended);
    }
}
