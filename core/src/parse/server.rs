//! A server's answer as facts.

use super::info::{Info, InfoRole};
use crate::facts::{
    Directives, Interner, Link, Offset, PodUid, Port, Replid, Role, RunId, ServerFacts, Tick,
    Upstream,
};
use crate::render::NOBODY;

/// What a server says of itself. `pod_uid` is the pod whose address answered, `port` the port it answered on,
/// `run_since` when this process answered first; `addresses` tells which pod has an address now. Whether its directives were
/// set is nothing that it says, and of a file that is written anew it says not why ([`super::file_lacks_copy`]).
pub fn server_facts(
    info: &Info,
    run_since: Tick,
    pod_uid: PodUid,
    port: Port,
    addresses: impl Fn(&str, u16) -> Upstream,
    interner: &mut Interner,
) -> ServerFacts {
    ServerFacts {
        pod_uid,
        run: RunId(interner.number(&info.run_id)),
        run_since,
        port,
        role: role(info, addresses),
        replid: Replid(interner.number(&info.replid)),
        replid2: info
            .replid2
            .as_deref()
            .map(|id| Replid(interner.number(id))),
        replid2_until: Offset(info.second_offset.unwrap_or(0).saturating_sub(1)),
        offset: Offset(info.offset()),
        loading: info.loading || info.async_loading,
        keys: u32::try_from(info.keys).unwrap_or(u32::MAX),
        uptime: u32::try_from(info.uptime_seconds).unwrap_or(u32::MAX),
        needs_replica: info.good_replicas.is_some(),
        has_replica: info.has_replica(),
        directives: Directives::Unset,
        rewriting: info.rewriting,
        major: info.version.as_deref().and_then(major).unwrap_or(0),
        unfenced: info.unfenced.is_some(),
        other_users: info.unfenced.is_some_and(|state| state.other_users),
    }
}

fn major(version: &str) -> Option<u8> {
    version.split('.').next()?.parse().ok()
}

fn role(info: &Info, addresses: impl Fn(&str, u16) -> Upstream) -> Role {
    let InfoRole::Replica(upstream) = &info.role else {
        return Role::Primary;
    };
    let of = if (upstream.host.as_str(), upstream.port) == NOBODY {
        Upstream::Nobody
    } else {
        addresses(&upstream.host, upstream.port)
    };
    let link = match (upstream.link_up, upstream.link_down_seconds) {
        (true, _) => Link::Up,
        (false, Some(seconds)) => Link::Down {
            seconds: u32::try_from(seconds).unwrap_or(u32::MAX),
        },
        (false, None) => Link::Never,
    };
    Role::Replica {
        upstream: of,
        link,
        syncing: upstream.sync_in_progress,
    }
}
