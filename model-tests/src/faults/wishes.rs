//! What people write into the spec or arrange around a takeover, beside what searches try.

use serde::{Deserialize, Serialize};
use wellcake_core::facts::{
    ClaimUid, Directives, Known, Login, Object, ObjectState, Ordinal, Target, Trouble, Unserved,
    Volume,
};

use super::kind::Kind;
use crate::world::World;

/// An edit of the spec, or of what a takeover meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Edit {
    /// Directives that running servers take; some may be refused by them.
    Directives {
        /// Whether servers refuse them.
        refused: bool,
    },
    /// Larger volumes.
    Storage,
    /// A field that is not served.
    Unserved,
    /// A new password.
    Rotation,
    /// An image of an older release than the servers run.
    OlderImage,
    /// Another primary, by a name that no pod has.
    UnknownTarget,
    /// A restart that brings this operator's template.
    Roll,
    /// The annotation that says that the other operator is gone is taken away.
    NotAdopted,
    /// How servers of another operator let this one in.
    Login(Login),
    /// Somebody makes users on servers of another operator.
    Users,
    /// The other operator makes an object again what it was.
    TakeBack(Object),
    /// The other operator ends this one's connections.
    Rival,
}

/// What is true of the spec and of a takeover beside what the core's facts of the spec say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Arranged {
    /// Servers refuse the directives that are asked for.
    pub directives_refused: bool,
    /// Files of earlier configurations.
    pub old_configs: u8,
    /// Pods keep an earlier configuration.
    pub config_refused: bool,
    /// Servers run release 9.
    pub newer: bool,
    /// A restart was asked for.
    pub roll: bool,
    /// How servers of another operator let this one in.
    pub login: Login,
    /// They have users of their own.
    pub users: bool,
    /// The other operator ends connections.
    pub rival: bool,
}

impl World {
    /// What is arranged, if anything.
    pub(crate) fn arranged(&self) -> Arranged {
        self.faults
            .as_deref()
            .map_or_else(Arranged::default, |faults| faults.arranged)
    }

    pub(super) fn edit(&mut self, edit: Edit) {
        match edit {
            Edit::Directives { refused } => self.change_directives(refused),
            Edit::Storage => self.ask_for_storage(),
            Edit::Unserved => self.spec.unserved = Some(Unserved::Tls),
            Edit::Rotation => self.spec.rotation_asked = true,
            Edit::OlderImage => {
                self.faults_mut().arranged.newer = true;
                self.spec.image_major = Some(8);
            }
            Edit::UnknownTarget => self.spec.failover = Some(Target::Unknown),
            Edit::Roll => self.faults_mut().arranged.roll = true,
            Edit::NotAdopted => self.spec.adopt = false,
            Edit::Login(login) => self.faults_mut().arranged.login = login,
            Edit::Users => self.faults_mut().arranged.users = true,
            Edit::TakeBack(object) => return self.take_back(object),
            Edit::Rival => self.faults_mut().arranged.rival = true,
        }
        self.spec.generation += 1;
        self.fired(match edit {
            Edit::Directives { refused: true } => Kind::DirectivesNotTaken,
            Edit::Directives { .. } => Kind::DirectivesChanged,
            Edit::Storage => Kind::StorageGrown,
            Edit::Login(_) | Edit::Users | Edit::NotAdopted => Kind::TakeoverHindered,
            Edit::TakeBack(_) | Edit::Rival => Kind::OtherOperatorActs,
            _ => Kind::SpecNotServed,
        });
    }

    /// Servers that run are to be sent directives again, and the file is to follow.
    fn change_directives(&mut self, refused: bool) {
        let faults = self.faults_mut();
        faults.arranged.directives_refused = refused;
        let file = faults.object(Object::Config);
        if *file == Some(ObjectState::Matches) {
            *file = Some(ObjectState::Differs);
        }
        for pod in &mut self.pods {
            if let Some(process) = pod.process.as_mut().filter(|it| it.configured) {
                process.ails_mut().directives = Some(Directives::Due);
            }
        }
    }

    /// What a server says to the directives that it is sent: it takes all of them or none (`config.c: configSetCommand`).
    pub(crate) fn answer_directives(&self, process: Option<Directives>) -> Option<Directives> {
        let refused = self.arranged().directives_refused;
        process.map(|_| match refused {
            true => Directives::Refused,
            false => Directives::Set,
        })
    }

    fn ask_for_storage(&mut self) {
        if self.disk == crate::world::Disk::None {
            return;
        }
        for n in 0..self.pods.len() {
            self.faults_mut().pod(n).volume = Some(Volume::Smaller);
        }
    }

    /// A claim asks for more; the storage takes its time ("Expanding persistent volumes claims").
    pub(crate) fn grow(&mut self, o: usize, pod: Ordinal, claim: ClaimUid) -> Result<(), String> {
        let n = pod.index();
        if self.claim_uid(n) != claim {
            return Err("404: not found".to_owned());
        }
        self.faults_mut().pod(n).volume = Some(Volume::Growing);
        let operator = self.operators.get_mut(o);
        if let Some(Known::Seen(seen)) = operator
            .and_then(|operator| operator.pods.get_mut(n))
            .map(|facts| &mut facts.claim)
        {
            seen.value.volume = Volume::Growing;
        }
        Ok(())
    }

    /// A volume that grows is as large as it should be.
    pub(crate) fn end_growth(&mut self, n: usize) {
        if self.is_pod(n, |it| it.volume == Some(Volume::Growing)) {
            self.faults_mut().pod(n).volume = None;
        }
    }

    /// All pods go back to the configuration before, with which servers start.
    pub(crate) fn go_back_to_config(&mut self) {
        self.faults_mut().arranged.config_refused = true;
        self.change_template();
        for n in 0..self.pods.len() {
            let pod = self.faults_mut().pod(n);
            pod.trouble = pod.trouble.filter(|it| *it != Trouble::Config);
        }
    }

    fn take_back(&mut self, object: Object) {
        let elsewhere = self.made_elsewhere && self.template == 0;
        let faults = self.faults_mut();
        if elsewhere && *faults.object(object) == Some(ObjectState::Matches) {
            *faults.object(object) = Some(ObjectState::TakenBack);
            let now = self.now;
            self.faults_mut().changed_at = now;
            self.fired(Kind::OtherOperatorActs);
        }
    }
}
