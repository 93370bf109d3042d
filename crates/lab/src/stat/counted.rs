//! Instructions, cycles and cache misses of what is looked at, where the machine counts them.
//!
//! The kernel counts by thread, and hands a counter on to what a thread starts. So a program is
//! counted as a whole; a figure for each thread would take four open files for each of them, and is
//! left to `perf`.

use cosched_core::Counts;
use cosched_linux::kernel::open_files::FileLimit;
use cosched_linux::observe::counters::{self, CounterLack, Counters, Events, Readings};
use cosched_linux::process::tree::Process;

/// The counters of the programs that are looked at, in the order in which these were named.
#[derive(Debug)]
pub struct Counted {
    /// What is counted; `None`: nothing can be.
    events: Option<Events>,
    programs: Vec<(Counters, Readings)>,
}

impl Counted {
    /// Counts these events if the machine has them and the user may; else nothing, with the reason.
    pub fn new(events: Events) -> (Counted, Option<CounterLack>) {
        let lack = counters::check(events).err();
        let events = Some(events).filter(|_| lack.is_none());
        (Counted { events, programs: Vec::new() }, lack)
    }

    /// Whether anything is counted.
    pub fn is_there(&self) -> bool {
        self.events.is_some()
    }

    /// Another program: these threads and what they will start, from now on.
    pub fn running(&mut self, threads: &[i32]) {
        let Some(events) = self.events else { return };
        // Every counter is an open file; without enough of them the program stays uncounted.
        let found = FileLimit::own();
        let _ = FileLimit { soft: found.hard, ..found }.set();
        self.programs.push((Counters::of(threads, events), Readings::default()));
    }

    /// Another program: what the calling thread is about to start.
    pub fn about_to_start(&mut self, caller: Process) {
        let Some(events) = self.events else { return };
        self.programs.push((Counters::below(caller, events), Readings::default()));
    }

    /// What was counted of each program since the last call.
    pub fn since_last(&mut self) -> Vec<Counts> {
        let next = |(counters, before): &mut (Counters, Readings)| {
            let now = counters.readings();
            now.since(std::mem::replace(before, now))
        };
        self.programs.iter_mut().map(next).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use cosched_core::Quality;
    use cosched_linux::kernel::procfs::Proc;
    use cosched_linux::observe::counters::CounterEvent;

    use super::*;

    /// Software events, which every machine has: CPU time, and pages touched.
    const SOFTWARE: Events = Events {
        instructions: CounterEvent { kind: 1, config: 1 },
        cycles: CounterEvent { kind: 1, config: 1 },
        llc_references: CounterEvent { kind: 1, config: 2 },
        llc_misses: CounterEvent { kind: 1, config: 2 },
    };

    #[test]
    fn what_is_started_is_counted_by_intervals() {
        let (mut counted, lack) = Counted::new(SOFTWARE);
        if let Some(lack) = lack {
            return eprintln!("skipped: {lack}");
        }
        let caller = rustix::thread::gettid().as_raw_nonzero().get();
        counted.about_to_start(Process::find(&Proc::default(), caller).unwrap());
        assert_eq!(counted.since_last(), [Counts::default()], "nothing has started yet");
        assert!(Command::new("/bin/true").status().unwrap().success());
        let first = counted.since_last()[0];
        assert!(first.llc_misses > Some(10) && first.quality == Quality::Exact, "{first:?}");
        assert_eq!(first.miss_ratio(), Some(1.0), "twice the same event");
        assert_eq!(counted.since_last(), [Counts::default()], "it has ended");
    }

    #[test]
    fn without_counters_nothing_is_counted_and_a_reason_is_given() {
        let unknown = CounterEvent { kind: 9999, config: 0 };
        let (mut counted, lack) = Counted::new(Events { instructions: unknown, ..SOFTWARE });
        assert!(lack.is_some() && !counted.is_there());
        counted.running(&[1]);
        assert!(counted.since_last().is_empty());
    }
}
