//! Reasons: why a decision does, waits or refuses. The doc comment of each is its documentation for users.

use serde::{Deserialize, Serialize};

macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $name:ident $nature:ident,)+) => {
        /// Why something is done, waited for or refused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Reason {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Reason {
            /// All reasons.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// Name in conditions, events, metrics and traces.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)+ }
            }

            /// What it means for a user.
            pub const fn doc(self) -> &'static str {
                match self { $(Self::$name => concat!($($doc,)+),)+ }
            }

            /// Whether it is a deed, a wait or a refusal.
            pub const fn nature(self) -> Nature {
                match self { $(Self::$name => Nature::$nature,)+ }
            }
        }
    };
}

/// What a reason is given for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Nature {
    /// An effect is carried out; an event of type Normal tells it.
    Deed,
    /// A step of upkeep so small that no event tells it.
    Upkeep,
    /// The decision waits for something that comes by itself.
    Wait,
    /// The decision refuses until a person or the world changes something; an event of type Warning tells it.
    Refusal,
}

reasons! {
    /// An object that the cluster needs was made.
    ObjectCreated Upkeep,
    /// An object differed from what the spec asks for and was set right.
    ObjectCorrected Deed,
    /// An object that the spec no longer asks for was deleted.
    ObjectRemoved Deed,
    /// The Secrets with the passwords were made.
    CredentialsCreated Deed,
    /// No pod can hold data yet, so the first pod became the first primary.
    FirstPrimary Deed,
    /// The primary's process ended (its container restarted and waits behind the fence, or the kubelet reports it
    /// terminated, or its address refuses connections while every replica lost its link): the replica with the most
    /// data took over.
    PrimaryDied Deed,
    /// The primary's pod is gone, and for 20 seconds every replica has had no link to it: the replica with the most data took
    /// over.
    PrimaryGone Deed,
    /// The primary did not answer for 20 seconds although its pod exists (a lost node, a network that swallows everything, a
    /// process that is stopped or waits for its disk), and every server that may have a link to it told that it has none: the
    /// replica with the most data took over. With profile Durable the primary was set to take no writes without a replica, and
    /// had none for long enough. When it comes back it is made a replica. What it acknowledged after its replicas had lost it,
    /// and with profile Cache for as long as clients reach it, is lost then.
    SilentPrimarySucceeded Deed,
    /// The primary restarted in place and nobody else holds newer data: it leads again with the data that it loaded.
    PrimaryReturned Deed,
    /// After all pods restarted, another pod held a longer part of the same history than the recorded primary and leads
    /// now.
    LongerHistoryLeads Deed,
    /// A person ordered it with the annotation `valkey.wellcake.io/promote`.
    PromotedByOrder Deed,
    /// A promotion that was recorded and not finished was finished.
    PromotionResumed Deed,
    /// Somebody made another pod the primary by hand (`FAILOVER`, `REPLICAOF`), and the recorded one is a replica. That pod
    /// continues the recorded history and holds all of it: it was recorded as the primary. Ask for another primary with the
    /// annotation `valkey.wellcake.io/failover` instead.
    LeadsByHand Deed,
    /// The annotation `valkey.wellcake.io/failover` asked for another primary: the primary handed over to a replica that
    /// held all of its data.
    HandoverOrdered Deed,
    /// The primary's pod is being deleted, or is gone from Kubernetes while its server lives on: it handed over to a replica
    /// that held all of its data.
    PrimaryLeaves Deed,
    /// A change of the spec needs the primary's pod to be replaced, and all other pods were replaced before: the primary handed
    /// over to one of them that held all of its data.
    PrimaryIsReplaced Deed,
    /// The primary's pod is one of those that a smaller `spec.replicas` takes away: it handed over to a pod that stays and held
    /// all of its data.
    PrimaryIsScaledIn Deed,
    /// A pod was evicted, so that it comes back as the spec asks for it.
    PodReplaced Deed,
    /// Pods beyond `spec.replicas` were taken away; their volumes are kept.
    ScaledIn Deed,
    /// The directives of `spec.config` that a running server takes were set by `CONFIG SET`.
    DirectivesSet Upkeep,
    /// The ConfigMap of a configuration that no pod uses any more was deleted.
    OldConfigRemoved Upkeep,
    /// A server does not start with the directives of `spec.config`: the pods go back to the last configuration that every server
    /// accepted.
    ConfigTakenBack Deed,
    /// The claim of a pod was asked to grow to `spec.storage.size`.
    VolumeGrown Deed,
    /// The annotation `valkey.wellcake.io/hibernate` is `true`: all pods were taken away, and their volumes are kept. What was
    /// in memory only is gone. Take the annotation away to wake the cluster.
    Hibernated Deed,
    /// A planned handover, or a promotion on the primary's silence, did not happen and the primary before leads on; nothing was
    /// lost. Ask for a handover again with a new value of the annotation `valkey.wellcake.io/failover`.
    HandoverAbandoned Deed,
    /// Clients of the primary that handed over were disconnected, so that they connect to the new one.
    ClientsMoved Upkeep,
    /// The claim of the primary got a copy of the primary record, which outlives the ValkeyCluster.
    RecordKept Upkeep,
    /// The record now names the history that the primary writes.
    HistoryRecorded Upkeep,
    /// Another operator made the servers. The one that takes writes, and that all others follow, is recorded as the primary.
    PrimaryTakenOver Deed,
    /// An object that another operator made was taken over.
    ObjectTakenOver Deed,
    /// The StatefulSet of another operator was taken over with the pod template that it has, so that no pod restarts. Until its
    /// pods are rolled they start without the boot fence: see the condition `Fenced`. Set a new value of the annotation
    /// `valkey.wellcake.io/restart` to roll them to this operator's template.
    ClusterTakenOver Deed,
    /// A restart was asked for: the pod template of the operator before gave way to this operator's, and pods are replaced one
    /// at a time.
    TemplateReplaced Deed,
    /// A server that runs the pod template of another operator got this cluster's users: those that follow it may copy from it.
    ServerAdmitted Deed,
    /// A server that runs the pod template of another operator restarted, and acted as a primary by itself, or copied from the first
    /// pod while nobody led: it takes no writes and copies from nobody until it is known who leads. What clients wrote to it in
    /// between is lost if another one leads.
    UnfencedStart Deed,
    /// The finalizer of the operator before was taken from the ValkeyCluster.
    FinalizerReleased Upkeep,
    /// The primary's client port was opened.
    PrimaryOpened Deed,
    /// A replica was pointed at the primary.
    ReplicaAttached Deed,
    /// A replica caught up and its client port was opened.
    ReplicaOpened Deed,
    /// A server acted as primary without being the recorded one: it was made a replica and its clients were closed. What it held
    /// beyond the primary is lost; `status.discardedBytes` counts it.
    SecondPrimaryDemoted Deed,
    /// The Services were pointed at the primary.
    TrafficMoved Deed,
    /// A pod's role label was set.
    RoleLabelled Upkeep,
    /// The marker `primaryDownSince` was written or taken away.
    OutageMarked Upkeep,
    /// Profile Durable: the primary takes writes only while a replica acknowledges (`min-replicas-to-write 1`); a replica keeps
    /// no such setting of its own.
    WritesNeedReplica Upkeep,
    /// Profile Durable: every other server has ended or restarted, so the primary takes writes without a replica until one is in
    /// sync again (`min-replicas-to-write 0`). What is written meanwhile is on one server only.
    WritesNeedNoReplica Deed,

    /// Kubernetes or the servers have not been looked at yet.
    NotObservedYet Wait,
    /// Objects are being made.
    CreatingObjects Wait,
    /// Pods are not there, or do not answer yet.
    WaitingForPods Wait,
    /// A server is loading its data.
    WaitingForLoad Wait,
    /// A replica is copying the data.
    WaitingForSync Wait,
    /// A replica has copied the data and writes its append-only file anew, which lacks them until that is done. It is not opened
    /// meanwhile, and leads a Durable cluster only when the primary was down for 60 seconds.
    WaitingForFile Wait,
    /// The recorded primary's pod has not come back yet.
    WaitingForPrimaryPod Wait,
    /// The recorded primary had acknowledged more than any replica has: for up to 60 seconds it may come back and load
    /// its data.
    WaitingForNewerData Wait,
    /// The recorded primary is back; for up to 30 seconds the other pods may show that they hold more.
    WaitingForOthers Wait,
    /// The primary does not answer and its end is not proven: 20 seconds of silence are waited for, and then until every replica
    /// has been without a link to it for a few seconds (with profile Durable, until the primary takes no writes for want of one).
    PrimarySilent Wait,
    /// The primary ended; a server that answered before that is asked again, since it may hold more by now.
    WaitingForAnswers Wait,
    /// A server that nobody can see still feeds a replica, so that it may acknowledge writes of clients, too.
    UnseenPrimaryLives Wait,
    /// The primary is to hand over, and no replica (or not the one that was named) is in sync with it, open and here to stay.
    WaitingForTarget Wait,
    /// A pod was replaced, or is to be, and the next one is replaced when all pods are in sync.
    WaitingForRollout Wait,
    /// No node takes the pod: see its events for what is missing (processor, memory, a volume, a node that fits).
    PodNotScheduled Wait,
    /// Pods are to be taken away, and before that one that stays must be in sync with the primary.
    WaitingForScaleIn Wait,
    /// Kubernetes refused to let a pod go, or did not answer: the PodDisruptionBudget that covers it allows no eviction now. It
    /// is tried again, at the latest after a minute; if it stays like this, see `kubectl get poddisruptionbudget`.
    EvictionRefused Wait,
    /// The directives of `spec.config` that a running server takes were changed and are not set on all servers yet.
    WaitingForDirectives Wait,
    /// The storage has not made the volume of the pod as large as its claim asks for yet.
    WaitingForVolume Wait,
    /// The pods end, since the cluster is to hibernate.
    GoingToSleep Wait,
    /// A handover came to nothing; the next attempt waits a moment, since each one stops writes for up to a second.
    WaitingToHandOver Wait,
    /// Objects of another operator are being taken over: it is watched for 30 seconds that nobody makes the first of them what
    /// it was.
    TakingOver Wait,
    /// An effect failed; the next attempt waits a moment.
    RetryingLater Wait,

    /// The spec asks for something that this version does not serve; nothing is created for this cluster.
    FieldNotServed Refusal,
    /// The Secret that `auth.existingSecret` names does not exist: create it.
    SecretMissing Refusal,
    /// The Secret that `auth.existingSecret` names has no value under the key `password`: add it.
    SecretKeyMissing Refusal,
    /// The password in the Secret changed after the servers got it; changing passwords is not served yet. Put the old
    /// value back.
    PasswordChangeNotServed Refusal,
    /// An object of a name that this cluster needs belongs to somebody else: rename the cluster or remove the object.
    ForeignObject Refusal,
    /// The server refused directives of `spec.config`. None was changed, here or on any other server: correct the one that it names.
    DirectivesRefused Refusal,
    /// A server did not start with the directives of `spec.config`, so that all pods have the last configuration that every server
    /// accepted: correct the directive that it names.
    ConfigRefused Refusal,
    /// The server of the pod does not start with its configuration: correct the directive that it names in `spec.config`.
    ConfigNotUnderstood Refusal,
    /// Another operator of this API made this cluster's objects. See to it that it does not run any more, and say so with the
    /// annotation `valkey.wellcake.io/adopt: "true"`: the objects are taken over then, and no pod restarts. See
    /// `docs/adoption.md`.
    MadeByOtherOperator Refusal,
    /// The objects that another operator made are taken over only as they are: the pods that it runs must be those that
    /// `spec.replicas` asks for, and at least one. Set `spec.replicas` to what the StatefulSet has, or have the other operator
    /// make it so first.
    AdoptionPodsDiffer Refusal,
    /// The servers that another operator made do not take the password in this cluster's Secret, or ask for one although
    /// `spec.auth.enabled` is `false`. Put the password that they have into the Secret, or correct `spec.auth`.
    AdoptionPasswordUnknown Refusal,
    /// The servers that another operator made let everybody in without a password, and `spec.auth` asks for one (also when it is
    /// left out). Set `spec.auth.enabled: false`; a password can be given once the cluster was rolled.
    AdoptionPasswordMissing Refusal,
    /// Of the servers that another operator made, not exactly one is a primary, so that nobody can tell whose data counts. Make
    /// all but one of them replicas, or say which pod shall lead with the annotation
    /// `valkey.wellcake.io/promote: <pod>/0/<token>`; the others lose what they hold beyond it.
    AdoptionPrimaryUnclear Refusal,
    /// A restart was asked for, and would take users away that were made on the server named here (`ACL LIST`): users beside the
    /// default one are not served yet. Remove them (`ACL DELUSER`) once no client needs them, or leave the pods as they are and
    /// take the annotation `valkey.wellcake.io/restart` back.
    UsersWouldBeLost Refusal,
    /// The claim was asked to grow to `spec.storage.size`, and Kubernetes did not accept it: its storage class must allow volume
    /// expansion (`allowVolumeExpansion: true`), and quotas must leave room. It is tried again once a minute.
    VolumeNotGrown Refusal,
    /// `spec.image` asks for a release before 9 and a server runs 9 or newer, whose files and copies older ones may not be able to
    /// read: no pod is changed. Ask for an image of release 9 or newer.
    DowngradeNotServed Refusal,
    /// The change needs the only server to be restarted, and it would not find its data again: it keeps them in memory only.
    /// Say that this may be with a new value of the annotation `valkey.wellcake.io/restart`.
    ChangeLosesData Refusal,
    /// The image of the pod cannot be pulled: correct `spec.image`, or give the nodes access to it.
    ImageNotPulled Refusal,
    /// The container of the pod cannot be made: see its events for what is missing.
    ContainerNotMade Refusal,
    /// The server of the pod ends again and again: see its log. If the spec changed before, the other pods still run as they
    /// did; correct the spec, or take the change back.
    ServerCrashes Refusal,
    /// A planned failover was asked for and there is no replica that could take over: raise `spec.replicas` first, with
    /// topology Replication.
    HandoverNeedsReplica Refusal,
    /// The annotation `valkey.wellcake.io/failover-target` names no data pod of this cluster: name one of its pods, or take
    /// the annotation away, and ask with a new value of `valkey.wellcake.io/failover`.
    TargetUnknown Refusal,
    /// The pod that the annotation `valkey.wellcake.io/failover-target` names is the primary already.
    TargetLeads Refusal,
    /// A new password was asked for; this is not served yet.
    RotationNotServed Refusal,
    /// Another operator acts on this cluster: servers keep ending this operator's connections although their processes
    /// live on, or an object that was taken over became again what it was before. Have one operator serve each namespace (one
    /// lease, or `--watch-namespaces` that do not overlap), and stop the operator that was there before.
    AnotherOperatorActs Refusal,
    /// The primary, or the pod that was to become it, has not answered for 20 seconds, nothing proves its end, and it may still
    /// serve clients: it gave a sign of life (such as an error reply), or no replica tells that it lost its link to it, or a
    /// server that may have such a link does not answer either and may be on the primary's side. Bring one of them back, or see
    /// to it that the primary's process has ended and say which pod shall lead with the annotation
    /// `valkey.wellcake.io/promote: <pod>/<epoch>/<token>`.
    SilentPrimary Refusal,
    /// The primary has not answered the operator for 20 seconds, and the pod named here has its link to it: only the operator is
    /// cut off, clients are served, and nothing is promoted. Look at the network between the operator and the primary.
    OnlyOperatorCutOff Refusal,
    /// Profile Durable: the primary has not answered for 20 seconds, and was not seen right before that to take writes only while
    /// a replica acknowledges (`min-replicas-to-write`): `spec.config` sets it otherwise, no replica was in sync yet, or another
    /// operator process led then. It may still acknowledge writes, which a promotion would lose. Bring it back, or see to it that
    /// its process has ended and say which pod shall lead with the annotation
    /// `valkey.wellcake.io/promote: <pod>/<epoch>/<token>`.
    SilentPrimaryMayAcknowledge Refusal,
    /// Profile Durable: the primary has not answered for 20 seconds, and was seen to hold more than any replica that answers.
    /// Bring it back, or see to it that its process has ended and say which pod shall lead with the annotation
    /// `valkey.wellcake.io/promote: <pod>/<epoch>/<token>`.
    SilentPrimaryIsAhead Refusal,
    /// The primary ended and no replica that answers holds a complete copy.
    NoCompleteCopy Refusal,
    /// Replicas hold different histories and none is the recorded one: say which pod shall lead with the annotation
    /// `valkey.wellcake.io/promote: <pod>/<epoch>/<token>`.
    HistoriesDiffer Refusal,
    /// The recorded primary's data is gone and other pods hold some: say which pod shall lead with the annotation
    /// `valkey.wellcake.io/promote: <pod>/<epoch>/<token>`.
    RecordedDataGone Refusal,
    /// The recorded primary's pod is beyond `spec.replicas`, so that it does not come back, and no pod that is there holds its
    /// data: raise `spec.replicas` until it is there again with its volume, or say which pod shall lead with the annotation
    /// `valkey.wellcake.io/promote: <pod>/<epoch>/<token>`.
    PrimaryScaledAway Refusal,
    /// The recorded primary has not come back, and what others hold lacks everything since its promotion: bring its
    /// pod back with its volume, or say which pod shall lead with the annotation
    /// `valkey.wellcake.io/promote: <pod>/<epoch>/<token>`.
    OnlyOlderData Refusal,
    /// The recorded primary came back empty, or with a snapshot that may be old, and a pod has not answered for 30 seconds: it
    /// may hold more. Bring it back or say which pod shall lead with the annotation
    /// `valkey.wellcake.io/promote: <pod>/<epoch>/<token>`.
    UnseenCopy Refusal,
    /// Pods hold data although there is no primary record, as after a ValkeyCluster was deleted and made anew. If the volumes
    /// keep a copy of its record, the pod named here is the last primary that it names; check that it holds what you expect.
    /// Say which pod shall lead with the annotation `valkey.wellcake.io/promote: <pod>/0/<token>`.
    DataWithoutRecord Refusal,
    /// The annotation `valkey.wellcake.io/promote` names an epoch that is over, or a pod that cannot lead, or the recorded
    /// primary serves: the order is not carried out.
    OrderNotValid Refusal,
}
