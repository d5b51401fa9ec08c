//! Secrets: the password of clients, and what the pods mount: the ACL file and the replication credentials.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use wellcake_crds::defaults;
use wellcake_crds::names::{OPERATOR_USER, REPLICATION_USER};
use wellcake_crds::v1beta1::{Topology, ValkeyClusterSpec};

use super::Owner;
use super::hash::sha256_hex;
use super::metadata::{labels, metadata, owner_references};
use super::quote::quote;

/// Key of the password in the Secret of clients, the generated one and the user's own.
pub const PASSWORD_KEY: &str = "password";
/// Key of the ACL file, and name of the file.
pub const ACL_KEY: &str = "users.acl";
/// Key of the part of valkey.conf with the replication credentials, and name of the file.
pub const REPLICATION_CONFIG_KEY: &str = "replication.conf";
/// Key of the password of the user that the operator logs in with.
pub const OPERATOR_PASSWORD_KEY: &str = "operator-password";
/// Key of the password of the user that replicas log in with.
pub const REPLICATION_PASSWORD_KEY: &str = "replication-password";
/// On the Secret with the ACL file: `<uid>/<resourceVersion>` of the Secret whose password it was made from.
pub const SOURCE_ANNOTATION: &str = "valkey.wellcake.io/password-source";

/// Commands of the operator's user. It has no access to keys or channels.
const OPERATOR_RULES: &str = "-@all +info +role +ping +hello +auth +config|get +config|set +replicaof +client|kill \
                              +client|pause +client|unpause +client|setname +client|setinfo +client|list \
                              +client|no-evict +wait +dbsize";
/// Commands of the replicas' user; `sync` is needed where `dual-channel-replication` is on (measured).
const REPLICATION_RULES: &str = "-@all +psync +replconf +ping +sync";

/// What the operator's user may do beside that on a server that another operator's template started: admit it.
const UNFENCED_RULES: &str = "+acl|setuser +acl|users";

/// The operator's user as it is made on a server that another operator's template started, word by word.
pub fn operator_rules_unfenced(password: &str) -> Vec<String> {
    let rules = format!("reset {} {UNFENCED_RULES}", rules(password, OPERATOR_RULES));
    rules.split_whitespace().map(str::to_owned).collect()
}

/// The replicas' user as it is made on such a server beside the password that it has there, word by word.
pub fn replication_rules_beside(password: &str) -> Vec<String> {
    let given: Vec<&str> = REPLICATION_RULES.split_whitespace().collect();
    let added = given.into_iter().filter(|rule| *rule != "-@all");
    let on = format!("on #{}", sha256_hex(password.as_bytes()));
    on.split_whitespace()
        .map(str::to_owned)
        .chain(added.map(str::to_owned))
        .collect()
}

/// Secret `<name>-auth` with a generated password.
///
/// It has no applied hash: it is created once and never written again.
pub fn auth_secret(owner: &Owner<'_>, spec: &ValkeyClusterSpec, password: &str) -> Value {
    let name = owner.name.generated_auth_secret();
    secret(
        metadata(owner, spec, &name),
        [(PASSWORD_KEY, password.to_owned())],
    )
}

/// Secret `<name>-acl`, which the pods mount. `user_password` is the password of clients (ignored when `auth.enabled` is
/// false; without one where it is needed the default user is off, never open), `source` uid and resourceVersion of the
/// Secret that it came from.
pub fn acl_secret(
    owner: &Owner<'_>,
    spec: &ValkeyClusterSpec,
    user_password: Option<&str>,
    operator_password: &str,
    replication_password: &str,
    source: Option<(&str, &str)>,
) -> Value {
    let mut meta = json!({
        "name": owner.name.acl_secret(),
        "namespace": owner.namespace,
        "labels": labels(owner, spec),
        "ownerReferences": owner_references(owner),
    });
    if let (Some((uid, version)), Some(meta)) = (source, meta.as_object_mut()) {
        let notes = json!({ SOURCE_ANNOTATION: format!("{uid}/{version}") });
        meta.insert("annotations".to_owned(), notes);
    }
    let replicated = spec.topology != Topology::Standalone;
    let mut users = vec![
        default_user(spec, user_password),
        user(OPERATOR_USER, operator_password, OPERATOR_RULES),
    ];
    let mut entries = vec![(OPERATOR_PASSWORD_KEY, operator_password.to_owned())];
    if replicated {
        users.push(user(
            REPLICATION_USER,
            replication_password,
            REPLICATION_RULES,
        ));
        entries.push((REPLICATION_PASSWORD_KEY, replication_password.to_owned()));
        entries.push((
            REPLICATION_CONFIG_KEY,
            replication_config(replication_password),
        ));
    }
    entries.push((ACL_KEY, users.concat()));
    secret(meta, entries)
}

/// Uid and resourceVersion of the Secret whose password a live `<name>-acl` was made from.
pub fn source(acl: &Value) -> Option<(&str, &str)> {
    let note = acl
        .get("metadata")?
        .get("annotations")?
        .get(SOURCE_ANNOTATION)?;
    note.as_str()?.split_once('/')
}

/// Whether the servers that mount a live `<name>-acl` take `password` from clients; `None` when its ACL file cannot be
/// read. A Secret's resourceVersion also changes with a label, so only this tells whether the password did.
pub fn password_matches(acl: &Value, password: &str) -> Option<bool> {
    let encoded = acl.get("data")?.get(ACL_KEY)?.as_str()?;
    let file = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
    let line = file
        .lines()
        .find(|line| line.starts_with("user default "))?;
    let hash = format!("#{}", sha256_hex(password.as_bytes()));
    Some(line.split(' ').any(|rule| rule == hash || rule == "nopass"))
}

/// Without a line for it, the server would let everybody in as `default` (measured).
fn default_user(spec: &ValkeyClusterSpec, password: Option<&str>) -> String {
    match (defaults::auth_enabled(spec), password) {
        (false, _) => "user default on nopass ~* &* +@all\n".to_owned(),
        (true, Some(password)) => user("default", password, "~* &* +@all"),
        (true, None) => "user default off\n".to_owned(),
    }
}

fn user(name: &str, password: &str, rules: &str) -> String {
    format!("user {name} {}\n", self::rules(password, rules))
}

fn rules(password: &str, rules: &str) -> String {
    format!("on #{} {rules}", sha256_hex(password.as_bytes()))
}

fn replication_config(password: &str) -> String {
    format!(
        "masteruser {REPLICATION_USER}\nmasterauth {}\n",
        quote(password)
    )
}

fn secret<'a>(meta: Value, entries: impl IntoIterator<Item = (&'a str, String)>) -> Value {
    let data: Map<String, Value> = entries
        .into_iter()
        .map(|(key, text)| (key.to_owned(), Value::String(STANDARD.encode(text))))
        .collect();
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": "Opaque", "data": data })
}
