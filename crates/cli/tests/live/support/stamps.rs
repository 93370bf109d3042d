//! Finding out from a program's own output when it ran.
//!
//! A program that writes the time of day in a loop leaves stamps only while it runs. Sorted
//! together with those of another program they form *blocks*: stamps of one without a stamp of the
//! other between. Programs that never run at the same time leave no more blocks than they had
//! turns, however fast or slow they are. Programs that run together leave hundreds.

/// A script that leaves stamps on its standard output: some hundred milliseconds of work in which
/// it forks without end.
pub(crate) const STAMPS: &str = "i=0; while [ $i -lt 150 ]; do date +%s%N; i=$((i+1)); done";

/// The number of blocks of each program, from their outputs.
pub(crate) fn blocks(outputs: &[String]) -> Vec<usize> {
    let mut stamps = Vec::new();
    for (program, output) in outputs.iter().enumerate() {
        stamps.extend(output.lines().map(|line| (line.parse::<u128>().unwrap(), program)));
    }
    stamps.sort_unstable();
    let mut blocks = vec![0; outputs.len()];
    let mut last = None;
    for (_, program) in stamps {
        if last.replace(program) != Some(program) {
            blocks[program] += 1;
        }
    }
    blocks
}
