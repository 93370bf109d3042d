//! Processes with two spinning threads each, as a pool of workers. Arguments: how many; `tied` if
//! the first two share memory. Each writes its number to a file w0, w1, …, and ends with `stop`.

#![allow(clippy::unwrap_used)]

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::mm::{MapFlags, ProtFlags, mmap};

const STEP: Duration = Duration::from_millis(10);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["worker", number, memory] => work(number, memory),
        [count, mode] => lead(count.parse().unwrap(), mode == "tied"),
        _ => panic!("usage: pool COUNT free|tied"),
    }
}

fn lead(count: usize, is_tied: bool) {
    let memory = format!("/dev/shm/cosched-test-pool-{}", std::process::id());
    let own = std::env::current_exe().unwrap();
    let start = |number: usize| {
        let memory = if is_tied && number < 2 { &memory } else { "" };
        Command::new(&own).args(["worker", &number.to_string(), memory]).spawn().unwrap()
    };
    let workers: Vec<Child> = (0..count).map(start).collect();
    let failed = workers.into_iter().filter_map(|mut worker| worker.wait().ok());
    let failed = failed.filter(|status| !status.success()).count();
    let _ = fs::remove_file(memory);
    std::process::exit(i32::from(failed > 0));
}

fn work(number: &str, memory: &str) {
    if !memory.is_empty() {
        let mut options = OpenOptions::new();
        let file = options.create(true).truncate(false).read(true).write(true).open(memory);
        let file = file.unwrap();
        file.set_len(4096).unwrap();
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: maps new memory wherever the kernel likes; nothing looks at it.
        unsafe { mmap(std::ptr::null_mut(), 4096, rights, MapFlags::SHARED, &file, 0).unwrap() };
    }
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop()
                }
            });
        }
        fs::write(format!("w{number}"), format!("{}\n", std::process::id())).unwrap();
        while !Path::new("stop").exists() {
            std::thread::sleep(STEP);
        }
        over.store(true, Ordering::Relaxed);
    });
}
