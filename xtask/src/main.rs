//! Developer commands: `cargo xtask COMMAND`.

mod build;
mod cluster;
mod command;
mod paths;
mod pki;
mod ports;
mod prerequisites;
mod processes;
mod progress;

use clap::{Args, Parser, Subcommand};

use crate::paths::Layout;
use crate::progress::Progress;

/// Commands for working on the operator.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start a local Kubernetes of three nodes, install the operator and show a first ValkeyCluster.
    Up(Up),
    /// Stop the local Kubernetes. What was built and what is stored stays.
    Down,
}

#[derive(Args)]
struct Up {
    /// Leave the operator out, to run it on the host.
    #[arg(long)]
    no_operator: bool,
}

fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    let layout = Layout::find()?;
    let progress = Progress::new(&layout.cache);
    match cli.command {
        Command::Up(up) => {
            let _ = up.no_operator;
            cluster::start::start(&layout, &progress)
        }
        Command::Down => progress.step("down", "Stopping the local Kubernetes", |_| {
            cluster::start::stop(&layout)
        }),
    }
}
