//! What can be told of servers whatever their identities are: the same from the replies of real ones and from the model.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use wellcake_core::facts::Port;
use wellcake_core::parse::InfoRole;
use wellcake_core::render::{CLIENT_PORT, NOBODY};

use super::process::Answer;
use crate::world::{Pod, World};

/// Whom a replica follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// The address of nobody.
    Nobody,
    /// Another server.
    Server(usize),
}

/// Link of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LinkState {
    /// Up.
    Up,
    /// Down, after it was up.
    Down,
    /// Never up.
    Never,
}

/// Role of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RoleView {
    /// A primary.
    Primary,
    /// A replica of somebody, with its link.
    Replica(Source, LinkState),
}

/// One server.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ServerView {
    /// No process.
    Ended,
    /// A process that says nothing.
    Frozen,
    /// One that answers.
    Answers {
        /// Whether clients and replicas reach it.
        open: bool,
        /// Its role.
        role: RoleView,
        /// Whether it takes writes only while a replica acknowledges.
        needs_replica: bool,
        /// Its offset, if that is 0 or 1: then it has no position in any stream, or has got nothing.
        start: Option<u64>,
        /// Its writes.
        writes: BTreeSet<u16>,
        /// Its history and the one before, numbered in the order in which they are met.
        histories: (usize, Option<usize>),
    },
}

/// Some servers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct View {
    /// Each of them.
    pub servers: Vec<ServerView>,
    /// For two servers of one history: which of them is ahead.
    pub ahead: BTreeSet<(usize, usize, Ordering)>,
    /// For a server that continues the history of another: whether that other one has more of it than they share.
    pub beyond: BTreeSet<(usize, usize, bool)>,
    /// Servers from which a full copy was begun since the last comparison.
    pub full_copies: BTreeSet<usize>,
}

/// What a view is made from, with names of histories that are compared only.
struct Raw {
    server: ServerView,
    history: String,
    before: Option<(String, u64)>,
    offset: u64,
}

impl View {
    /// Of real servers. `frozen` tells who has a process that says nothing; `pair` what an upstream address means to a server.
    pub fn of_answers(
        answers: &[(Option<Answer>, bool)],
        pair: impl Fn(usize, &str) -> Option<usize>,
        full_copies: BTreeSet<usize>,
    ) -> Self {
        let raw = answers.iter().enumerate().map(|(n, (answer, frozen))| {
            let Some(answer) = answer else {
                return Raw::silent(*frozen);
            };
            let info = &answer.info;
            let role = match &info.role {
                InfoRole::Primary => RoleView::Primary,
                InfoRole::Replica(up) => {
                    let nobody = (up.host.as_str(), up.port) == NOBODY;
                    let source = match pair(n, &up.host) {
                        Some(to) if !nobody => Source::Server(to),
                        _ => Source::Nobody,
                    };
                    let link = match (up.link_up, up.link_down_seconds) {
                        (true, _) => LinkState::Up,
                        (false, Some(_)) => LinkState::Down,
                        (false, None) => LinkState::Never,
                    };
                    RoleView::Replica(source, link)
                }
            };
            let writes = answer.keys.iter();
            let before = info.replid2.clone();
            Raw {
                server: ServerView::Answers {
                    open: info.tcp_port == Some(CLIENT_PORT),
                    role,
                    needs_replica: info.good_replicas.is_some(),
                    start: Some(info.offset()).filter(|offset| *offset <= 1),
                    writes: writes.filter_map(|key| key.parse().ok()).collect(),
                    histories: (0, None),
                },
                history: info.replid.clone(),
                before: before.zip(info.second_offset.map(|at| at.saturating_sub(1))),
                offset: info.offset(),
            }
        });
        Self::of(raw.collect(), full_copies)
    }

    /// Of a world of the model.
    pub fn of_world(world: &World, full_copies: BTreeSet<usize>) -> Self {
        let at = |addr: u16| world.pods.iter().position(|pod| pod.addr == addr);
        let raw = world.pods.iter().map(|pod| raw_of_pod(pod, at));
        Self::of(raw.collect(), full_copies)
    }

    fn of(mut raw: Vec<Raw>, full_copies: BTreeSet<usize>) -> Self {
        let mut met: Vec<String> = Vec::new();
        let mut number = |name: &String| match met.iter().position(|it| it == name) {
            Some(at) => at,
            None => {
                met.push(name.clone());
                met.len() - 1
            }
        };
        for one in &mut raw {
            if let ServerView::Answers { histories, .. } = &mut one.server {
                let before = one.before.as_ref();
                *histories = (number(&one.history), before.map(|(name, _)| number(name)));
            }
        }
        let mut view = Self {
            servers: Vec::new(),
            ahead: BTreeSet::new(),
            beyond: BTreeSet::new(),
            full_copies,
        };
        for (i, one) in raw.iter().enumerate().filter(|(_, one)| one.answers()) {
            for (j, other) in raw.iter().enumerate().filter(|(_, it)| it.answers()) {
                if i < j && one.history == other.history {
                    view.ahead.insert((i, j, one.offset.cmp(&other.offset)));
                }
                match &one.before {
                    Some((name, until)) if i != j && *name == other.history => {
                        view.beyond.insert((i, j, other.offset > *until));
                    }
                    _ => {}
                }
            }
        }
        view.servers = raw.into_iter().map(|one| one.server).collect();
        view
    }
}

impl Raw {
    const fn silent(frozen: bool) -> Self {
        Self {
            server: if frozen {
                ServerView::Frozen
            } else {
                ServerView::Ended
            },
            history: String::new(),
            before: None,
            offset: 0,
        }
    }

    const fn answers(&self) -> bool {
        matches!(self.server, ServerView::Answers { .. })
    }
}

fn raw_of_pod(pod: &Pod, at: impl Fn(u16) -> Option<usize>) -> Raw {
    let Some(process) = &pod.process else {
        return Raw::silent(false);
    };
    if process.frozen.is_some() {
        return Raw::silent(true);
    }
    let role = if process.primary {
        RoleView::Primary
    } else {
        let source = process.upstream.and_then(at);
        let link = match process.unlinked_at {
            _ if process.linked => LinkState::Up,
            Some(_) => LinkState::Down,
            None => LinkState::Never,
        };
        RoleView::Replica(source.map_or(Source::Nobody, Source::Server), link)
    };
    let data = &process.data;
    let offset = data.offset(process.primary).0;
    Raw {
        server: ServerView::Answers {
            open: process.port == Port::Client,
            role,
            needs_replica: process.needs_replica,
            start: Some(offset).filter(|offset| *offset <= 1),
            writes: data.log.iter().copied().collect(),
            histories: (0, None),
        },
        history: data.replid.0.to_string(),
        before: data.before.map(|(name, until)| (name.0.to_string(), until)),
        offset,
    }
}
