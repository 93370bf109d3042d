//! The one message to cosched: whether the scheduler is loaded, and the descriptors of its maps.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;

use rustix::net::{
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketType, sendmsg, sockopt,
};
use serde::Serialize;

/// The version of the message, and of the maps' layouts.
const VERSION: u32 = 2;

#[derive(Serialize)]
struct Answer<'a> {
    version: u32,
    /// Why the scheduler is not loaded; absent: it is.
    error: Option<&'a str>,
}

pub(crate) fn is_socket(fd: BorrowedFd<'_>) -> bool {
    sockopt::socket_type(fd).is_ok_and(|kind| kind == SocketType::STREAM)
}

/// Sends it as one line of JSON.
pub(crate) fn send(
    socket: BorrowedFd<'_>,
    error: Option<&str>,
    maps: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let answer = Answer { version: VERSION, error };
    let text = serde_json::to_string(&answer).map_err(io::Error::other)? + "\n";
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !maps.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(maps));
    }
    let text = [IoSlice::new(text.as_bytes())];
    sendmsg(socket, &text, &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}
