use super::*;
use crate::cgroup::MOST_GROUPS;
use crate::cgroup::Version;

const P: ProgramId = ProgramId::first(0);

/// Threads on these CPUs of so many.
fn on(cpus: &[usize], cpus_in_all: usize) -> Vec<Runnable> {
    let thread = |i: usize| Process { pid: i as i32, start_time: 0 };
    let of = |(i, cpu): (usize, &usize)| Runnable {
        program: P,
        thread: thread(i),
        cpu: *cpu,
        cpus: CpuSet::first(cpus_in_all),
    };
    cpus.iter().enumerate().map(of).collect()
}

/// The threads that move, each with its new CPU.
fn moved(at: &[usize], cpus: usize, mask: impl Fn(i32) -> &'static str) -> Vec<(i32, String)> {
    let mask = |thread: Process| Some(mask(thread.pid).parse().unwrap());
    let moves = moves(&on(at, cpus), &CpuSet::default(), mask);
    moves.iter().map(|one| (one.thread.pid, one.set.to_string())).collect()
}

#[test]
fn threads_in_too_many_groups_of_a_program_are_not_known() {
    let root = tempfile::tempdir().unwrap();
    let dir = Dir::new(root.path(), Version::V1);
    let group = |i: usize| std::fs::create_dir(root.path().join(i.to_string())).unwrap();
    let newborn_have_theirs = || {
        let (found, set) = (CpuSet::first(2), CpuSet::first(1));
        let thread = Process { pid: 1, start_time: 0 };
        let one = Move { program: P, thread, found, set };
        let none = |_: i32, _: &Move| RestoreResult::NotNeeded;
        give_back_to_newborn(&[1], &[&one], none, || dir.threads_below())
    };
    // Together with the group of the program itself.
    (1..MOST_GROUPS).for_each(group);
    assert!(newborn_have_theirs());
    group(MOST_GROUPS);
    assert!(!newborn_have_theirs(), "the moves stay announced");
}

#[test]
fn threads_that_share_a_cpu_move_to_one_without() {
    assert_eq!(moved(&[1, 1], 2, |_| "0-1"), [(0, "0".to_owned())]);
    assert_eq!(moved(&[0, 1], 2, |_| "0-1"), []);
    let apart = moved(&[2, 2, 2, 2], 4, |_| "0-3");
    assert_eq!(apart, [(0, "0".to_owned()), (1, "1".to_owned()), (2, "3".to_owned())]);
}

/// The kernel took the thread away from there again.
#[test]
fn no_thread_moves_to_the_same_cpu_twice_in_a_turn() {
    let used: CpuSet = "0".parse().unwrap();
    let moves = moves(&on(&[2, 2, 2], 3), &used, |_| "0-2".parse().ok());
    let listed: Vec<_> = moves.iter().map(|one| (one.thread.pid, one.set.to_string())).collect();
    assert_eq!(listed, [(0, "1".to_owned())]);
}

#[test]
fn a_program_that_starts_threads_is_left_alone() {
    let threads = |all: &[(i32, u64)]| {
        let of =
            |(pid, waited_for): &(i32, u64)| (Process { pid: *pid, start_time: 0 }, *waited_for);
        all.iter().map(of).collect::<HashMap<_, _>>()
    };
    let before = threads(&[(1, 0), (2, 30), (3, 0)]);
    assert!(starts_nothing(&before, &before));
    assert!(starts_nothing(&before, &threads(&[(1, 0), (2, 30)])), "one has ended");
    assert!(!starts_nothing(&before, &threads(&[(1, 0), (4, 0)])), "one is new");
    assert!(!starts_nothing(&before, &threads(&[(1, 0), (2, 31)])), "a child has ended");
    assert!(!starts_nothing(&HashMap::new(), &before), "it has not been looked at before");
}

#[test]
fn a_newly_bound_program_is_moved_to_its_cpus_first() {
    let mut threads = on(&[0, 2, 3], 4);
    threads.iter_mut().for_each(|one| one.cpus = "2-3".parse().unwrap());
    let moves = moves(&threads[..2], &CpuSet::default(), |_| "0-3".parse().ok());
    let listed: Vec<_> = moves.iter().map(|one| (one.thread.pid, one.set.to_string())).collect();
    assert_eq!(listed, [(0, "3".to_owned())]);
}

#[test]
fn numbers_show_which_threads_were_started_meanwhile() {
    let between = |tid, first, last| is_between(tid, Some(first), Some(last));
    assert_eq!([8, 9, 12, 13].map(|tid| between(tid, 8, 12)), [false, true, true, false]);
    assert_eq!([8, 30, 2, 5].map(|tid| between(tid, 29, 3)), [false, true, true, false]);
    assert!(is_between(5, None, Some(3)) && is_between(5, Some(8), None));
}

#[test]
fn with_more_threads_than_cpus_the_queues_become_even() {
    assert_eq!(moved(&[0, 0, 0, 1], 2, |_| "0-1"), [(0, "1".to_owned())]);
    assert_eq!(moved(&[0, 0, 1], 2, |_| "0-1"), []);
}

#[test]
fn threads_bound_by_themselves_are_distinguished() {
    let process = |tid: i32| Process { pid: tid, start_time: 0 };
    let cpus = |list: &str| list.parse::<CpuSet>().unwrap();
    let one = Move { program: P, thread: process(1), found: cpus("0-1"), set: cpus("1") };
    let other = ProgramId::first(1);
    let known = [(P, 1), (P, 2), (P, 3), (other, 4)];
    let mask = |tid: i32| Some(cpus(["0-1", "1", "0", "1"][tid as usize - 1]));
    let kept = kept(&[one], known.into_iter(), mask, |tid| Some(process(tid)));
    assert_eq!(kept, [Move { program: P, thread: process(2), found: cpus("1"), set: cpus("1") }]);
}

#[test]
fn newborn_threads_are_checked_until_none_has_the_mask() {
    let process = Process { pid: 1, start_time: 0 };
    let cpus = |list: &str| list.parse::<CpuSet>().unwrap();
    let one = Move { program: P, thread: process, found: cpus("0-1"), set: cpus("1") };
    let (mut given, mut looks) = (Vec::new(), 0);
    let lists: [&[i32]; 4] = [&[1, 2], &[1, 2, 3], &[1, 3, 4], &[5]];
    let give = |tid: i32, _: &Move| {
        given.push(tid);
        if tid < 4 { RestoreResult::Back } else { RestoreResult::NotNeeded }
    };
    let look = || {
        looks += 1;
        (lists[looks - 1].to_vec(), true)
    };
    assert!(give_back_to_newborn(&[1], &[&one], give, look));
    assert_eq!((given, looks), (vec![2, 3, 4], 3));
    let refuse = |_: i32, _: &Move| RestoreResult::Refused;
    assert!(!give_back_to_newborn(&[1], &[&one], refuse, || (vec![2], true)), "it stays announced");
}

#[test]
fn no_thread_leaves_its_own_mask() {
    assert_eq!(moved(&[1, 1], 4, |tid| if tid == 0 { "1" } else { "1-2" }), [(1, "2".to_owned())]);
    assert_eq!(moved(&[1, 1], 2, |_| "1"), []);
    assert_eq!(moved(&[1, 1], 2, |_| "1,5"), [], "no CPU of the run");
}
