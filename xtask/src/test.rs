//! Everything that must hold before a change is good: format, lints, licences, tests without and with a cluster.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::build::images;
use crate::build::store::Item;
use crate::build::wheel;
use crate::command::{logged, output, output_with_input, shown_to_user};
use crate::install::chart::CHART;
use crate::paths::Layout;
use crate::prerequisites;
use crate::progress::{Progress, seconds};
use crate::schemas;

const CARGO_DENY: &str = "0.20.2";
/// The package whose tests need the cluster with the operator.
const END_TO_END: &str = "wellcake-e2e";
/// Tests that start servers; they are run with the oldest and with the newest release.
const WITH_SERVERS: [&str; 2] = ["render_real_server", "servers"];

/// What ran, for how long, and whether it held.
struct Stage {
    name: &'static str,
    took: Duration,
    failure: Option<String>,
}

/// The stages in their order. All are tried that can tell something; the last line is the verdict.
struct Stages(Vec<Stage>);

impl Stages {
    fn run(&mut self, name: &'static str, work: impl FnOnce() -> Result<()>) -> bool {
        println!("\n== {name}");
        let start = Instant::now();
        let failure = work().err().map(|why| format!("{why:#}"));
        if let Some(why) = &failure {
            println!("{name} FAILED: {why}");
        }
        let held = failure.is_none();
        self.0.push(Stage {
            name,
            took: start.elapsed(),
            failure,
        });
        held
    }

    fn all_held(&self) -> bool {
        self.0.iter().all(|stage| stage.failure.is_none())
    }

    fn table(&self) -> String {
        let mut text = String::new();
        for stage in &self.0 {
            let mark = if stage.failure.is_none() {
                "ok"
            } else {
                "FAILED"
            };
            text.push_str(&format!(
                "{:<34} {mark:<6} {}\n",
                stage.name,
                seconds(stage.took)
            ));
        }
        text
    }

    /// Prints the seconds of each stage; an error names those that failed.
    fn verdict(&self) -> Result<()> {
        print!("\n{}", self.table());
        let failed: Vec<&str> = self
            .0
            .iter()
            .filter(|it| it.failure.is_some())
            .map(|it| it.name)
            .collect();
        if !failed.is_empty() {
            bail!("failed: {}", failed.join(", "));
        }
        Ok(())
    }
}

/// Runs all stages. `up` brings the cluster with the operator to life.
pub fn run(layout: &Layout, progress: &Progress, up: impl FnOnce() -> Result<()>) -> Result<()> {
    prerequisites::root()?;
    layout.create()?;
    let mut stages = Stages(Vec::new());
    let targets = Targets::of(&layout.repo)?;
    let cargo = |arguments: &[&str]| shown_to_user(cargo(layout).args(arguments));
    stages.run("format", || cargo(&["fmt", "--all", "--check"]));
    stages.run("lints", || {
        cargo(&[
            "clippy",
            "--locked",
            "--workspace",
            "--all-targets",
            "--",
            "--deny",
            "warnings",
        ])
    });
    stages.run("licences and sources", || dependencies(layout, progress));
    stages.run("tests without a cluster", || {
        prerequisites::packages(layout, progress)?;
        prerequisites::packages_for_tests(layout, progress)?;
        let valkey = images::valkey_programs(layout, progress)?;
        shown_to_user(
            cargo_test(layout)
                .args(["--lib", "--bins"])
                .args(selected(&targets.alone))
                .env("VALKEY_SERVER", valkey.join("valkey-server")),
        )
    });
    stages.run("tests with servers of Valkey 9.1", || {
        let server = wheel::valkey_server(layout, progress)?;
        shown_to_user(
            cargo_test(layout)
                .args(WITH_SERVERS.iter().flat_map(|name| ["--test", name]))
                .env("VALKEY_SERVER", server),
        )
    });
    stages.run("examples in doc comments", || {
        cargo(&["test", "--locked", "--workspace", "--doc", "--quiet"])
    });
    // A cluster takes minutes on a cold machine; what failed without it is told first.
    if !stages.all_held() {
        return stages.verdict();
    }
    if stages.run("local cluster with the operator", up) {
        stages.run("chart", || chart(layout));
        stages.run("tests on the API server", || {
            shown_to_user(cargo_test(layout).args(selected(&targets.api_server)))
        });
        stages.run("end-to-end tests", || {
            shown_to_user(cargo_test(layout).args(selected(&targets.end_to_end)))
        });
    }
    stages.verdict()
}

fn cargo(layout: &Layout) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(&layout.repo);
    command
}

/// `cargo test` of the workspace with the local cluster as its Kubernetes.
fn cargo_test(layout: &Layout) -> Command {
    let mut command = cargo(layout);
    command
        .args(["test", "--locked", "--workspace", "--no-fail-fast"])
        .env("KUBECONFIG", layout.kubeconfig())
        .env("PATH", layout.path());
    command
}

fn selected(names: &[String]) -> Vec<&str> {
    names
        .iter()
        .flat_map(|name| ["--test", name.as_str()])
        .collect()
}

/// The integration tests of the workspace, by what they need.
#[derive(Debug, Default, PartialEq, Eq)]
struct Targets {
    /// Nothing.
    alone: Vec<String>,
    /// An API server: named `api_server...`.
    api_server: Vec<String>,
    /// The cluster with the operator: those of the package `wellcake-e2e`.
    end_to_end: Vec<String>,
}

impl Targets {
    fn of(repo: &Path) -> Result<Self> {
        let text = output(
            Command::new("cargo")
                .args(["metadata", "--no-deps", "--format-version=1"])
                .current_dir(repo),
        )?;
        let targets = Self::parse(&serde_json::from_str(&text)?);
        // A stage that selects nothing would run everything, or pass without a test.
        if targets.api_server.is_empty() || targets.end_to_end.is_empty() {
            bail!(
                "the workspace has no test named `api_server...` or none in {END_TO_END}: {targets:?}"
            );
        }
        Ok(targets)
    }

    fn parse(metadata: &Value) -> Self {
        let mut targets = Self::default();
        let all = list(&metadata["packages"]).flat_map(|package| {
            list(&package["targets"]).map(move |target| (&package["name"], target))
        });
        for (package, target) in all {
            if !list(&target["kind"]).any(|kind| kind == "test") {
                continue;
            }
            let name = target["name"].as_str().unwrap_or_default().to_owned();
            let group = if package == END_TO_END {
                &mut targets.end_to_end
            } else if name.starts_with("api_server") {
                &mut targets.api_server
            } else {
                &mut targets.alone
            };
            group.push(name);
        }
        for group in [
            &mut targets.alone,
            &mut targets.api_server,
            &mut targets.end_to_end,
        ] {
            group.sort();
            group.dedup();
        }
        targets
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Licences, forbidden crates and sources. Advisories are left out: their database is no package of a registry.
fn dependencies(layout: &Layout, progress: &Progress) -> Result<()> {
    let deny = cargo_deny(layout, progress)?;
    shown_to_user(
        Command::new(deny)
            .args([
                "--locked",
                "--workspace",
                "check",
                "bans",
                "licenses",
                "sources",
            ])
            .current_dir(&layout.repo),
    )
}

/// The program `cargo-deny`, built once. Not optimised: that would take longer than all its runs.
fn cargo_deny(layout: &Layout, progress: &Progress) -> Result<std::path::PathBuf> {
    let arguments = [
        "install",
        "--locked",
        "--debug",
        "--no-default-features",
        "--config=profile.dev.debug=0",
    ];
    let recipe = format!("cargo-deny {CARGO_DENY} {arguments:?}");
    let item = Item {
        name: "cargo-deny",
        what: "Building cargo-deny, which checks licences",
        version: CARGO_DENY,
        recipe: &recipe,
    };
    let folder = item.ensure(&layout.cache, progress, |folder, _| {
        let target = folder.join("target");
        logged(
            Command::new("cargo")
                .args(arguments)
                .arg(format!("--version={CARGO_DENY}"))
                .arg("--root")
                .arg(folder)
                .arg("cargo-deny")
                .env("CARGO_TARGET_DIR", &target)
                .current_dir(&layout.repo),
            &layout.log("build"),
        )?;
        std::fs::remove_dir_all(&target)
            .context("cannot remove what was left of building cargo-deny")
    })?;
    Ok(folder.join("bin/cargo-deny"))
}

/// Both current lines of Helm accept the chart, and the API server accepts what comes out of it.
fn chart(layout: &Layout) -> Result<()> {
    for name in ["helm", "helm4"] {
        let helm = layout.bin(name);
        shown_to_user(
            Command::new(&helm)
                .args(["lint", "--strict", CHART])
                .current_dir(&layout.repo),
        )?;
        let rendered = template(layout, name, 34)?;
        output_with_input(
            crate::cluster::control_plane::kubectl(layout).args([
                "apply",
                "--server-side",
                "--force-conflicts",
                "--dry-run=server",
                "--validate=strict",
                "--filename=-",
            ]),
            &rendered,
        )
        .with_context(|| format!("what {} makes of the chart is not accepted", helm.display()))?;
    }
    schemas::judge(|minor| template(layout, "helm", minor))
}

/// What a Helm makes of the chart for Kubernetes `1.minor`.
fn template(layout: &Layout, helm: &str, minor: u32) -> Result<String> {
    output(
        Command::new(layout.bin(helm))
            .args(["template", "valkey-operator", CHART])
            .args(["--namespace", "valkey-operator"])
            // What a Helm that was built from its module takes for the version of Kubernetes is too old.
            .args(["--kube-version", &format!("1.{minor}.0")])
            .arg("--include-crds")
            .current_dir(&layout.repo),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tests_are_sorted_by_what_they_need() {
        let target = |kind: &str, name: &str| json!({"kind": [kind], "name": name});
        let metadata = json!({"packages": [
            {"name": "wellcake-crds", "targets": [target("lib", "wellcake_crds"), target("test", "schema"), target("test", "api_server")]},
            {"name": END_TO_END, "targets": [target("test", "failover"), target("bin", "bench")]},
            {"name": "wellcake-core", "targets": [target("test", "generated")]},
        ]});
        assert_eq!(
            Targets::parse(&metadata),
            Targets {
                alone: vec!["generated".into(), "schema".into()],
                api_server: vec!["api_server".into()],
                end_to_end: vec!["failover".into()],
            }
        );
    }

    #[test]
    fn the_verdict_names_what_failed() {
        let mut stages = Stages(Vec::new());
        assert!(stages.run("good", || Ok(())));
        assert!(!stages.run("bad", || bail!("out of luck")));
        assert!(!stages.all_held());
        let error = stages.verdict().expect_err("one stage failed").to_string();
        assert_eq!(error, "failed: bad");
        assert!(stages.table().contains("bad") && stages.table().contains("FAILED"));
    }

    #[test]
    fn every_selected_test_has_its_flag() {
        assert_eq!(
            selected(&["a".into(), "b".into()]),
            ["--test", "a", "--test", "b"]
        );
    }
}
