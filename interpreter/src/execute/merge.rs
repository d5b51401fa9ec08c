//! JSON merge patches (RFC 7386).

use serde_json::{Map, Value};

/// The merge patch that turns `before` into `after`; `None` when they are equal. What is in `before` only is set to null.
pub fn difference(before: &Value, after: &Value) -> Option<Value> {
    if before == after {
        return None;
    }
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        return Some(after.clone());
    };
    let mut patch = Map::new();
    for (key, value) in new {
        match old.get(key) {
            None => {
                patch.insert(key.clone(), value.clone());
            }
            Some(old) => {
                if let Some(inner) = difference(old, value) {
                    patch.insert(key.clone(), inner);
                }
            }
        }
    }
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    Some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_patch_sets_what_is_new_and_takes_out_what_is_gone() {
        let before = json!({ "a": 1, "b": { "c": [1], "d": 2 }, "e": "x" });
        let after = json!({ "a": 1, "b": { "c": [1, 2] }, "f": null });
        let patch = difference(&before, &after);
        assert_eq!(
            patch,
            Some(json!({ "b": { "c": [1, 2], "d": null }, "e": null, "f": null }))
        );
        assert_eq!(difference(&after, &after), None);
    }
}
