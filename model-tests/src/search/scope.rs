//! What a search may try: which world, which faults and wishes, and how many of each.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use wellcake_core::step;
use wellcake_crds::v1beta1::Profile;

use crate::actions::Action;
use crate::hands::Hands;
use crate::invariants::Violation;
use crate::operator;
use crate::random::settle;
use crate::world::{Disk, World};

/// A scope file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scope {
    /// What it is for, in one sentence.
    pub about: String,
    /// Pods.
    pub pods: u8,
    /// How data outlives a process.
    pub disk: Disk,
    /// Profile.
    pub profile: Profile,
    /// Operators, of which the first leads.
    pub operators: usize,
    /// Where the search starts.
    pub start: Start,
    /// How an operator looks.
    pub looks: Looks,
    /// Kinds of faults.
    pub faults: Vec<Fault>,
    /// Kinds of wishes of people.
    pub wishes: Vec<Wish>,
    /// Spans by which time may pass, in milliseconds.
    pub spans: Vec<u64>,
    /// How much of each there may be.
    pub most: Budget,
    /// Highest epoch of a primary record that is left behind: worlds beyond are judged, and nothing happens in them any more.
    pub epochs: u32,
    /// Longest order of events; 0 stands for as long as anything new comes of it.
    pub depth: u32,
    /// What a complete search finds.
    pub found: Option<Found>,
    /// How operators carry effects out.
    #[serde(skip)]
    pub hands: Hands,
}

/// What a complete search finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Found {
    /// Different worlds.
    pub states: u64,
    /// Events on the shortest way to the farthest of them.
    pub depth: u32,
}

/// Where a search starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Start {
    /// With pods that have just started, without a record.
    New,
    /// With a cluster that has come to rest.
    Settled,
}

/// How an operator looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Looks {
    /// At everything at once.
    Whole,
    /// At the API server and at each server by itself.
    Parts,
}

/// How much of each there may be in an order of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Faults.
    pub faults: u8,
    /// Wishes.
    pub wishes: u8,
    /// Writes of clients.
    pub writes: u8,
    /// Times that time passes.
    pub spans: u8,
}

impl Budget {
    /// As one number.
    pub fn as_word(self) -> u64 {
        u64::from(u32::from_le_bytes([
            self.faults,
            self.wishes,
            self.writes,
            self.spans,
        ]))
    }
}

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// A server process is killed.
    Kill,
    /// A pod is deleted and its server ends in order.
    Delete,
    /// A pod gets a deletion timestamp.
    Terminate,
    /// A pod is deleted by force and its server lives on.
    DeleteByForce,
    /// A server stops doing anything.
    Freeze,
    /// Operators cannot reach a pod.
    Hide,
    /// A server is cut off from operators and all other servers.
    Isolate,
    /// A replica cannot reach its primary.
    Cut,
    /// An operator process is killed and starts again.
    Crash,
    /// An answer is lost.
    Lost,
}

/// A kind of wish of a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wish {
    /// Another primary, any that is fit.
    Ask,
    /// Another primary, this pod.
    AskFor,
    /// Pods made from another template.
    Change,
    /// So many pods.
    Resize,
    /// Sleep, or an end of it.
    Hibernate,
    /// A ValkeyCluster that is deleted and made anew.
    Renew,
}

/// The scopes in a folder, by name.
pub fn committed(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let files = std::fs::read_dir(folder).with_context(|| {
        format!(
            "cannot read the scopes in {}: run it in the root of the repository, or name a scope file",
            folder.display()
        )
    })?;
    let mut all = Vec::new();
    for file in files {
        let path = file?.path();
        let is_scope = path.extension().is_some_and(|ending| ending == "json");
        if let Some(name) = path.file_stem().and_then(|name| name.to_str())
            && is_scope
        {
            all.push((name.to_owned(), path.clone()));
        }
    }
    all.sort();
    Ok(all)
}

impl Scope {
    /// Reads a scope file.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read the scope {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{} is no scope", path.display()))
    }

    /// The world in which a search starts. What is right decides until then.
    pub fn world(&self) -> Result<World, Violation> {
        let mut world = World::new(self.pods, self.disk, self.profile);
        world.operators.truncate(self.operators);
        if self.start == Start::Settled {
            settle(&mut world, step, None)?;
        }
        world.hands = self.hands;
        Ok(world)
    }

    /// Everything that may happen next in a world after so much was spent, with what is spent then.
    pub fn enabled(&self, world: &World, spent: Budget, out: &mut Vec<(Action, Budget)>) {
        out.clear();
        let epoch = world.api.record.map_or(0, |record| record.epoch.0);
        if epoch > self.epochs {
            return;
        }
        for o in 0..world.operators.len() {
            self.operator(world, o, spent, out);
        }
        if spent.writes < self.most.writes {
            let writes = spent.writes + 1;
            out.push((Action::Write, Budget { writes, ..spent }));
        }
        if spent.spans < self.most.spans {
            let spans = spent.spans + 1;
            for span in &self.spans {
                out.push((Action::Advance(*span), Budget { spans, ..spent }));
            }
        }
        for n in 0..world.pods.len() {
            progress(world, n, spent, out);
        }
        if !world.zombies.is_empty() {
            out.push((Action::Reap, spent));
        }
        if spent.faults < self.most.faults {
            let faults = spent.faults + 1;
            for fault in &self.faults {
                self.fault(world, *fault, Budget { faults, ..spent }, out);
            }
        }
        if world.spec.hibernate {
            out.push((Action::Hibernate(false), spent));
        }
        if spent.wishes < self.most.wishes {
            let wishes = spent.wishes + 1;
            for wish in &self.wishes {
                self.wish(world, *wish, Budget { wishes, ..spent }, out);
            }
        }
    }

    fn operator(&self, world: &World, o: usize, spent: Budget, out: &mut Vec<(Action, Budget)>) {
        match self.looks {
            Looks::Whole => out.push((Action::Look(o), spent)),
            Looks::Parts => {
                out.push((Action::Watch(o), spent));
                out.extend((0..world.pods.len()).map(|pod| {
                    let lost = false;
                    let operator = o;
                    (
                        Action::Poll {
                            operator,
                            pod,
                            lost,
                        },
                        spent,
                    )
                }));
            }
        }
        out.push((Action::Decide(o), spent));
        let busy = world
            .operators
            .get(o)
            .is_some_and(|op| !op.queue.is_empty());
        if busy {
            out.push((Action::Execute(o), spent));
        }
        if world.now >= world.lease_until {
            out.push((Action::Elect(o), spent));
        }
    }

    fn fault(&self, world: &World, fault: Fault, spent: Budget, out: &mut Vec<(Action, Budget)>) {
        if fault == Fault::Crash {
            out.extend((0..world.operators.len()).map(|o| (Action::Crash(o), spent)));
            return;
        }
        for (n, pod) in world.pods.iter().enumerate() {
            let runs = pod.process.as_ref();
            let possible = match fault {
                Fault::Kill | Fault::Isolate => runs.is_some(),
                Fault::Delete | Fault::DeleteByForce => pod.exists,
                Fault::Terminate => pod.exists && !pod.terminating,
                Fault::Freeze => runs.is_some_and(|process| process.frozen.is_none()),
                Fault::Hide => pod.exists && !pod.hidden,
                Fault::Cut => !pod.cut,
                Fault::Lost => pod.exists,
                Fault::Crash => false,
            };
            let action = match fault {
                Fault::Kill => Action::Kill(n),
                Fault::Delete => Action::Delete(n),
                Fault::Terminate => Action::Terminate(n),
                Fault::DeleteByForce => Action::DeleteByForce(n),
                Fault::Freeze => Action::Freeze(n),
                Fault::Hide => Action::Hide(n),
                Fault::Isolate => Action::Isolate(n),
                Fault::Cut => Action::Cut(n),
                Fault::Crash => Action::Crash(0),
                Fault::Lost => {
                    let lost = (0..world.operators.len()).map(|operator| Action::Poll {
                        operator,
                        pod: n,
                        lost: true,
                    });
                    out.extend(lost.filter(|_| possible).map(|action| (action, spent)));
                    continue;
                }
            };
            if possible {
                out.push((action, spent));
            }
        }
    }

    fn wish(&self, world: &World, wish: Wish, spent: Budget, out: &mut Vec<(Action, Budget)>) {
        let pods = world.pods.len();
        match wish {
            Wish::Ask => out.push((Action::Ask(None), spent)),
            Wish::AskFor => out.extend((0..pods).map(|n| (Action::Ask(Some(n)), spent))),
            Wish::Change => out.push((Action::Change, spent)),
            Wish::Resize => {
                let asked = usize::from(world.spec.pods);
                let others = (1..=pods).filter(|count| *count != asked);
                out.extend(others.map(|count| (Action::Resize(count), spent)));
            }
            Wish::Hibernate if !world.spec.hibernate => {
                out.push((Action::Hibernate(true), spent));
            }
            Wish::Hibernate => {}
            Wish::Renew => out.push((Action::Renew, spent)),
        }
    }
}

/// What the kubelet, the StatefulSet controller, the network and the server of a pod may do of themselves.
fn progress(world: &World, n: usize, spent: Budget, out: &mut Vec<(Action, Budget)>) {
    let Some(pod) = world.pods.get(n) else { return };
    match &pod.process {
        Some(process) => {
            if process.frozen.is_some() {
                out.push((Action::Thaw(n), spent));
            } else if !process.primary && (process.linked || process.upstream.is_some()) {
                out.push((Action::Replicate(n), spent));
            }
            let saves = world.disk == Disk::Rdb && process.frozen.is_none();
            if saves && pod.disk.as_ref() != Some(&process.data) {
                out.push((Action::Snapshot(n), spent));
            }
        }
        None if pod.exists => out.push((Action::Start(n), spent)),
        None if n < usize::from(world.replicas) => out.push((Action::Recreate(n), spent)),
        None => {}
    }
    if pod.exists && pod.terminating {
        out.push((Action::Delete(n), spent));
    }
    if pod.reported != operator::container(pod.process.as_ref(), pod.restarts) {
        out.push((Action::Report(n), spent));
    }
    if pod.hidden {
        out.push((Action::Show(n), spent));
    }
    if pod.cut {
        out.push((Action::Join(n), spent));
    }
}
