//! The order of a round, and how far the rounds are, told while they run.

use std::time::{Duration, Instant};

use crate::talk::Talk;

/// Tells what is going on, and how long it will take.
pub struct Pace {
    began: Instant,
    parts: u32,
    rounds: u16,
    /// Parts of all rounds that are to be made.
    all: u32,
    done: u32,
    talk: Talk,
}

impl Pace {
    /// For so many parts in each of so many rounds, of which so many are still to be made.
    pub fn new(parts: usize, rounds: u16, open: usize) -> Pace {
        let all = (parts * open) as u32;
        Pace { began: Instant::now(), parts: parts as u32, rounds, all, done: 0, talk: Talk::Usual }
    }

    /// This pace, told only if so much is told.
    pub fn with_talk(self, talk: Talk) -> Pace {
        Pace { talk, ..self }
    }

    /// A part of a round, counted from 0, begins.
    pub fn begin(&mut self, round: u16, what: &str) {
        let part = self.done % self.parts + 1;
        let left = self.left(self.began.elapsed());
        self.done += 1;
        let left = left.map_or(String::new(), |left| format!(", about {} left", rounded(left)));
        self.talk.tell(format_args!(
            "round {} of {}: {what} ({part} of {}){left}",
            round + 1,
            self.rounds,
            self.parts
        ));
    }

    /// As long for every part that is left as the others took on average.
    fn left(&self, elapsed: Duration) -> Option<Duration> {
        (self.done > 0).then(|| elapsed * (self.all - self.done) / self.done)
    }
}

/// To the second below two minutes, else to the minute: an estimate promises no more.
fn rounded(time: Duration) -> String {
    match time.as_secs() {
        seconds @ ..120 => format!("{} s", seconds.max(1)),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}

/// The positions of the variants in the order of a round.
pub fn order(variants: usize, round: u16) -> impl Iterator<Item = usize> {
    (0..variants).map(move |i| (i + usize::from(round)) % variants)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_from_what_the_parts_took_so_far() {
        let pace = Pace {
            began: Instant::now(),
            parts: 4,
            rounds: 7,
            all: 20,
            done: 5,
            talk: Talk::Usual,
        };
        assert_eq!(pace.left(Duration::from_secs(10)), Some(Duration::from_secs(30)));
        assert_eq!(rounded(Duration::from_millis(119_900)), "119 s");
        assert_eq!(rounded(Duration::from_secs(121)), "3 min");
        let second = Pace { done: 1, ..pace };
        assert_eq!(second.left(Duration::from_secs(2)), Some(Duration::from_secs(38)));
        let fresh = Pace { done: 0, ..second };
        assert_eq!(fresh.left(Duration::from_secs(10)), None);
    }

    #[test]
    fn each_variant_begins_a_round_in_turn() {
        let rounds = (0..4).map(|round| order(3, round).collect::<Vec<_>>());
        assert_eq!(rounds.collect::<Vec<_>>(), [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 1, 2]]);
    }
}
