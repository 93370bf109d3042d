//! The source of observations: a [monitor](crate::observe::monitor), opened when a policy first
//! needs it.

use std::sync::mpsc::{Receiver, TryRecvError, channel};

use crate::kernel::background;
use crate::kernel::procfs::Proc;
use crate::observe::monitor::Monitor;

#[derive(Debug, Default)]
pub(super) enum MonitorState {
    #[default]
    Closed,
    Opening(Receiver<Monitor>),
    Open(Box<Monitor>),
}

impl MonitorState {
    /// The monitor, opened in the background; `None` until that is done, unless `wait` is set.
    pub(super) fn ready(&mut self, wait: bool, proc: &Proc) -> Option<&mut Monitor> {
        if let MonitorState::Closed = self {
            let (done, opened) = channel();
            let own = proc.clone();
            // The receiver may be closed meanwhile.
            let spawned =
                background::spawn("observe", move || _ = done.send(Monitor::open(&own).0));
            *self = match spawned {
                Ok(_) => MonitorState::Opening(opened),
                Err(_) => MonitorState::Open(Box::new(Monitor::open(proc).0)),
            };
        }
        if let MonitorState::Opening(opened) = self {
            let received = match wait {
                true => opened.recv().map_err(|_| TryRecvError::Disconnected),
                false => opened.try_recv(),
            };
            *self = match received {
                Ok(monitor) => MonitorState::Open(Box::new(monitor)),
                Err(TryRecvError::Empty) => return None,
                Err(TryRecvError::Disconnected) => {
                    MonitorState::Open(Box::new(Monitor::sampled(proc)))
                }
            };
        }
        match self {
            MonitorState::Open(monitor) => Some(monitor),
            MonitorState::Closed | MonitorState::Opening(_) => None,
        }
    }
}
