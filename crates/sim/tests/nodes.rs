//! Memory nodes: pages stay where a thread used memory first, and cost more from elsewhere.

#![allow(clippy::unwrap_used)]

mod stage;

use cosched_core::{CpuSet, Nanos, ProgramId, Settings, Step};
use cosched_sim::model::Mix;
use cosched_sim::{Hardware, Kernel, Model};
use stage::Stage;

const COSTS: &str = "gigahertz=1 memory_nanos=100 smt_share=1 switch_nanos=0 wake_nanos=0 \
                     signal_nanos=0,0,0 bus=machine:1000000";

fn on(cpu: usize) -> Settings {
    Settings::on([cpu].into_iter().collect::<CpuSet>())
}

/// When a program of ten million instructions ends, in microseconds. It computes on the first CPU
/// for 10 ms and then on another one. An instruction takes 1 ns, and 1 % of them miss: 1 ns more.
fn end(machine: &str, then: usize) -> u64 {
    let (misses, misses_without_cache) = (0.01, 0.01);
    let mix = Mix { misses, misses_without_cache, parallelism: 1.0, ..Mix::computing(1.0) };
    let hardware = Hardware::words(&format!("{machine} {COSTS}")).unwrap();
    let programs = [(0, Model::parallel(1, 1e7, mix), on(0))];
    let mut stage = Stage::with(hardware, Kernel::EEVDF, programs, 1);
    stage.until(Nanos::from_millis(10));
    stage.submit(&[Step::Apply(ProgramId::first(0), on(then), 1)]);
    stage.until(Nanos::from_millis(100));
    stage.ends()[0].1
}

/// The second five million instructions take 2.5 ns each if a miss takes 150 ns: 12.5 ms.
#[test]
fn misses_take_longer_away_from_the_pages() {
    assert_eq!(end("package:2 core:2 remote_nanos=50", 2), 22_500);
    assert_eq!(end("package:2 core:2 remote_nanos=50", 1), 20_000, "of the same node");
    assert_eq!(end("package:2 core:2", 2), 20_000, "no distance");
}

/// Each of two threads has its pages where it began.
#[test]
fn a_thread_pays_nothing_where_it_began() {
    let (misses, misses_without_cache) = (0.01, 0.01);
    let mix = Mix { misses, misses_without_cache, parallelism: 1.0, ..Mix::computing(1.0) };
    let ends = |words: &str| {
        let hardware = Hardware::words(&format!("package:2 core:1 {words} {COSTS}")).unwrap();
        let programs = [0, 1].map(|cpu| (0, Model::parallel(1, 1e7, mix), on(cpu)));
        let mut stage = Stage::with(hardware, Kernel::EEVDF, programs, 1);
        stage.until(Nanos::from_millis(100));
        stage.ends()
    };
    assert_eq!(ends("remote_nanos=50"), ends(""));
}
