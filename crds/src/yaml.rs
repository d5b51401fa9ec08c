//! JSON values as block-style YAML, stable and readable in a diff.

use std::fmt::Write;

use serde_json::Value;

/// Writes a value as a YAML document, ending in a line break.
pub fn to_yaml(value: &Value) -> String {
    let mut out = String::new();
    block(&mut out, value, 0);
    out
}

fn block(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, child) in map {
                pad(out, indent);
                out.push_str(&scalar(key));
                out.push(':');
                nested(out, child, indent);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                list_item(out, item, indent);
            }
        }
        other => {
            pad(out, indent);
            inline(out, other);
            out.push('\n');
        }
    }
}

/// What follows a key: on the same line if it fits there, else as a deeper block. Lists stay at the key's depth.
fn nested(out: &mut String, child: &Value, indent: usize) {
    match child {
        Value::Object(map) if !map.is_empty() => {
            out.push('\n');
            block(out, child, indent + 2);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            block(out, child, indent);
        }
        other => {
            out.push(' ');
            inline(out, other);
            out.push('\n');
        }
    }
}

/// A list item whose first line stands beside the dash.
fn list_item(out: &mut String, item: &Value, indent: usize) {
    let mut body = String::new();
    block(&mut body, item, indent + 2);
    pad(out, indent);
    out.push_str("- ");
    out.push_str(body.trim_start());
}

fn inline(out: &mut String, value: &Value) {
    match value {
        Value::Object(_) => out.push_str("{}"),
        Value::Array(_) => out.push_str("[]"),
        Value::String(s) => out.push_str(&scalar(s)),
        other => {
            let _ = write!(out, "{other}");
        }
    }
}

/// A string, bare where no YAML reader could take it for something else, else in double quotes (JSON's escapes are
/// YAML's).
fn scalar(s: &str) -> String {
    let plain_start = s.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '.');
    let plain_rest = s
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || " ._/()-".contains(c))
        && !s.ends_with(' ');
    let keyword = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"]
        .iter()
        .any(|word| s.eq_ignore_ascii_case(word));
    if plain_start && plain_rest && !keyword && !dotted_number(s) {
        s.to_owned()
    } else {
        Value::from(s).to_string()
    }
}

/// True for `.5`, `.inf` and `.nan`, which YAML reads as numbers.
fn dotted_number(s: &str) -> bool {
    s.strip_prefix('.').is_some_and(|rest| {
        rest.is_empty()
            || rest.starts_with(|c: char| c.is_ascii_digit())
            || rest.eq_ignore_ascii_case("inf")
            || rest.eq_ignore_ascii_case("nan")
    })
}

fn pad(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nested_maps_and_lists_keep_their_shape() {
        let value = json!({"a": {"b": [1, {"c": "x", "d": []}, [2]]}, "e": {}, "f": null});
        assert_eq!(
            to_yaml(&value),
            "a:\n  b:\n  - 1\n  - c: x\n    d: []\n  - - 2\ne: {}\nf: null\n"
        );
    }

    #[test]
    fn strings_that_yaml_would_misread_are_quoted() {
        for misread in [
            "true", "No", "1", "1.5", ".5", ".inf", "", "a: b", "# a", "- a", "a\nb", "0x1f", "~",
            "*a", "x ",
        ] {
            assert!(scalar(misread).starts_with('"'), "{misread}");
        }
        for plain in [
            "abc",
            ".spec.topology",
            "apiextensions.k8s.io/v1",
            "v1alpha1",
            "two words",
        ] {
            assert_eq!(scalar(plain), plain);
        }
    }
}
