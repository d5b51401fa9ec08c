//! Bringing the cluster to life, or back to it.

use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};

use crate::build::{go, images};
use crate::cluster::control_plane::{self, Programs};
use crate::cluster::network::NODES;
use crate::cluster::nodes::{self, Image};
use crate::cluster::{addons, leftovers, mounts, network};
use crate::paths::Layout;
use crate::prerequisites;
use crate::progress::Progress;

/// The whole way: prerequisites, builds, processes, and a wait until all nodes are ready.
pub fn start(layout: &Layout, progress: &Progress) -> Result<()> {
    prerequisites::root()?;
    layout.create()?;
    // `.local` holds keys.
    std::fs::write(layout.local.join(".gitignore"), "*\n")?;
    prerequisites::go()?;
    prerequisites::disk(layout, go::complete(layout)?)?;
    prerequisites::packages(layout, progress)?;
    take_the_machine(layout, progress)?;
    let built = go::ensure(layout, progress)?;
    let images = images::ensure(layout, progress)?;
    let programs = Programs {
        kubernetes: built.kubernetes.clone(),
        etcd: built.etcd.join("server"),
        coredns: built.coredns.join("coredns"),
        provisioner: built.provisioner.join("local-path-provisioner"),
    };
    link(&built.kubernetes.join("kubectl"), &layout.bin("kubectl"))?;
    link(&built.helm3.join("helm"), &layout.bin("helm"))?;
    link(&built.helm4.join("helm"), &layout.bin("helm4"))?;
    if !leftovers::alive(&layout.repo) {
        leftovers::stop_everything();
        forget_running_state(layout);
    }
    mounts::ensure(layout)?;
    network::ensure()?;
    control_plane::configure(layout)?;
    addons::configure(layout)?;
    run(layout, progress, &programs, &images)
}

/// Stops the cluster of this work tree, and leftovers of others. Data stays unless it is to be deleted.
pub fn stop(layout: &Layout, delete_data: bool) -> Result<()> {
    prerequisites::root()?;
    let foreign = leftovers::foreign(&layout.repo);
    let other = foreign.iter().find(|repo| leftovers::alive(repo));
    match other {
        Some(other) if !leftovers::alive(&layout.repo) => {
            bail!(
                "the cluster that runs is that of {}: run `cargo xtask down` there",
                other.display()
            )
        }
        _ => leftovers::stop_everything(),
    }
    let _ = std::fs::remove_dir_all(layout.local.join("run"));
    forget_running_state(layout);
    if delete_data {
        for folder in [
            "conf",
            "etcd",
            "images",
            "kubeconfig",
            "log",
            "nodes",
            "pki",
        ] {
            remove(&layout.local.join(folder))?;
        }
    }
    Ok(())
}

fn remove(path: &Path) -> Result<()> {
    let outcome = if path.is_dir() {
        std::fs::remove_dir_all(path)
    } else {
        std::fs::remove_file(path)
    };
    match outcome {
        Err(why) if why.kind() != std::io::ErrorKind::NotFound => {
            Err(why).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Control plane and nodes start side by side; the kubelets wait for the API server by themselves.
fn run(layout: &Layout, progress: &Progress, programs: &Programs, images: &[Image]) -> Result<()> {
    progress.step(
        "control-plane",
        "Starting the control plane and containerd",
        |_| {
            std::thread::scope(|scope| {
                let mut threads = vec![scope.spawn(|| control_plane::start_api(layout, programs))];
                for node in NODES {
                    threads
                        .push(scope.spawn(move || nodes::start_containerd(layout, node, images)));
                }
                for thread in threads {
                    thread.join().map_err(|_| {
                        anyhow!("a thread that starts a part of the cluster broke")
                    })??;
                }
                control_plane::start_rest(layout, programs)
            })
        },
    )?;
    let before = nodes::renewals(layout);
    let mut started = Vec::new();
    for node in NODES {
        if nodes::start_kubelet(layout, node, programs)? {
            started.push(node);
        }
    }
    addons::apply(layout)?;
    progress.step("nodes", "Waiting for the nodes", |note| {
        nodes::wait_ready(layout, programs, &started, &before, |text| note.set(text))
    })
}

/// Only one cluster can run on a machine: it is a mistake to start a second one, unless the first is nobody's any more.
fn take_the_machine(layout: &Layout, progress: &Progress) -> Result<()> {
    for other in leftovers::foreign(&layout.repo) {
        if !leftovers::alive(&other) {
            continue;
        }
        let abandoned = !other.join("xtask").exists();
        let automatic = std::env::var("CI").is_ok_and(|value| value == "true");
        if !abandoned && !automatic {
            bail!(
                "a local cluster of {} is running and a machine holds one: run `cargo xtask down` there first",
                other.display()
            );
        }
        progress.say(&format!("Stopping the cluster of {}", other.display()));
        leftovers::stop_everything();
    }
    Ok(())
}

/// What describes processes that are gone: containerd must not look for them.
fn forget_running_state(layout: &Layout) {
    for node in NODES {
        let folder = layout.local.join("nodes").join(node.name());
        let _ = std::fs::remove_dir_all(folder.join("state"));
        // Addresses of pods that are gone would be held for ever.
        let _ = std::fs::remove_dir_all(folder.join("addresses"));
    }
}

fn link(target: &Path, name: &Path) -> Result<()> {
    if std::fs::read_link(name).is_ok_and(|old| old == target) {
        return Ok(());
    }
    let _ = std::fs::remove_file(name);
    if let Some(parent) = name.parent() {
        std::fs::create_dir_all(parent)?;
    }
    symlink(target, name).with_context(|| format!("cannot link {}", name.display()))
}
