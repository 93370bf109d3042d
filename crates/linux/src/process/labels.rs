//! Labelled outputs: every line that a program writes gets the program's name before it.
//!
//! The program writes into pipes, and its [shim](crate::process::shim) passes on what comes out of
//! them. The shim outlives cosched and is never frozen. So a program with labelled outputs can
//! write on, whatever happens to cosched. cosched makes the pipes and keeps their reading ends. If
//! the shim is killed, cosched passes on what comes.
//!
//! A thread for each output does it, since a terminal that is paused lets no writer go on, and the
//! shim has to tell of the program's end all the same.

use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::kernel::again::again;
use crate::kernel::background;
use crate::process::launch::LineLabels;

/// The most files that are passed: the ends of the pipes of a program, and the undo log.
const ENDS: usize = 5;
/// A longer line is passed on in parts.
const LONGEST: usize = 64 << 10;
/// What a pipe takes without a part of another write in between.
const WHOLE: usize = libc::PIPE_BUF;
/// How long to wait where the reader has no room, and asked not to be waited for.
const PAUSE: Duration = Duration::from_millis(1);

/// The pipes between a program and its shim: for its standard output and its standard error.
#[derive(Debug)]
pub(crate) struct Pipes([Option<Pipe>; 2]);

#[derive(Debug)]
struct Pipe {
    reads: OwnedFd,
    writes: OwnedFd,
    label: String,
}

impl Pipes {
    /// In cosched: opens those that are needed.
    pub(crate) fn open(labels: &LineLabels) -> io::Result<Pipes> {
        Pipes::new(labels, || Ok(pipe_with(PipeFlags::CLOEXEC)?))
    }

    fn new(
        labels: &LineLabels,
        mut ends: impl FnMut() -> io::Result<(OwnedFd, OwnedFd)>,
    ) -> io::Result<Pipes> {
        let mut pipe = |label: &Option<String>| -> io::Result<Option<Pipe>> {
            let Some(label) = label.clone() else { return Ok(None) };
            let (reads, writes) = ends()?;
            Ok(Some(Pipe { reads, writes, label }))
        };
        Ok(Pipes([pipe(&labels.stdout)?, pipe(&labels.stderr)?]))
    }

    /// Passes them to the shim, with one byte, and the undo log after them.
    pub(crate) fn send(&self, log: Option<&File>, channel: &UnixStream) -> io::Result<()> {
        let pipes = self.0.iter().flatten();
        let ends = pipes.flat_map(|pipe| [pipe.reads.as_fd(), pipe.writes.as_fd()]);
        let ends: Vec<_> = ends.chain(log.map(AsFd::as_fd)).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(ENDS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !ends.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(&ends));
        }
        sendmsg(channel, &[IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// In the shim: takes their ends, and the undo log. `None`: cosched is gone.
    pub(crate) fn receive(
        channel: &UnixStream,
    ) -> io::Result<Option<(Vec<OwnedFd>, Option<OwnedFd>)>> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(ENDS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let (mut byte, flags) = ([0], RecvFlags::CMSG_CLOEXEC);
        let got =
            again(|| recvmsg(channel, &mut [IoSliceMut::new(&mut byte)], &mut control, flags))?;
        let messages = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(ends) => Some(ends),
            _ => None,
        });
        let mut ends: Vec<OwnedFd> = messages.flatten().collect();
        if got.flags.contains(ReturnFlags::CTRUNC) {
            return Err(ErrorKind::BrokenPipe.into());
        }
        // Ends come in pairs.
        let log = if ends.len() % 2 == 1 { ends.pop() } else { None };
        Ok((got.bytes > 0).then_some((ends, log)))
    }

    /// In the shim: the pipes with these ends.
    pub(crate) fn of(labels: &LineLabels, ends: Vec<OwnedFd>) -> io::Result<Pipes> {
        let mut ends = ends.into_iter();
        Pipes::new(labels, || ends.next().zip(ends.next()).ok_or(ErrorKind::BrokenPipe.into()))
    }

    /// In the program's first process, before it executes the command: writes into them from now
    /// on.
    pub(crate) fn write_into(&self) -> io::Result<()> {
        let [stdout, stderr] = self.0.each_ref().map(|pipe| pipe.as_ref().map(|pipe| &pipe.writes));
        stdout.map_or(Ok(()), rustix::stdio::dup2_stdout)?;
        Ok(stderr.map_or(Ok(()), rustix::stdio::dup2_stderr)?)
    }

    /// In the shim: passes everything on to its own outputs, until no process can write any more.
    pub(crate) fn pass_on(self) -> io::Result<Vec<JoinHandle<()>>> {
        let spare = Spare::of(&self, &[None, None])?;
        drop(self);
        spare.0.into_iter().map(PassedOn::begin).collect()
    }
}

/// The reading end of a pipe, where to pass on what comes, and the label.
#[derive(Debug)]
struct PassedOn(File, File, String);

impl PassedOn {
    fn begin(self) -> io::Result<JoinHandle<()>> {
        let PassedOn(from, to, label) = self;
        background::spawn("labels", move || pass_on(from, to, label))
    }
}

/// The reading ends that cosched keeps, and where it would pass on what comes.
#[derive(Debug, Default)]
pub(crate) struct Spare(Vec<PassedOn>);

impl Spare {
    /// Of these pipes, where the outputs go into these files, or where cosched's go.
    pub(crate) fn of(pipes: &Pipes, files: &[Option<File>; 2]) -> io::Result<Spare> {
        let (stdout, stderr) = (io::stdout(), io::stderr());
        let mut outputs = Vec::new();
        for ((pipe, own), file) in pipes.0.iter().zip([stdout.as_fd(), stderr.as_fd()]).zip(files) {
            let Some(Pipe { reads, label, .. }) = pipe else { continue };
            let to = file.as_ref().map_or(own, File::as_fd).try_clone_to_owned()?;
            outputs.push(PassedOn(reads.try_clone()?.into(), to.into(), label.clone()));
        }
        Ok(Spare(outputs))
    }

    /// Passes everything on, instead of a killed shim. What cannot be passed on is not read, and
    /// the program's next write fails.
    pub(crate) fn pass_on(self) -> Vec<JoinHandle<()>> {
        self.0.into_iter().filter_map(|output| output.begin().ok()).collect()
    }
}

/// Passes on until the end. What has no reader any more is read all the same, so that the program
/// can go on.
fn pass_on(mut from: impl Read, mut to: impl Write, label: String) {
    let mut lines = LabelledLines { label, ..LabelledLines::default() };
    let (mut chunk, mut is_read) = ([0; 16 << 10], true);
    loop {
        let labelled = match from.read(&mut chunk) {
            Ok(0) => break,
            Ok(length) => lines.take(&chunk[..length]),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        is_read = is_read && write_lines(&mut to, &labelled).is_ok();
    }
    if is_read {
        // The thread ends here, and there is nothing left to be done about a failure.
        let _ = write(&mut to, &lines.rest());
    }
}

/// Writes lines such that none of another program comes between the parts of one, as far as the
/// kernel allows: a pipe takes up to [`WHOLE`] bytes at once.
fn write_lines(to: &mut impl Write, mut lines: &[u8]) -> io::Result<()> {
    while !lines.is_empty() {
        let is_end = |byte: &u8| *byte == b'\n';
        let fit = lines[..lines.len().min(WHOLE)].iter().rposition(is_end);
        let end = fit.or_else(|| lines.iter().position(is_end)).map_or(lines.len(), |at| at + 1);
        write(to, &lines[..end])?;
        lines = &lines[end..];
    }
    Ok(())
}

/// Writes everything, also where the other side asked not to be waited for.
fn write(to: &mut impl Write, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(length) => bytes = &bytes[length..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => sleep(PAUSE),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whole lines from pieces of text, each with the label before it.
#[derive(Default)]
struct LabelledLines {
    label: String,
    /// The beginning of a line that has no end yet.
    begun: Vec<u8>,
    /// The last line ended with a carriage return: a line feed that follows belongs to it.
    returned: bool,
}

impl LabelledLines {
    /// The lines that are whole with these bytes. A carriage return ends a line, too: what a
    /// program writes over its own line would else write over the label.
    fn take(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut labelled = Vec::new();
        for byte in bytes {
            let follows = std::mem::replace(&mut self.returned, *byte == b'\r');
            match byte {
                b'\n' if follows => {}
                b'\n' | b'\r' => self.end(&mut labelled),
                byte => {
                    self.begun.push(*byte);
                    if self.begun.len() >= LONGEST {
                        self.end(&mut labelled);
                    }
                }
            }
        }
        labelled
    }

    /// The last line, which has no end.
    fn rest(&mut self) -> Vec<u8> {
        let mut labelled = Vec::new();
        if !self.begun.is_empty() {
            self.end(&mut labelled);
        }
        labelled
    }

    fn end(&mut self, labelled: &mut Vec<u8>) {
        labelled.extend_from_slice(self.label.as_bytes());
        labelled.append(&mut self.begun);
        labelled.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labelled(pieces: &[&str]) -> String {
        let mut lines = LabelledLines { label: "a | ".to_owned(), ..LabelledLines::default() };
        let mut all: Vec<u8> =
            pieces.iter().flat_map(|piece| lines.take(piece.as_bytes())).collect();
        all.extend(lines.rest());
        String::from_utf8(all).unwrap()
    }

    #[test]
    fn lines_are_written_whole_in_what_a_pipe_takes_at_once() {
        struct Writes(Vec<usize>);
        impl Write for Writes {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                assert!(bytes.ends_with(b"\n"));
                self.0.push(bytes.len());
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let line = |length: usize| [vec![b'x'; length - 1], vec![b'\n']].concat();
        let text = [line(1500), line(1500), line(1500), line(9000), line(10)].concat();
        let mut writes = Writes(Vec::new());
        write_lines(&mut writes, &text).unwrap();
        assert_eq!(writes.0, [3000, 1500, 9000, 10]);
    }

    #[test]
    fn each_line_gets_the_label_however_it_comes() {
        let two = "a | one\na | two\n";
        assert_eq!(labelled(&["one\ntwo\n"]), two);
        assert_eq!(labelled(&["on", "e\nt", "wo"]), two);
        assert_eq!(labelled(&["one\r\ntwo\r", "\n"]), two);
        assert_eq!(labelled(&["\n"]), "a | \n");
        assert_eq!(labelled(&[]), "");
    }

    #[test]
    fn what_is_written_over_a_line_does_not_hide_the_label() {
        assert_eq!(labelled(&["10 %\r", "20 %\r", "done\n"]), "a | 10 %\na | 20 %\na | done\n");
    }

    #[test]
    fn a_line_without_an_end_is_passed_on_in_parts() {
        let long = "x".repeat(LONGEST + 1);
        let lines = labelled(&[&long]);
        assert_eq!(lines.lines().count(), 2);
        assert_eq!(lines.matches('x').count(), LONGEST + 1);
    }

    #[test]
    fn a_program_can_write_on_without_a_reader() {
        struct Gone;
        impl Write for Gone {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut text = io::Cursor::new(vec![b'\n'; 1 << 20]);
        pass_on(&mut text, Gone, "a | ".to_owned());
        assert_eq!(text.position(), 1 << 20);
    }
}
