//! Telling people what happens, in a thread of its own.
//!
//! *Problem.* A terminal that is paused (Ctrl-S) takes nothing, and neither does a pipe with
//! a reader that is asleep. A write waits then, and if the scheduling thread waited, no program
//! would get its turn.
//!
//! *Idea.* The scheduling thread only puts messages into a queue that never waits. What does not
//! fit any more is counted and left out.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::time::Duration;

use cosched_linux::kernel::background;
use indicatif::{ProgressBar, ProgressStyle};

use crate::ui::failure::Failure;
use crate::ui::{say, say_waiting};

/// The most messages that wait.
const QUEUE: usize = 256;
/// How long the end of a run waits until everything is told.
const PATIENCE: Duration = Duration::from_secs(1);

enum Message {
    /// A line of its own.
    Line(String),
    /// How many programs have ended.
    Done(u64),
    /// Which programs run and wait.
    Doing(String),
}

/// The end of the queue at which the scheduling thread is.
pub(super) struct Teller {
    messages: Messages,
    /// Closed when everything is told.
    over: Receiver<()>,
}

#[derive(Clone)]
struct Messages {
    queue: SyncSender<Message>,
    waiting: Arc<AtomicUsize>,
    /// How many lines found no room.
    left_out: Arc<AtomicUsize>,
}

impl Teller {
    /// Begins. Has to be called before there is a machine: see [`background`]. A number of programs
    /// requests a bar that shows how many of them have ended.
    ///
    /// # Errors
    /// When the kernel gives no further thread.
    pub(super) fn start(bar_of: Option<u64>) -> Result<Teller, Failure> {
        let (sender, queue) = sync_channel(QUEUE);
        let (ends, over) = channel();
        let messages =
            Messages { queue: sender, waiting: Arc::default(), left_out: Arc::default() };
        let counted = Arc::clone(&messages.waiting);
        background::spawn("cosched-words", move || {
            tell(queue.iter().inspect(|_| _ = counted.fetch_sub(1, Ordering::Relaxed)), bar_of);
            drop(ends);
        })
        .map_err(Failure::broken)?;
        Ok(Teller { messages, over })
    }

    pub(super) fn line(&self, text: String) {
        self.messages.line(text);
    }

    /// Tells lines as they come, until their sender is dropped: to be done before
    /// [`finish`](Teller::finish).
    ///
    /// # Errors
    /// When the kernel gives no further thread.
    pub(super) fn pass_on<T: Send + 'static>(
        &self,
        from: Receiver<T>,
        line: impl Fn(T) -> Option<String> + Send + 'static,
    ) -> Result<(), Failure> {
        let messages = self.messages.clone();
        let pass = move || from.into_iter().filter_map(line).for_each(|line| messages.line(line));
        background::spawn("cosched-notes", pass).map_err(Failure::broken)?;
        Ok(())
    }

    pub(super) fn done(&self, count: u64) {
        self.show(Message::Done(count));
    }

    pub(super) fn doing(&self, text: String) {
        self.show(Message::Doing(text));
    }

    /// What is shown next has the newest state: half of the queue is kept for lines.
    fn show(&self, message: Message) {
        if self.messages.waiting.load(Ordering::Relaxed) < QUEUE / 2 {
            self.messages.put(message);
        }
    }

    /// Waits until everything is told, though not for long.
    pub(super) fn finish(self) {
        let left_out = Arc::clone(&self.messages.left_out);
        drop(self.messages);
        let has_finished = self.over.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout);
        let left_out = left_out.load(Ordering::Relaxed);
        if has_finished && left_out > 0 {
            say(format_args!(
                "{left_out} messages were left out, because the terminal took them too slowly"
            ));
        }
    }
}

impl Messages {
    fn line(&self, text: String) {
        self.left_out.fetch_add(usize::from(!self.put(Message::Line(text))), Ordering::Relaxed);
    }

    /// Whether there was room.
    fn put(&self, message: Message) -> bool {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let fits = self.queue.try_send(message).is_ok();
        if !fits {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        fits
    }
}

/// Tells what comes, until the run is over.
fn tell(messages: impl Iterator<Item = Message>, bar_of: Option<u64>) {
    let bar = bar_of.map(|programs| {
        let style = ProgressStyle::with_template("{elapsed:>4} {bar:20} {pos}/{len} {wide_msg}");
        ProgressBar::new(programs)
            .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
    });
    for message in messages {
        match (message, &bar) {
            (Message::Line(text), Some(bar)) => bar.suspend(|| say_waiting(format_args!("{text}"))),
            (Message::Line(text), None) => say_waiting(format_args!("{text}")),
            (Message::Done(count), Some(bar)) => bar.set_position(count),
            (Message::Doing(text), Some(bar)) => bar.set_message(text),
            (Message::Done(_) | Message::Doing(_), None) => {}
        }
    }
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
}
