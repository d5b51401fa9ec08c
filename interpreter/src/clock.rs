//! Time: the core's ticks from the monotonic clock, the wall clock only where Kubernetes writes or reads it.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tokio::time::Instant;
use wellcake_core::facts::{Millis, Tick};

/// A monotonic clock whose ticks started out equal to the wall clock's milliseconds, so that a time that another process
/// wrote can be compared with them. A wall clock that is set later moves no tick.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
    origin_millis: u64,
    wall: fn() -> Timestamp,
}

impl Clock {
    /// A clock that starts now, with the wall clock of the machine.
    pub fn start() -> Self {
        Self::beside(Timestamp::now)
    }

    /// A clock that starts now, with another wall clock.
    pub fn beside(wall: fn() -> Timestamp) -> Self {
        let millis = wall().as_millisecond();
        Self {
            origin: Instant::now(),
            origin_millis: u64::try_from(millis).unwrap_or(0),
            wall,
        }
    }

    /// Now.
    pub fn now(&self) -> Tick {
        self.tick(Instant::now())
    }

    /// A moment of the runtime's clock.
    pub fn tick(&self, at: Instant) -> Tick {
        let elapsed = at.saturating_duration_since(self.origin).as_millis();
        Tick(
            self.origin_millis
                .saturating_add(u64::try_from(elapsed).unwrap_or(u64::MAX)),
        )
    }

    /// The moment of the runtime's clock at which a tick comes.
    pub fn instant(&self, tick: Tick) -> Instant {
        let span = std::time::Duration::from_millis(tick.0.saturating_sub(self.origin_millis));
        self.origin.checked_add(span).unwrap_or(self.origin)
    }

    /// A time that Kubernetes keeps. Its seconds are whole, so the end of the second is meant: an age that is a bound for
    /// a promotion must not come out too large.
    pub fn of(&self, time: &Time) -> Tick {
        let millis = u64::try_from(time.0.as_millisecond()).unwrap_or(0);
        let at = Tick(millis);
        if millis.is_multiple_of(1000) {
            at.after(Millis(999))
        } else {
            at
        }
    }

    /// The wall clock, for what people read.
    pub fn wall(&self) -> Time {
        Time((self.wall)())
    }
}
