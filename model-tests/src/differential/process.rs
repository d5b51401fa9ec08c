//! A real `valkey-server` process with the replication settings that the operator renders.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use anyhow::{Context, Result, bail};
use wellcake_core::parse::Info;
use wellcake_core::render::{CLIENT_PORT, FENCE_PORT, NOBODY};

use super::resp::{Connection, Reply};
use crate::world::Disk;

/// How long a server of a script may take to start, to end in order or to answer.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// How long after a SIGTERM the next one is sent to a server that has not ended.
const AGAIN: Duration = Duration::from_secs(3);
/// Size of the backlog of partial resynchronisations, in bytes: the smallest that a server takes.
const BACKLOG_BYTES: u32 = 16 * 1024;

/// What a server says of itself.
#[derive(Clone, Debug)]
pub struct Answer {
    /// `INFO`.
    pub info: Info,
    /// `sync_full`: full copies that it began to send since it started.
    pub sync_full: u64,
    /// Its keys.
    pub keys: Vec<String>,
}

/// Which servers.
#[derive(Clone, Debug)]
pub struct Program {
    /// The program.
    pub path: PathBuf,
    /// Where servers write what they log, if anywhere.
    pub logs: Option<PathBuf>,
}

/// A server; it is killed, and its folder removed, when dropped.
#[derive(Debug)]
pub struct Server {
    /// Its address.
    pub address: IpAddr,
    folder: PathBuf,
    program: Program,
    child: Option<Child>,
    frozen: bool,
    control: Option<Connection>,
}

impl Server {
    /// One that has not started; its log has this name.
    pub fn new(program: &Program, name: &str, address: IpAddr, disk: Disk) -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("wellcake-differential-{address}"));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let mut lines = configuration(address, &folder, disk);
        if let Some(logs) = &program.logs {
            let log = std::path::absolute(logs)?.join(name).with_extension("log");
            lines.push_str(&format!("logfile {}\n", log.display()));
        }
        fs::write(folder.join("valkey.conf"), lines)?;
        Ok(Self {
            address,
            folder,
            program: program.clone(),
            child: None,
            frozen: false,
            control: None,
        })
    }

    /// Starts it, with what is in its folder or with nothing, and waits until it has loaded that.
    pub fn start(&mut self, keeps: bool) -> Result<()> {
        if !keeps {
            let _ = fs::remove_file(self.folder.join("dump.rdb"));
            let _ = fs::remove_dir_all(self.folder.join("appendonlydir"));
        }
        let child = Command::new(&self.program.path)
            .arg(self.folder.join("valkey.conf"))
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        self.child = Some(child.with_context(|| {
            format!(
                "cannot start {}; put valkey-server into PATH or name it in VALKEY_SERVER",
                self.program.path.display()
            )
        })?);
        let begun = Instant::now();
        loop {
            match self.answer() {
                Ok(Some(answer)) if !answer.info.loading => return Ok(()),
                _ if begun.elapsed() < PATIENCE => thread::sleep(Duration::from_millis(5)),
                other => bail!("the server at {} does not start: {other:?}", self.address),
            }
        }
    }

    /// Whether a process is there.
    pub const fn runs(&self) -> bool {
        self.child.is_some()
    }

    /// Whether it does nothing at all.
    pub const fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// SIGKILL.
    pub fn kill(&mut self) -> Result<()> {
        self.control = None;
        self.frozen = false;
        if let Some(mut child) = self.child.take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    /// SIGTERM, until it ends: a server that writes its first append-only file after a full copy stays (`server.c:
    /// prepareForShutdown`, measured).
    pub fn end(&mut self) -> Result<()> {
        self.control = None;
        let begun = Instant::now();
        let mut signals = 0;
        while let Some(child) = &mut self.child {
            if child.try_wait()?.is_some() {
                self.child = None;
                break;
            }
            if begun.elapsed() > 2 * PATIENCE {
                bail!("the server at {} did not end on SIGTERM", self.address);
            }
            if begun.elapsed() >= signals * AGAIN {
                self.signal("-TERM")?;
                signals += 1;
            }
            thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// SIGSTOP or SIGCONT.
    pub fn freeze(&mut self, frozen: bool) -> Result<()> {
        self.signal(if frozen { "-STOP" } else { "-CONT" })?;
        self.frozen = frozen;
        Ok(())
    }

    fn signal(&self, signal: &str) -> Result<()> {
        let Some(child) = &self.child else {
            return Ok(());
        };
        let pid = child.id().to_string();
        let status = Command::new("kill").args([signal, &pid]).status()?;
        if !status.success() {
            bail!("kill {signal} {pid}: {status}");
        }
        Ok(())
    }

    /// A new connection, on whichever port it listens.
    pub fn connect(&self) -> io::Result<Connection> {
        Connection::open(self.address, CLIENT_PORT)
            .or_else(|_| Connection::open(self.address, FENCE_PORT))
    }

    /// A command of the operator. One that meets a server which loads or sends a copy is sent again until that is over.
    pub fn command(&mut self, words: &[&str]) -> Result<Reply> {
        let begun = Instant::now();
        loop {
            let reply = self.ask(words)?;
            // A server that sends a full copy takes no `SAVE`.
            let busy = |why: &str| why.starts_with("LOADING") || why.contains("Background save");
            let later = matches!(&reply, Reply::Refused(why) if busy(why));
            if !later || begun.elapsed() > PATIENCE {
                return Ok(reply);
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Sends a command over a connection that is closed then, without waiting for an answer.
    pub fn leave(&self, words: &[&str]) -> Result<()> {
        Ok(self.connect()?.send(words)?)
    }

    /// A connection that `CLIENT KILL` has ended meanwhile is replaced: every command may be done twice.
    fn ask(&mut self, words: &[&str]) -> Result<Reply> {
        if let Some(mut kept) = self.control.take()
            && let Ok(reply) = kept.ask(words, PATIENCE)
        {
            self.control = Some(kept);
            return Ok(reply);
        }
        let mut control = self.connect()?;
        let reply = control
            .ask(words, PATIENCE)
            .with_context(|| format!("{} to the server at {}", words.join(" "), self.address))?;
        self.control = Some(control);
        Ok(reply)
    }

    /// What it says of itself; nothing if it cannot.
    pub fn answer(&mut self) -> Result<Option<Answer>> {
        if !self.runs() || self.frozen {
            return Ok(None);
        }
        let text = match self.ask(&[
            "INFO",
            "server",
            "replication",
            "persistence",
            "keyspace",
            "stats",
        ])? {
            Reply::Text(text) => text,
            other => bail!("INFO at {}: {other:?}", self.address),
        };
        let keys = match self.command(&["KEYS", "*"])? {
            Reply::List(keys) => keys,
            other => bail!("KEYS at {}: {other:?}", self.address),
        };
        let number = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key));
            line.and_then(|value| value.trim().parse().ok())
        };
        Ok(Some(Answer {
            info: Info::parse(&text)?,
            sync_full: number("sync_full:").context("INFO has no sync_full")?,
            keys: keys
                .into_iter()
                .filter_map(|key| match key {
                    Reply::Text(key) => Some(key),
                    _ => None,
                })
                .collect(),
        }))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.kill();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The lines of the rendered configuration on which replication depends, with a small backlog.
fn configuration(address: IpAddr, folder: &Path, disk: Disk) -> String {
    let (host, port) = NOBODY;
    let folder = folder.display();
    let persistence = match disk {
        Disk::None => "save \"\"\nappendonly no\nrdb-del-sync-files yes\n",
        Disk::Rdb => "save 3600 1\nappendonly no\n",
        Disk::Aof => "save \"\"\nappendonly yes\n",
    };
    format!(
        "port {FENCE_PORT}\nbind {address}\nbind-source-addr {address}\nprotected-mode no\ndir {folder}\n\
         replica-announce-port {CLIENT_PORT}\nreplicaof {host} {port}\nrepl-ping-replica-period 1\n\
         repl-diskless-sync yes\nrepl-diskless-sync-delay 0\nrepl-timeout 15\nmin-replicas-max-lag 10\n\
         min-replicas-to-write 0\nshutdown-timeout 2\nrepl-backlog-size {BACKLOG_BYTES}\nenable-debug-command yes\n\
         {persistence}"
    )
}
