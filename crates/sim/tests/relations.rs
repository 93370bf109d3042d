//! The model compared with closed forms of queueing theory, and with relations that hold for any
//! machine.

#![allow(clippy::unwrap_used)]

mod stage;

use cosched_core::{Nanos, Settings};
use cosched_sim::model::{Mix, Op};
use cosched_sim::{Hardware, Kernel, Model, Order};
use stage::{Stage, ideal, micros, program};

/// Numbers from 0 to 1 that look random (a multiplicative generator; its constants are those of
/// "MINSTD").
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0 * 48_271 % 2_147_483_647;
        self.0 as f64 / 2_147_483_647.0
    }

    /// With an exponential distribution of this mean.
    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * self.next().ln()
    }
}

/// The mean time in an M/M/c queue (Erlang C), in units of the mean service time.
fn erlang_c(servers: u32, load: f64) -> f64 {
    let offered = f64::from(servers) * load;
    let mut term = 1.0;
    let mut sum = 0.0;
    for k in 0..servers {
        sum += term;
        term *= offered / f64::from(k + 1);
    }
    let last = term / (1.0 - load);
    1.0 + last / (sum + last) / (f64::from(servers) * (1.0 - load))
}

/// The mean time from arrival to end, microseconds, of programs of one thread.
fn mean_time(cpus: u32, kernel: Kernel, customers: &[(u64, u64)]) -> f64 {
    let model = |service: u64| program(1, vec![micros(service.max(1))]);
    let programs =
        customers.iter().map(|(at, service)| (*at, model(*service), Settings::default()));
    let mut stage = Stage::with(ideal(&format!("core:{cpus}")), kernel, programs, 1);
    let last = customers.last().unwrap().0;
    stage.until(Nanos::from_micros(last) + Nanos::from_secs(10));
    let ends = stage.ends();
    assert_eq!(ends.len(), customers.len());
    let times = ends.iter().map(|(slot, end)| end - customers[usize::from(*slot)].0);
    times.sum::<u64>() as f64 / customers.len() as f64
}

#[test]
fn random_customers_wait_as_long_as_erlangs_formula_says() {
    // With exponential services, any order of service that lets no server idle has the same mean.
    const SERVICE: f64 = 2000.0;
    for (cpus, load) in [(1, 0.5), (2, 0.6), (4, 0.7)] {
        let mut random = Random(12_345);
        let mut at = 0.0;
        let customers: Vec<(u64, u64)> = (0..12_000)
            .map(|_| {
                at += random.exponential(SERVICE / (f64::from(cpus) * load));
                (at as u64, random.exponential(SERVICE) as u64)
            })
            .collect();
        let expected = SERVICE * erlang_c(cpus, load);
        for kernel in [Kernel::EEVDF, Kernel::ROUND_ROBIN] {
            let found = mean_time(cpus, kernel, &customers);
            // With 12,000 customers the mean is known within some per cent.
            assert!(
                (found / expected - 1.0).abs() < 0.08,
                "{cpus} {load}: {found}, not {expected}"
            );
        }
    }
}

#[test]
fn regular_customers_do_not_wait_with_enough_servers() {
    let customers: Vec<(u64, u64)> = (0..500).map(|i| (i * 1000, 2900)).collect();
    assert_eq!(mean_time(3, Kernel::EEVDF, &customers), 2900.0);
    // With one server fewer, the queue grows by what cannot be served.
    assert!(mean_time(2, Kernel::EEVDF, &customers) > 10.0 * 2900.0);
}

/// Programs of all kinds, with their times stretched.
fn programs(stretch: f64) -> Vec<Model> {
    let time = |micros: f64| Nanos((micros * stretch * 1e3) as u64);
    let cached = Mix {
        misses: 0.002,
        misses_without_cache: 0.01,
        footprint: 2e7,
        parallelism: 2.0,
        ..Mix::computing(1.2)
    };
    let sleeper = vec![
        Op::Compute { instructions: 2e6, mix: 0 },
        Op::Sleep(time(3000.0)),
        Op::Repeat { from: 0, times: 60, counter: 0 },
    ];
    vec![
        Model::barriers(4, 300, 1e6, cached, time(50.0)),
        Model::lock(3, 300, 5e5, 2e5, Mix::computing(1.0), Nanos::ZERO),
        Model { script: sleeper, ..Model::parallel(2, 0.0, cached) },
        Model::parallel(4, 4e8, cached),
    ]
}

/// The end of the last program, seconds: the mean over seeds, since ties decide much where threads
/// spin. It is known within about 3 %.
fn total(hardware: &Hardware, kernel: Kernel, programs: &[Model]) -> f64 {
    const SEEDS: u64 = 24;
    let of = |seed| {
        let starting = programs.iter().map(|model| (0, model.clone(), Settings::default()));
        let mut stage = Stage::with(hardware.clone(), kernel, starting, seed);
        stage.until(Nanos::from_secs(60));
        let ends = stage.ends();
        assert_eq!(ends.len(), programs.len());
        ends.iter().map(|(_, end)| *end).max().unwrap() as f64 * 1e-6
    };
    (0..SEEDS).map(of).sum::<f64>() / SEEDS as f64
}

const MACHINE: &str = "package:2 core:2 cache_mib=8 bus=package:6";

fn kernels() -> impl Iterator<Item = Kernel> {
    Kernel::NAMES.iter().filter_map(|name| Kernel::named(name))
}

#[test]
fn the_numbering_of_cpus_changes_only_ties() {
    let text = |alternate: bool| {
        format!(
            "name = 'two'\ntopology = 'package:2 core:2'\npackages_alternate = {alternate}\n\
             gigahertz = 2.5\ncache_mib = 8\nmemory_nanos = 90\n\
             switch_nanos = 2000\nwake_nanos = 3000\n\
             signal_nanos = [20, 60, 150]\nbus = [{{ of = 'package', bytes_per_nano = 6 }}]\n"
        )
    };
    let machine = |alternate| Hardware::parse(&text(alternate), "two.toml").unwrap();
    for kernel in kernels() {
        let (one, other) = (
            total(&machine(false), kernel, &programs(1.0)),
            total(&machine(true), kernel, &programs(1.0)),
        );
        assert!((one / other - 1.0).abs() < 0.1, "{kernel:?}: {one} and {other}");
    }
}

/// This kernel with all its times doubled.
fn slower(kernel: Kernel) -> Kernel {
    let twice = |time: Nanos| Nanos(2 * time.0);
    let order = match kernel.order {
        Order::Eevdf { slice } => Order::Eevdf { slice: twice(slice) },
        Order::Cfs { latency, granularity, wakeup } => Order::Cfs {
            latency: twice(latency),
            granularity: twice(granularity),
            wakeup: twice(wakeup),
        },
        Order::RoundRobin { quantum } => Order::RoundRobin { quantum: twice(quantum) },
        // Its times are those of its table.
        Order::Solaris { .. } => return kernel,
    };
    Kernel { order, tick: twice(kernel.tick), ..kernel }
}

#[test]
fn everything_twice_as_slow_takes_twice_as_long() {
    let slow =
        "gigahertz=1.25 memory_nanos=180 switch_nanos=4000 wake_nanos=6000 signal_nanos=40,120,300";
    for kernel in kernels().filter(|kernel| !kernel.is_solaris()) {
        let kernel = Kernel { skew_tick: false, ..kernel };
        let slower = slower(kernel);
        let whole = total(&Hardware::words(MACHINE).unwrap(), kernel, &programs(1.0));
        let half = format!("{} {slow}", MACHINE.replace("package:6", "package:3"));
        let half = total(&Hardware::words(&half).unwrap(), slower, &programs(2.0));
        // The time decides on ties, and it is different here.
        assert!((half / whole / 2.0 - 1.0).abs() < 0.1, "{kernel:?}: {half} and {whole}");
    }
}

#[test]
fn a_sleeping_program_changes_only_ties() {
    let idle = program(3, vec![Op::Sleep(Nanos::from_millis(1))]);
    for kernel in kernels() {
        let machine = || Hardware::words(MACHINE).unwrap();
        let alone = total(&machine(), kernel, &programs(1.0));
        let beside = total(&machine(), kernel, &[programs(1.0), vec![idle.clone()]].concat());
        assert!((beside / alone - 1.0).abs() < 0.1, "{kernel:?}: {beside} and {alone}");
    }
}

/// The ends of three programs on one CPU, nanoseconds. They arrive at odd times, so that no two
/// events fall together. A fourth program that only sleeps may be there.
fn ends_on_one_cpu(kernel: Kernel, hardware: Hardware, stretch: u64, idle: bool) -> Vec<u64> {
    let compute = |micros: u64| Op::Compute { instructions: 1e3 * micros as f64, mix: 0 };
    let sleeper = vec![
        compute(1_733),
        Op::Sleep(Nanos::from_micros(2_917 * stretch)),
        Op::Repeat { from: 0, times: 9, counter: 0 },
    ];
    let mut programs = vec![
        (103, program(1, vec![compute(29_989)])),
        (1_511, program(1, sleeper)),
        (2_203, program(1, vec![compute(41_117)])),
    ];
    if idle {
        programs.push((7, program(1, vec![Op::Sleep(Nanos::from_secs(50))])));
    }
    let programs =
        programs.into_iter().map(|(at, model)| (at * stretch, model, Settings::default()));
    let mut stage = Stage::with(hardware, kernel, programs, 1);
    stage.until(Nanos::from_secs(1));
    let ends = stage.events.iter().filter_map(|event| match event.what {
        cosched_core::Happening::Exited(..) => Some(event.at.0),
        _ => None,
    });
    let ends: Vec<u64> = ends.collect();
    assert_eq!(ends.len(), 3);
    ends
}

#[test]
fn without_ties_the_relations_hold_to_the_nanosecond() {
    for kernel in kernels() {
        let kernel = Kernel { skew_tick: false, ..kernel };
        let ends = ends_on_one_cpu(kernel, ideal("core:1"), 1, false);
        assert_eq!(ends, ends_on_one_cpu(kernel, ideal("core:1"), 1, true), "{kernel:?}");
        if kernel.is_solaris() {
            continue;
        }
        let slow = Hardware { gigahertz: 0.5, ..ideal("core:1") };
        let doubled: Vec<u64> = ends.iter().map(|end| 2 * end).collect();
        assert_eq!(doubled, ends_on_one_cpu(slower(kernel), slow, 2, false), "{kernel:?}");
    }
}
