//! `docs/reference/flags.md`.

use clap::{Arg, CommandFactory};

use super::CommandLine;

/// The reference of the command line as Markdown.
pub fn markdown() -> String {
    let command = CommandLine::command();
    let mut out = String::from(
        "# Command line of `valkey-operator`\n\n| command | what it does |\n|---|---|\n",
    );
    for sub in command.get_subcommands() {
        let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
        out.push_str(&format!("| `{}` | {about}. |\n", sub.get_name()));
    }
    out.push_str(
        "\n## Flags of `run`\n\n\
         A flag that is absent is taken from its environment variable. Durations are whole numbers with `ms`, `s` or `m`.\n\n\
         | flag | variable | default | meaning |\n|---|---|---|---|\n",
    );
    let run = command.find_subcommand("run");
    let flags = run.into_iter().flat_map(|run| run.get_arguments());
    for flag in flags.filter(|flag| flag.get_id() != "help") {
        out.push_str(&row(flag));
    }
    out.push_str(
        "\nThe variables `POD_NAME` and `POD_NAMESPACE` name the pod that the operator runs in; the chart sets them. Outside of a \
         pod the connection is taken from `KUBECONFIG` or `~/.kube/config`.\n",
    );
    out
}

fn row(flag: &Arg) -> String {
    let defaults = flag.get_default_values();
    let default: Vec<String> = defaults
        .iter()
        .map(|value| format!("`{}`", value.to_string_lossy()))
        .collect();
    let choices: Vec<String> = flag
        .get_possible_values()
        .iter()
        .map(|choice| format!("`{}`", choice.get_name()))
        .collect();
    let choices = if choices.is_empty() {
        String::new()
    } else {
        format!(": {}", choices.join(", "))
    };
    let names: Vec<String> = flag
        .get_value_names()
        .unwrap_or_default()
        .iter()
        .map(ToString::to_string)
        .collect();
    format!(
        "| `--{} {}` | `{}` | {} | {}{choices}. |\n",
        flag.get_long().unwrap_or_default(),
        names.join(" "),
        flag.get_env().unwrap_or_default().to_string_lossy(),
        default.join(", "),
        flag.get_help().map(ToString::to_string).unwrap_or_default(),
    )
}
