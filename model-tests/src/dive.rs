//! Deep random runs: everything about one follows from its seed.

use std::fmt::Write as _;
use std::num::NonZeroU8;

use serde::{Deserialize, Serialize};
use wellcake_crds::v1beta1::Profile;

use crate::actions::Action;
use crate::faults::kind::Tally;
use crate::faults::runs::{Chance, arrange};
use crate::hands::Hands;
use crate::invariants::Violation;
use crate::operator::Brain;
use crate::random::{End, KINDS, Kinds, Numbers, live, pick};
use crate::rates::Rates;
use crate::search::digest::{Names, digest};
use crate::world::{Disk, World};

/// Fewest events of a run whose length its seed chooses.
const FEWEST: u64 = 500;
/// Most events of such a run.
const MOST: u64 = 5_000;
/// One of so many worlds was made by another operator.
const MADE_ELSEWHERE: u64 = 8;

/// The world in which a run begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// Pods of the cluster.
    #[serde(deserialize_with = "some")]
    pub pods: u8,
    /// How data outlives a process.
    pub disk: Disk,
    /// Profile.
    pub profile: Profile,
    /// Whether another operator made it.
    #[serde(default)]
    pub made_elsewhere: bool,
    /// Whether all kinds of faults may meet it, and the seed by which they find it in disorder.
    #[serde(default)]
    pub faults: Option<u64>,
}

/// A number of pods: there is no cluster of none.
fn some<'de, D: serde::Deserializer<'de>>(from: D) -> Result<u8, D::Error> {
    NonZeroU8::deserialize(from).map(NonZeroU8::get)
}

impl Start {
    /// The one of a seed.
    pub fn of(seed: u64) -> Self {
        let mut numbers = Numbers::new(seed ^ 0xA5A5);
        let pods = [3, 3, 3, 3, 2, 2, 1, 4][numbers.index(8)];
        let disk = [Disk::None, Disk::None, Disk::Rdb, Disk::Aof][numbers.index(4)];
        let profile = match disk {
            Disk::None => Profile::Cache,
            Disk::Rdb | Disk::Aof if numbers.below(4) == 0 => Profile::Cache,
            Disk::Rdb | Disk::Aof => Profile::Durable,
        };
        Self {
            pods,
            disk,
            profile,
            made_elsewhere: false,
            faults: None,
        }
    }

    /// The world.
    pub fn world(self) -> World {
        let world = World::new(self.pods, self.disk, self.profile);
        let world = match self.made_elsewhere {
            true => world.made_elsewhere(),
            false => world,
        };
        match self.faults {
            Some(seed) => arrange(world, seed),
            None => world,
        }
    }

    /// Comes to rest, meets these events, gets rid of its faults and must come to rest. `trace` gets a line for each event
    /// when it is given.
    pub fn replay(
        self,
        events: &[Action],
        brain: Brain,
        trace: Option<&mut String>,
    ) -> Result<End, Violation> {
        let mut rest = events.iter().copied();
        live(&mut self.world(), |_| rest.next(), brain, trace)
    }
}

/// A run before it begins.
#[derive(Clone, Debug)]
pub struct Dive {
    /// Its seed.
    pub seed: u64,
    /// The world.
    pub start: Start,
    /// How many events.
    pub steps: u32,
    /// Kinds of faults and wishes that there are: so each kind meets long runs without the others.
    swarm: u64,
    rates: Rates,
    numbers: Numbers,
    /// What comes next, where all kinds of faults may.
    chance: Option<Chance>,
}

/// What became of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dived {
    /// How it ended.
    pub end: Result<End, Violation>,
    /// Tells apart worlds that differ in anything that matters for what happens next, or in their age.
    pub digest: u128,
    /// Events that happened before the faults ended.
    pub events: u64,
    /// Milliseconds that the world lived.
    pub millis: u64,
    /// How often each kind of fault took effect, where all of them may.
    pub faults: Tally,
}

impl Dive {
    /// The deep run of a seed, which chooses the world, which faults come at which rates, and, unless `steps` says it, how many
    /// events there are.
    pub fn of(seed: u64, steps: Option<u32>) -> Self {
        let mut numbers = Numbers::new(seed ^ 0xD1_5EA5);
        let mut start = Start::of(seed);
        start.made_elsewhere = numbers.below(MADE_ELSEWHERE) == 0;
        let swarm = numbers.below(1 << KINDS);
        let rates = Rates::by(&mut numbers);
        // Short ones are more frequent, so that there can be many.
        let most = numbers.below(MOST - FEWEST + 1);
        let chosen = FEWEST + numbers.below(most + 1);
        Self {
            seed,
            start,
            steps: steps.unwrap_or(u32::try_from(chosen).unwrap_or(u32::MAX)),
            swarm,
            rates,
            numbers,
            chance: None,
        }
    }

    /// The run of a seed in which all kinds of faults that there are come at the same rate.
    pub fn even(seed: u64, steps: u32) -> Self {
        let mut numbers = Numbers::new(seed);
        Self {
            seed,
            start: Start::of(seed),
            steps,
            swarm: numbers.below(1 << KINDS),
            rates: Rates::ALL,
            numbers,
            chance: None,
        }
    }

    /// The run of a seed that all kinds of faults may meet. One of eight worlds was made by another operator, and may be in disorder;
    /// in one of eight the operator's objects are still to be made.
    pub fn all(seed: u64, steps: u32) -> Self {
        let mut dive = Self::even(seed, steps);
        dive.start.faults = Some(seed);
        dive.start.made_elsewhere = seed % MADE_ELSEWHERE == MADE_ELSEWHERE - 1;
        dive.chance = Some(Chance::new(seed));
        dive
    }

    fn walk(
        &self,
        world: &mut World,
        brain: Brain,
        trace: Option<&mut String>,
        mut each: impl FnMut(&mut World, Action),
    ) -> Result<End, Violation> {
        let (mut numbers, mut left) = (self.numbers, self.steps);
        let mut chance = self.chance.clone();
        let next = |world: &mut World| {
            left = left.checked_sub(1)?;
            let mut action = match &mut chance {
                Some(chance) => chance.next(world),
                None => pick(world, &mut numbers, Kinds::Swarm(self.swarm)),
            };
            if !self.rates.let_happen(action, &mut numbers) {
                action = pick(world, &mut numbers, Kinds::Swarm(0));
            }
            each(world, action);
            Some(action)
        };
        live(world, next, brain, trace)
    }

    /// How it ends. `trace` gets a line for each event when it is given.
    pub fn run(&self, brain: Brain, trace: Option<&mut String>) -> Result<End, Violation> {
        self.walk(&mut self.start.world(), brain, trace, |_, _| ())
    }

    /// How it ends in a given world, with effects carried out like that.
    pub(crate) fn run_in(
        &self,
        mut world: World,
        brain: Brain,
        hands: Hands,
    ) -> Result<End, Violation> {
        world.hands = hands;
        self.walk(&mut world, brain, None, |_, _| ())
    }

    /// How it ends, and in which world.
    pub fn to_the_end(&self, brain: Brain) -> Dived {
        let (mut world, mut events) = (self.start.world(), 0);
        let mut faults = Tally::default();
        let end = self.walk(&mut world, brain, None, |world, _| {
            events += 1;
            faults.take(world);
        });
        faults.take(&mut world);
        Dived {
            end,
            faults,
            digest: digest(&world, world.age(), &mut Names::default()),
            events,
            millis: world.age(),
        }
    }

    /// Its events, up to the one that breaks an invariant.
    pub fn events(&self, brain: Brain) -> Vec<Action> {
        let mut events = Vec::new();
        // What the run ends with is told by whoever replays the events.
        let _ = self.walk(&mut self.start.world(), brain, None, |_, action| {
            events.push(action);
        });
        events
    }

    /// Its events and decisions in words.
    pub fn story(&self, brain: Brain) -> String {
        let (mut world, mut trace) = (self.start.world(), String::new());
        let end = self.walk(&mut world, brain, Some(&mut trace), |_, _| ());
        for (n, pod) in world.pods.iter().enumerate() {
            let _ = writeln!(trace, "pod {n}: {pod:?}");
        }
        let _ = writeln!(trace, "{:?}\n{:?}", world.api, world.zombies);
        format!(
            "seed {}: {:?}\n{trace}{}",
            self.seed,
            self.start,
            match end {
                Ok(end) => format!("{end:?}"),
                Err(violation) => violation.to_string(),
            }
        )
    }
}
