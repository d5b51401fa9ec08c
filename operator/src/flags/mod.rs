//! The command line. Every flag can also be given as an environment variable.

pub mod reference;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use tracing_subscriber::filter::Targets;

use crate::lease::decide::Timing;
use crate::logging::{Format, parse_level};

/// Runs Valkey on Kubernetes: makes the objects that a ValkeyCluster asks for, and keeps a primary reachable.
#[derive(Debug, Parser)]
#[command(name = "valkey-operator", version, disable_help_subcommand = true)]
pub struct CommandLine {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What the binary does.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the operator until SIGTERM or SIGINT
    Run(Box<Run>),
    /// Print the CustomResourceDefinitions as YAML, for `kubectl apply --server-side -f -`
    Crds,
}

/// Flags of `run`.
#[derive(Debug, Args)]
pub struct Run {
    /// Address of /metrics; `off` for none
    #[arg(
        long,
        env = "VALKEY_OPERATOR_METRICS_ADDR",
        default_value = "0.0.0.0:8080",
        value_name = "ADDRESS:PORT"
    )]
    pub metrics_addr: Listen,

    /// Address of /livez and /readyz; `off` for none
    #[arg(
        long,
        env = "VALKEY_OPERATOR_PROBE_ADDR",
        default_value = "0.0.0.0:8081",
        value_name = "ADDRESS:PORT"
    )]
    pub probe_addr: Listen,

    /// Act only while holding the lease. Turn it off only where no second operator can run, for instance in a debugger
    #[arg(
        long, env = "VALKEY_OPERATOR_LEADER_ELECT", default_value_t = true, value_name = "BOOL",
        num_args = 0..=1, default_missing_value = "true", action = clap::ArgAction::Set
    )]
    pub leader_elect: bool,

    /// Name of the Lease
    #[arg(
        long,
        env = "VALKEY_OPERATOR_LEASE_NAME",
        default_value = "valkey-operator",
        value_name = "NAME"
    )]
    pub lease_name: String,

    /// Namespace of the Lease [default: the variable POD_NAMESPACE, else the namespace of the connection]
    #[arg(
        long,
        env = "VALKEY_OPERATOR_LEASE_NAMESPACE",
        value_name = "NAMESPACE"
    )]
    pub lease_namespace: Option<String>,

    /// For how long others leave a leader alone that does not renew
    #[arg(long, env = "VALKEY_OPERATOR_LEASE_DURATION", default_value = "15s", value_name = "DURATION", value_parser = parse_duration)]
    pub lease_duration: Duration,

    /// For how long a leader that cannot renew goes on acting; at least 2 s less than the lease duration
    #[arg(long, env = "VALKEY_OPERATOR_RENEW_DEADLINE", default_value = "10s", value_name = "DURATION", value_parser = parse_duration)]
    pub renew_deadline: Duration,

    /// Pause between two renewals, and between two tries
    #[arg(long, env = "VALKEY_OPERATOR_RETRY_PERIOD", default_value = "2s", value_name = "DURATION", value_parser = parse_duration)]
    pub retry_period: Duration,

    /// Namespaces to serve, separated by commas; none given: all
    #[arg(
        long,
        env = "VALKEY_OPERATOR_WATCH_NAMESPACES",
        value_delimiter = ',',
        value_name = "NAMESPACE,..."
    )]
    pub watch_namespaces: Vec<String>,

    /// Write a trace of every pass as JSON lines, one file per ValkeyCluster, into this directory
    #[arg(long, env = "VALKEY_OPERATOR_RECORD", value_name = "DIR")]
    pub record: Option<PathBuf>,

    /// Shape of log lines, which go to standard error
    #[arg(
        long,
        env = "VALKEY_OPERATOR_LOG_FORMAT",
        default_value = "json",
        value_enum
    )]
    pub log_format: Format,

    /// What is logged: error, warn, info, debug or trace, also by source, such as `info,kube_client=debug`
    #[arg(long, env = "VALKEY_OPERATOR_LOG_LEVEL", default_value = "info", value_name = "LEVEL", value_parser = parse_level)]
    pub log_level: Targets,
}

impl Run {
    /// The times of the leader election.
    ///
    /// # Errors
    /// A sentence, when they do not go together.
    pub fn timing(&self) -> Result<Timing, String> {
        Timing {
            duration: self.lease_duration,
            deadline: self.renew_deadline,
            retry: self.retry_period,
        }
        .checked()
    }

    /// [`Self::watch_namespaces`] without the empty names that an empty environment variable gives.
    pub fn namespaces(&self) -> Vec<String> {
        let names = self.watch_namespaces.iter().map(|name| name.trim());
        names
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect()
    }
}

/// Where a server listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listen {
    /// Nowhere.
    Off,
    /// At this address.
    At(SocketAddr),
    /// At all addresses, IPv6 and IPv4 as far as the machine has them.
    Everywhere(u16),
}

impl FromStr for Listen {
    type Err = String;

    /// `off`, `ADDRESS:PORT`, or `:PORT` for all addresses.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self::Off);
        }
        if let Some(Ok(port)) = text.strip_prefix(':').map(str::parse) {
            return Ok(Self::Everywhere(port));
        }
        text.parse().map(Self::At).map_err(|_| {
            format!("{text} is no address; give ADDRESS:PORT such as 0.0.0.0:8080, :PORT, or off")
        })
    }
}

/// Reads `15s`, `500ms` or `2m`.
fn parse_duration(text: &str) -> Result<Duration, String> {
    let split = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let wrong =
        || format!("{text} is no duration; give a whole number with ms, s or m, such as 15s");
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let milliseconds = match unit {
        "ms" => Some(number),
        "s" => number.checked_mul(1_000),
        "m" => number.checked_mul(60_000),
        _ => None,
    };
    // A day is more than any of the durations here can mean.
    milliseconds
        .filter(|ms| *ms <= 86_400_000)
        .map(Duration::from_millis)
        .ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn run(flags: &[&str]) -> Result<Run, clap::Error> {
        let all = ["valkey-operator", "run"].iter().chain(flags);
        match CommandLine::try_parse_from(all)?.command {
            Command::Run(run) => Ok(*run),
            Command::Crds => unreachable!("run was given"),
        }
    }

    #[test]
    fn the_definition_of_the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn the_defaults_go_together() {
        let run = run(&[]).expect("no flag is required");
        assert!(run.timing().is_ok());
        assert!(run.leader_elect);
        assert_eq!(run.namespaces(), Vec::<String>::new());
        assert_eq!(run.metrics_addr, Listen::At(([0, 0, 0, 0], 8080).into()));
    }

    #[test]
    fn every_flag_has_an_environment_variable_of_its_name() {
        let command = CommandLine::command();
        let run = command.find_subcommand("run").expect("run exists");
        for flag in run.get_arguments().filter(|a| a.get_id() != "help") {
            let long = flag.get_long().expect("all flags are long");
            let variable = format!("VALKEY_OPERATOR_{}", long.to_uppercase().replace('-', "_"));
            assert_eq!(
                flag.get_env().and_then(|v| v.to_str()),
                Some(variable.as_str())
            );
        }
    }

    #[test]
    fn values_are_read() {
        let run = run(&[
            "--leader-elect=false",
            "--watch-namespaces=a, b,",
            "--lease-duration=1m",
            "--retry-period=500ms",
            "--metrics-addr=off",
            "--probe-addr=:9000",
            "--log-level=warn,kube_client=debug",
        ])
        .expect("these are valid");
        assert!(!run.leader_elect);
        assert_eq!(run.namespaces(), ["a", "b"]);
        assert_eq!(run.lease_duration, Duration::from_secs(60));
        assert_eq!(run.retry_period, Duration::from_millis(500));
        assert_eq!(run.metrics_addr, Listen::Off);
        assert_eq!(run.probe_addr, Listen::Everywhere(9000));
    }

    #[test]
    fn wrong_values_are_refused_with_a_hint() {
        for (flag, hint) in [
            ("--lease-duration=15", "such as 15s"),
            ("--lease-duration=9999999999m", "such as 15s"),
            ("--metrics-addr=8080", "such as 0.0.0.0:8080"),
            ("--log-level=loud,", "info,kube_client=debug"),
        ] {
            let error = run(&[flag]).expect_err(flag).to_string();
            assert!(error.contains(hint), "{flag}: {error}");
        }
    }
}
