//! Quoting for valkey.conf.

/// A value in double quotes, such that the server reads back exactly these bytes (`sds.c: sdssplitargs`).
pub fn quote(value: &str) -> String {
    let mut quoted = String::with_capacity(value.len().saturating_add(2));
    quoted.push('"');
    for c in value.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{7}' => quoted.push_str("\\a"),
            control if control.is_ascii_control() => {
                quoted.push_str(&format!("\\x{:02x}", u32::from(control)));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::quote;

    #[test]
    fn bytes_that_would_end_a_value_or_a_line_are_escaped() {
        assert_eq!(quote("a b"), r#""a b""#);
        assert_eq!(quote("q\"\\"), r#""q\"\\""#);
        assert_eq!(
            quote("\n\r\t\u{8}\u{7}\u{0}\u{7f}"),
            r#""\n\r\t\b\a\x00\x7f""#
        );
        assert_eq!(quote("ü"), "\"ü\"");
        assert_eq!(quote(""), "\"\"");
    }
}
