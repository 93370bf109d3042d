//! Process numbers. A name in the place of a number is answered with the processes that match it.

use std::path::Path;

use cosched_linux::kernel::procfs::Proc;
use cosched_workload::shown;
use rustix::process::geteuid;

use super::whole;

/// At most so many processes are listed.
const MOST: usize = 10;

pub(crate) fn pid(text: &str) -> Result<i32, String> {
    whole(1..=i32::MAX)(text).map_err(|bounds| match text.parse::<i128>() {
        Ok(_) => bounds,
        Err(_) => Proc::own().map_or(bounds.clone(), |proc| named(text, &bounds, &proc)),
    })
}

/// What to say of a name.
fn named(name: &str, bounds: &str, proc: &Proc) -> String {
    let found = matching(name, proc);
    let mut lines: Vec<String> = found
        .iter()
        .take(MOST)
        .map(|(pid, line)| format!("\n  {pid:>7}  {}", shown(line)))
        .collect();
    if found.len() > MOST {
        lines.push(format!("\n  and {} more", found.len() - MOST));
    }
    match lines.is_empty() {
        true => format!("{bounds}; no command of your processes contains '{}'", shown(name)),
        false => format!("write the number of a process; these of yours match:{}", lines.concat()),
    }
}

/// The user's processes with a name in their commands, and these commands; without cosched itself
/// and the shells that started it.
fn matching(name: &str, proc: &Proc) -> Vec<(i32, String)> {
    let user = geteuid().as_raw();
    let own = ancestors(proc);
    let processes = proc.processes().unwrap_or_default().into_iter();
    let others = processes.filter(|pid| !own.contains(pid) && proc.user(*pid) == Some(user));
    let commands = others.map(|pid| (pid, proc.command_line(pid).unwrap_or_default()));
    let found = commands.filter(|(_, words)| {
        let program = words.first().and_then(|word| Path::new(word).file_name());
        program.is_some_and(|program| program != "cosched")
            && words.iter().any(|word| word.contains(name))
    });
    found.map(|(pid, words)| (pid, words.join(" "))).collect()
}

/// This process and those that it descends from.
fn ancestors(proc: &Proc) -> Vec<i32> {
    let own = std::process::id() as i32;
    let parent = |pid: &i32| proc.stat(*pid).ok().map(|stat| stat.ppid).filter(|pid| *pid > 0);
    std::iter::successors(Some(own), parent).collect()
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    /// Processes that end with the test.
    struct Running(Vec<Child>);

    impl Drop for Running {
        fn drop(&mut self) {
            for child in &mut self.0 {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }

    #[test]
    fn a_name_is_answered_with_the_processes_that_match() {
        let seconds = format!("{}", 100_000 + std::process::id());
        let start = || Command::new("sleep").arg(&seconds).spawn().unwrap();
        let mut running = Running(vec![start()]);
        let answer = pid(&seconds[..]).map_err(|_| ()).is_ok();
        assert!(answer, "a number is a number");
        let name = format!("sleep {seconds}");
        assert!(pid(&name).unwrap_err().contains("no command of your processes"), "of one word");
        let proc = Proc::default();
        // A new process has no command line for a moment.
        let answer_of = |lines: usize| {
            let mut answers = std::iter::repeat_with(|| named(&seconds, "", &proc)).take(100_000);
            answers.find(|answer| answer.lines().count() == lines).expect("all of them")
        };
        let answer = answer_of(2);
        let line = format!("{:>7}  sleep {seconds}", running.0[0].id());
        assert!(answer.contains(&line), "{answer}");
        running.0.extend((0..MOST).map(|_| start()));
        let answer = answer_of(1 + MOST + 1);
        assert!(answer.ends_with("and 1 more"), "{answer}");
    }

    #[test]
    fn a_number_out_of_bounds_is_answered_with_the_bounds() {
        for text in ["0", "-1", "99999999999999"] {
            assert!(pid(text).unwrap_err().starts_with("write a whole number from 1"), "{text}");
        }
    }
}
