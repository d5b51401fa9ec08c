//! What is in which Secret.

use serde_json::{Value, json};
use wellcake_core::facts::ObjectState;
use wellcake_core::render::{
    self, ACL_KEY, OPERATOR_PASSWORD_KEY, Owner, PASSWORD_KEY, REPLICATION_CONFIG_KEY,
    REPLICATION_PASSWORD_KEY, credentials, password_matches, source,
};

use crate::cases::*;

/// The text under a key of a Secret.
fn entry(secret: &Value, key: &str) -> Option<String> {
    use base64::Engine;
    let bytes =
        base64::engine::general_purpose::STANDARD.decode(secret["data"].get(key)?.as_str()?);
    Some(String::from_utf8(bytes.expect("base64")).expect("text"))
}

#[test]
fn secrets_hold_hashes_for_the_servers_and_passwords_for_those_who_need_them() {
    let (name, spec) = (name(), spec(json!({})));
    let owner = Owner {
        name: &name,
        namespace: "shop",
        uid: UID,
        restart: None,
        asleep: false,
    };
    let auth = render::auth_secret(&owner, &spec, "s3cret");
    assert_eq!(auth["metadata"]["name"], "web-auth");
    assert_eq!(entry(&auth, PASSWORD_KEY).as_deref(), Some("s3cret"));

    let acl = render::acl_secret(
        &owner,
        &spec,
        Some("s3cret"),
        "op",
        "rep",
        Some(("u1", "9")),
    );
    assert_eq!(acl["metadata"]["name"], "web-acl");
    assert_eq!(source(&acl), Some(("u1", "9")));
    let file = entry(&acl, ACL_KEY).expect("a file");
    assert_eq!(file.lines().count(), 3);
    assert!(
        !file.contains("s3cret") && !file.contains("nopass"),
        "{file}"
    );
    assert_eq!(entry(&acl, OPERATOR_PASSWORD_KEY).as_deref(), Some("op"));
    assert_eq!(
        entry(&acl, REPLICATION_PASSWORD_KEY).as_deref(),
        Some("rep")
    );
    let replication = "masteruser replicator\nmasterauth \"rep\"\n";
    assert_eq!(
        entry(&acl, REPLICATION_CONFIG_KEY).as_deref(),
        Some(replication)
    );
    assert_eq!(password_matches(&acl, "s3cret"), Some(true));
    assert_eq!(password_matches(&acl, "other"), Some(false));
    assert_eq!(password_matches(&json!({}), "s3cret"), None);

    assert_eq!(credentials(None, UID), None);
    assert_eq!(credentials(Some(&acl), UID), Some(ObjectState::Matches));
    assert_eq!(
        credentials(Some(&acl), "another"),
        Some(ObjectState::Foreign)
    );
    let config = render::config(&spec);
    assert!(!config.contains("masterauth") && !config.contains("requirepass"));
}
