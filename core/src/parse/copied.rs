//! Whether a server's append-only file lacks the copy that the server was given.

use super::info::{Info, InfoRole, UpstreamInfo};

/// Whether the append-only file of the server that gave this answer lacks the copy that it was given, as far as its answers tell.
/// `before` is the answer of the same process before this one, with what was found then.
///
/// A file is written anew after a full copy, and lacks it until that is done, and also when it has grown, and then lacks
/// nothing; `INFO` tells no difference (`replication.c: restartAOFAfterSYNC`,
/// `server.c: serverCron`). A file that is being written counts as
/// whole only where it was whole before and no full copy can have come since.
pub fn file_lacks_copy(info: &Info, before: Option<(&Info, bool)>) -> bool {
    if !info.rewriting {
        return false;
    }
    let Some((before, lacked)) = before else {
        return true;
    };
    lacked || may_have_been_copied(before, info)
}

/// A replica whose link stands goes on with its history; one that has none, and is not copied either, stands still.
fn may_have_been_copied(before: &Info, now: &Info) -> bool {
    let InfoRole::Replica(upstream) = &now.role else {
        return is_copied(before);
    };
    let goes_on = upstream_of(before).is_some_and(|up| up.link_up);
    let stands_still = !upstream.link_up && !is_copied(before) && before.offset() == now.offset();
    before.replid != now.replid || !(goes_on || stands_still)
}

fn is_copied(info: &Info) -> bool {
    info.loading || info.async_loading || upstream_of(info).is_some_and(|up| up.sync_in_progress)
}

const fn upstream_of(info: &Info) -> Option<&UpstreamInfo> {
    match &info.role {
        InfoRole::Replica(upstream) => Some(upstream),
        InfoRole::Primary => None,
    }
}
