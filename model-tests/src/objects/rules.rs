//! What must hold of what a decision does to objects; the first sentence of each function is the rule.

use wellcake_core::effects::{Effect, Verb};
use wellcake_core::facts::{
    Directives, Known, Object, ObjectState, PasswordSource, Revision, ServerFacts, Trouble, Volume,
};
use wellcake_core::limits;

use super::Case;
use crate::invariants::{Violation, require};

/// All rules.
pub fn all(case: Case<'_>) -> Result<(), Violation> {
    foreign_objects_are_left_alone(case)?;
    nothing_is_done_unseen(case)?;
    another_operators_objects_are_asked_for(case)?;
    nobody_quarrels(case)?;
    no_server_gets_older_than_its_files(case)?;
    nothing_is_made_without_a_password(case)?;
    only_what_is_superfluous_is_deleted(case)?;
    failures_are_not_tried_again_at_once(case)?;
    only_small_volumes_grow(case)?;
    the_file_follows_the_servers(case)?;
    refused_directives_go_no_further(case)?;
    a_file_is_taken_back_once(case)?;
    users_are_kept(case)?;
    fewer_pods_are_a_change_of_their_own(case)?;
    who_is_deleted_is_left_alone(case)?;
    what_differs_is_set_right(case)
}

impl Case<'_> {
    fn state(&self, object: Object) -> Option<ObjectState> {
        self.seen.objects.state(object).value().copied()
    }

    fn does(&self, is: impl Fn(&Verb) -> bool) -> bool {
        self.decision.effects.iter().any(|effect| is(&effect.verb))
    }

    fn applies(&self, object: Object) -> bool {
        self.does(|verb| *verb == Verb::Apply(object))
    }

    fn is_any(&self, state: ObjectState) -> bool {
        let mut all = Object::ALL.iter();
        all.any(|object| self.state(*object) == Some(state))
    }

    fn is_unseen(&self) -> bool {
        let unknown = |known: Known<ObjectState>| matches!(known, Known::Maybe { .. });
        let mut all = Object::ALL.iter();
        all.any(|object| unknown(self.seen.objects.state(*object)))
            || matches!(self.seen.objects.password, Known::Maybe { .. })
    }

    fn lacks_password(&self) -> bool {
        let source = self.seen.objects.password.value();
        source.is_some_and(|source| *source != PasswordSource::Usable)
    }

    /// Servers of pods that are as they are to be.
    fn current(&self) -> impl Iterator<Item = &ServerFacts> {
        self.seen.ordinals().filter_map(|(ordinal, pod)| {
            let object = pod.object.value()?;
            let stays = object.revision == Revision::Current && !object.terminating;
            let server = self
                .seen
                .server(ordinal, self.now, limits::DESTRUCTIVE_AGE)?;
            (stays && !server.loading).then_some(server)
        })
    }

    fn fails_to_start(&self) -> bool {
        let mut objects = self.seen.pods.iter().filter_map(|pod| pod.object.value());
        objects.any(|object| object.trouble == Some(Trouble::Config))
    }
}

const fn makes(verb: &Verb) -> bool {
    matches!(
        verb,
        Verb::Apply(_) | Verb::Delete(_) | Verb::CreateCredentials
    )
}

fn require_of(case: Case<'_>, holds: bool, rule: &'static str) -> Result<(), Violation> {
    require(holds, rule, || {
        let told = |effect: &Effect| format!("{:?}", effect.verb);
        let effects: Vec<String> = case.decision.effects.iter().map(told).collect();
        let state = |object: &Object| format!("{object:?} {:?}", case.state(*object));
        let objects: Vec<String> = Object::ALL.iter().map(state).collect();
        format!("{} with {}", effects.join(", "), objects.join(", "))
    })
}

/// S18: what belongs to somebody else is neither applied nor deleted, and nothing else is made beside it.
fn foreign_objects_are_left_alone(case: Case<'_>) -> Result<(), Violation> {
    let foreign = case.is_any(ObjectState::Foreign);
    require_of(
        case,
        !(foreign && case.does(makes)),
        "S18 foreign objects are left alone",
    )
}

/// S14: while any object cannot be looked at, none is made, changed or deleted: it may exist.
fn nothing_is_done_unseen(case: Case<'_>) -> Result<(), Violation> {
    let holds = !(case.is_unseen() && case.does(makes));
    require_of(case, holds, "S14 nothing is made unseen")
}

/// S18: objects of another operator are taken only once it is recorded who leads, but for the first, for which a person's word is
/// enough.
fn another_operators_objects_are_asked_for(case: Case<'_>) -> Result<(), Violation> {
    let entitled = |object: Object| {
        let first = case.spec.adopt && object == Object::HeadlessService;
        case.seen.record.is_some() || first
    };
    let holds = Object::ALL.into_iter().all(|object| {
        let theirs = case.state(object) == Some(ObjectState::Theirs);
        !(theirs && case.applies(object)) || entitled(object)
    });
    require_of(case, holds, "S18 objects of another operator are asked for")
}

/// S18: what somebody took back is taken again only after it was left in peace for a while.
fn nobody_quarrels(case: Case<'_>) -> Result<(), Violation> {
    let holds = Object::ALL
        .into_iter()
        .all(|object| match case.seen.objects.state(object) {
            Known::Seen(found) if found.value == ObjectState::TakenBack => {
                let rested = case.now.since(found.at) >= limits::TAKE_OVER_QUIET;
                rested || !case.applies(object)
            }
            _ => true,
        });
    require_of(case, holds, "S18 nobody quarrels")
}

/// S3: the StatefulSet is not applied with an image that cannot read what a server wrote.
fn no_server_gets_older_than_its_files(case: Case<'_>) -> Result<(), Violation> {
    let older = case
        .spec
        .image_major
        .is_some_and(|major| major < limits::NEWER_FORMAT);
    let mut servers = case.seen.pods.iter().filter_map(|pod| pod.server.last());
    let newer = servers.any(|server| server.major >= limits::NEWER_FORMAT);
    let holds = !(older && newer && case.applies(Object::StatefulSet));
    require_of(case, holds, "S3 no server gets older than its files")
}

/// S18: nothing is made before there is a password, and Secrets that are there are never made again.
fn nothing_is_made_without_a_password(case: Case<'_>) -> Result<(), Violation> {
    let made = case
        .seen
        .objects
        .state(Object::Credentials)
        .value()
        .is_some();
    let creates = case.does(|verb| *verb == Verb::CreateCredentials);
    let without = case.lacks_password() && !made && case.does(makes);
    require_of(
        case,
        !(without || made && creates),
        "S18 nothing is made without a password",
    )
}

/// S18: only what is ours and not wanted any more is deleted.
fn only_what_is_superfluous_is_deleted(case: Case<'_>) -> Result<(), Violation> {
    let superfluous = |object| case.state(object) == Some(ObjectState::Superfluous);
    let holds = case
        .decision
        .effects
        .iter()
        .all(|effect| match effect.verb {
            Verb::Delete(object) => superfluous(object),
            _ => true,
        });
    require_of(case, holds, "S18 only what is superfluous is deleted")
}

/// L6: while objects pause after a failure, none is made.
fn failures_are_not_tried_again_at_once(case: Case<'_>) -> Result<(), Violation> {
    let pauses = case.hints.objects.pause(case.now).is_some();
    let holds = !(pauses && case.does(makes));
    require_of(case, holds, "L6 failures are not tried again at once")
}

/// L6: only a volume that is smaller than what is asked for is asked to grow.
fn only_small_volumes_grow(case: Case<'_>) -> Result<(), Violation> {
    let holds = case
        .decision
        .effects
        .iter()
        .all(|effect| match effect.verb {
            Verb::GrowVolume { pod, .. } => {
                let claim = case.seen.pod(pod).and_then(|pod| pod.claim.value());
                claim.is_some_and(|claim| claim.volume == Volume::Smaller)
            }
            _ => true,
        });
    require_of(case, holds, "L6 only small volumes grow")
}

/// S12: a file that differs by what running servers take is written only once all of them took it. No pod of another operator's
/// template mounts it.
fn the_file_follows_the_servers(case: Case<'_>) -> Result<(), Violation> {
    let differs = case.state(Object::Config) == Some(ObjectState::Differs);
    let mut servers = case.current();
    let all_took_it = servers.all(|server| server.directives == Directives::Set);
    let template = case.state(Object::StatefulSet);
    let mounted = !matches!(template, Some(ObjectState::Kept | ObjectState::RollAsked));
    let holds = !(differs && mounted && case.applies(Object::Config)) || all_took_it;
    require_of(case, holds, "S12 the file follows the servers")
}

/// S12: directives that a server refused are sent to no other one.
fn refused_directives_go_no_further(case: Case<'_>) -> Result<(), Violation> {
    let mut servers = case.current();
    let refused = servers.any(|server| server.directives == Directives::Refused);
    let sets = case.does(|verb| matches!(verb, Verb::Configure { .. }));
    require_of(
        case,
        !(refused && sets),
        "S12 refused directives go no further",
    )
}

/// L6: a file with which a server does not start is taken back, once.
fn a_file_is_taken_back_once(case: Case<'_>) -> Result<(), Violation> {
    let objects = &case.seen.objects;
    let matches = |object| case.state(object) == Some(ObjectState::Matches);
    let applied = Object::ALL.into_iter().all(matches);
    let due = case.fails_to_start() && objects.config_before && !objects.config_refused;
    let goes_back = case.does(|verb| *verb == Verb::GoBackToConfig);
    let free = !case.spec.deleting && case.hints.objects.pause(case.now).is_none();
    require_of(
        case,
        (!goes_back || due) && (goes_back || !(due && applied && free)),
        "L6 a file that no server starts with is taken back once",
    )
}

/// S2: a template under which servers would lose users is not replaced.
fn users_are_kept(case: Case<'_>) -> Result<(), Violation> {
    let asked = case.state(Object::StatefulSet) == Some(ObjectState::RollAsked);
    let mut servers = case.seen.pods.iter().filter_map(|pod| pod.server.last());
    let loses = servers.any(|server| server.other_users);
    let holds = !(asked && loses && case.applies(Object::StatefulSet));
    require_of(case, holds, "S2 users are kept")
}

/// S12: a StatefulSet that is asked for fewer pods is not applied with the rest of the spec in the same decision.
fn fewer_pods_are_a_change_of_their_own(case: Case<'_>) -> Result<(), Violation> {
    let fewer = case.does(|verb| matches!(verb, Verb::ScaleIn { .. }));
    require_of(
        case,
        !(fewer && case.applies(Object::StatefulSet)),
        "S12 fewer pods are a change of their own",
    )
}

/// S18: of a ValkeyCluster that is deleted nothing is touched but the finalizer of the operator before; of one with a field that is
/// not served nothing is made.
fn who_is_deleted_is_left_alone(case: Case<'_>) -> Result<(), Violation> {
    let mut effects = case.decision.effects.iter();
    let touched = effects.any(|effect| effect.verb != Verb::ReleaseFinalizer);
    let unserved = case.spec.unserved.is_some() && case.does(makes);
    require_of(
        case,
        !(unserved || case.spec.deleting && touched),
        "S18 what is not served is left alone",
    )
}

/// L1: an object that is missing or differs is made or set right, unless something that is named stands in the way.
fn what_differs_is_set_right(case: Case<'_>) -> Result<(), Violation> {
    let states = [
        ObjectState::Foreign,
        ObjectState::Theirs,
        ObjectState::TakenBack,
    ];
    let contested = states.into_iter().any(|state| case.is_any(state));
    let stopped = case.is_unseen()
        || contested
        || case.lacks_password()
        || case.spec.unserved.is_some()
        || case.spec.deleting
        || case.hints.objects.pause(case.now).is_some();
    let set_right = |object: Object| {
        let known = case.seen.objects.state(object);
        match object {
            // They are made once, wait for servers, or are changed in an order of their own.
            Object::Credentials | Object::Config | Object::StatefulSet => true,
            _ if known.is_absent() || case.state(object) == Some(ObjectState::Differs) => {
                case.applies(object)
            }
            _ => true,
        }
    };
    let holds = stopped || Object::ALL.into_iter().all(set_right);
    require_of(case, holds, "L1 what differs is set right")
}
