//! The variables by which programs are told how many threads to use.
//!
//! There is no common one: each thread pool reads its own. `threads` sets all of them. Pools that
//! read none, such as TBB's and ninja's, look at the CPU mask, which is left alone here.
//!
//! Sources are the documentation of each reader, by its section.

use std::ffi::OsString;

/// The variable of OpenMP, which other libraries look at, too, and `nproc`.
pub const OPENMP: &str = "OMP_NUM_THREADS";

/// How a variable holds a thread count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// It is the number.
    Number,
    /// It holds options, of which one, with this beginning, has the number. Of two the last holds.
    Option(&'static str),
}

/// Which programs a variable is set for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum For {
    All,
    /// Not for builds: `nproc` obeys it, and `make -j$(nproc)` would become serial.
    AllButBuilds,
    /// Other programs may run a makefile that is only right with one job.
    Builds,
}

/// A variable that a thread pool reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadVariable {
    /// Its name.
    pub name: &'static str,
    /// Who reads it.
    pub reader: &'static str,
    form: Form,
    set_for: For,
}

const fn number(name: &'static str, reader: &'static str) -> ThreadVariable {
    ThreadVariable { name, reader, form: Form::Number, set_for: For::All }
}

/// All of them.
pub const THREAD_VARIABLES: [ThreadVariable; 19] = [
    // OpenMP 5.2, section 21.1.2; coreutils, "nproc invocation".
    ThreadVariable { set_for: For::AllButBuilds, ..number(OPENMP, "OpenMP, C, C++ and Fortran") },
    // OpenBLAS, "Runtime variables".
    number("OPENBLAS_NUM_THREADS", "OpenBLAS"),
    // oneMKL developer guide, "MKL_NUM_THREADS".
    number("MKL_NUM_THREADS", "Intel MKL"),
    // BLIS, docs/Multithreading.md.
    number("BLIS_NUM_THREADS", "BLIS"),
    // NumExpr user guide, "Threadpool configuration".
    number("NUMEXPR_NUM_THREADS", "NumExpr"),
    // Numba reference, "Environment variables".
    number("NUMBA_NUM_THREADS", "Numba"),
    // Rayon, ThreadPoolBuilder::num_threads.
    number("RAYON_NUM_THREADS", "Rayon"),
    // Polars, thread_pool_size.
    number("POLARS_MAX_THREADS", "Polars"),
    // Julia manual, "Environment Variables".
    number("JULIA_NUM_THREADS", "Julia"),
    // Go, package runtime, "Environment Variables".
    number("GOMAXPROCS", "Go"),
    // JDK, `java` command, -XX:ActiveProcessorCount; JVM TI, JAVA_TOOL_OPTIONS.
    ThreadVariable {
        form: Form::Option("-XX:ActiveProcessorCount="),
        ..number("JAVA_TOOL_OPTIONS", "JVM")
    },
    // .NET runtime, clrconfignames.h: a decimal number.
    number("DOTNET_PROCESSOR_COUNT", ".NET"),
    // loky, cpu_count.
    number("LOKY_MAX_CPU_COUNT", "loky, joblib"),
    // Python 3.13, os.cpu_count.
    number("PYTHON_CPU_COUNT", "Python, from 3.13"),
    // data.table, setDTthreads.
    number("R_DATATABLE_NUM_THREADS", "R's data.table"),
    // libuv, "Thread pool work scheduling".
    number("UV_THREADPOOL_SIZE", "Node, libuv"),
    // The Cargo Book, "Configuration", build.jobs.
    number("CARGO_BUILD_JOBS", "Cargo"),
    // CMake, "CMAKE_BUILD_PARALLEL_LEVEL".
    number("CMAKE_BUILD_PARALLEL_LEVEL", "CMake"),
    // GNU make, "Communicating Options to a Sub-make".
    ThreadVariable {
        form: Form::Option("-j"),
        set_for: For::Builds,
        ..number("MAKEFLAGS", "make")
    },
];

impl ThreadVariable {
    /// Its value for `threads` threads, where it has the value `inherited` now. `None`: it stays as
    /// it is for such a program.
    pub(crate) fn value(self, threads: u16, builds: bool, inherited: OsString) -> Option<OsString> {
        // Below another make, that one's job server says how many jobs there are.
        let is_served = inherited.to_string_lossy().contains("--jobserver");
        (self.is_set(builds) && !is_served).then(|| match self.form {
            Form::Number => threads.to_string().into(),
            // GNU make takes a first word without a dash for letters of options.
            Form::Option(option) => {
                let mut options = inherited;
                options.push(format!(" {option}{threads}"));
                options
            }
        })
    }

    fn is_set(self, builds: bool) -> bool {
        match self.set_for {
            For::All => true,
            For::AllButBuilds => !builds,
            For::Builds => builds,
        }
    }

    /// Whether a program with a thread count gets none of the inherited value.
    pub(crate) fn replaces(self, builds: bool) -> bool {
        self.is_set(builds) && self.form == Form::Number
    }

    /// Whether this value says how many threads there are.
    pub(crate) fn has_count(self, value: &str) -> bool {
        match self.form {
            Form::Number => true,
            Form::Option(option) => value.split_whitespace().any(|word| word.starts_with(option)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(name: &str) -> ThreadVariable {
        *THREAD_VARIABLES.iter().find(|variable| variable.name == name).unwrap()
    }

    #[test]
    fn options_are_added_to_those_that_are_inherited() {
        let java = variable("JAVA_TOOL_OPTIONS");
        let expected = "-Xmx1g -XX:ActiveProcessorCount=3";
        assert_eq!(java.value(3, false, "-Xmx1g".into()).unwrap(), expected);
        assert_eq!(variable("MAKEFLAGS").value(3, true, "k".into()).unwrap(), "k -j3");
        assert_eq!(variable("GOMAXPROCS").value(3, false, "8".into()).unwrap(), "3");
    }

    #[test]
    fn a_makes_job_server_is_left_alone() {
        let inherited = " -j8 --jobserver-auth=3,4";
        assert_eq!(variable("MAKEFLAGS").value(3, true, inherited.into()), None);
    }

    #[test]
    fn builds_hear_of_jobs_and_not_of_openmp() {
        let set = |name, builds| variable(name).value(1, builds, OsString::new()).is_some();
        assert_eq!((set(OPENMP, false), set(OPENMP, true)), (true, false));
        assert_eq!((set("MAKEFLAGS", false), set("MAKEFLAGS", true)), (false, true));
        assert!(set("CARGO_BUILD_JOBS", false) && set("CARGO_BUILD_JOBS", true));
    }

    #[test]
    fn only_an_option_with_a_count_is_a_count() {
        assert!(!variable("JAVA_TOOL_OPTIONS").has_count("-Xmx1g"));
        assert!(variable("JAVA_TOOL_OPTIONS").has_count("-Xmx1g -XX:ActiveProcessorCount=2"));
        assert!(variable("MAKEFLAGS").has_count(" -j2"));
    }
}
