use cosched_core::{CpuSet, Exit, Why};
use cosched_policy::reasons::{CgreedyReason, MinwaitReason, SharedReason};
use cosched_results::live::{BusyProcess, LiveQuantum};
use unicode_width::UnicodeWidthStr;

use super::*;
use crate::standing::{donating, equalising, faithful, shuffling, snapshot};

fn texts(lines: &[Line]) -> Vec<&str> {
    lines.iter().map(|line| line.text.as_str()).collect()
}

fn names(view: View) -> Vec<String> {
    let lines = frame(&snapshot(), None, view, 80, Some(24));
    let rows = &lines[ABOVE..lines.len() - BELOW];
    rows.iter().map(|line| line.text.split(' ').next().unwrap().to_owned()).collect()
}

fn crowd(count: usize) -> Snapshot {
    let mut many = snapshot();
    let one = many.programs[0].clone();
    many.programs = (0..count).map(|i| Standing { name: format!("p{i}"), ..one.clone() }).collect();
    many
}

#[test]
fn a_frame_has_states_and_reasons() {
    let lines = frame(&snapshot(), None, View::default(), 80, None);
    assert_eq!(
        texts(&lines),
        [
            "cosched 4711: gang, packed, quantum 100 ms; CPUs 0-1; for 2.5 s",
            "round 12, gang 1 of 2 for 100 ms; running: solver",
            "switches 23; deviations 1; cosched 0.41 % of a CPU; share since arrival",
            "",
            "PROGRAM STATE   GANG CPUS    THR SHARE    RUN s   WAIT s  TURNS WHY",
            "solver  runs    1*   0-1       2  52 %      1.2      1.1     12 in gang",
            "sort    waits   -    0-1       2  38 %      0.9      1.5     12 other gang",
            "short   exit 3  -    -         2  12 %      0.3      2.1     12",
        ]
    );
    let tones: Vec<Tone> = lines.iter().skip(ABOVE).map(|line| line.tone).collect();
    assert_eq!(tones, [Tone::Running, Tone::Waiting, Tone::Alarming]);
}

#[test]
fn busy_processes_are_below_their_program_where_there_is_room() {
    let mut now = snapshot();
    let process = |pid| BusyProcess { pid, name: "py\n".into(), threads: 1, cpus: 0.5 };
    now.programs[0].processes = vec![process(7), process(8)];
    let rows = |height: Option<usize>| -> Vec<String> {
        let lines = frame(&now, None, View::default(), 80, height);
        let first = |line: &Line| line.text.trim().split(' ').next().unwrap().to_owned();
        lines.iter().skip(ABOVE).map(first).collect()
    };
    assert_eq!(rows(None), ["solver", "7", "8", "sort", "short"]);
    assert_eq!(rows(Some(ABOVE + BELOW + 4)), ["solver", "7", "sort", "short", "q"]);
    assert_eq!(rows(Some(ABOVE + BELOW + 2)), ["solver", "sort", "q"]);
    let lines = frame(&now, None, View::default(), 80, None);
    assert_eq!(texts(&lines)[ABOVE + 1], "  7 py\\n: 1 thread, 0.50 CPUs");
}

#[test]
fn a_detached_program_is_told_from_one_that_ended() {
    let mut now = snapshot();
    now.programs[0].state = LiveState::Ended;
    (now.programs[1].state, now.programs[1].exit) = (LiveState::Ended, Some(Exit::Unknown));
    let lines = frame(&now, None, View::default(), 80, None);
    let rows = &texts(&lines)[ABOVE..];
    assert!(rows[0].contains(" detached ") && rows[1].contains(" ended "), "{rows:?}");
    now.programs[1].exit = Some(Exit::Code(127));
    for width in [60, 70, 80, 100] {
        now.quantum.as_mut().unwrap().gangs = if width < 80 { 1 } else { 2 };
        let lines = frame(&now, None, View::default(), width, None);
        let rows = &texts(&lines)[ABOVE..];
        assert!(rows[0].contains(" detached ") && rows[1].contains(" exit 127 "), "{rows:?}");
        assert!(rows.iter().all(|row| row.width() <= width), "{rows:?}");
    }
}

#[test]
fn a_filler_has_no_turn() {
    let mut now = snapshot();
    let sort = &mut now.programs[1];
    (sort.state, sort.is_filler, sort.why) =
        (LiveState::Running, true, Some(SharedReason::Filler.into()));
    (sort.running_seconds, sort.waiting_seconds, sort.filler_seconds) = (2.4, 0.0, 1.8);
    let lines = frame(&now, None, View::default(), 90, None);
    let shown = texts(&lines);
    assert_eq!(shown[1], "round 12, gang 1 of 2 for 100 ms; in turn: solver");
    assert!(shown[ABOVE].starts_with("solver  in turn "), "{shown:?}");
    let row = shown[ABOVE + 1];
    assert!(row.starts_with("sort    fills   "), "{row}");
    assert!(row.contains("25 %      0.6      1.8"), "{row}");
    assert!(row.ends_with("fills idle CPU time"), "{row}");
    assert_eq!(lines[ABOVE + 1].tone, Tone::Waiting);
}

#[test]
fn columns_without_a_figure_are_left_out() {
    let mut now = snapshot();
    (now.policy, now.decided_by, now.placement) = ("turns".into(), Some("auto".into()), None);
    now.quantum = now.quantum.map(|quantum| LiveQuantum { gangs: 1, ..quantum });
    for program in &mut now.programs {
        program.cpus = None;
    }
    let lines = frame(&now, None, View::default(), 80, None);
    let shown = texts(&lines);
    assert!(shown[0].starts_with("cosched 4711: turns (auto decides), quantum"), "{shown:?}");
    assert_eq!(
        shown[ABOVE - 1..ABOVE + 1],
        [
            "PROGRAM STATE   THR SHARE    RUN s   WAIT s    CPU s   SW/s  TURNS WHY",
            "solver  runs      2  52 %      1.2      1.1      1.9     41     12 in gang",
        ]
    );
    now.programs[1].cpus = Some(CpuSet::first(2));
    let bound = frame(&now, None, View::default(), 80, None);
    assert!(texts(&bound)[ABOVE - 1].contains(" CPUS "), "{bound:?}");
}

#[test]
fn locks_and_slices_replace_gangs_and_turns() {
    let now = faithful();
    let lines = frame(&now, None, View::default(), 80, Some(24));
    assert_eq!(
        texts(&lines)[ABOVE - 1..ABOVE + 2],
        [
            "PROGRAM STATE   CPUS  THR SHARE    RUN s   WAIT s  LOCK  SLICE WHY",
            "solver  runs    -       2  52 %      1.2      1.1  84 % 200 ms tries batch-slice",
            "sort    runs    -       2  38 %      0.9      1.5  12 %      - original",
        ]
    );
    assert!(lines.iter().all(|line| line.text.width() <= 80));
    let names = |key| {
        let mut view = View::default();
        view.choose(RowOrder::of_key(key).unwrap());
        view.choose(view.order);
        let lines = frame(&now, None, view, 80, None);
        texts(&lines)[ABOVE..].iter().map(|row| row[..6].trim().to_owned()).collect::<Vec<_>>()
    };
    for key in ['l', 'c', 'a'] {
        assert_eq!(names(key), ["short", "sort", "solver"], "{key}, reversed");
    }
}

#[test]
fn moved_threads_have_a_column_under_shuffling() {
    let lines = frame(&shuffling(), None, View::default(), 80, Some(24));
    assert_eq!(
        texts(&lines)[ABOVE - 1..ABOVE + 2],
        [
            "PROGRAM STATE   CPUS THR SHARE    RUN s   WAIT s  LOCK  MOVED WHY",
            "solver  runs    -      2  52 %      1.2      1.1  62 %      5 3 shuffled",
            "sort    runs    -      2  38 %      0.9      1.5     -      - left to the kernel",
        ]
    );
}

#[test]
fn progress_and_slowdown_have_columns_under_fair_progress() {
    let now = equalising();
    let lines = frame(&now, None, View::default(), 80, Some(24));
    assert_eq!(
        texts(&lines)[ABOVE - 1..ABOVE + 3],
        [
            "PROGRAM STATE   CPUS    THR SHARE    RUN s   WAIT s PROGR s SLOWED WHY",
            "solver  runs    0-1       2  52 %      1.2      1.1     0.9   2.58 furthest beh…",
            "sort    waits   0-1       2  38 %      0.9      1.5     1.1      - further ahead",
            "short   exit 3  -         2  12 %      0.3      2.1       -      -",
        ]
    );
    let mut view = View::default();
    view.choose(RowOrder::of_key('d').unwrap());
    view.choose(view.order);
    let lines = frame(&now, None, view, 80, None);
    assert!(texts(&lines)[ABOVE + 2].starts_with("solver"), "reversed: {lines:?}");
}

#[test]
fn barriers_of_cosched_have_columns() {
    let shown = |past: Option<&Snapshot>| {
        let lines = frame(&donating(), past, View::default(), 120, Some(24));
        lines[ABOVE - 1..ABOVE + 2].iter().map(|line| line.text.clone()).collect::<Vec<_>>()
    };
    let [head, solver, sort] = &shown(None)[..] else { panic!() };
    assert!(head.contains(" BARR/s SLEPT "), "{head}");
    assert!(solver.contains("  1000  25 % "), "{solver}");
    let at = |line: &str| line[head.find("BARR/s").unwrap()..][..12].to_owned();
    assert_eq!(at(sort), "     -     -");
    let mut past = donating();
    past.at_seconds -= 1.0;
    let stats = past.programs[0].barrier_stats.as_mut().unwrap();
    (stats.barriers, stats.slept) = (stats.barriers - 200, stats.slept - 100);
    assert_eq!(at(&shown(Some(&past))[1]), "   200 100 %");
}

#[test]
fn figures_of_earlier_decisions_are_not_shown() {
    let mut now = snapshot();
    let whys: [Why; 3] = [
        SharedReason::OtherGang { gang: 6 }.into(),
        SharedReason::Queued { ahead: 7 }.into(),
        MinwaitReason::DoesNotFit { free: 7 }.into(),
    ];
    for why in whys {
        now.programs[1].why = Some(why);
        let row = frame(&now, None, View::default(), 80, None)[ABOVE + 1].text.clone();
        assert!(!row.contains('7'), "{row}");
    }
}

#[test]
fn a_frame_is_never_larger_than_the_screen() {
    for (width, height) in [(80, 24), (40, 10), (20, 3), (200, 50), (1, 1), (0, 0)] {
        for now in [snapshot(), crowd(100)] {
            let lines = frame(&now, None, View::default(), width, Some(height));
            assert!(lines.len() <= height, "{width} x {height}");
            assert!(lines.iter().all(|line| line.text.width() <= width));
        }
    }
}

#[test]
fn twelve_programs_fit_into_80_by_24_characters() {
    let lines = frame(&crowd(12), None, View::default(), 80, Some(24));
    assert_eq!(lines.len(), ABOVE + 12 + BELOW);
    assert!(lines[ABOVE..ABOVE + 12].iter().all(|line| line.text.ends_with("in gang")));
}

#[test]
fn shares_are_of_the_time_since_the_earlier_snapshot() {
    let (past, mut now) = (snapshot(), snapshot());
    now.at_seconds += 2.0;
    now.programs[0].running_seconds += 1.5;
    now.programs[0].waiting_seconds += 0.5;
    let lines = frame(&now, Some(&past), View::default(), 80, None);
    assert!(lines[2].text.ends_with("share of the last 2.0 s"), "{lines:?}");
    // For the others no time has passed: there is no share.
    let shares: Vec<&str> = lines[ABOVE..].iter().map(|line| line.text[32..38].trim()).collect();
    assert_eq!(shares, ["75 %", "-", "-"]);
}

#[test]
fn the_same_key_again_reverses_the_order() {
    assert_eq!(names(View::default()), ["solver", "sort", "short"]);
    let mut view = View::default();
    view.choose(RowOrder::of_key('n').unwrap());
    assert_eq!(names(view), ["short", "solver", "sort"]);
    view.choose(RowOrder::of_key('w').unwrap());
    assert_eq!(names(view), ["short", "sort", "solver"]);
    view.choose(RowOrder::of_key('w').unwrap());
    assert_eq!(names(view), ["solver", "sort", "short"]);
    assert_eq!(RowOrder::of_key('q'), None);
}

#[test]
fn scrolling_stops_at_the_last_row() {
    let lines = |scroll| {
        let view = View { scroll, ..View::default() };
        frame(&crowd(100), None, view, 80, Some(16))
    };
    assert!(lines(0).last().unwrap().text.ends_with("; 1 to 10 of 100"));
    assert_eq!(lines(1)[ABOVE].text.split(' ').next(), Some("p1"));
    assert_eq!(lines(90), lines(5000));
    let mut view = View::default();
    view.scroll_by(1000, 100, 16);
    view.scroll_by(-1, 100, 16);
    assert_eq!(view.scroll, 89);
    view.scroll_by(-1000, 100, 16);
    assert_eq!(view.scroll, 0);
    assert!(lines(90).last().unwrap().text.ends_with("; 91 to 100 of 100"));
}

#[test]
fn a_name_cannot_command_the_terminal() {
    let mut snapshot = snapshot();
    snapshot.programs[0].name = "\x1b[2Jevil\n".into();
    let lines = frame(&snapshot, None, View::default(), 80, Some(24));
    assert!(lines.iter().all(|line| !line.text.chars().any(char::is_control)));
    assert!(texts(&lines)[ABOVE].starts_with("\\u{1b}[2Jevi"), "{lines:?}");
}

#[test]
fn as_many_names_of_running_programs_as_fit_are_shown() {
    let line = |width| frame(&crowd(100), None, View::default(), width, None)[1].text.clone();
    assert!(line(80).ends_with(" and 92 more"), "{}", line(80));
    assert!(line(2000).ends_with(" p98 p99"), "{}", line(2000));
}

/// Where a text begins in a line, in columns.
fn column(line: &str, text: &str) -> usize {
    line[..line.find(text).unwrap()].width()
}

#[test]
fn wide_characters_take_two_columns_and_shift_nothing() {
    let mut now = snapshot();
    now.programs[0].name = "\u{8a08}\u{7b97}\u{5668}".repeat(8);
    now.programs[1].name = "e\u{301}tude".into();
    for width in [60, 80, 81, 120, 240] {
        let lines = frame(&now, None, View::default(), width, Some(24));
        assert!(lines.iter().all(|line| line.text.width() <= width), "{width}: {lines:?}");
        let rows: Vec<&str> = texts(&lines)[ABOVE - 1..].to_vec();
        let state = column(rows[0], "STATE");
        assert_eq!((column(rows[1], "runs"), column(rows[2], "waits")), (state, state), "{rows:?}");
    }
}

#[test]
fn cut_texts_have_a_mark() {
    let mut now = snapshot();
    let (name, why) = ("solver-".repeat(7), "fewest misses that fit");
    now.programs[0].name = name.clone();
    now.programs[0].why = Some(CgreedyReason::FewestMissesThatFit.into());
    now.programs[0].cpus = Some("0-3,8-11,16-19".parse().unwrap());
    let row = |width| frame(&now, None, View::default(), width, None)[ABOVE].text.clone();
    let (narrow, wide) = (row(80), row(240));
    assert_eq!(narrow.matches('\u{2026}').count(), 3, "{narrow}");
    for whole in [&name, why, "0-3,8-11,16-19"] {
        assert!(wide.contains(whole) && !narrow.contains(whole), "{wide}");
    }
}

#[test]
fn cpu_time_and_switches_are_shown_where_there_is_room() {
    let header = |now: &Snapshot, width| {
        frame(now, None, View::default(), width, None)[ABOVE - 1].text.clone()
    };
    let (past, mut now) = (snapshot(), snapshot());
    for (width, expected) in [(80, [false, false]), (84, [true, false]), (90, [true, true])] {
        let header = header(&now, width);
        assert_eq!([" CPU s ", " SW/s "].map(|name| header.contains(name)), expected, "{header}");
    }
    (now.at_seconds, now.programs[0].context_switches) = (past.at_seconds + 2.0, Some(150));
    let lines = frame(&now, Some(&past), View::default(), 96, None);
    let ends = |name: &str, cell: &str| {
        assert_eq!(
            column(&lines[ABOVE].text, cell) + cell.width(),
            column(&lines[ABOVE - 1].text, name) + name.width(),
            "{lines:?}"
        );
    };
    ends("CPU s", " 1.9");
    ends("SW/s", " 25");
    for program in &mut now.programs {
        (program.cpu_seconds, program.context_switches) = (None, None);
    }
    assert!(!header(&now, 200).contains(" CPU s ") && !header(&now, 200).contains(" SW/s "));
}
