//! Names of a cluster and of the objects that the operator makes for it.
//!
//! A cluster's name has at most [`ClusterName::MAX_LEN`] bytes, so that every derived name fits: 63 for Services and
//! label values, 52 for StatefulSets and CronJobs (whose controllers append 11 characters and put the result in a label).

use std::fmt;

use thiserror::Error;

use crate::v1beta1::{AuthSpec, TlsSpec};

/// Name of the user that the operator logs in with.
pub const OPERATOR_USER: &str = "valkey-operator";
/// Name of the user that replicas log in with.
pub const REPLICATION_USER: &str = "replicator";
/// Name of the user that Sentinels log in with.
pub const SENTINEL_USER: &str = "sentinel-user";
/// Users that a ValkeyACL may not name.
pub const RESERVED_USERS: [&str; 4] = ["default", REPLICATION_USER, SENTINEL_USER, OPERATOR_USER];

/// Why a string is not a [`ClusterName`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ClusterNameError {
    /// The name is empty.
    #[error("the name of a ValkeyCluster is empty: give it a name of 1 to 40 characters")]
    Empty,
    /// The name is too long.
    #[error(
        "the name of a ValkeyCluster has {0} characters: use at most 40, so that names of Services and pods fit"
    )]
    TooLong(usize),
    /// The name has a character or a position that a Service's name cannot have.
    #[error(
        "the name of a ValkeyCluster must start with a lower-case letter, end with a letter or digit and hold only \
         lower-case letters, digits and '-'"
    )]
    NotALabel,
}

/// Name of a ValkeyCluster: an RFC 1035 label (Services are named after it) of at most 40 bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterName(String);

impl ClusterName {
    /// Greatest length in bytes.
    pub const MAX_LEN: usize = 40;

    /// Checks a name.
    pub fn parse(name: &str) -> Result<Self, ClusterNameError> {
        if name.is_empty() {
            return Err(ClusterNameError::Empty);
        }
        if name.len() > Self::MAX_LEN {
            return Err(ClusterNameError::TooLong(name.len()));
        }
        let label = name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if !label || !name.starts_with(|c: char| c.is_ascii_lowercase()) || name.ends_with('-') {
            return Err(ClusterNameError::NotALabel);
        }
        Ok(Self(name.to_owned()))
    }

    /// The name itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Service for clients: the primary, or any node of a Valkey Cluster.
    pub fn client_service(&self) -> String {
        self.0.clone()
    }

    /// Service of the primary alone.
    pub fn primary_service(&self) -> String {
        self.with("primary")
    }

    /// Service of the replicas alone.
    pub fn replicas_service(&self) -> String {
        self.with("replicas")
    }

    /// Headless Service that gives every data pod a name in DNS.
    pub fn headless_service(&self) -> String {
        self.with("headless")
    }

    /// StatefulSet of the data pods.
    pub fn stateful_set(&self) -> String {
        self.0.clone()
    }

    /// Data pod by its number in the StatefulSet.
    pub fn pod(&self, ordinal: u32) -> String {
        format!("{}-{ordinal}", self.0)
    }

    /// Claim of a data pod.
    pub fn claim(&self, ordinal: u32) -> String {
        format!("{DATA_VOLUME}-{}-{ordinal}", self.0)
    }

    /// StatefulSet and headless Service of one shard, where each shard has its own.
    pub fn shard(&self, shard: u32) -> String {
        format!("{}-sh{shard}", self.0)
    }

    /// Common beginning of the names of all configuration revisions.
    pub fn config(&self) -> String {
        self.with("config")
    }

    /// ConfigMap of one revision of the configuration; `digest` is its short digest (at most 14 characters).
    pub fn config_revision(&self, digest: &str) -> String {
        format!("{}-config-{digest}", self.0)
    }

    /// Secret with the ACL file and the replication credentials that the pods mount; the operator's own.
    pub fn acl_secret(&self) -> String {
        self.with("acl")
    }

    /// Secret with a generated password.
    pub fn generated_auth_secret(&self) -> String {
        self.with("auth")
    }

    /// Secret that holds the default user's password in key `password`: the user's, or the generated one.
    pub fn auth_secret(&self, auth: Option<&AuthSpec>) -> String {
        given(auth.and_then(|a| a.existing_secret.as_deref()))
            .unwrap_or_else(|| self.generated_auth_secret())
    }

    /// Secret that holds the certificate: the user's, or the one that cert-manager or the user fills.
    pub fn tls_secret(&self, tls: Option<&TlsSpec>) -> String {
        given(tls.and_then(|t| t.existing_secret.as_deref())).unwrap_or_else(|| self.with("tls"))
    }

    /// StatefulSet and headless Service of the Sentinels.
    pub fn sentinel(&self) -> String {
        self.with("sentinel")
    }

    /// ConfigMap of the Sentinels.
    pub fn sentinel_config(&self) -> String {
        self.with("sentinel-config")
    }

    /// PodDisruptionBudget of the data pods.
    pub fn disruption_budget(&self) -> String {
        self.with("pdb")
    }

    /// NetworkPolicy of the data pods.
    pub fn network_policy(&self) -> String {
        self.with("allow")
    }

    /// CronJob that takes snapshots.
    pub fn backup(&self) -> String {
        self.with("backup")
    }

    fn with(&self, suffix: &str) -> String {
        format!("{}-{suffix}", self.0)
    }
}

/// Name of the volume (and of the claim template) that holds the data.
pub const DATA_VOLUME: &str = "data";

impl fmt::Display for ClusterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for ClusterName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for ClusterName {
    type Err = ClusterNameError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::parse(name)
    }
}

/// A string that was given; an empty one means that it was not.
fn given(value: Option<&str>) -> Option<String> {
    value.filter(|v| !v.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_rfc_1035_and_the_length_bound() {
        let longest = "a".repeat(ClusterName::MAX_LEN);
        for good in ["a", "api-cache", "x9", longest.as_str()] {
            assert_eq!(
                ClusterName::parse(good).map(|n| n.as_str().to_owned()),
                Ok(good.to_owned())
            );
        }
        let table = [
            ("", ClusterNameError::Empty),
            ("9a", ClusterNameError::NotALabel),
            ("-a", ClusterNameError::NotALabel),
            ("a-", ClusterNameError::NotALabel),
            ("a.b", ClusterNameError::NotALabel),
            ("A", ClusterNameError::NotALabel),
            ("ä", ClusterNameError::NotALabel),
            (&"a".repeat(41), ClusterNameError::TooLong(41)),
        ];
        for (bad, why) in table {
            assert_eq!(ClusterName::parse(bad), Err(why), "{bad}");
        }
    }

    #[test]
    fn derived_names_of_the_longest_cluster_fit_kubernetes() {
        let name = ClusterName::parse(&"a".repeat(ClusterName::MAX_LEN)).expect("valid");
        // The controller revision label of a StatefulSet and the Jobs of a CronJob append up to 11 characters.
        for workload in [
            name.stateful_set(),
            name.shard(999),
            name.sentinel(),
            name.backup(),
        ] {
            assert!(workload.len() <= 52, "{workload}");
        }
        let rest = [
            name.client_service(),
            name.primary_service(),
            name.replicas_service(),
            name.headless_service(),
            name.pod(9999),
            name.claim(9999),
            name.config_revision("0123456789abcd"),
            name.acl_secret(),
            name.auth_secret(None),
            name.tls_secret(None),
            name.sentinel_config(),
            name.disruption_budget(),
            name.network_policy(),
        ];
        for object in rest {
            assert!(object.len() <= 63, "{object}");
        }
    }

    #[test]
    fn an_empty_secret_name_means_the_derived_one() {
        let name = ClusterName::parse("web").expect("valid");
        let empty = AuthSpec {
            existing_secret: Some(String::new()),
            ..AuthSpec::default()
        };
        let given = AuthSpec {
            existing_secret: Some("mine".into()),
            ..AuthSpec::default()
        };
        assert_eq!(name.auth_secret(None), "web-auth");
        assert_eq!(name.auth_secret(Some(&empty)), "web-auth");
        assert_eq!(name.auth_secret(Some(&given)), "mine");
        assert_eq!(name.tls_secret(Some(&TlsSpec::default())), "web-tls");
    }
}
