//! The variables by which programs are told how many threads to use.
//!
//! There is no common one: each thread pool reads its own. `threads` sets all of them. Pools that
//! read none, such as TBB's and ninja's, look at the CPU mask, which is left alone here.
//!
//! Sources are the documentation of each reader, by its section.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The variable of OpenMP, which other libraries look at, too, and `nproc`.
pub const OPENMP: &str = "OMP_NUM_THREADS";
const MAKE: &str = "MAKEFLAGS";
/// Behind this word GNU make has variables in its flags, and no options.
const END_OF_OPTIONS: &[u8] = b" -- ";

/// How a variable holds a thread count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// It is the number.
    Number,
    /// It holds options. One of them begins with this and has the number. If it is there twice, the
    /// last one holds.
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

/// What reads a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PoolReader {
    /// Libraries that compute.
    Library,
    /// The runtime of a language, a tool, or programs that count CPUs.
    Other,
}

/// A variable that a thread pool reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadVariable {
    /// Its name.
    pub name: &'static str,
    form: Form,
    set_for: For,
    reader: PoolReader,
}

const fn number(name: &'static str) -> ThreadVariable {
    ThreadVariable { name, form: Form::Number, set_for: For::All, reader: PoolReader::Other }
}

const fn library(name: &'static str) -> ThreadVariable {
    ThreadVariable { reader: PoolReader::Library, ..number(name) }
}

/// The variables, in no order that matters.
pub const THREAD_VARIABLES: [ThreadVariable; 19] = [
    // OpenMP 5.2, section 21.1.2; coreutils, "nproc invocation".
    ThreadVariable { set_for: For::AllButBuilds, ..library(OPENMP) },
    // OpenBLAS, "Runtime variables".
    library("OPENBLAS_NUM_THREADS"),
    // oneMKL developer guide, "MKL_NUM_THREADS".
    library("MKL_NUM_THREADS"),
    // BLIS, docs/Multithreading.md.
    library("BLIS_NUM_THREADS"),
    // NumExpr user guide, "Threadpool configuration".
    library("NUMEXPR_NUM_THREADS"),
    // Numba reference, "Environment variables".
    library("NUMBA_NUM_THREADS"),
    // Rayon, ThreadPoolBuilder::num_threads.
    library("RAYON_NUM_THREADS"),
    // Polars, thread_pool_size.
    library("POLARS_MAX_THREADS"),
    // Julia manual, "Environment Variables".
    number("JULIA_NUM_THREADS"),
    // Go, package runtime, "Environment Variables".
    number("GOMAXPROCS"),
    // JDK from 8u191, `java` command, -XX:ActiveProcessorCount; JVM TI, JAVA_TOOL_OPTIONS.
    ThreadVariable {
        form: Form::Option("-XX:ActiveProcessorCount="),
        ..number("JAVA_TOOL_OPTIONS")
    },
    // .NET runtime, clrconfignames.h: a decimal number.
    number("DOTNET_PROCESSOR_COUNT"),
    // loky (joblib), cpu_count.
    number("LOKY_MAX_CPU_COUNT"),
    // Python from 3.13, os.cpu_count.
    number("PYTHON_CPU_COUNT"),
    // R, data.table, setDTthreads.
    number("R_DATATABLE_NUM_THREADS"),
    // libuv (Node), "Thread pool work scheduling".
    number("UV_THREADPOOL_SIZE"),
    // The Cargo Book, "Configuration", build.jobs.
    number("CARGO_BUILD_JOBS"),
    // CMake, "CMAKE_BUILD_PARALLEL_LEVEL".
    number("CMAKE_BUILD_PARALLEL_LEVEL"),
    // GNU make, "Communicating Options to a Sub-make".
    ThreadVariable { form: Form::Option("-j"), set_for: For::Builds, ..number(MAKE) },
];

impl ThreadVariable {
    /// Its value for `threads` threads, where it has the value `inherited` now. `None`: it stays as
    /// it is for such a program.
    pub(crate) fn value(self, threads: u16, builds: bool, inherited: &OsStr) -> Option<OsString> {
        // Below another make, that one's job server says how many jobs there are.
        let is_served = || inherited.to_string_lossy().contains("--jobserver");
        if !self.is_set(builds) || self.name == MAKE && is_served() {
            return None;
        }
        Some(match self.form {
            Form::Number => threads.to_string().into(),
            // GNU make takes a first word without a dash for letters of options.
            Form::Option(option) => {
                let bytes = inherited.as_bytes();
                let mut words = bytes.windows(END_OF_OPTIONS.len());
                let end = words.position(|word| word == END_OF_OPTIONS).unwrap_or(bytes.len());
                let (options, variables) = bytes.split_at(end);
                let added = format!(" {option}{threads}");
                OsString::from_vec([options, added.as_bytes(), variables].concat())
            }
        })
    }

    /// Whether libraries read it that compute. Programs do not take its value for the number of
    /// CPUs, but for `nproc`.
    pub(crate) fn is_of_library(self) -> bool {
        self.reader == PoolReader::Library
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
        assert_eq!(java.value(3, false, "-Xmx1g".as_ref()).unwrap(), expected);
        assert_eq!(variable("MAKEFLAGS").value(3, true, "k".as_ref()).unwrap(), "k -j3");
        let with_variable = variable("MAKEFLAGS").value(3, true, " -- X=1".as_ref());
        assert_eq!(with_variable.unwrap(), " -j3 -- X=1");
        assert_eq!(variable("GOMAXPROCS").value(3, false, "8".as_ref()).unwrap(), "3");
    }

    #[test]
    fn a_makes_job_server_is_left_alone() {
        let inherited = " -j8 --jobserver-auth=3,4";
        assert_eq!(variable("MAKEFLAGS").value(3, true, inherited.as_ref()), None);
    }

    #[test]
    fn builds_hear_of_jobs_and_not_of_openmp() {
        let set = |name, builds| variable(name).value(1, builds, OsStr::new("")).is_some();
        assert_eq!((set(OPENMP, false), set(OPENMP, true)), (true, false));
        assert_eq!((set("MAKEFLAGS", false), set("MAKEFLAGS", true)), (false, true));
        assert!(set("CARGO_BUILD_JOBS", false) && set("CARGO_BUILD_JOBS", true));
    }
}
