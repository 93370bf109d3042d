//! Threading runtimes: the libraries in which threads of a program wait for each other.
//!
//! *Problem.* A thread that spins until its siblings have come is as busy as one that computes: neither CPU time nor counted
//! instructions tell them apart.
//!
//! *Idea.* Most threads that spin do so in a library: the runtime of their compiler's OpenMP, or cosched's own barriers. So
//! [samples](crate::pointers) of where a program is tell how much of its time goes into waiting, once it is known where in its memory these
//! libraries lie, which `/proc/PID/maps` tells. What a runtime does itself, such as handing out the parts of a
//! loop, counts as waiting, too: nothing of it would be there if the program had one thread.
//!
//! *OpenBLAS* has threads of its own, which wait by yielding: that they do is seen as time in the kernel, so nothing of its
//! code counts. (So it is where it was built for x86; on others its threads look at memory.)
//!
//! *What it cannot tell.* A program without such a library, or with one inside its own file, may spin in its own code. Of that
//! one nothing is known. One that has such a library and spins in its own code all the same is taken to compute.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use crate::files;
use crate::pointers::Met;
use crate::procfs::Proc;

/// How the files of runtimes are called, up to their versions: gcc's, LLVM's, Intel's, and what has cosched's barriers.
const RUNTIMES: [&str; 4] = ["libgomp", "libomp.", "libiomp5.", "libcosched_hook."];
/// And of libraries whose threads wait in the kernel only.
const YIELDING: [&str; 2] = ["libopenblas", "libscipy_openblas"];
/// Of fewer samples nothing is told.
const FEWEST: usize = 5;
/// Nor of a program of which processes without a runtime have more than the rest of this part.
const MOST: f64 = 0.9;

/// Which part of what was met of a program was in runtimes; `None` where that is not known.
pub(crate) fn part_in_runtimes(met: &[Met], proc: &Proc) -> Option<f64> {
    if met.len() < FEWEST {
        return None;
    }
    let mut pointers: BTreeMap<i32, Vec<u64>> = BTreeMap::new();
    for met in met {
        pointers.entry(met.process).or_default().push(met.pointer);
    }
    let (mut known, mut inside) = (0, 0);
    for (process, pointers) in pointers {
        // One that has ended tells as little as one without.
        let maps = files::read_if_there(&proc.folder(process).join("maps")).ok().flatten();
        let lines = || maps.iter().flat_map(|maps| maps.lines());
        let places: Vec<Range<u64>> = lines().filter_map(|line| place(line, &RUNTIMES)).collect();
        if places.is_empty() && lines().all(|line| place(line, &YIELDING).is_none()) {
            continue;
        }
        let is_inside = |pointer: &&u64| places.iter().any(|place| place.contains(pointer));
        known += pointers.len();
        inside += pointers.iter().filter(is_inside).count();
    }
    (known as f64 >= MOST * met.len() as f64).then(|| inside as f64 / known as f64)
}

/// Where a line of `/proc/PID/maps` lies, if it is code of one of these libraries:
/// `7f12a000-7f12b000 r-xp 00005000 fe:00 4711 /usr/lib/libgomp.so.1.0.0`
fn place(line: &str, libraries: &[&str]) -> Option<Range<u64>> {
    let (range, rest) = line.split_once(' ')?;
    let (rights, rest) = rest.split_once(' ')?;
    // After offset, device and inode; there may be spaces in it.
    let path = &rest[rest.find('/').filter(|_| rights.contains('x'))?..];
    let name = Path::new(path).file_name()?.to_str()?;
    libraries.iter().find(|library| name.starts_with(**library))?;
    let (from, to) = range.split_once('-')?;
    let hexadecimal = |number| u64::from_str_radix(number, 16).ok();
    Some(hexadecimal(from)?..hexadecimal(to)?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const OPENMP: &str = "\
55a0c0001000-55a0c0004000 r-xp 00001000 fe:00 99 /home/a/cg
7f12a0000000-7f12a0001000 r--p 00000000 fe:00 4711 /usr/lib/libgomp.so.1.0.0
7f12a0001000-7f12a0005000 r-xp 00001000 fe:00 4711 /usr/lib/libgomp.so.1.0.0
7f12b0000000-7f12b0001000 r-xp 00000000 fe:00 4712 /usr/lib/libc.so.6
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]
";

    fn met(process: i32, pointer: u64, times: usize) -> Vec<Met> {
        vec![Met { pointer, process }; times]
    }

    fn processes() -> (tempfile::TempDir, Proc) {
        let root = tempfile::tempdir().unwrap();
        for (process, maps) in [("7", OPENMP), ("8", "1000-2000 r-xp 0 fe:00 5 /bin/sh\n")] {
            fs::create_dir(root.path().join(process)).unwrap();
            fs::write(root.path().join(process).join("maps"), maps).unwrap();
        }
        let proc = Proc::new(root.path());
        (root, proc)
    }

    #[test]
    fn what_is_met_in_the_code_of_a_runtime_waits() {
        let (_root, proc) = processes();
        let computes = met(7, 0x55a0_c000_1010, 30);
        let waits = met(7, 0x7f12_a000_1010, 10);
        let data = met(7, 0x7f12_a000_0010, 0);
        let all = [computes.clone(), waits, data].concat();
        assert_eq!(part_in_runtimes(&all, &proc), Some(0.25));
        assert_eq!(part_in_runtimes(&computes, &proc), Some(0.0), "it would be seen");
        assert_eq!(part_in_runtimes(&computes[..5], &proc), Some(0.0));
        assert_eq!(part_in_runtimes(&computes[..4], &proc), None, "too few");
    }

    #[test]
    fn of_processes_without_a_runtime_nothing_is_known() {
        let (_root, proc) = processes();
        let shell = |times| met(8, 0x1010, times);
        assert_eq!(part_in_runtimes(&shell(30), &proc), None);
        let computes = met(7, 0x55a0_c000_1010, 28);
        assert_eq!(part_in_runtimes(&[computes.clone(), shell(2)].concat(), &proc), Some(0.0));
        assert_eq!(part_in_runtimes(&[computes, shell(12)].concat(), &proc), None);
        assert_eq!(part_in_runtimes(&met(9, 0x1010, 30), &proc), None, "it has ended");
    }

    #[test]
    fn threads_that_wait_in_the_kernel_are_seen_there() {
        let (root, proc) = processes();
        let maps = "1000-2000 r-xp 0 fe:00 5 /usr/lib/libopenblasp-r0.3.21.so\n";
        fs::write(root.path().join("8/maps"), maps).unwrap();
        assert_eq!(part_in_runtimes(&met(8, 0x1010, 30), &proc), Some(0.0));
    }

    #[test]
    fn libraries_are_told_by_their_names() {
        let line = |name: &str, libraries: &[&str]| {
            place(&format!("1000-2000 r-xp 0 fe:00 5 /usr/lib/x/{name}"), libraries)
        };
        let runtimes = ["libgomp.so.1", "libgomp-a34b3233.so.1.0.0", "libomp.so.5", "libiomp5.so"];
        assert!(runtimes.into_iter().all(|name| line(name, &RUNTIMES) == Some(0x1000..0x2000)));
        let others = ["libompl.so", "libm.so.6", "libopenblas.so.0"];
        assert!(others.into_iter().all(|name| line(name, &RUNTIMES).is_none()));
        assert!(line("libscipy_openblas64_-56d6093b.so", &YIELDING).is_some());
        assert!(line("my own/libgomp.so.1 (deleted)", &RUNTIMES).is_some());
    }
}
