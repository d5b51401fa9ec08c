//! What a server that does not understand its configuration says last.

/// Directives whose values are nobody's business.
const SECRETS: [&str; 7] = [
    "masterauth",
    "primaryauth",
    "masteruser",
    "primaryuser",
    "requirepass",
    "user",
    "tls-key-file-pass",
];
/// Longest such sentence.
const LONGEST: usize = 300;

/// The line that a server does not understand and why, if its last words are of that (`config.c: loadServerConfigFromString`).
pub fn config_error(last_words: &str) -> Option<String> {
    let (_, block) = last_words.split_once("FATAL CONFIG FILE ERROR")?;
    let mut lines = block.lines().map(str::trim);
    let line = lines.by_ref().find_map(|line| line.strip_prefix(">>> '"))?;
    let line = line.strip_suffix('\'').unwrap_or(line);
    let why = lines
        .find(|line| !line.is_empty())
        .unwrap_or("not accepted");
    let name = line.split_whitespace().next().unwrap_or_default();
    let shown = if SECRETS.contains(&name.to_ascii_lowercase().as_str()) {
        name
    } else {
        line
    };
    Some(format!("{shown}: {why}").chars().take(LONGEST).collect())
}

#[cfg(test)]
mod tests {
    use super::config_error;

    #[test]
    fn the_line_and_the_cause_are_told_and_no_password() {
        let words = |line: &str| {
            format!(
                "1:C 30 Nov 2026 * oO0OoO0OoO0Oo Valkey is starting\n\n*** FATAL CONFIG FILE ERROR (Version 8.0.1) ***\n\
                 Reading the configuration file, at line 18\n>>> '{line}'\nargument couldn't be parsed into an integer\n"
            )
        };
        assert_eq!(
            config_error(&words("io-threads many")).as_deref(),
            Some("io-threads many: argument couldn't be parsed into an integer")
        );
        assert_eq!(
            config_error(&words("masterauth \"secret\"")).as_deref(),
            Some("masterauth: argument couldn't be parsed into an integer")
        );
        assert_eq!(config_error("Ready to accept connections"), None);
    }
}
