//! The core stays pure: its dependencies hold no client, no runtime and no randomness. Calls that read a clock, which the
//! time type of Kubernetes brings along, are forbidden by `core/clippy.toml`.

// A test may stop with a message.
#![allow(clippy::expect_used)]

use std::process::Command;

fn tree(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--package", "wellcake-core", "--edges"])
        .args(arguments)
        .args(["--prefix", "none"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo tree runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success() && text.contains("wellcake-core"),
        "cargo tree failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

#[test]
fn the_dependency_tree_has_no_client_runtime_randomness_or_clock() {
    const FORBIDDEN: [&str; 13] = [
        "tokio",
        "hyper",
        "kube-client",
        "kube-runtime",
        "redis",
        "rand",
        "rand_core",
        "getrandom",
        "fastrand",
        "chrono",
        "time",
        "mio",
        "socket2",
    ];
    let tree = tree(&["normal"]);
    let found: Vec<_> = tree
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| FORBIDDEN.contains(name))
        .collect();
    assert!(found.is_empty(), "the core depends on {found:?}");
}
