//! The lines of a log, as they are written and read.
//!
//! A last line that ends where a part of the file ends was cut off by a kill or a full disk, and
//! announces a change that was not made. Any other line that cannot be read is damage. It is
//! counted, and all others are undone.
//!
//! A log that has grown repeats at its end what is valid, and a last line then says how many lines
//! that were. What came before them is given back to the file system: the file begins with a hole.
//! Where the file system has no holes, the file is emptied and gets these lines anew.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::FileExt;
use std::time::{Duration, SystemTime};

use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::journal::Journal;
use super::record::Record;
use crate::kernel::procfs::Proc;

/// A line that is being written can be cut off at multiples of this, in bytes: the kernel writes
/// page by page, and file systems give out blocks.
const PART: usize = 512;
/// The maximum length of a log without its hole, in bytes: some hundred thousand threads would have
/// to be changed at once.
pub(super) const LARGEST: u64 = 1 << 28;
/// How much to read for the first two lines, in bytes: they are shorter, and come after the rest of
/// a hole in a block of the file system.
const BEGINNING: usize = 1 << 17;
/// The length of a log of which everything is undone, in bytes. An empty file looks damaged.
const UNDONE: u64 = 1;

/// The line after a repetition.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Repeated {
    /// How many lines before this one are all that is valid.
    repeated: usize,
}

/// A record as a line of the log; fails only for a cgroup with a path that is not UTF-8.
pub(super) fn line(record: &Record) -> serde_json::Result<String> {
    let mut line = serde_json::to_string(record)?;
    line.push('\n');
    Ok(line)
}

/// All valid records once more, and that these are all. Half a line may stand before them.
pub(super) fn repetition(records: &[Record]) -> serde_json::Result<String> {
    let lines: String = records.iter().map(line).collect::<Result<_, _>>()?;
    let end = serde_json::to_string(&Repeated { repeated: records.len() })?;
    Ok(format!("\n{lines}{end}\n"))
}

/// Gives the first part of a file back to the file system. Returns whether that is possible.
pub(super) fn give_back(file: &File, length: u64) -> bool {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(file, flags, 0, length).is_ok()
}

/// Marks an open log: everything is undone. It may have another name by now, and shims hold it.
pub(super) fn mark_undone(file: &File) -> io::Result<()> {
    // In one step, which needs no space on the disk.
    file.set_len(UNDONE)
}

pub(super) fn is_marked(found: &Metadata) -> bool {
    found.len() == UNDONE
}

/// Whether a log holds lines. Further ones may be in its sentinel's memory.
pub(super) fn has_lines(found: &Metadata) -> bool {
    found.len() > UNDONE
}

/// The first records of a log: those that name the boot and the namespaces.
pub(super) fn first_records(file: &File) -> Vec<Record> {
    let (mut bytes, mut from) = (vec![0; BEGINNING], first_byte(file));
    let end = from + LARGEST;
    // Not every file system tells where its holes are.
    let text = loop {
        let length = file.read_at(&mut bytes, from).unwrap_or_default();
        let zeros = length - after_hole(&bytes[..length]).len();
        if zeros == 0 || from >= end {
            break &bytes[..length];
        }
        from += zeros as u64;
    };
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).take(2);
    lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// The content of a log, independent of its file position.
pub(super) fn content(file: &File, most: u64) -> io::Result<Vec<u8>> {
    bytes(file, first_byte(file), most)
}

/// The length of a log without the hole at its beginning, in bytes.
pub(super) fn length(file: &File) -> u64 {
    file.metadata().map_or(u64::MAX, |found| found.len() - first_byte(file).min(found.len()))
}

/// Where the hole at the beginning ends.
fn first_byte(file: &File) -> u64 {
    match seek(file, SeekFrom::Data(0)) {
        Ok(first) => first,
        // It is all hole.
        Err(Errno::NXIO) => file.metadata().map_or(0, |found| found.len()),
        Err(_) => 0,
    }
}

/// What comes after the rest of a hole in its last block.
fn after_hole(bytes: &[u8]) -> &[u8] {
    let first = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len());
    &bytes[first..]
}

/// The content of a file from here on, independent of its file position.
pub(super) fn bytes(file: &File, from: u64, most: u64) -> io::Result<Vec<u8>> {
    let (mut bytes, mut part) = (Vec::new(), [0; 1 << 16]);
    loop {
        match file.read_at(&mut part, from + bytes.len() as u64) {
            Ok(0) => return Ok(bytes),
            Ok(count) => bytes.extend(&part[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if bytes.len() as u64 > most {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("it has more than {most} bytes, which no undo log has"),
            ));
        }
    }
}

/// What is still to be undone according to the lines of a file, and those that belong to it.
pub(super) fn read_journal(file: &File, parts: &[Vec<u8>], proc: &Proc) -> io::Result<Journal> {
    let mut records: Vec<Option<Record>> = Vec::new();
    let is_marked = parts.first().is_some_and(|part| part.len() as u64 == UNDONE);
    let parts = &parts[usize::from(is_marked)..];
    let lines = |part| after_hole(whole_lines(part)).split(|byte| *byte == b'\n');
    for line in parts.iter().flat_map(|part| lines(part)).filter(|line| !line.is_empty()) {
        match (serde_json::from_slice(line), serde_json::from_slice::<Repeated>(line)) {
            (Ok(record), _) => records.push(Some(record)),
            (_, Ok(Repeated { repeated })) => {
                records.drain(..records.len().saturating_sub(repeated));
            }
            _ => records.push(None),
        }
    }
    let mut journal = Journal::default();
    for record in records {
        match record {
            Some(record) => journal.add(record),
            None => journal.count_damaged(),
        }
    }
    let is_known = !journal.is_news(&Record::Boot { id: boot_id(proc)? });
    // The line that names the boot may be one of the damaged ones.
    let is_any = || journal.records().iter().any(|record| matches!(record, Record::Boot { .. }));
    let may_be_now = || journal.damaged_lines() > 0 && !is_any() && !is_of_earlier_boot(file);
    Ok(if is_known || may_be_now() { journal } else { Journal::default() })
}

/// The lines without a last one that was cut off while it was written.
fn whole_lines(lines: &[u8]) -> &[u8] {
    let is_cut = lines.len() % PART == 0;
    let end = lines.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    if is_cut { &lines[..end] } else { lines }
}

fn is_of_earlier_boot(file: &File) -> bool {
    let uptime = clock_gettime(ClockId::Boottime);
    let uptime = Duration::new(uptime.tv_sec as u64, uptime.tv_nsec as u32);
    let written = file.metadata().and_then(|found| found.modified());
    let booted = SystemTime::now().checked_sub(uptime);
    written.ok().zip(booted).is_some_and(|(written, booted)| written < booted)
}

pub(super) fn boot_id(proc: &Proc) -> io::Result<String> {
    let path = proc.root().join("sys/kernel/random/boot_id");
    Ok(fs::read_to_string(path)?.trim().to_owned())
}
