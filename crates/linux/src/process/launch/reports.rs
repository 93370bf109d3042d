//! What a shim tells about its program: lines of JSON on the socket between them.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use cosched_core::{Exit, Nanos, Usage};
use serde::{Deserialize, Serialize};

use crate::process::tree::Process;

/// Something that happened to a program; when is on the kernel's monotonic clock, for cosched may
/// hear of it much later.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShimReport {
    /// Its first process is there. It waits for an answer before it executes the command.
    Forked {
        /// Its first process.
        process: Process,
    },
    /// The command runs its first instruction.
    Started {
        /// When.
        at: Nanos,
        /// Its first process.
        process: Process,
    },
    /// The command could not be started; nothing else follows.
    Failed {
        /// What was tried.
        step: StartStep,
        /// The operating system's error number.
        errno: i32,
    },
    /// The command's first process has ended; descendants may be there.
    Exited {
        /// When.
        at: Nanos,
        /// How.
        exit: Exit,
        /// What it and all its ended descendants have used.
        usage: Usage,
    },
    /// The last descendant has ended; nothing else follows.
    Gone {
        /// When.
        at: Nanos,
        /// What the whole program has used.
        usage: Usage,
    },
}

/// A step of a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StartStep {
    /// Entering the working directory.
    Directory,
    /// Opening the file that it reads as standard input.
    Input,
    /// Joining a cgroup.
    Cgroup,
    /// Binding to the CPUs.
    Cpus,
    /// Opening a session.
    Session,
    /// Executing the command.
    Command,
}

/// The reports of one program, in order. Readable (for epoll) when there are new ones or when the
/// shim has ended.
#[derive(Debug)]
pub struct Reports {
    channel: UnixStream,
    /// The beginning of a line that has no end yet.
    partial: Vec<u8>,
    closed: bool,
}

impl Reports {
    pub(crate) fn new(channel: UnixStream) -> io::Result<Reports> {
        channel.set_nonblocking(true)?;
        Ok(Reports { channel, partial: Vec::new(), closed: false })
    }

    /// All reports that have come since the last call; never waits.
    ///
    /// # Errors
    /// When the socket fails or something else than a report came.
    pub fn read(&mut self) -> io::Result<Vec<ShimReport>> {
        let mut chunk = [0; 4096];
        loop {
            match self.channel.read(&mut chunk) {
                Ok(0) => self.closed = true,
                Ok(n) => self.partial.extend_from_slice(&chunk[..n]),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => break,
                    io::ErrorKind::Interrupted => {}
                    // A killed shim with unread data in its socket resets the connection.
                    io::ErrorKind::ConnectionReset => self.closed = true,
                    _ => return Err(error),
                },
            }
            if self.closed {
                break;
            }
        }
        let complete =
            self.partial.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let lines: Vec<u8> = self.partial.drain(..complete).collect();
        let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| Ok(serde_json::from_slice(line)?)).collect()
    }

    /// Answers [`ShimReport::Forked`]. A process that is gone needs no answer.
    pub(super) fn answer(&mut self) {
        let _ = self.channel.write_all(&[0]);
    }

    /// Whether the shim has ended. Without [`ShimReport::Gone`] or [`ShimReport::Failed`] before,
    /// the shim was killed. The program may then still run, below another parent, and its exit
    /// will not be known.
    pub fn closed(&self) -> bool {
        self.closed
    }
}

impl AsFd for Reports {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (UnixStream, Reports) {
        let (shim, cosched) = UnixStream::pair().unwrap();
        (shim, Reports::new(cosched).unwrap())
    }

    #[test]
    fn a_line_that_comes_in_pieces_is_read_when_its_end_has_come() {
        let (mut shim, mut reports) = pair();
        shim.write_all(br#"{"exited":{"at":7,"exit":{"code":3},"usage":{"user_seconds":1.5,"#)
            .unwrap();
        assert_eq!(reports.read().unwrap(), []);
        shim.write_all(
            b"\"system_seconds\":0.0,\"voluntary_switches\":0,\"involuntary_switches\":0,\
            \"max_rss_kib\":9}}}\n{\"fai",
        )
        .unwrap();
        let usage = Usage { user_seconds: 1.5, max_rss_kib: 9, ..Usage::default() };
        let exited = ShimReport::Exited { at: Nanos(7), exit: Exit::Code(3), usage };
        assert_eq!(reports.read().unwrap(), [exited]);
        shim.write_all(b"led\":{\"step\":\"command\",\"errno\":2}}\n").unwrap();
        drop(shim);
        assert_eq!(
            reports.read().unwrap(),
            [ShimReport::Failed { step: StartStep::Command, errno: 2 }]
        );
        assert!(reports.closed());
    }

    #[test]
    fn what_is_no_report_is_an_error() {
        let (mut shim, mut reports) = pair();
        shim.write_all(b"hello\n").unwrap();
        assert!(reports.read().is_err());
    }
}
