//! Digests.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// SHA-256 as 64 lower-case hex digits.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// SHA-256 of a value in a form that depends on neither the order of keys nor the features of the JSON library.
pub fn value_hash(value: &Value) -> String {
    let mut hasher = Sha256::new();
    feed(&mut hasher, value);
    hex(&hasher.finalize())
}

fn feed(hasher: &mut Sha256, value: &Value) {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            hasher.update(b"{");
            for (key, inner) in entries {
                feed_text(hasher, key);
                feed(hasher, inner);
            }
            hasher.update(b"}");
        }
        Value::Array(list) => {
            hasher.update(b"[");
            list.iter().for_each(|inner| feed(hasher, inner));
            hasher.update(b"]");
        }
        Value::String(text) => feed_text(hasher, text),
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            hasher.update(b"=");
            hasher.update(value.to_string().as_bytes());
            hasher.update(b";");
        }
    }
}

/// Length first, so that no two sequences of texts read the same.
fn feed_text(hasher: &mut Sha256, text: &str) {
    hasher.update(format!("{}:", text.len()).as_bytes());
    hasher.update(text.as_bytes());
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
