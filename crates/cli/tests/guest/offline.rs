//! Taking CPUs away from the machine, and giving them back.

use std::fs;

/// CPUs that are offline until dropped.
pub(crate) struct Unplugged<'a>(&'a [usize]);

impl Unplugged<'_> {
    pub(crate) fn now(cpus: &[usize]) -> Unplugged<'_> {
        cpus.iter().for_each(|cpu| switch(*cpu, "0"));
        Unplugged(cpus)
    }
}

impl Drop for Unplugged<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|cpu| switch(*cpu, "1"));
    }
}

fn switch(cpu: usize, to: &str) {
    fs::write(format!("/sys/devices/system/cpu/cpu{cpu}/online"), to).unwrap();
}
