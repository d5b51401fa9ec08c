//! The servers: what they answer to the commands that the interpreter sends. What a command does is the model's.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use wellcake_core::effects::{Effect, Verb};
use wellcake_core::facts::{Millis, PodUid, Port};
use wellcake_core::limits;
use wellcake_core::reasons::Reason;
use wellcake_core::render::{CLIENT_PORT, FENCE_PORT, NOBODY, OPERATOR_PASSWORD_KEY};
use wellcake_crds::names::OPERATOR_USER;
use wellcake_model_tests::invariants::{self, Violation};
use wellcake_model_tests::recorded;
use wellcake_model_tests::servers::Command;
use wellcake_model_tests::world::Process;

use crate::cluster::Cluster;
use crate::kubernetes::pod_uid;
use crate::network::{addr, ip};
use crate::objects::{Kind, NAMESPACE};

const OK: &str = "+OK\r\n";
const DENIED: &str = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";

impl Cluster {
    /// A server does a command that came over a connection, and answers.
    pub fn command(&mut self, id: usize, words: &[String]) -> Vec<u8> {
        let run = self.connections[id].run;
        let uid = self.world.processes().find(|(_, it)| it.run == run);
        let Some(uid) = uid.map(|(uid, _)| uid) else {
            return Vec::new();
        };
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let outcome = self.judge_leader(id);
        self.judge(outcome);
        if !self.connections[id].logged_in && words.first() != Some(&"AUTH") {
            return b"-NOAUTH Authentication required.\r\n".to_vec();
        }
        let answer = match words.as_slice() {
            ["AUTH", user, password] => self.log_in(id, user, password),
            ["INFO", ..] => {
                self.connections[id].asked = true;
                self.info(uid)
            }
            ["CLIENT", "KILL", "USER", _, "SKIPME", "yes"] => self.fence(id),
            ["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"] => {
                let closed = self.others(id);
                closed.iter().for_each(|other| self.end(*other));
                self.change(uid, Command::CloseClients);
                format!(":{}\r\n", closed.len())
            }
            ["CLIENT", "PAUSE", time, "WRITE"] => {
                let time = time.parse().expect("milliseconds");
                self.change(uid, Command::Pause(Millis(time)))
            }
            ["CLIENT", "UNPAUSE"] => self.change(uid, Command::Unpause),
            ["REPLICAOF", "NO", "ONE"] => self.promote(uid),
            ["REPLICAOF", host, port]
                if (*host, port.parse().ok()) == (NOBODY.0, Some(NOBODY.1)) =>
            {
                self.change(uid, Command::Nobody)
            }
            ["REPLICAOF", host, _] => {
                let of = host
                    .parse()
                    .ok()
                    .and_then(addr)
                    .expect("an address of a pod");
                self.change(uid, Command::Follow(of))
            }
            ["CONFIG", "SET", "port", _] => self.change(uid, Command::Open),
            ["CONFIG", "SET", "min-replicas-to-write", needed] => {
                self.change(uid, Command::NeedReplica(*needed != "0"))
            }
            ["CONFIG", "SET", ..] => self.change(uid, Command::Configure),
            _ => panic!("the simulated server does not know {words:?}"),
        };
        answer.into_bytes()
    }

    /// Nothing that an operator sent before it ended is done once its successor has asked the server What was
    /// to log in may arrive: nothing follows it.
    fn judge_leader(&self, id: usize) -> Result<(), Violation> {
        let own = &self.connections[id];
        let newer = self
            .connections
            .iter()
            .find(|it| it.run == own.run && it.term > own.term && it.asked);
        require(
            newer.is_none() || !own.logged_in,
            "an earlier leader is not heard any more",
            || format!("{:?} gets a command of an operator that ended", own.run),
        )
    }

    fn log_in(&mut self, id: usize, user: &str, password: &str) -> String {
        let secret = self.objects.get(Kind::Secret, &self.name.acl_secret());
        let known =
            secret.and_then(|secret| secret.get("data")?.get(OPERATOR_PASSWORD_KEY)?.as_str());
        let given = STANDARD.encode(password);
        if user != OPERATOR_USER || known != Some(given.as_str()) {
            return DENIED.to_owned();
        }
        self.connections[id].logged_in = true;
        OK.to_owned()
    }

    /// Ends the other connections of the operator's user, with what was sent over them and has not arrived.
    fn fence(&mut self, id: usize) -> String {
        if self.wrong.leaves_connections() {
            return ":0\r\n".to_owned();
        }
        let ended = self.others(id);
        ended.iter().for_each(|other| self.end(*other));
        format!(":{}\r\n", ended.len())
    }

    /// A command changes a server.
    fn change(&mut self, uid: PodUid, command: Command) -> String {
        self.note_write(|| format!("{uid:?}: {command:?}"));
        self.world.send(uid, command);
        OK.to_owned()
    }

    /// `REPLICAOF NO ONE`, judged by what the operator recorded before it sent this.
    fn promote(&mut self, uid: PodUid) -> String {
        let n = self
            .world
            .pods
            .iter()
            .position(|pod| pod.exists && pod.uid == uid);
        let process = self.world.processes().find(|(of, _)| *of == uid);
        let (Some(n), Some(false)) = (n, process.map(|(_, process)| process.primary)) else {
            return OK.to_owned();
        };
        let planned = self.planned_promotion(n);
        let outcome = self.judge_promotion(n, uid, planned);
        self.judge(outcome);
        let silent = planned.and_then(|effect| self.silent_of(&effect));
        let epoch = self.world.api.record.map_or(0, |record| record.epoch.0);
        self.change(uid, Command::Promote { epoch, silent })
    }

    fn judge_promotion(
        &mut self,
        n: usize,
        uid: PodUid,
        planned: Option<Effect>,
    ) -> Result<(), Violation> {
        let record = self.world.api.record;
        require(
            record.is_some_and(|record| record.pod_uid == uid),
            "the record precedes the promotion",
            || format!("{uid:?} is promoted, and the record is {record:?}"),
        )?;
        let epoch = record.map_or(0, |record| record.epoch.0);
        self.note_sight();
        let silent = planned.and_then(|effect| self.silent_of(&effect));
        invariants::before_promotion(&self.world, 0, (n, uid), epoch, silent)?;
        if let Some(effect) = planned {
            invariants::planned_moves_are_lossless(&self.world, uid, effect.reason)?;
        }
        Ok(())
    }

    /// The promotion of a pod in the newest decision that the operator recorded. One that ended since recorded none.
    fn planned_promotion(&self, n: usize) -> Option<Effect> {
        let text = self.traces.of(NAMESPACE, self.name.as_str())?;
        let line = text
            .lines()
            .rfind(|line| line.contains("\"kind\":\"pass\""))?;
        let trace = recorded::read::read(format!("{line}\n").as_bytes()).expect("a trace");
        let effects = trace.moments.first()?.decision.effects.clone();
        effects
            .into_iter()
            .find(|effect| matches!(effect.verb, Verb::Promote { pod } if pod.index() == n))
    }

    /// The primary that a promotion succeeds on its silence.
    fn silent_of(&self, effect: &Effect) -> Option<PodUid> {
        let silent = effect
            .guard
            .silent
            .filter(|_| effect.reason == Reason::SilentPrimarySucceeded);
        let (_, number) = silent?;
        let text = self.traces.of(NAMESPACE, self.name.as_str())?;
        let line = text
            .lines()
            .rfind(|line| line.contains("\"kind\":\"names\""))?;
        let names: Value = serde_json::from_str(line).expect("a trace");
        let numbers = names.pointer("/names/numbers")?.as_object()?;
        let of = |(text, n): (&String, &Value)| {
            (n.as_u64() == Some(number.0.into())).then(|| text.clone())
        };
        pod_uid(&numbers.iter().find_map(of)?)
    }

    /// What was in the operator's sight.
    fn note_sight(&mut self) {
        let now = self.world.now;
        let operator = &mut self.world.operators[0];
        operator.sight = operator
            .pods
            .iter()
            .map(|facts| facts.server.fresh(now, limits::DESTRUCTIVE_AGE))
            .map(|server| server.map(|it| (it.run, it.keys > 0 || it.is_fed())))
            .collect();
    }

    /// `INFO`; the operator of the world sees what this one does.
    fn info(&mut self, uid: PodUid) -> String {
        if let Some(n) = self
            .world
            .pods
            .iter()
            .position(|pod| pod.exists && pod.uid == uid)
        {
            self.world.watch(0);
            self.world.poll(0, n, false);
        }
        let process = self.world.processes().find(|(of, _)| *of == uid);
        let text = process.map_or_else(String::new, |(_, process)| self.info_of(uid, process));
        format!("${}\r\n{text}\r\n", text.len())
    }

    fn info_of(&self, uid: PodUid, process: &Process) -> String {
        let now = self.world.now;
        let data = &process.data;
        let mut lines = vec![
            format!("run_id:{}", run_id(process.run.0)),
            "valkey_version:8.0.1".to_owned(),
            format!(
                "tcp_port:{}",
                if process.port == Port::Client {
                    CLIENT_PORT
                } else {
                    FENCE_PORT
                }
            ),
            format!("uptime_in_seconds:{}", now.since(process.started).0 / 1000),
            format!("role:{}", if process.primary { "master" } else { "slave" }),
            format!("master_replid:{}", replid(data.replid.0)),
            format!("master_repl_offset:{}", data.offset(process.primary).0),
            "loading:0".to_owned(),
            format!(
                "aof_rewrite_in_progress:{}",
                u8::from(process.rewrites.is_some())
            ),
        ];
        match data.before {
            Some((before, until)) => {
                lines.push(format!("master_replid2:{}", replid(before.0)));
                lines.push(format!("second_repl_offset:{}", until + 1));
            }
            None => lines.push(format!("master_replid2:{}", "0".repeat(40))),
        }
        if process.primary {
            lines.extend(self.replicas_of(uid));
        } else {
            lines.extend(self.link_of(process));
        }
        if process.needs_replica {
            lines.push(format!(
                "min_slaves_good_slaves:{}",
                u8::from(!process.has_stopped(now))
            ));
        }
        if !data.log.is_empty() {
            lines.push(format!("db0:keys={},expires=0,avg_ttl=0", data.log.len()));
        }
        lines.iter().fold(String::new(), |mut text, line| {
            let _ = write!(text, "{line}\r\n");
            text
        })
    }

    fn link_of(&self, process: &Process) -> Vec<String> {
        let (host, port) = match process.upstream {
            Some(addr) => (ip(addr).to_string(), CLIENT_PORT),
            None => (NOBODY.0.to_owned(), NOBODY.1),
        };
        let down = process.unlinked_at.map_or(-1, |at| {
            i64::try_from(self.world.now.since(at).0.div_ceil(1000)).unwrap_or(i64::MAX)
        });
        let mut lines = vec![
            format!("master_host:{host}"),
            format!("master_port:{port}"),
            format!(
                "master_link_status:{}",
                if process.linked { "up" } else { "down" }
            ),
            format!("master_sync_in_progress:{}", u8::from(process.syncing)),
            format!("slave_repl_offset:{}", process.data.offset(false).0),
        ];
        if !process.linked {
            lines.push(format!("master_link_down_since_seconds:{down}"));
        }
        lines
    }

    fn replicas_of(&self, uid: PodUid) -> Vec<String> {
        let pods = self
            .world
            .pods
            .iter()
            .find(|pod| pod.exists && pod.uid == uid);
        let at = pods.map(|pod| pod.addr);
        let linked =
            |process: &Process| process.linked && !process.syncing && process.upstream == at;
        let replicas =
            self.world.pods.iter().filter(|pod| {
                at.is_some() && pod.exists && pod.process.as_ref().is_some_and(linked)
            });
        replicas
            .enumerate()
            .map(|(n, pod)| {
                let offset = pod.process.as_ref().map_or(0, |it| it.data.offset(false).0);
                let ip = ip(pod.addr);
                format!("slave{n}:ip={ip},port={CLIENT_PORT},state=online,offset={offset},lag=0")
            })
            .collect()
    }
}

/// Identities as texts, all different.
pub fn run_id(number: u16) -> String {
    format!("a{number:039x}")
}

/// See [`run_id`].
pub fn replid(number: u16) -> String {
    format!("b{number:039x}")
}

/// The number of a replication id.
pub fn replid_number(text: &str) -> Option<u16> {
    u16::from_str_radix(text.get(36..)?, 16).ok()
}

/// Nothing, or a violation of the named rule.
pub fn require(
    holds: bool,
    invariant: &'static str,
    seen: impl FnOnce() -> String,
) -> Result<(), Violation> {
    if holds {
        return Ok(());
    }
    Err(Violation {
        invariant,
        seen: seen(),
    })
}
