//! The binary `valkey-operator`.

use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use wellcake_operator::flags::{Command, CommandLine};
use wellcake_operator::run::run;

fn main() -> ExitCode {
    let outcome = match CommandLine::parse().command {
        Command::Run(flags) => start(*flags),
        Command::Crds => {
            print!("{}", wellcake_crds::crds_yaml());
            Ok(())
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("valkey-operator: {why:#}");
            ExitCode::FAILURE
        }
    }
}

fn start(flags: wellcake_operator::flags::Run) -> anyhow::Result<()> {
    // Before anything speaks TLS: every library takes the process's provider.
    rustls::crypto::ring::default_provider()
        .install_default()
        .map_err(|_| anyhow::anyhow!("another TLS provider was installed before"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let outcome = runtime.block_on(run(flags));
    // What still runs on a blocking thread, such as a name lookup, must not hold up the end.
    runtime.shutdown_background();
    outcome
}
