//! A node: containerd with the images, and a kubelet.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::cluster::cgroups;
use crate::cluster::control_plane::{Programs, kubectl};
use crate::cluster::network::{DNS_SERVICE, NODES, Node};
use crate::command::{logged, output, succeeds, wait_for};
use crate::paths::{Layout, digest, write};
use crate::processes::Daemon;

/// An image as it lies in the cache.
#[derive(Clone, Debug)]
pub struct Image {
    /// The full name with its tag.
    pub name: String,
    /// An archive in OCI format.
    pub archive: PathBuf,
}

/// Starts containerd and imports the images that it lacks.
pub fn start_containerd(layout: &Layout, node: Node, images: &[Image]) -> Result<()> {
    let folder = layout.node(&node.name());
    for name in ["cni", "kubelet", "opt", "root", "state", "volumes"] {
        std::fs::create_dir_all(folder.join(name))?;
    }
    write(
        &folder.join("containerd.toml"),
        &containerd_settings(&folder),
    )?;
    write(&folder.join("cni/10-pods.conflist"), &cni(&folder, node))?;
    let daemon = containerd(&folder, node);
    daemon.ensure(layout)?;
    wait_for("an answer of containerd", Duration::from_secs(30), || {
        daemon.check_alive(layout)?;
        Ok(succeeds(ctr(layout, node).arg("version")).then_some(()))
    })?;
    for image in images {
        import(layout, node, image)?;
    }
    Ok(())
}

/// Starts the kubelet. True when it did not run yet.
pub fn start_kubelet(layout: &Layout, node: Node, programs: &Programs) -> Result<bool> {
    cgroups::ensure(node)?;
    let folder = layout.node(&node.name());
    write(
        &folder.join("kubelet.yaml"),
        &kubelet_settings(layout, &folder, node),
    )?;
    kubelet(layout, &folder, node, programs).ensure(layout)
}

/// When each node last renewed its lease, as `NAME=TIME`.
pub fn renewals(layout: &Layout) -> BTreeSet<String> {
    let answer = output(kubectl(layout).args([
        "get",
        "leases",
        "--namespace=kube-node-lease",
        "--output=jsonpath={range .items[*]}{.metadata.name}={.spec.renewTime} {end}",
    ]));
    answer
        .unwrap_or_default()
        .split_whitespace()
        .map(str::to_owned)
        .collect()
}

/// How often kubelets that ended at once are started again. All of a machine listen at one socket for device plugins, whatever
/// their folders, and of two that make it in the same moment one ends with `address already in use` (seen once in some
/// hundred starts).
const STARTED_AGAIN: u32 = 3;

/// Waits until all nodes are ready. `started` have just been started: what the API server says of them may be older, so
/// their leases must have been renewed since `before`.
pub fn wait_ready(
    layout: &Layout,
    programs: &Programs,
    started: &[Node],
    before: &BTreeSet<String>,
    note: impl Fn(String),
) -> Result<()> {
    let again = Cell::new(0);
    wait_for(
        "a sign of life of all nodes",
        Duration::from_secs(90),
        || {
            for node in NODES {
                let kubelet = kubelet(layout, &layout.node(&node.name()), node, programs);
                if let Err(why) = kubelet.check_alive(layout) {
                    if again.get() == STARTED_AGAIN {
                        return Err(why);
                    }
                    again.set(again.get() + 1);
                    kubelet.ensure(layout)?;
                }
            }
            let now = renewals(layout);
            let living = started
                .iter()
                .filter(|node| renewed(**node, before, &now))
                .count();
            note(format!("{living} of {} started", started.len()));
            Ok((living == started.len()).then_some(()))
        },
    )?;
    wait_for("readiness of all nodes", Duration::from_secs(90), || {
        for node in NODES {
            kubelet(layout, &layout.node(&node.name()), node, programs).check_alive(layout)?;
        }
        let answer = output(kubectl(layout).args([
            "get",
            "nodes",
            "-o",
            "jsonpath={range .items[*]}{.status.conditions[?(@.type==\"Ready\")].status} {end}",
        ]))
        .unwrap_or_default();
        let ready = answer
            .split_whitespace()
            .filter(|status| *status == "True")
            .count();
        note(format!("{ready} of {} ready", NODES.len()));
        Ok((ready == NODES.len()).then_some(()))
    })
}

fn renewed(node: Node, before: &BTreeSet<String>, now: &BTreeSet<String>) -> bool {
    let name = format!("{}=", node.name());
    now.difference(before).any(|lease| lease.starts_with(&name))
}

/// Imports an image unless the node has this very archive under this name.
pub fn import(layout: &Layout, node: Node, image: &Image) -> Result<()> {
    let key = digest(format!("{} {}", image.name, image.archive.display()).as_bytes());
    let marker = layout.node(&node.name()).join("images").join(&key[..16]);
    let listed = output(ctr(layout, node).args(["images", "list", "-q"]))?;
    if marker.exists() && listed.lines().any(|name| name == image.name) {
        return Ok(());
    }
    logged(
        ctr(layout, node)
            .args(["images", "import", "--snapshotter=overlayfs"])
            .arg(&image.archive),
        &layout.log("images"),
    )
    .with_context(|| format!("importing {} into {}", image.name, node.name()))?;
    write(&marker, &image.name)
}

/// Removes images of the same repository with other tags. What still runs from them goes on running.
pub fn remove_others(layout: &Layout, node: Node, image: &Image) -> Result<()> {
    let listed = output(ctr(layout, node).args(["images", "list", "-q"]))?;
    for name in others(&listed, &image.name) {
        output(ctr(layout, node).args(["images", "remove", &name]))?;
    }
    Ok(())
}

fn others(listed: &str, name: &str) -> Vec<String> {
    let Some((repository, _)) = name.rsplit_once(':') else {
        return Vec::new();
    };
    listed
        .lines()
        .filter(|line| {
            *line != name
                && line
                    .strip_prefix(repository)
                    .is_some_and(|rest| rest.starts_with(':'))
        })
        .map(str::to_owned)
        .collect()
}

fn ctr(layout: &Layout, node: Node) -> Command {
    let mut command = Command::new("ctr");
    command
        .arg("--address")
        .arg(layout.node(&node.name()).join("containerd.sock"))
        .args(["--namespace", "k8s.io"]);
    command
}

fn containerd(folder: &Path, node: Node) -> Daemon {
    Daemon {
        name: format!("containerd-{}", node.name()),
        program: "/usr/bin/containerd".into(),
        arguments: vec![
            format!("--config={}", folder.join("containerd.toml").display()),
            "--log-level=warn".into(),
        ],
        inputs: vec![folder.join("containerd.toml")],
        listens: vec![],
    }
}

fn kubelet(layout: &Layout, folder: &Path, node: Node, programs: &Programs) -> Daemon {
    Daemon {
        name: format!("kubelet-{}", node.name()),
        program: programs.kubernetes.join("kubelet"),
        arguments: vec![
            format!("--config={}", folder.join("kubelet.yaml").display()),
            format!(
                "--kubeconfig={}",
                layout
                    .conf(&format!("{}.kubeconfig", node.name()))
                    .display()
            ),
            format!("--hostname-override={}", node.name()),
            format!("--node-ip={}", node.address()),
            format!("--node-labels=topology.kubernetes.io/zone={}", node.zone()),
            format!("--root-dir={}", folder.join("kubelet").display()),
            format!("--cert-dir={}", folder.join("kubelet/pki").display()),
        ],
        inputs: vec![
            folder.join("kubelet.yaml"),
            layout.pki("ca.crt"),
            layout.pki(&format!("{}.crt", node.name())),
        ],
        listens: vec![
            format!("{}:10250", node.address()),
            format!("{}:10248", node.address()),
        ],
    }
}

fn containerd_settings(folder: &Path) -> String {
    let at = |name: &str| folder.join(name).display().to_string();
    format!(
        r#"version = 2
root = "{root}"
state = "{state}"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
]

[grpc]
address = "{socket}"

[plugins."io.containerd.internal.v1.opt"]
path = "{opt}"

[plugins."io.containerd.grpc.v1.cri"]
# Lowering the score needs CAP_SYS_RESOURCE, which root in a container or a small virtual machine may lack.
restrict_oom_score_adj = true
sandbox_image = "{pause}"
netns_mounts_under_state_dir = true

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "{cni}"

[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "overlayfs"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false
"#,
        root = at("root"),
        state = at("state"),
        socket = at("containerd.sock"),
        opt = at("opt"),
        cni = at("cni"),
        pause = crate::build::images::PAUSE,
    )
}

fn cni(folder: &Path, node: Node) -> String {
    let config = serde_json::json!({
        "cniVersion": "0.4.0",
        "name": format!("wellcake-{}", node.name()),
        "plugins": [{
            "type": "bridge",
            "bridge": node.pod_bridge(),
            "isGateway": true,
            "ipMasq": false,
            "hairpinMode": true,
            "ipam": {
                "type": "host-local",
                "dataDir": folder.join("addresses"),
                "ranges": [[{"subnet": node.pod_range()}]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        }],
    });
    format!("{config:#}\n")
}

fn kubelet_settings(layout: &Layout, folder: &Path, node: Node) -> String {
    let config = serde_json::json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node.address(),
        "port": 10250,
        "healthzBindAddress": node.address(),
        "healthzPort": 10248,
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": layout.pki("ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": layout.pki(&format!("{}.crt", node.name())),
        "tlsPrivateKeyFile": layout.pki(&format!("{}.key", node.name())),
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroups::root_of(node),
        "containerRuntimeEndpoint": format!("unix://{}", folder.join("containerd.sock").display()),
        "podLogsDir": folder.join("pod-logs"),
        "volumePluginDir": folder.join("volume-plugins"),
        "clusterDNS": [DNS_SERVICE],
        "clusterDomain": "cluster.local",
        "failSwapOn": false,
        "makeIPTablesUtilChains": false,
        "maxPods": 250,
        // The disk is that of the whole machine; a full one is not the fault of the pods.
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
    });
    format!("{config:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_lives_when_its_lease_is_new() {
        let set = |leases: &[&str]| {
            leases
                .iter()
                .map(|lease| (*lease).to_owned())
                .collect::<BTreeSet<_>>()
        };
        let before = set(&["node-1=10:00", "node-2=10:00"]);
        let now = set(&["node-1=10:00", "node-2=10:07", "node-3=10:07"]);
        let living = NODES.map(|node| renewed(node, &before, &now));
        assert_eq!(living, [false, true, true]);
    }

    #[test]
    fn only_other_tags_of_the_same_repository_go() {
        let listed = "docker.io/valkey/valkey:8.0\nlocalhost/a:1\nlocalhost/a:2\nlocalhost/a-b:1\nsha256:12\n";
        assert_eq!(others(listed, "localhost/a:2"), ["localhost/a:1"]);
    }
}
