//! A script on real servers, with what the model allows beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use wellcake_core::facts::Millis;
use wellcake_core::render::{CLIENT_PORT, NOBODY};

use super::links::{Links, Passage};
use super::model::{Outcome, Worlds};
use super::process::{PATIENCE, Program, Server};
use super::resp::{Connection, Reply};
use super::script::{BURST, BURST_BYTES, SERVERS, STRETCH_SECONDS, Script, Step};
use super::view::{ServerView, View};

/// How long what is at rest must stay so: replicas try to connect once a second (`replication.c: replicationCron`).
const STAYS: Duration = Duration::from_millis(1_200);
/// How long a write waits for its answer where the model says that writes wait.
const PAUSED: Duration = Duration::from_millis(100);

const TOO_MANY: &str = "the model has too many possible worlds after this script";

/// How often a command met a server in a state.
pub type Covered = BTreeMap<(String, String), u64>;

/// Servers did what the model does not allow.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The script.
    pub script: Script,
    /// Index of the step after which it was seen.
    pub at: usize,
    /// What was done last and how it ended.
    pub last: String,
    /// What the servers showed.
    pub seen: Option<View>,
    /// What the model allows.
    pub allowed: BTreeSet<View>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "seed {}, {:?}, after step {} ({}):",
            self.script.seed, self.script.disk, self.at, self.last
        )?;
        for (n, step) in self.script.steps.iter().enumerate().take(self.at + 1) {
            writeln!(f, "  {n:>2} {step:?}")?;
        }
        match &self.seen {
            Some(seen) => write!(f, "the servers:\n{}", in_words(seen))?,
            None => writeln!(f, "the model does not allow that outcome")?,
        }
        let mut allowed: Vec<_> = self.allowed.iter().collect();
        // The likeliest first.
        allowed.sort_by_key(|view| self.seen.as_ref().map(|seen| distance(seen, view)));
        for view in allowed.iter().take(3) {
            write!(f, "the model:\n{}", in_words(view))?;
        }
        writeln!(f, "({} views are allowed)", self.allowed.len())
    }
}

fn in_words(view: &View) -> String {
    let mut text = String::new();
    for (n, server) in view.servers.iter().enumerate() {
        text.push_str(&format!("    {n}: {server:?}\n"));
    }
    text.push_str(&format!(
        "    ahead {:?}, beyond {:?}, full copies from {:?}\n",
        view.ahead, view.beyond, view.full_copies
    ));
    text
}

fn distance(a: &View, b: &View) -> usize {
    let servers = a.servers.iter().zip(&b.servers).filter(|(a, b)| a != b);
    2 * servers.count()
        + usize::from(a.ahead != b.ahead)
        + usize::from(a.beyond != b.beyond)
        + usize::from(a.full_copies != b.full_copies)
}

/// Runs a script. What it covered is added to `covered`.
pub fn run(
    program: &Program,
    script: &Script,
    covered: &mut Covered,
) -> Result<Option<Difference>> {
    compare(program, script, |step| step, covered)
}

/// Runs a script of which the model is told something else, where `told` says so: to see that differences are noticed.
pub fn compare(
    program: &Program,
    script: &Script,
    told: fn(Step) -> Step,
    covered: &mut Covered,
) -> Result<Option<Difference>> {
    let mut bench = Bench::new(program, script)?;
    for (at, step) in script.steps.iter().copied().enumerate() {
        bench.note(step, covered);
        let difference = match bench.step(step, told(step))? {
            Some(unlike) => Some(unlike),
            None => bench.compare(step)?,
        };
        if let Some((last, seen, allowed)) = difference {
            return Ok(Some(Difference {
                script: script.clone(),
                at,
                last,
                seen,
                allowed,
            }));
        }
    }
    Ok(None)
}

/// What was done, what was seen and what is allowed.
type Unlike = (String, Option<View>, BTreeSet<View>);

/// For each server: its process, and how many full copies it had begun when it was looked at last.
type Counts = Vec<Option<(String, u64)>>;

/// Servers on the machine.
struct Bench {
    servers: Vec<Server>,
    links: Links,
    place: [u8; 2],
    began: Instant,
    worlds: Worlds,
    counted: Counts,
    seen: Option<View>,
    last: String,
}

impl Bench {
    fn new(program: &Program, script: &Script) -> Result<Self> {
        let (place, links) = free_place()?;
        let servers = (1..)
            .take(SERVERS)
            .enumerate()
            .map(|(n, host)| {
                let name = format!("seed-{}-server-{n}", script.seed);
                Server::new(program, &name, address(place, host), script.disk)
            })
            .collect::<Result<Vec<_>>>()?;
        let mut bench = Self {
            servers,
            links,
            place,
            began: Instant::now(),
            worlds: Worlds::new(script.disk),
            counted: vec![None; SERVERS],
            seen: None,
            last: String::new(),
        };
        for server in &mut bench.servers {
            server.start(false)?;
        }
        Ok(bench)
    }

    fn elapsed(&self) -> Millis {
        Millis(u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    fn server(&mut self, n: usize) -> Result<&mut Server> {
        self.servers.get_mut(n).context("no such server")
    }

    fn note(&self, step: Step, covered: &mut Covered) {
        let (command, subject) = step.subject();
        let state = subject
            .and_then(|n| self.seen.as_ref()?.servers.get(n))
            .map_or_else(|| "start".to_owned(), state_in_words);
        *covered.entry((command.to_owned(), state)).or_default() += 1;
    }

    /// Does a step to the servers and to the worlds of the model.
    fn step(&mut self, step: Step, told: Step) -> Result<Option<Unlike>> {
        let outcome = self.perform(step)?;
        self.last = format!("{step:?}: {outcome:?}");
        self.worlds.at(self.elapsed());
        let before = self.worlds.unfold().context(TOO_MANY)?;
        self.worlds = before.clone();
        self.worlds.step(told, &outcome);
        if self.worlds.count() == 0 {
            return Ok(Some((self.last.clone(), None, before.views())));
        }
        Ok(None)
    }

    fn perform(&mut self, step: Step) -> Result<Outcome> {
        let (host, port) = NOBODY;
        let nobody = port.to_string();
        let client = CLIENT_PORT.to_string();
        match step {
            Step::Write(n) => return self.write(n, 1, 1),
            Step::Burst(n) => return self.write(n, BURST, BURST_BYTES),
            Step::Promote(n) => return self.command(n, &["REPLICAOF", "NO", "ONE"]),
            Step::Follow(n, of) => {
                let to = pair(self.place, n, of).to_string();
                return self.command(n, &["REPLICAOF", &to, &client]);
            }
            Step::Nobody(n) => return self.command(n, &["REPLICAOF", host, &nobody]),
            Step::Open(n) => return self.command(n, &["CONFIG", "SET", "port", &client]),
            Step::Need(n, needed) => {
                let count = u8::from(needed).to_string();
                return self.command(n, &["CONFIG", "SET", "min-replicas-to-write", &count]);
            }
            Step::Pause(n, true) => {
                return self.command(n, &["CLIENT", "PAUSE", "86400000", "WRITE"]);
            }
            Step::Pause(n, false) => return self.command(n, &["CLIENT", "UNPAUSE"]),
            Step::CloseClients(n) => {
                return self.command(n, &["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
            }
            Step::Snapshot(n) => return self.command(n, &["SAVE"]),
            Step::Kill(n) => self.server(n)?.kill()?,
            Step::End(n) => self.server(n)?.end()?,
            Step::Start(n, keeps) => self.server(n)?.start(keeps)?,
            Step::Freeze(n) => self.server(n)?.freeze(true)?,
            Step::Thaw(n) => self.server(n)?.freeze(false)?,
            Step::Cut(n, true) => self.links.set(n, Passage::Ended),
            Step::Cut(n, false) => self.links.set(n, Passage::Hole),
            Step::Join(n) => self.links.set(n, Passage::Open),
            Step::Stretch => sleep(Duration::from_secs(STRETCH_SECONDS)),
            Step::Rest => {}
        }
        Ok(Outcome::Done)
    }

    fn command(&mut self, n: usize, words: &[&str]) -> Result<Outcome> {
        let server = self.server(n)?;
        if server.is_frozen() {
            server.leave(words)?;
            return Ok(Outcome::Done);
        }
        Ok(outcome(&server.command(words)?))
    }

    /// Writes over a new connection, which is closed afterwards. A server whose replica has only just come is asked again.
    fn write(&mut self, n: usize, count: usize, bytes: usize) -> Result<Outcome> {
        let patience = if self.worlds.expect_pause(n) {
            PAUSED
        } else {
            PATIENCE
        };
        let followed = self.worlds.is_followed(n);
        let begun = Instant::now();
        loop {
            let outcome = self.write_once(n, (count, bytes), patience)?;
            let again = match &outcome {
                Outcome::Refused(word) => word == "LOADING" || (word == "NOREPLICAS" && followed),
                _ => false,
            };
            if !again || begun.elapsed() > 2 * STAYS {
                return Ok(outcome);
            }
            sleep(Duration::from_millis(20));
        }
    }

    fn write_once(
        &mut self,
        n: usize,
        (count, bytes): (usize, usize),
        patience: Duration,
    ) -> Result<Outcome> {
        let first = usize::from(self.worlds.next_write());
        let value = "x".repeat(bytes);
        let mut client: Connection = self.server(n)?.connect()?;
        for write in first..first + count {
            client.send(&["SET", &write.to_string(), &value])?;
        }
        let mut last = None;
        for _ in 0..count {
            let one = match client.receive(patience) {
                Ok(reply) => outcome(&reply),
                Err(why) if is_timeout(&why) => Outcome::Unanswered,
                Err(why) => return Err(why.into()),
            };
            if last.as_ref().is_some_and(|last| *last != one) {
                bail!("writes of one burst ended differently: {last:?}, {one:?}");
            }
            if one == Outcome::Unanswered {
                return Ok(one);
            }
            last = Some(one);
        }
        last.context("no write")
    }

    /// Whether what the servers show is allowed, now or a moment later.
    fn compare(&mut self, step: Step) -> Result<Option<Unlike>> {
        let begun = Instant::now();
        let rest = step == Step::Rest;
        loop {
            let (seen, counted) = self.look()?;
            let allowed = self.allowed(rest)?;
            let matching = allowed.that_look_like(&seen);
            if matching.count() > 0 {
                self.worlds = matching;
                self.counted = counted;
                self.seen = Some(seen);
                break;
            }
            if begun.elapsed() > PATIENCE {
                return Ok(Some((self.last.clone(), Some(seen), allowed.views())));
            }
            sleep(Duration::from_millis(10));
        }
        if rest {
            return self.stays();
        }
        Ok(None)
    }

    fn allowed(&mut self, rest: bool) -> Result<Worlds> {
        self.worlds.at(self.elapsed());
        let unfolded = self.worlds.unfold().context(TOO_MANY)?;
        Ok(if rest { unfolded.at_rest() } else { unfolded })
    }

    /// Whether what was at rest still is.
    fn stays(&mut self) -> Result<Option<Unlike>> {
        sleep(STAYS);
        for _ in 0..10 {
            let (seen, counted) = self.look()?;
            let allowed = self.allowed(true)?;
            let matching = allowed.that_look_like(&seen);
            if matching.count() > 0 {
                self.worlds = matching;
                self.counted = counted;
                self.seen = Some(seen);
                return Ok(None);
            }
            sleep(Duration::from_millis(10));
        }
        let last = format!("{}, and did not stay at rest", self.last);
        let (seen, _) = self.look()?;
        let allowed = self.allowed(true)?.views();
        Ok(Some((last, Some(seen), allowed)))
    }

    /// What the servers show twice in a row.
    fn look(&mut self) -> Result<(View, Counts)> {
        let mut before = self.look_once()?;
        for _ in 0..100 {
            let now = self.look_once()?;
            if now == before {
                break;
            }
            before = now;
        }
        Ok(before)
    }

    fn look_once(&mut self) -> Result<(View, Counts)> {
        let mut answers = Vec::new();
        let mut full_copies = BTreeSet::new();
        let mut counts = self.counted.clone();
        for (n, (server, known)) in self.servers.iter_mut().zip(&mut counts).enumerate() {
            let answer = server.answer()?;
            if let Some(answer) = &answer {
                let run = &answer.info.run_id;
                let before = known.as_ref().filter(|(it, _)| it == run);
                if answer.sync_full > before.map_or(0, |(_, count)| *count) {
                    full_copies.insert(n);
                }
                *known = Some((run.clone(), answer.sync_full));
            }
            answers.push((answer, server.is_frozen()));
        }
        let place = self.place;
        let meaning = |from: usize, host: &str| {
            (0..SERVERS).find(|to| pair(place, from, *to).to_string() == host)
        };
        let view = View::of_answers(&answers, meaning, full_copies);
        Ok((view, counts))
    }
}

/// Addresses that nobody on the machine uses, with the links between them.
fn free_place() -> Result<([u8; 2], Links)> {
    static NEXT: AtomicU8 = AtomicU8::new(0);
    let process = u8::try_from(std::process::id() % 100).unwrap_or(0);
    let mut last = None;
    for _ in 0..=u8::MAX {
        let place = [100 + process, NEXT.fetch_add(1, Ordering::Relaxed)];
        let addresses: Vec<_> = (1..).map(|n| address(place, n)).take(SERVERS).collect();
        match Links::new(&addresses, |from, to| pair(place, from, to)) {
            Ok(links) => return Ok((place, links)),
            Err(why) => last = Some(why),
        }
    }
    Err(last.context("no addresses")?)
}

fn address(place: [u8; 2], n: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(127, place[0], place[1], n))
}

/// The address under which one server reaches another.
fn pair(place: [u8; 2], from: usize, to: usize) -> IpAddr {
    let n = u8::try_from(100 + 10 * from + to).unwrap_or(u8::MAX);
    address(place, n)
}

fn outcome(reply: &Reply) -> Outcome {
    match reply {
        Reply::Refused(why) => {
            Outcome::Refused(why.split(' ').next().unwrap_or_default().to_owned())
        }
        _ => Outcome::Done,
    }
}

fn is_timeout(why: &std::io::Error) -> bool {
    use std::io::ErrorKind::{TimedOut, WouldBlock};
    matches!(why.kind(), TimedOut | WouldBlock)
}

/// What a server is in, as far as it is told which commands met which states.
fn state_in_words(server: &ServerView) -> String {
    match server {
        ServerView::Ended => "ended".to_owned(),
        ServerView::Frozen => "frozen".to_owned(),
        ServerView::Answers {
            open,
            role,
            needs_replica,
            start,
            writes,
            histories,
        } => format!(
            "{}{role:?}{}{}{}{}",
            if *open { "" } else { "fenced " },
            if *needs_replica { " needs replica" } else { "" },
            if start.is_some() { " at the start" } else { "" },
            if writes.is_empty() { " empty" } else { "" },
            if histories.1.is_some() {
                " continues"
            } else {
                ""
            },
        ),
    }
}
