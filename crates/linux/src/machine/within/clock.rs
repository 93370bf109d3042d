//! How long the turn of a unit has lasted.

use cosched_core::Nanos;

/// How long a turn within a program lasts. With 100 ms, pools of four processes with barriers took
/// 1.07 to 1.6 times as long.
const QUANTUM: Nanos = Nanos::from_millis(250);
/// So much time as a filler counts as one of a turn: a unit then passes its turn on after 2 s.
const FILLING: u64 = 8;

/// How long the turn of a unit has lasted. While the program itself has no turn and fills, a part
/// of the time counts: one that fills for long passes the turn on, too.
#[derive(Clone, Copy, Debug)]
pub(super) struct TurnClock {
    /// Whether the program has its turn, and since when it has or has not.
    has_turn: bool,
    since: Nanos,
    used: Nanos,
}

impl TurnClock {
    pub(super) fn new(has_turn: bool, now: Nanos) -> TurnClock {
        TurnClock { has_turn, since: now, used: Nanos::ZERO }
    }

    pub(super) fn program_turns(&mut self, has_turn: bool, now: Nanos) {
        *self = TurnClock { has_turn, since: now, used: self.used(now) };
    }

    /// Whether the turn has lasted long enough.
    pub(super) fn is_over(&self, now: Nanos) -> bool {
        self.used(now) >= QUANTUM
    }

    /// How long it takes until a turn has lasted for so much longer.
    pub(super) fn stretched(&self, time: Nanos) -> Nanos {
        if self.has_turn { time } else { time * FILLING }
    }

    fn used(&self, now: Nanos) -> Nanos {
        let since = now.since(self.since);
        self.used + if self.has_turn { since } else { since / FILLING }
    }

    pub(super) fn begin(&mut self, now: Nanos) {
        (self.used, self.since) = (Nanos::ZERO, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_a_turn_is_slow_while_the_program_fills() {
        let ms = Nanos::from_millis;
        let mut clock = TurnClock { has_turn: true, since: ms(0), used: Nanos::ZERO };
        clock.program_turns(false, ms(100));
        assert_eq!(clock.used(ms(500)), ms(150));
        clock.program_turns(true, ms(500));
        clock.program_turns(true, ms(550));
        assert_eq!(clock.used(ms(600)), ms(250));
        clock.begin(ms(600));
        assert_eq!(clock.used(ms(610)), ms(10));
        clock.program_turns(false, ms(620));
        clock.begin(ms(700));
        assert_eq!(clock.used(ms(700) + ms(2000)), QUANTUM, "as a filler");
    }
}
