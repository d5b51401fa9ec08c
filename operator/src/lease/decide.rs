//! What a participant does next, from the record in the Lease and its own monotonic clock.
//!
//! No wall clock is compared, neither ours nor the holder's: a record counts from the moment at which *we* saw it change.
//! Since that is never before the holder wrote it, a holder that counts from before its write always stops first:
//!
//! ```text
//! holder:  send ──────────── renew deadline (10 s) ── stops acting
//! others:       see change ─────────────────────────────── duration (15 s) ── may take over
//! ```

use std::time::{Duration, Instant};

/// Who holds the lease, as one word that no other process uses: `<pod name>_<random>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity(String);

impl Identity {
    /// An identity of this process. `pod` need not be unique, `random` must be.
    pub fn new(pod: &str, random: u64) -> Self {
        Self(format!("{pod}_{random:016x}"))
    }

    /// What stands in `spec.holderIdentity`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What the Lease says, without its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// `spec.holderIdentity`; none when absent or empty, that is when the last holder let go.
    pub holder: Option<String>,
    /// `spec.leaseDurationSeconds`: for how long the holder may count on it. Zero when absent.
    pub duration: Duration,
    /// `spec.leaseTransitions`: how often leadership began. The fencing epoch.
    pub transitions: u64,
}

/// The newest record that we saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// None: there is no Lease.
    pub record: Option<Record>,
    /// When we first saw this state of the Lease.
    pub at: Instant,
    /// The highest epoch that this process ever saw, so that a deleted Lease does not begin again at one.
    pub highest: u64,
}

/// Leadership of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// The epoch that began with our leadership.
    pub epoch: u64,
    /// When the last successful write was *sent*.
    pub renewed: Instant,
}

/// How long things take. [`Timing::checked`] tells whether they go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// For how long others leave a silent holder alone.
    pub duration: Duration,
    /// For how long a holder acts after the last successful renewal.
    pub deadline: Duration,
    /// Pause between two renewals, and between two tries.
    pub retry: Duration,
}

impl Timing {
    /// The timing, or a sentence about what is wrong with it.
    pub fn checked(self) -> Result<Self, String> {
        let Self {
            duration,
            deadline,
            retry,
        } = self;
        if retry < Duration::from_millis(100) {
            return Err(format!(
                "the retry period is {retry:?}; it must be at least 100 ms"
            ));
        }
        if deadline < retry * 2 {
            return Err(format!(
                "the renew deadline of {deadline:?} leaves no second try; it must be at least twice the retry period of {retry:?}"
            ));
        }
        if duration < deadline + Duration::from_secs(2) {
            return Err(format!(
                "the lease duration of {duration:?} must exceed the renew deadline of {deadline:?} by at least 2 s, \
                 the time that what was begun under the lease may take to end"
            ));
        }
        Ok(self)
    }
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Write ourselves as holder, with this epoch; on success leadership begins.
    Acquire {
        /// `spec.leaseTransitions` to write.
        epoch: u64,
    },
    /// Write the record again; on success leadership is prolonged.
    Renew,
    /// Nothing until then, or until the record changes.
    Wait {
        /// When to ask again.
        until: Instant,
    },
    /// Leadership is over.
    Lost,
}

/// Decides for the participant `me`, who leads as `held` says.
pub fn evaluate(
    seen: &Seen,
    held: Option<&Held>,
    now: Instant,
    me: &Identity,
    timing: &Timing,
) -> Verdict {
    let Some(record) = &seen.record else {
        return match held {
            Some(_) => Verdict::Lost,
            None => Verdict::Acquire {
                epoch: seen.highest.saturating_add(1),
            },
        };
    };
    let mine = record.holder.as_deref() == Some(me.as_str());
    match held {
        Some(held) if !mine || record.transitions != held.epoch => Verdict::Lost,
        Some(held) => prolong(held, now, timing),
        None => take_over(record, mine, seen, now, timing),
    }
}

fn prolong(held: &Held, now: Instant, timing: &Timing) -> Verdict {
    if now >= held.renewed + timing.deadline {
        Verdict::Lost
    } else if now >= held.renewed + timing.retry {
        Verdict::Renew
    } else {
        Verdict::Wait {
            until: held.renewed + timing.retry,
        }
    }
}

fn take_over(record: &Record, mine: bool, seen: &Seen, now: Instant, timing: &Timing) -> Verdict {
    // Our own name without leadership: a write whose answer was lost, or leadership that ended at the deadline. What was
    // planned before must not pass for planned under the new term, so this begins a new epoch too.
    let free = mine || record.holder.is_none();
    // Others may be configured for another duration; what the holder wrote down is what it relies on.
    let duration = if record.duration.is_zero() {
        timing.duration
    } else {
        record.duration
    };
    // `None`: so long that the clock cannot express it. Ask again after our own duration.
    let until = seen.at.checked_add(duration);
    if free || until.is_some_and(|until| now >= until) {
        Verdict::Acquire {
            epoch: record.transitions.max(seen.highest).saturating_add(1),
        }
    } else {
        Verdict::Wait {
            until: until.unwrap_or(now + timing.duration),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMING: Timing = Timing {
        duration: Duration::from_secs(15),
        deadline: Duration::from_secs(10),
        retry: Duration::from_secs(2),
    };

    fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    fn me() -> Identity {
        Identity::new("operator-0", 7)
    }

    fn record(holder: &str, transitions: u64) -> Record {
        Record {
            holder: (!holder.is_empty()).then(|| holder.to_owned()),
            duration: secs(15),
            transitions,
        }
    }

    fn seen(record: Record, at: Instant) -> Seen {
        Seen {
            highest: record.transitions,
            record: Some(record),
            at,
        }
    }

    fn decide(seen: &Seen, held: Option<Held>, now: Instant) -> Verdict {
        evaluate(seen, held.as_ref(), now, &me(), &TIMING)
    }

    #[test]
    fn a_lease_that_does_not_exist_is_acquired() {
        let t = Instant::now();
        let nothing = Seen {
            record: None,
            at: t,
            highest: 0,
        };
        assert_eq!(decide(&nothing, None, t), Verdict::Acquire { epoch: 1 });
    }

    #[test]
    fn a_lease_that_was_deleted_or_reset_goes_on_after_the_highest_epoch_seen() {
        let t = Instant::now();
        let deleted = Seen {
            record: None,
            at: t,
            highest: 8,
        };
        let reset = Seen {
            record: Some(record("", 0)),
            ..deleted.clone()
        };
        for seen in [deleted, reset] {
            assert_eq!(decide(&seen, None, t), Verdict::Acquire { epoch: 9 });
        }
    }

    #[test]
    fn a_released_lease_is_acquired_at_once_with_the_next_epoch() {
        let t = Instant::now();
        let released = seen(record("", 4), t);
        assert_eq!(decide(&released, None, t), Verdict::Acquire { epoch: 5 });
    }

    #[test]
    fn a_silent_holder_is_left_alone_for_its_duration_since_we_saw_it_change() {
        let t = Instant::now();
        let other = seen(record("other", 4), t);
        let until = t + secs(15);
        assert_eq!(decide(&other, None, t), Verdict::Wait { until });
        let just_before = until - Duration::from_millis(1);
        assert_eq!(decide(&other, None, just_before), Verdict::Wait { until });
        assert_eq!(decide(&other, None, until), Verdict::Acquire { epoch: 5 });
    }

    #[test]
    fn the_duration_that_the_holder_wrote_counts_and_ours_where_it_wrote_none() {
        let t = Instant::now();
        let mut long = record("other", 1);
        long.duration = secs(60);
        let until = t + secs(60);
        assert_eq!(
            decide(&seen(long, t), None, t + secs(20)),
            Verdict::Wait { until }
        );
        let mut none = record("other", 1);
        none.duration = Duration::ZERO;
        let until = t + secs(15);
        assert_eq!(decide(&seen(none, t), None, t), Verdict::Wait { until });
    }

    #[test]
    fn an_absurd_duration_neither_panics_nor_is_taken_for_expired() {
        let t = Instant::now();
        let mut absurd = record("other", u64::MAX);
        absurd.duration = Duration::MAX;
        assert!(matches!(
            decide(&seen(absurd, t), None, t + secs(100)),
            Verdict::Wait { .. }
        ));
    }

    #[test]
    fn a_holder_renews_after_the_retry_period_and_stops_at_the_deadline() {
        let t = Instant::now();
        let mine = seen(record(me().as_str(), 5), t);
        let held = Some(Held {
            epoch: 5,
            renewed: t,
        });
        let until = t + secs(2);
        assert_eq!(decide(&mine, held, t + secs(1)), Verdict::Wait { until });
        assert_eq!(decide(&mine, held, t + secs(2)), Verdict::Renew);
        assert_eq!(
            decide(&mine, held, t + Duration::from_millis(9_999)),
            Verdict::Renew
        );
        assert_eq!(decide(&mine, held, t + secs(10)), Verdict::Lost);
    }

    #[test]
    fn a_holder_stops_before_anyone_may_take_over_however_late_the_change_was_seen() {
        let sent = Instant::now();
        for latency in [0, 1, 400, 3_000] {
            let at = sent + Duration::from_millis(latency);
            let theirs = seen(record("other", 5), at);
            let mine = seen(record(me().as_str(), 5), at);
            let held = Some(Held {
                epoch: 5,
                renewed: sent,
            });
            let stops = (0..=20_000)
                .step_by(50)
                .map(|ms| sent + Duration::from_millis(ms))
                .find(|now| decide(&mine, held, *now) == Verdict::Lost);
            let taken = (0..=20_000)
                .step_by(50)
                .map(|ms| sent + Duration::from_millis(ms))
                .find(|now| matches!(decide(&theirs, None, *now), Verdict::Acquire { .. }));
            let (stops, taken) = (
                stops.expect("the holder stops"),
                taken.expect("it is taken over"),
            );
            assert!(
                taken >= stops + secs(5),
                "latency {latency} ms: stops {stops:?}, taken {taken:?}"
            );
        }
    }

    #[test]
    fn a_record_of_someone_else_or_of_another_epoch_or_none_ends_leadership() {
        let t = Instant::now();
        let held = Some(Held {
            epoch: 5,
            renewed: t,
        });
        for (holder, transitions) in [("other", 6), ("", 5), (me().as_str(), 6)] {
            let seen = seen(record(holder, transitions), t);
            assert_eq!(
                decide(&seen, held, t),
                Verdict::Lost,
                "{holder} {transitions}"
            );
        }
        let deleted = Seen {
            record: None,
            at: t,
            highest: 5,
        };
        assert_eq!(decide(&deleted, held, t), Verdict::Lost);
    }

    #[test]
    fn our_own_name_without_leadership_begins_a_new_epoch_at_once() {
        let t = Instant::now();
        let mine = seen(record(me().as_str(), 5), t);
        assert_eq!(decide(&mine, None, t), Verdict::Acquire { epoch: 6 });
    }

    #[test]
    fn the_name_of_an_earlier_process_of_the_same_pod_is_someone_else() {
        let t = Instant::now();
        let before = Identity::new("operator-0", 6);
        let seen = seen(record(before.as_str(), 5), t);
        assert!(matches!(decide(&seen, None, t), Verdict::Wait { .. }));
    }

    #[test]
    fn shifting_all_times_shifts_the_verdict_and_changes_nothing_else() {
        let t = Instant::now();
        for shift in [1, 3_600, 10_000_000] {
            for age in 0..20 {
                let base = decide(&seen(record("other", 2), t), None, t + secs(age));
                let moved = decide(
                    &seen(record("other", 2), t + secs(shift)),
                    None,
                    t + secs(shift + age),
                );
                let expected = match base {
                    Verdict::Wait { until } => Verdict::Wait {
                        until: until + secs(shift),
                    },
                    other => other,
                };
                assert_eq!(moved, expected);
            }
        }
    }

    #[test]
    fn timings_that_do_not_go_together_are_refused() {
        assert_eq!(TIMING.checked(), Ok(TIMING));
        let bad = [(15, 14, 2), (15, 10, 6), (9, 10, 2)];
        for (duration, deadline, retry) in bad {
            let timing = Timing {
                duration: secs(duration),
                deadline: secs(deadline),
                retry: secs(retry),
            };
            assert!(timing.checked().is_err(), "{timing:?}");
        }
        let never = Timing {
            retry: Duration::ZERO,
            ..TIMING
        };
        assert!(never.checked().is_err());
    }
}
