use std::cell::RefCell;
use std::hint::black_box;
use std::process::{Child, Command};
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::*;
use crate::observe::ring::testkit::MadeUpWriter;

const PATIENCE: Duration = Duration::from_secs(60);

fn program(slot: u16) -> ProgramId {
    ProgramId::first(slot)
}

fn shim(pid: i32) -> Process {
    Process { pid, start_time: 0 }
}

/// The kernel of a made-up machine, with rings in ordinary memory.
#[derive(Debug, Default)]
struct MadeUpKernel {
    /// By CPU.
    writers: RefCell<BTreeMap<usize, MadeUpWriter>>,
    /// The bytes that the ring of each CPU takes, and all may take.
    locked: RefCell<BTreeMap<usize, usize>>,
    limit: usize,
    /// The shim and the CPU of each event; its number is its position.
    events: RefCell<Vec<(i32, usize)>>,
}

/// The first page of a ring.
const FIRST_PAGE: usize = 4096;

/// The size of a block.
const BLOCK: u64 = 512;

impl SampleSource for Rc<MadeUpKernel> {
    type Event = ();

    fn bytes_of_block(&self) -> u64 {
        BLOCK
    }

    fn ring(&self, cpu: usize, bytes: usize) -> io::Result<Ring> {
        let mut locked = self.locked.borrow_mut();
        // A ring of the same CPU is gone when its successor is made.
        locked.insert(cpu, bytes + FIRST_PAGE);
        if locked.values().sum::<usize>() > self.limit {
            locked.remove(&cpu);
            return Err(io::Error::from_raw_os_error(libc::EPERM));
        }
        let (writer, ring) = MadeUpWriter::ring(bytes);
        self.writers.borrow_mut().insert(cpu, writer);
        Ok(ring)
    }

    fn event(&self, shim: Process, cpu: usize, _: &Ring) -> io::Result<(u64, ())> {
        let mut events = self.events.borrow_mut();
        events.push((shim.pid, cpu));
        Ok((events.len() as u64 - 1, ()))
    }
}

impl MadeUpKernel {
    /// A machine on which a user may lock so many bytes for each CPU.
    fn with_memory(cpus: usize, each: usize) -> (Rc<MadeUpKernel>, CodeSamples<Rc<MadeUpKernel>>) {
        let kernel = Rc::new(MadeUpKernel { limit: cpus * each, ..MadeUpKernel::default() });
        (Rc::clone(&kernel), CodeSamples::new(kernel))
    }

    /// A sample of a shim's program on a CPU. Returns whether cosched is woken.
    fn sample(&self, shim: i32, cpu: usize, pointer: u64) -> bool {
        let event = self.events.borrow().iter().position(|event| *event == (shim, cpu));
        let mut writers = self.writers.borrow_mut();
        writers.get_mut(&cpu).unwrap().sample(pointer, event.unwrap() as u64)
    }
}

/// As many files as an ordinary user may have open.
const MOST_FILES: usize = 1 << 19;

/// What the kernel lets an ordinary user lock by default: `perf_event_mlock_kb` for each CPU.
const BY_DEFAULT: usize = 516 << 10;

fn begin(code: &mut CodeSamples<Rc<MadeUpKernel>>, slot: u16, cpus: usize) {
    let cpus: CpuSet = (0..cpus).collect();
    code.begin(program(slot), shim(100 + i32::from(slot)), &cpus, MOST_FILES, |_| Ok(())).unwrap();
}

/// At 3 GHz, two instructions per cycle and a sample every 500,000 of them, a second brings 12,000.
/// A ring of two pages held 511, and was read at the end of the quantum only.
#[test]
fn a_quantum_of_a_second_loses_no_sample() {
    let (kernel, mut code) = MadeUpKernel::with_memory(1, BY_DEFAULT);
    begin(&mut code, 0, 1);
    let mut woken = 0;
    for sample in 0..12_000 {
        if kernel.sample(100, 0, BLOCK * (sample % 10)) {
            code.drain();
            woken += 1;
        }
    }
    let blocks: BTreeMap<u64, u32> = (0..10).map(|block| (block, 1_200)).collect();
    assert_eq!((code.take(program(0)), code.lost()), (blocks, 0));
    // 12,000 samples of 24 bytes, and a wake-up each 32 KiB.
    assert_eq!(woken, 8);
}

/// A ring of 64 KiB holds 2,730 samples of 24 bytes.
#[test]
fn samples_that_find_no_room_are_counted() {
    let (kernel, mut code) = MadeUpKernel::with_memory(1, BY_DEFAULT);
    begin(&mut code, 0, 1);
    (0..3_000).for_each(|_| _ = kernel.sample(100, 0, 0));
    assert_eq!(code.take(program(0)), BTreeMap::from([(0, 2_730)]));
    assert_eq!(code.lost(), 0, "the kernel says so once there is room");
    kernel.sample(100, 0, 0);
    assert_eq!((code.take(program(0)), code.lost()), (BTreeMap::from([(0, 1)]), 270));
}

/// 640 rings of one program each were too many, so that no program was sampled.
#[test]
fn programs_on_128_cpus_share_128_rings() {
    let (kernel, mut code) = MadeUpKernel::with_memory(128, BY_DEFAULT);
    (0..5).for_each(|slot| begin(&mut code, slot, 128));
    assert_eq!((code.rings.len(), kernel.events.borrow().len()), (128, 640));
    for cpu in 0..128 {
        for slot in 0..5 {
            kernel.sample(100 + slot, cpu, BLOCK * slot as u64);
        }
    }
    for slot in 0..5 {
        assert_eq!(code.take(program(slot)), BTreeMap::from([(slot.into(), 128)]));
    }
}

#[test]
fn a_program_that_is_gone_gets_no_samples() {
    let (kernel, mut code) = MadeUpKernel::with_memory(2, BY_DEFAULT);
    (0..2).for_each(|slot| begin(&mut code, slot, 2));
    code.forget(program(0));
    kernel.sample(100, 0, 0);
    kernel.sample(101, 1, 0);
    assert_eq!(code.take(program(0)), BTreeMap::new());
    assert_eq!(code.take(program(1)), BTreeMap::from([(0, 1)]));
    begin(&mut code, 2, 2);
    assert_eq!(code.rings.len(), 2, "the rings are there already");
}

/// Where a user may lock 40 KiB for each CPU, rings of 64 KiB are too large.
#[test]
fn little_memory_gives_smaller_rings() {
    let (kernel, mut code) = MadeUpKernel::with_memory(16, 40 << 10);
    begin(&mut code, 0, 16);
    assert_eq!(code.rings.len(), 16);
    let mut woken = 0;
    for _ in 0..2_400 {
        if kernel.sample(100, 15, 0) {
            code.drain();
            woken += 1;
        }
    }
    assert_eq!((code.take(program(0)), code.lost()), (BTreeMap::from([(0, 2_400)]), 0));
    // 57,600 bytes; a ring of 32 KiB wakes each 16.
    assert_eq!(woken, 3);
}

#[test]
fn too_little_memory_is_an_error_and_leaves_nothing() {
    let (_, mut code) = MadeUpKernel::with_memory(2, 4 << 10);
    let cpus: CpuSet = (0..2).collect();
    let error = code.begin(program(0), shim(1), &cpus, MOST_FILES, |_| Ok(())).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EPERM));
    assert_eq!((code.programs.len(), code.events.len()), (0, 0));
}

/// Two rings and two events of the first program, and two events of the second one, make six files.
#[test]
fn samples_leave_files_for_the_rest_of_the_run() {
    let (kernel, mut code) = MadeUpKernel::with_memory(2, BY_DEFAULT);
    let cpus: CpuSet = (0..2).collect();
    let mut begin = |slot, most| code.begin(program(slot), shim(1), &cpus, most, |_| Ok(()));
    assert_eq!(begin(0, 3).unwrap_err().raw_os_error(), Some(libc::EMFILE));
    begin(0, 4).unwrap();
    assert_eq!(begin(1, 5).unwrap_err().raw_os_error(), Some(libc::EMFILE));
    begin(1, 6).unwrap();
    assert_eq!(kernel.events.borrow().len(), 4);
}

/// Code that is made while a program runs may be of any size.
#[test]
fn the_blocks_of_a_program_are_limited() {
    let (kernel, mut code) = MadeUpKernel::with_memory(1, BY_DEFAULT);
    begin(&mut code, 0, 1);
    for block in 0..MOST_BLOCKS as u64 + 10 {
        if kernel.sample(100, 0, BLOCK * block) {
            code.drain();
        }
    }
    assert_eq!(code.take(program(0)).len(), MOST_BLOCKS);
    assert_eq!((code.lost(), code.surplus()), (0, 10));
}

#[test]
#[ignore = "the program that other tests look at"]
fn computes_for_a_while() {
    // Of its own time: others may have the CPU.
    let used = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec * 1000 + time.tv_nsec / 1_000_000
    };
    let (began, mut sum) = (used(), 0u64);
    while used() < began + 600 {
        for i in 0..100_000u64 {
            sum = black_box(sum.wrapping_mul(31).wrapping_add(i));
        }
    }
}

/// Starts that program, sampled as this one, from which the events are inherited.
fn start(code: &mut CodeSamples, id: ProgramId) -> Child {
    let me = shim(rustix::thread::gettid().as_raw_nonzero().get());
    let cpus = crate::kernel::affinity::get(0).unwrap();
    code.begin(id, me, &cpus, MOST_FILES, |_| Ok(())).unwrap();
    assert!(code.take(id).is_empty());
    let mut command = Command::new(std::env::current_exe().unwrap());
    let test = "observe::pointers::tests::computes_for_a_while";
    command.args(["--exact", test, "--ignored"]).stdout(std::process::Stdio::null());
    command.spawn().unwrap()
}

fn samples_here() -> Option<CodeSamples> {
    let source = SampleClock::here();
    if source.is_none() {
        eprintln!("skipped: the instruction pointer cannot be sampled here");
    }
    source.map(CodeSamples::new)
}

#[test]
fn a_program_is_sampled_where_it_computes_but_not_its_starter() {
    let Some(mut code) = samples_here() else { return };
    assert!(start(&mut code, program(0)).wait().unwrap().success());
    let blocks = code.take(program(0));
    let mut counts: Vec<u32> = blocks.values().copied().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let all: u32 = counts.iter().sum();
    // Unoptimised, the loop and the functions that it calls are in some six blocks.
    let most: u32 = counts.iter().take(8).sum();
    assert!(all >= 20 && most * 4 > all * 3, "it computes in a few blocks: {blocks:?}");
    assert!(code.take(program(0)).is_empty(), "what was taken is not told again");
}

/// The kernel's own rings: the second program inherits the events of both, and the first one only
/// its own, so that each has more samples than none.
#[test]
fn two_programs_share_the_rings_of_the_kernel() {
    let Some(mut code) = samples_here() else { return };
    let first = start(&mut code, program(0));
    let cpus = code.rings.len();
    let second = start(&mut code, program(1));
    assert_eq!(code.rings.len(), cpus);
    for mut child in [first, second] {
        assert!(child.wait().unwrap().success());
    }
    let [of_both, of_second] = [0, 1].map(|slot| code.take(program(slot)));
    let sum = |blocks: &BTreeMap<u64, u32>| blocks.values().sum::<u32>();
    assert!(sum(&of_second) >= 20 && sum(&of_both) > sum(&of_second), "{of_both:?} {of_second:?}");
}

/// The kernel says how many samples found no room in a ring of one page.
#[test]
fn the_kernel_counts_what_finds_no_room() {
    let Some(mut code) = samples_here() else { return };
    // On one CPU, the program fills one ring.
    let cpus: CpuSet = crate::kernel::affinity::get(0).unwrap().iter().take(1).collect();
    crate::kernel::affinity::set(0, &cpus).unwrap();
    let small = cpus.iter().map(|cpu| (cpu, code.source.ring(cpu, SMALLEST).unwrap()));
    code.rings = small.collect();
    let mut child = start(&mut code, program(0));
    let until = Instant::now() + PATIENCE;
    // 170 samples fill the page, which takes 0.17 s of the 0.6 s on one CPU.
    while code.lost() == 0 {
        assert!(Instant::now() < until, "{} in vain", code.take(program(0)).len());
        if child.try_wait().unwrap().is_some() {
            child = start(&mut code, program(0));
        }
        std::thread::sleep(Duration::from_millis(400));
        code.take(program(0));
    }
    child.wait().unwrap();
}
