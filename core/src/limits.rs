//! Every threshold of the core, in one table.

use crate::facts::Millis;

/// Greatest age of an answer on which a promotion or a re-pointing is based.
pub const DESTRUCTIVE_AGE: Millis = Millis(2_000);
/// Greatest age of an answer on which routing, labels and status are based.
pub const FACT_AGE: Millis = Millis(5_000);
/// How long the pod of the recorded primary must be gone, with every visible replica's link down, before that counts as
/// an end without the server's own word: a forced delete alone does not stop a process on a node that is cut off.
pub const GONE_SILENCE: Millis = Millis(20_000);
/// [`GONE_SILENCE`] as replicas count it (`master_link_down_since_seconds`).
pub const GONE_SILENCE_SECONDS: u32 = 20;
/// How long a primary that hands over takes no writes at most: the pause ends by itself when the operator does. A handover
/// was measured to take 5 ms.
pub const HANDOVER_PAUSE: Millis = Millis(1_000);
/// How long the copy of a paused primary may take to catch up before the handover is given up.
pub const HANDOVER_CATCH_UP: Millis = Millis(500);
/// How long after a handover that came to nothing the next one begins.
pub const HANDOVER_AGAIN: Millis = Millis(5_000);
/// How far a replica may be behind (bytes of the replication stream) for a handover to it to begin.
pub const HANDOVER_LAG: u64 = 1024 * 1024;
/// How long the operator must have heard nothing from a primary whose pod exists before it is succeeded, if the servers that
/// may hold a link to it tell that they have none. The outage is named in a refusal else.
pub const SILENCE: Millis = Millis(20_000);
/// [`SILENCE`] as replicas count it (`master_link_down_since_seconds`): where the operator that leads has not asked for all of it.
pub const SILENCE_SECONDS: u32 = 20;
/// How long a replica must have been without its link to count as a witness of a silent primary. One that can connect does so
/// within 1 to 2 s; `repl-timeout 15` ends the link to a frozen primary after 15 s.
pub const SILENT_LINK_SECONDS: u32 = 3;
/// How long this operator itself must have asked a silent primary in vain: the marker may be of another leader, or of another
/// clock.
pub const SILENT_ASKING: Millis = Millis(3_000);
/// `min-replicas-max-lag` where `spec.config` names none.
pub const REPLICA_LAG_SECONDS: u32 = 10;
/// How old the last acknowledgement of a replica may be for its primary to be set to need one. Replicas acknowledge once a second.
pub const ACKNOWLEDGED_SECONDS: u64 = 3;
/// How much longer than `min-replicas-max-lag` a replica must say that it has had no link before its primary surely refuses
/// writes: both sides keep whole seconds, the primary counts who is in time once a second (`replication.c: replicationCron`), and
/// the last acknowledgement takes a moment to arrive.
pub const REPLICA_LAG_MARGIN_SECONDS: u32 = 4;
/// How long a Durable primary that was ahead of its replicas may take to come back with its data before the best
/// replica is promoted without it.
pub const RETURN_OF_DURABLE: Millis = Millis(60_000);
/// How long after a full restart the recorded primary waits for the other pods to show whether one of them holds a
/// longer part of the same history.
pub const RETURN_OF_OTHERS: Millis = Millis(30_000);
/// First pause after a failed effect of the provisioning lane; it doubles up to [`RETRY_MAX`].
pub const RETRY_FIRST: Millis = Millis(500);
/// Longest pause after failed effects of the provisioning lane.
pub const RETRY_MAX: Millis = Millis(60_000);
/// The first release whose files and copies older ones may not be able to read. Measured: 8.0.1 ends with "Wrong signature" at a
/// file of 9.1.2, and a copy of data with expiring hash fields fails for ever ("Can't store key in RDB version 11").
pub const NEWER_FORMAT: u8 = 9;
/// How long the first object that is taken over from another operator must stand before anything else is: an operator that still
/// runs looks at its objects every 15 s, and at one that changed at once.
pub const TAKE_OVER_QUIET: Millis = Millis(30_000);
/// Most data pods of one cluster that are handled (the schema's bound).
pub const MAX_PODS: u8 = 100;
/// How long a server must be up before it may become the first primary although pod 0 has not come.
pub const FIRST_PRIMARY_PATIENCE_SECONDS: u32 = 5;
/// When to look again while an answer from after a fault is missing; servers are asked at least as often then.
pub const ANSWERS: Millis = Millis(20);
/// When to look again while a bound is kept by a server's uptime, which the core sees in whole seconds.
pub const RECHECK: Millis = Millis(1_000);
