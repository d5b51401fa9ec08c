//! Developer commands: `cargo xtask COMMAND`.

mod bench;
mod build;
mod cluster;
mod command;
mod coverage;
mod generate;
mod install;
mod lock;
mod paths;
mod pki;
mod ports;
mod prerequisites;
mod processes;
mod progress;
mod schemas;
mod soak;
mod status;
mod test;
mod up;

use std::process::ExitCode;

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
    /// Build the operator and roll it out in the running local Kubernetes.
    Operator,
    /// Build the operator's image and print the archive's path and the image's name.
    Image,
    /// Show what runs of the local Kubernetes.
    Status,
    /// Stop the local Kubernetes. What was built and what is stored in it stays.
    Down(Down),
    /// Measure, and print the figures beside what must be reached.
    Bench {
        /// The measures to take; all when there is none.
        names: Vec<String>,
    },
    /// Run the model tester for hours and append a line to model-tests/SOAK.jsonl. Needs no cluster.
    Soak {
        /// How long, in hours; it ends at most a few minutes later.
        #[arg(long)]
        hours: f64,
    },
    /// Print how much of the core the simulation alone reaches, by region. Needs no cluster.
    Coverage {
        /// Random runs of each of the two kinds.
        #[arg(long, default_value_t = 2_000)]
        seeds: u64,
        /// Also print each region that was not reached.
        #[arg(long)]
        unreached: bool,
    },
    /// Write the files that are generated from code.
    Gen,
    /// Run all checks: format, lints, licences, and tests up to end-to-end ones on the local Kubernetes.
    Test,
}

#[derive(Args)]
struct Up {
    /// Leave the operator out, to run it on the host.
    #[arg(long)]
    no_operator: bool,
    /// Use the Kubernetes of this context of your kubeconfig instead of starting one.
    #[arg(long, value_name = "NAME", requires = "image")]
    context: Option<String>,
    /// With --context: the operator's image, as a tar or as a reference that the nodes can pull.
    #[arg(long, value_name = "TAR_OR_REFERENCE", requires = "context")]
    image: Option<String>,
}

#[derive(Args)]
struct Down {
    /// Also delete the objects, volumes and logs of the cluster, so that the next `up` starts an empty one.
    #[arg(long)]
    delete_data: bool,
}

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            // The whole chain and no backtrace: these are sentences for a person.
            eprintln!("error: {why:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<()> {
    let layout = Layout::find()?;
    let progress = Progress::new(&layout.cache);
    match cli.command {
        Command::Up(up) => match up.context {
            Some(context) => install::existing::run(
                &layout,
                &progress,
                &context,
                up.image.as_deref(),
                !up.no_operator,
            ),
            None => {
                let _lock = lock::take(&progress)?;
                up::up(&layout, &progress, !up.no_operator)
            }
        },
        Command::Operator => {
            let _lock = lock::take(&progress)?;
            up::roll(&layout, &progress)
        }
        Command::Image => {
            layout.create()?;
            let image = build::operator::ensure(&layout, &progress)?;
            progress.say(&format!("{}\n{}", image.archive.display(), image.name));
            Ok(())
        }
        Command::Status => status::show(&layout),
        Command::Down(down) => {
            let _lock = lock::take(&progress)?;
            progress.step("down", "Stopping the local Kubernetes", |_| {
                cluster::start::stop(&layout, down.delete_data)
            })
        }
        Command::Bench { names } => bench::run(&layout, &progress, &names),
        Command::Soak { hours } => soak::run(&layout, &progress, hours),
        Command::Coverage { seeds, unreached } => {
            coverage::run(&layout, &progress, seeds, unreached)
        }
        Command::Gen => generate::generate(&layout),
        Command::Test => test::run(&layout, &progress, || {
            let _lock = lock::take(&progress)?;
            up::up(&layout, &progress, true)
        }),
    }
}
