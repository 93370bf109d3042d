use std::fs;

use cosched_core::Level;
use tempfile::TempDir;

use super::*;

/// A made-up sysfs.
struct Fixture(TempDir);

impl Fixture {
    fn new(online: &str) -> Fixture {
        let fixture = Fixture(tempfile::tempdir().unwrap());
        fixture.put("online", online);
        fixture
    }

    fn put(&self, file: &str, text: impl ToString) -> &Fixture {
        let path = self.0.path().join("devices/system/cpu").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text.to_string() + "\n").unwrap();
        self
    }

    fn core(&self, cpu: usize, package: i32, siblings: &str) -> &Fixture {
        self.put(&format!("cpu{cpu}/topology/physical_package_id"), package)
            .put(&format!("cpu{cpu}/topology/core_cpus_list"), siblings)
    }

    fn cache(&self, cpu: usize, index: usize, level: u32, kind: &str, sharers: &str) -> &Fixture {
        let folder = format!("cpu{cpu}/cache/index{index}");
        self.put(&format!("{folder}/level"), level)
            .put(&format!("{folder}/type"), kind)
            .put(&format!("{folder}/shared_cpu_list"), sharers)
    }

    fn node(&self, node: usize, cpus: &str) -> &Fixture {
        self.put(&format!("../node/node{node}/cpulist"), cpus)
    }

    fn topology(&self) -> Topology {
        Sys::new(self.0.path()).topology().unwrap()
    }
}

fn groups(machine: &Topology, level: Level) -> Vec<u16> {
    machine.cpus().iter().map(|cpu| cpu.group(level)).collect()
}

#[test]
fn a_two_cpu_virtual_machine_shares_only_its_outermost_cache() {
    let sys = Fixture::new("0-1");
    for cpu in 0..2 {
        let own = cpu.to_string();
        sys.core(cpu, 0, &own)
            .cache(cpu, 0, 1, "Data", &own)
            .cache(cpu, 1, 1, "Instruction", &own)
            .cache(cpu, 2, 2, "Unified", &own)
            .cache(cpu, 3, 3, "Unified", "0-1")
            .put(&format!("cpu{cpu}/cpu_capacity"), 1024);
    }
    sys.node(0, "0-1");
    assert_eq!(sys.topology(), Topology::regular(1, 1, 2, 1, 1));
}

#[test]
fn two_smt_packages_with_split_caches_are_numbered_machine_wide() {
    // Two packages of two cache complexes of two cores of two siblings. As usual on x86, the
    // second siblings come after all first ones: CPU 8 is the sibling of CPU 0.
    let sys = Fixture::new("0-15");
    for cpu in 0..16 {
        let core = cpu % 8;
        let complex = core / 2 * 2;
        let siblings = format!("{core},{}", core + 8);
        let sharers = format!("{complex}-{},{}-{}", complex + 1, complex + 8, complex + 9);
        sys.core(cpu, core as i32 / 4, &siblings)
            .cache(cpu, 2, 2, "Unified", &siblings)
            .cache(cpu, 3, 3, "Unified", &sharers);
    }
    sys.node(0, "0-3,8-11").node(1, "4-7,12-15");
    let machine = sys.topology();
    let twice = |half: [u16; 8]| [half, half].concat();
    assert_eq!(groups(&machine, Level::Package), twice([0, 0, 0, 0, 1, 1, 1, 1]));
    assert_eq!(groups(&machine, Level::Llc), twice([0, 0, 1, 1, 2, 2, 3, 3]));
    assert_eq!(groups(&machine, Level::L2), twice([0, 1, 2, 3, 4, 5, 6, 7]));
    assert_eq!(groups(&machine, Level::Core), twice([0, 1, 2, 3, 4, 5, 6, 7]));
    assert_eq!(machine.cpu(12).unwrap().node, 1);
}

#[test]
fn equal_marks_in_different_packages_are_different_groups() {
    // A hypervisor that claims one level-3 cache across two packages.
    let sys = Fixture::new("0-1");
    sys.core(0, 0, "0").cache(0, 3, 3, "Unified", "0-1");
    sys.core(1, 1, "1").cache(1, 3, 3, "Unified", "0-1");
    assert_eq!(groups(&sys.topology(), Level::Llc), [0, 1]);
}

#[test]
fn fast_and_slow_cpus_keep_their_capacities() {
    let sys = Fixture::new("0-3");
    for cpu in 0..4 {
        sys.core(cpu, 0, &cpu.to_string())
            .cache(cpu, 2, 2, "Unified", if cpu < 2 { "0-1" } else { "2-3" })
            .put(&format!("cpu{cpu}/cpu_capacity"), if cpu < 2 { 446 } else { 1024 });
    }
    let machine = sys.topology();
    let capacities: Vec<u16> = machine.cpus().iter().map(|cpu| cpu.capacity).collect();
    assert_eq!(capacities, [446, 446, 1024, 1024]);
    // Without a level-3 cache, the clusters' level-2 caches are the last level.
    assert_eq!(groups(&machine, Level::Llc), [0, 0, 1, 1]);
}

/// An i9-12900K in small: its kernel tells no capacities.
fn two_types_of_cores(file: &str, fast: u64, slow: u64) -> Fixture {
    let sys = Fixture::new("0-3");
    for cpu in 0..4 {
        sys.core(cpu, 0, &cpu.to_string());
        sys.put(&format!("cpu{cpu}/{file}"), if cpu < 2 { fast } else { slow });
    }
    sys
}

#[test]
fn efficiency_cores_are_slower_as_firmware_or_frequency_says() {
    let capacities = |sys: &Fixture| -> Vec<u16> {
        sys.topology().cpus().iter().map(|cpu| cpu.capacity).collect()
    };
    for (file, fast, slow, expected) in [
        ("acpi_cppc/highest_perf", 68, 44, 662),
        ("cpufreq/cpuinfo_max_freq", 5_200_000, 3_900_000, 768),
    ] {
        let sys = two_types_of_cores(file, fast, slow);
        assert_eq!(capacities(&sys), [1024; 4], "of one type, as far as the kernel says");
        sys.put("../../cpu_atom/cpus", "2-3");
        assert_eq!(capacities(&sys), [1024, 1024, expected, expected]);
        sys.put("cpu0/cpu_capacity", 1000);
        assert_eq!(capacities(&sys)[0], 1000, "what the kernel says counts");
    }
}

#[test]
fn without_caches_the_die_or_the_package_is_the_cache_domain() {
    let sys = Fixture::new("0-3");
    for cpu in 0..4 {
        sys.core(cpu, (cpu / 2) as i32, &cpu.to_string());
    }
    let machine = sys.topology();
    assert_eq!(groups(&machine, Level::Llc), [0, 0, 1, 1]);
    assert_eq!(groups(&machine, Level::L2), [0, 1, 2, 3]);

    for cpu in 0..4 {
        sys.core(cpu, 0, &cpu.to_string())
            .put(&format!("cpu{cpu}/topology/die_cpus_list"), if cpu < 2 { "0-1" } else { "2-3" });
    }
    let machine = sys.topology();
    assert_eq!(groups(&machine, Level::Package), [0, 0, 0, 0]);
    assert_eq!(groups(&machine, Level::Llc), [0, 0, 1, 1]);
}

#[test]
fn a_machine_without_information_is_one_package_of_equal_cores() {
    let sys = Fixture::new("0-2");
    let machine = sys.topology();
    assert_eq!(groups(&machine, Level::Package), [0, 0, 0]);
    assert_eq!(groups(&machine, Level::Core), [0, 1, 2]);
    assert!(machine.cpus().iter().all(|cpu| cpu.capacity == 1024 && cpu.node == 0));
}

#[test]
fn a_package_number_of_minus_one_means_that_there_is_none() {
    let sys = Fixture::new("0-1");
    sys.core(0, -1, "0").core(1, -1, "1");
    assert_eq!(groups(&sys.topology(), Level::Package), [0, 0]);
}

#[test]
fn an_offline_cpu_is_left_out_and_groups_stay_dense() {
    let sys = Fixture::new("0,2-3");
    for cpu in [0, 2, 3] {
        sys.core(cpu, 0, &cpu.to_string());
    }
    fs::create_dir_all(sys.0.path().join("devices/system/cpu/cpu1")).unwrap();
    let machine = sys.topology();
    assert_eq!(machine.all().to_string(), "0,2-3");
    assert_eq!(groups(&machine, Level::Core), [0, 1, 2]);
}

#[test]
fn a_malformed_list_names_the_file() {
    let sys = Fixture::new("0-1");
    sys.core(1, 0, "one");
    let error = Sys::new(sys.0.path()).topology().unwrap_err().to_string();
    assert!(error.contains("cpu1/topology/core_cpus_list") && error.contains("one"), "{error}");
}

#[test]
fn a_folder_without_cpus_is_not_a_sysfs() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("devices/system/cpu")).unwrap();
    assert!(matches!(Sys::new(root.path()).topology(), Err(TopologyError::NoCpu(_))));
}

#[test]
fn this_machine_can_be_read_and_its_levels_nest() {
    let machine = Sys::default().topology().unwrap();
    assert_eq!(machine.all(), Sys::default().online().unwrap());
    for a in machine.cpus() {
        for b in machine.cpus() {
            for pair in Level::ALL.windows(2) {
                let same = |level| a.group(level) == b.group(level);
                assert!(!same(pair[1]) || same(pair[0]), "{a:?} and {b:?}");
            }
        }
    }
}
