//! How the servers write their log.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Format of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum LogFormat {
    /// One JSON object per line.
    Json,
    /// `key=value` pairs.
    Logfmt,
    /// The traditional line.
    Legacy,
}

/// Log of the servers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct LoggingSpec {
    /// Format of the log lines: `json`, `logfmt` or `legacy`. Default: what the server does by itself. Written only for
    /// servers that know the format; others keep theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "LogFormat")]
    pub format: Option<LogFormat>,
}
