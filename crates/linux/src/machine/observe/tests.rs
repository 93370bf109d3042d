use super::*;
use crate::observe::monitor::Monitor;

fn observed(number: u32) -> Observed {
    Observed {
        number,
        shim: None,
        is_known: true,
        from: Nanos::ZERO,
        intervals: Intervals::default(),
        counted: Readings::default(),
        reported: Reported::default(),
        frozen: Nanos::ZERO,
        ended: Vec::new(),
        clocks: CpuClocks::default(),
        delays: RunDelays::default(),
        is_hidden: false,
    }
}

#[test]
fn nothing_is_loaded_where_threads_are_not_observed() {
    let (mut observer, clock) =
        (Observer::new(Proc::default(), Events::HARDWARE, 0), Clock::start());
    let (id, shim) = (ProgramId::first(0), Process { pid: 1, start_time: 0 });
    let is_closed = |observer: &Observer| matches!(observer.source, MonitorState::Closed);
    observer.look(clock.now()).unwrap();
    assert!(is_closed(&observer));
    let light = [
        Measure::Progress,
        Measure::Counters,
        Measure::CpuTime,
        Measure::UserTime,
        Measure::InstructionPointers,
    ];
    observer.requested.insert(id, light.into());
    observer.begin(id, shim, true, &clock).unwrap();
    observer.look(clock.now()).unwrap();
    observer.set_ticks();
    assert!(is_closed(&observer) && !observer.ticks);
    observer.requested.insert(id, [Measure::Threads].into());
    assert!(observer.looks_at_threads(id));
}

/// The end of a thread may be seen while another program is read. It still counts for its own
/// program.
#[test]
fn a_thread_that_ended_during_another_read_is_not_lost() {
    let (a, b) = (ProgramId::first(0), ProgramId::first(1));
    let mut observer = Observer::new(Proc::default(), Events::HARDWARE, 0);
    observer.programs.extend([(a, observed(10)), (b, observed(11))]);
    observer.reading = vec![
        ThreadUse::of_nothing(10, 5),
        ThreadUse::of_nothing(11, 6),
        ThreadUse::of_nothing(12, 7),
    ];
    assert_eq!(observer.share_out(a), [ThreadUse::of_nothing(10, 5)]);
    observer.reading = vec![ThreadUse::of_nothing(11, 8)];
    assert_eq!(observer.share_out(b), [ThreadUse::of_nothing(11, 8), ThreadUse::of_nothing(11, 6)]);
    observer.reading.clear();
    assert_eq!((observer.share_out(a), observer.share_out(b)), (vec![], vec![]));
}

#[test]
fn ticks_are_counted_only_while_they_are_requested() {
    let a = ProgramId::first(0);
    let source = MonitorState::Open(Box::new(Monitor::sampled(&Proc::default())));
    let mut observer = Observer { source, ..Observer::new(Proc::default(), Events::HARDWARE, 0) };
    let counts = |observer: &Observer| {
        let MonitorState::Open(monitor) = &observer.source else { unreachable!() };
        let Monitor::Sampled(sampled) = &**monitor else { unreachable!() };
        sampled.ticks
    };
    for is_requested in [true, false, true, false] {
        let measures =
            [Measure::LockWait].into_iter().chain(is_requested.then_some(Measure::UserTime));
        observer.requested.insert(a, measures.collect());
        observer.set_ticks();
        assert_eq!(counts(&observer), is_requested);
    }
}
