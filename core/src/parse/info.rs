//! The reply of `INFO`: sections server, replication, persistence and keyspace.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::limits;

/// Name of the configuration file of servers that the template of another operator of this API starts. Where they have it, and
/// whatever else the file is called, is of no interest: this operator's is called otherwise.
pub const OTHER_CONFIG: &str = "/runtime.conf";

/// Why a reply cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InfoError {
    /// A field that every server has is not there: the reply was cut off, or it is not a Valkey.
    #[error("the reply of INFO has no field {0}")]
    Missing(&'static str),
    /// A field has a value that it cannot have.
    #[error("the reply of INFO has a field {0} that cannot be read")]
    Malformed(&'static str),
}

/// What a server says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// `run_id`: identity of the process, 40 hex digits.
    pub run_id: String,
    /// `valkey_version`; absent before 8.0.
    pub version: Option<String>,
    /// `tcp_port`: the port that it listens on now.
    pub tcp_port: Option<u16>,
    /// `uptime_in_seconds`.
    pub uptime_seconds: u64,
    /// `role`, with what belongs to it.
    pub role: InfoRole,
    /// `master_replid`.
    pub replid: String,
    /// `master_replid2`, unless it is all zeroes: the history before the last promotion.
    pub replid2: Option<String>,
    /// `second_repl_offset`: up to where that history is shared, if there is one.
    pub second_offset: Option<u64>,
    /// `master_repl_offset`.
    pub primary_offset: u64,
    /// `loading`.
    pub loading: bool,
    /// `async_loading`.
    pub async_loading: bool,
    /// `aof_rewrite_in_progress` or `aof_rewrite_scheduled`.
    pub rewriting: bool,
    /// Keys in all databases.
    pub keys: u64,
    /// `min_slaves_good_slaves`: replicas that acknowledged lately. The line is there only while `min-replicas-to-write` and
    /// `min-replicas-max-lag` are both above 0 (`replication.c: genValkeyInfoString`).
    pub good_replicas: Option<u64>,
    /// Replicas that are connected to it.
    pub replicas: Vec<ReplicaInfo>,
    /// Of a process that the template of another operator started, which `config_file` tells: what was asked of it beside
    /// `INFO`.
    pub unfenced: Option<Unfenced>,
}

/// What is asked of a process that began with its client port open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unfenced {
    /// Whether this operator admitted this process: it set `replica-announce-port`, which nothing else sets and which does not
    /// outlive the process.
    pub admitted: bool,
    /// Whether it has users beside those that operators make.
    pub other_users: bool,
}

/// Role of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InfoRole {
    /// `role:master`.
    Primary,
    /// `role:slave`.
    Replica(UpstreamInfo),
}

/// What a replica says of its primary and of its link to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamInfo {
    /// `master_host`.
    pub host: String,
    /// `master_port`.
    pub port: u16,
    /// `master_link_status:up`.
    pub link_up: bool,
    /// `master_link_down_since_seconds`; `None` when the link is up, or never was since the process started (`-1`).
    pub link_down_seconds: Option<u64>,
    /// `master_sync_in_progress`.
    pub sync_in_progress: bool,
    /// `master_last_io_seconds_ago`; `None` for `-1`, without a link.
    pub last_io_seconds: Option<u64>,
    /// `slave_repl_offset`, at least 0.
    pub offset: u64,
}

/// What a primary says of a connected replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaInfo {
    /// Address.
    pub ip: String,
    /// Port that the replica announces.
    pub port: u16,
    /// `state`, such as `online`, `wait_bgsave` or `send_bulk`.
    pub state: String,
    /// Offset that the replica acknowledged last.
    pub offset: u64,
    /// Seconds since that acknowledgement.
    pub lag: u64,
}

impl Info {
    /// Reads a reply. Lines that are not known are ignored, as are sections that are missing from the replies of older
    /// servers; without identity, role, history and offset there is nothing to decide from.
    pub fn parse(text: &str) -> Result<Self, InfoError> {
        let fields = Fields::read(text);
        let replid2 = fields
            .get("master_replid2")
            .filter(|id| id.bytes().any(|b| b != b'0'));
        Ok(Self {
            run_id: fields.required("run_id")?.to_owned(),
            version: fields.get("valkey_version").map(str::to_owned),
            tcp_port: fields.optional("tcp_port")?,
            uptime_seconds: fields.number("uptime_in_seconds")?,
            role: fields.role()?,
            replid: fields.required("master_replid")?.to_owned(),
            second_offset: replid2.and(fields.count("second_repl_offset")),
            replid2: replid2.map(str::to_owned),
            primary_offset: fields.number("master_repl_offset")?,
            loading: fields.flag("loading"),
            async_loading: fields.flag("async_loading"),
            rewriting: fields.flag("aof_rewrite_in_progress")
                || fields.flag("aof_rewrite_scheduled"),
            keys: fields.keys(),
            good_replicas: fields.count("min_slaves_good_slaves"),
            replicas: fields.replicas(),
            unfenced: fields
                .get("config_file")
                .is_some_and(|file| file.ends_with(OTHER_CONFIG))
                .then(Unfenced::default),
        })
    }

    /// Whether a replica is online that acknowledged within [`limits::ACKNOWLEDGED_SECONDS`].
    pub fn has_replica(&self) -> bool {
        let in_time = |replica: &ReplicaInfo| replica.lag <= limits::ACKNOWLEDGED_SECONDS;
        let mut online = self.replicas.iter().filter(|r| r.state == "online");
        online.any(in_time)
    }

    /// How far its data reaches: `slave_repl_offset` of a replica, `master_repl_offset` of a primary.
    pub fn offset(&self) -> u64 {
        match &self.role {
            InfoRole::Primary => self.primary_offset,
            InfoRole::Replica(upstream) => upstream.offset,
        }
    }
}

/// Lines `<key>:<value>`.
struct Fields<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Fields<'a> {
    fn read(text: &'a str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        Self(
            lines
                .filter_map(|line| line.trim_end_matches('\r').split_once(':'))
                .collect(),
        )
    }

    fn get(&self, key: &str) -> Option<&'a str> {
        self.0.get(key).copied()
    }

    fn required(&self, key: &'static str) -> Result<&'a str, InfoError> {
        self.get(key)
            .filter(|value| !value.is_empty())
            .ok_or(InfoError::Missing(key))
    }

    fn number<T: std::str::FromStr>(&self, key: &'static str) -> Result<T, InfoError> {
        self.required(key)?
            .parse()
            .map_err(|_| InfoError::Malformed(key))
    }

    fn optional<T: std::str::FromStr>(&self, key: &'static str) -> Result<Option<T>, InfoError> {
        self.get(key)
            .map(|value| value.parse().map_err(|_| InfoError::Malformed(key)))
            .transpose()
    }

    /// A number that may be absent or negative, which both mean that there is none.
    fn count(&self, key: &str) -> Option<u64> {
        self.get(key)?.parse().ok()
    }

    fn flag(&self, key: &str) -> bool {
        self.get(key) == Some("1")
    }

    fn role(&self) -> Result<InfoRole, InfoError> {
        match self.required("role")? {
            "master" | "primary" => Ok(InfoRole::Primary),
            "slave" | "replica" => self.upstream().map(InfoRole::Replica),
            _ => Err(InfoError::Malformed("role")),
        }
    }

    fn upstream(&self) -> Result<UpstreamInfo, InfoError> {
        let link_up = match self.required("master_link_status")? {
            "up" => true,
            "down" => false,
            _ => return Err(InfoError::Malformed("master_link_status")),
        };
        let offset: i64 = self.number("slave_repl_offset")?;
        Ok(UpstreamInfo {
            host: self.required("master_host")?.to_owned(),
            port: self.number("master_port")?,
            link_up,
            link_down_seconds: self
                .count("master_link_down_since_seconds")
                .filter(|_| !link_up),
            sync_in_progress: self.flag("master_sync_in_progress"),
            last_io_seconds: self.count("master_last_io_seconds_ago"),
            offset: u64::try_from(offset).unwrap_or(0),
        })
    }

    /// Sum over lines such as `db0:keys=200,expires=0,avg_ttl=0`.
    fn keys(&self) -> u64 {
        let databases = self.0.iter().filter(|(key, _)| is_numbered(key, "db"));
        let counts = databases.filter_map(|(_, value)| part(value, "keys")?.parse::<u64>().ok());
        counts.fold(0, u64::saturating_add)
    }

    /// Lines such as `slave0:ip=10.0.0.1,port=6379,state=online,offset=42,lag=0`, by their numbers.
    fn replicas(&self) -> Vec<ReplicaInfo> {
        let lines = self.0.iter().filter(|(key, _)| is_numbered(key, "slave"));
        lines.filter_map(|(_, value)| replica(value)).collect()
    }
}

fn is_numbered(key: &str, prefix: &str) -> bool {
    let digits = key.strip_prefix(prefix);
    digits.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
}

/// The value of one part of `a=1,b=2`.
fn part<'a>(value: &'a str, key: &str) -> Option<&'a str> {
    value
        .split(',')
        .filter_map(|pair| pair.split_once('='))
        .find_map(|(k, v)| (k == key).then_some(v))
}

fn replica(value: &str) -> Option<ReplicaInfo> {
    Some(ReplicaInfo {
        ip: part(value, "ip")?.to_owned(),
        port: part(value, "port")?.parse().ok()?,
        state: part(value, "state")?.to_owned(),
        offset: part(value, "offset")?.parse().ok()?,
        lag: part(value, "lag")?.parse().ok()?,
    })
}
