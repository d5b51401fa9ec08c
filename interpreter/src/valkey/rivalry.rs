//! Whether another operator, which also believes that it leads, acts on a server.
//!
//! Whoever connects ends the connections of the leader before it. A leader that is none any more connects no further, so
//! that its connections end once. When those of a process that holds its lease keep ending while the server's process lives
//! on, two operators with different leases serve the same cluster. Ending each other's connections would go on for ever and
//! protect nobody: the record's write is what only one of them can win. So the fence is left out until they have been left
//! in peace for a while, and the rivalry is told.

use wellcake_core::facts::{Millis, Tick};

/// How often connections must end before this counts as rivalry.
const OFTEN: u8 = 3;
/// How long after the last end the next one still counts as one more.
const MEMORY: Millis = Millis::seconds(60);

/// What is remembered of connections that ended while the process behind them lived on.
#[derive(Clone, Debug, Default)]
pub struct Rivalry {
    ends: u8,
    last: Option<Tick>,
    ended: Option<(String, Tick)>,
}

impl Rivalry {
    /// The other side ended a connection to the process `run`.
    pub fn ended(&mut self, run: &str, now: Tick) {
        self.ended = Some((run.to_owned(), now));
    }

    /// A new connection answered as the process `run`.
    pub fn answered(&mut self, run: &str) {
        let Some((ended, at)) = self.ended.take() else {
            return;
        };
        if ended != run {
            return;
        }
        let recent = self.last.is_some_and(|last| at.since(last) < MEMORY);
        self.ends = if recent {
            self.ends.saturating_add(1)
        } else {
            1
        };
        self.last = Some(at);
    }

    /// Whether another operator acts.
    pub fn is_there(&self, now: Tick) -> bool {
        self.ends >= OFTEN && self.last.is_some_and(|last| now.since(last) < MEMORY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(rivalry: &mut Rivalry, seconds: u64, run: &str, answers: &str) {
        rivalry.ended(run, Tick(seconds * 1000));
        rivalry.answered(answers);
    }

    #[test]
    fn a_new_leader_that_ends_connections_once_is_no_rival() {
        let mut rivalry = Rivalry::default();
        end(&mut rivalry, 10, "a", "a");
        end(&mut rivalry, 500, "a", "a");
        end(&mut rivalry, 900, "a", "a");
        assert!(!rivalry.is_there(Tick(900_000)));
    }

    #[test]
    fn connections_that_end_with_their_process_are_no_rivalry() {
        let mut rivalry = Rivalry::default();
        for (run, next) in [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")] {
            end(&mut rivalry, 10, run, next);
        }
        assert!(!rivalry.is_there(Tick(10_000)));
    }

    #[test]
    fn connections_that_keep_ending_are_rivalry_until_there_is_peace() {
        let mut rivalry = Rivalry::default();
        for second in 10..13 {
            end(&mut rivalry, second, "a", "a");
        }
        assert!(rivalry.is_there(Tick(12_000)));
        assert!(rivalry.is_there(Tick(71_000)));
        assert!(!rivalry.is_there(Tick(72_000)));
    }
}
