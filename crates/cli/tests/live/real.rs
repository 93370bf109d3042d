//! Real packages, as `make test-real` installs them: their results must be those without cosched.
//!
//! How long they take is printed, and decides nothing.

use std::path::Path;
use std::time::Instant;

use cosched_core::Refusal;

use super::support::{Ended, Place, program, skip};

/// Which Python has the packages.
const PYTHON: &str = "COSCHED_REAL_PYTHON";
/// Two programs with a thread each that compute until the file `stop` is there.
const BURNS: &str = "while [ ! -e stop ]; do :; done & while [ ! -e stop ]; do :; done; wait";

fn python() -> Option<String> {
    let python = std::env::var(PYTHON).ok();
    if python.is_none() {
        skip("this is no run of `make test-real`");
    }
    python
}

/// Runs programs to their good end, and prints how long that took.
fn timed(place: &Place, what: &str, tables: &[String], options: &str) -> Ended {
    let began = Instant::now();
    let ended = place.run(tables, &format!("{options} --force")).ended().with(0);
    eprintln!("{what}: {:.2} s", began.elapsed().as_secs_f64());
    ended
}

/// Gradient boosting waits at barriers in every process of `pytest -n 4`.
#[test]
fn the_workers_of_pytest_share_the_cpus() {
    let Some(python) = python() else { return };
    let place = Place::new();
    place.write(
        "test_boosting.py",
        "import os\nimport numpy as np\nimport pytest\n\
         from sklearn.ensemble import HistGradientBoostingClassifier\n\n\
         @pytest.mark.parametrize('seed', range(16))\n\
         def test_fit(seed):\n    \
             expected = os.environ['EXPECTED']\n    \
             assert os.environ.get('OMP_NUM_THREADS', '') == expected\n    \
             table = np.random.default_rng(seed).normal(size=(300, 12))\n    \
             label = (table[:, 0] * table[:, 1] > 0).astype(int)\n    \
             model = HistGradientBoostingClassifier(max_iter=30, random_state=seed)\n    \
             assert model.fit(table, label).score(table, label) > 0.7\n",
    );
    let cpus = cosched_linux::kernel::affinity::get(0).unwrap().len();
    let share = (cpus / 4).max(1).to_string();
    let script = format!("exec {python} -B -m pytest -q -p no:cacheprovider -n 4 test_boosting.py");
    for (what, env, options) in [
        ("plain Linux", "EXPECTED = ''".to_owned(), "--policy linux"),
        (
            "plain Linux, with its share said",
            format!("EXPECTED = '{share}', OMP_NUM_THREADS = '{share}'"),
            "--policy linux",
        ),
        ("turns", format!("EXPECTED = '{share}'"), "--policy turns"),
        ("faithful", format!("EXPECTED = '{share}'"), "--policy faithful"),
    ] {
        let table = program("pytest", &format!("env = {{ {env} }}"), &script);
        timed(&place, what, &[table], options);
        assert!(place.read("out/pytest.stdout").contains("16 passed"), "{what}");
    }
}

/// 200 ms for an example is the deadline that tests have by default.
#[test]
fn hypothesis_keeps_its_deadlines_beside_programs_that_compute() {
    let Some(python) = python() else { return };
    let place = Place::new();
    place.write(
        "test_sorted.py",
        "from hypothesis import given, settings, strategies as st\n\n\
         @settings(max_examples=600, database=None)\n\
         @given(st.lists(st.integers(), max_size=60))\n\
         def test_sorted(numbers):\n    \
             for _ in range(200):\n        \
                 assert sorted(sorted(numbers)) == sorted(numbers)\n",
    );
    let script = format!(
        "{python} -B -m pytest -q -p no:cacheprovider test_sorted.py; code=$?; touch stop; \
         exit $code"
    );
    for options in ["--policy turns", "--policy auto", "--policy gang"] {
        let tables = [program("tests", "", &script), program("burns", "threads = 2", BURNS)];
        timed(&place, options, &tables, options);
        assert!(place.read("out/tests.stdout").contains("1 passed"), "{options}");
        std::fs::remove_file(place.path("stop")).unwrap();
    }
}

/// The fork server listens, and only its own processes connect.
#[test]
fn pools_of_python_may_be_paused_however_they_start() {
    let Some(python) = python() else { return };
    let place = Place::new();
    place.write(
        "pool.py",
        "import multiprocessing, sys\n\n\
         def work(n):\n    return sum(i * i for i in range(n)) % 1000\n\n\
         if __name__ == '__main__':\n    \
             context = multiprocessing.get_context(sys.argv[1])\n    \
             with context.Pool(2) as pool:\n        \
                 print('sum', sum(pool.map(work, [1_500_000] * 16, 1)))\n",
    );
    for start in ["fork", "spawn", "forkserver"] {
        let script = format!("{python} -B pool.py {start}; code=$?; touch stop; exit $code");
        let tables = [
            program("pool", "env = { TMPDIR = '/tmp' }", &script),
            program("burns", "threads = 2", BURNS),
        ];
        let ended = timed(&place, start, &tables, "--policy gang");
        assert!(place.read("out/pool.stdout").starts_with("sum "), "{start}");
        // At its end, the folder of its socket is gone before the socket is.
        assert!(ended.result().programs[0].timeline.len() > 1, "{start}");
        std::fs::remove_file(place.path("stop")).unwrap();
    }
}

/// Compilers wait for files, and for none of their siblings.
#[test]
fn builds_side_by_side_make_all_their_files() {
    if python().is_none() {
        return;
    }
    let place = Place::new();
    let makefile = "all: $(patsubst %.c,%.o,$(wildcard *.c))\n";
    for options in ["--policy linux", "--policy turns"] {
        let tables: Vec<String> = ["one", "two", "three"]
            .map(|name| {
                let folder = place.path(name);
                let _ = std::fs::remove_dir_all(&folder);
                std::fs::create_dir(&folder).unwrap();
                std::fs::write(folder.join("Makefile"), makefile).unwrap();
                for i in 0..24 {
                    let source =
                        format!("#include <stdio.h>\nint f{i}(int x) {{ return x + {i}; }}\n");
                    std::fs::write(folder.join(format!("f{i}.c")), source).unwrap();
                }
                program(name, "", &format!("make -s -j -C {name} CFLAGS=-O2"))
            })
            .into();
        timed(&place, options, &tables, options);
        for name in ["one", "two", "three"] {
            let made = std::fs::read_dir(place.path(name)).unwrap();
            let made =
                made.filter(|file| file.as_ref().unwrap().path().extension() == Some("o".as_ref()));
            assert_eq!(made.count(), 24, "{options} {name}");
        }
    }
}

/// The ranks of a job spin while they wait, and `mpirun` listens for them.
#[test]
fn two_mpi_jobs_have_their_turns() {
    if python().is_none() {
        return;
    }
    let place = Place::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/real/ring.c");
    let built = std::process::Command::new("mpicc")
        .args(["-O2", "-o"])
        .arg(place.path("ring"))
        .arg(source)
        .status();
    if !built.is_ok_and(|status| status.success()) {
        return skip("Open MPI is not installed");
    }
    let job = |name: &str| {
        let script = "mpirun --oversubscribe -np 2 --use-hwthread-cpus --bind-to hwthread ./ring";
        let root = "env = { OMPI_ALLOW_RUN_AS_ROOT = '1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM = '1' }";
        program(name, root, script)
    };
    let gang = ["--policy gang", "--policy gang --freezer signals"];
    for options in ["--policy fcfs", "--policy linux", "--policy turns", gang[0], gang[1]] {
        let ended = timed(&place, options, &[job("one"), job("two")], options);
        assert_eq!(place.read("out/one.stdout"), place.read("out/two.stdout"), "{options}");
        assert!(!place.read("out/one.stderr").contains("Forwarding signal"), "{options}");
        let whys = ended.result().deviations;
        assert!(whys.iter().all(|deviation| deviation.why != Refusal::Listens), "{options}");
    }
}
