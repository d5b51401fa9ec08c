//! What a cluster has beside the control plane: the name of the name server, and a StorageClass.

use anyhow::Result;
use serde_json::json;

use crate::build::images::VALKEY;
use crate::cluster::control_plane::kubectl;
use crate::cluster::network::{CONTROL_PLANE, DNS_SERVICE, NODES};
use crate::command::output_with_input;
use crate::paths::{Layout, write};

/// Writes the files that the volume provisioner reads at its start.
pub fn configure(layout: &Layout) -> Result<()> {
    let paths: Vec<_> = NODES
        .iter()
        .map(|node| {
            let folder = layout.node(&node.name()).join("volumes");
            json!({"node": node.name(), "paths": [folder]})
        })
        .collect();
    let config = json!({"nodePathMap": paths});
    write(&layout.conf("provisioner.json"), &format!("{config:#}\n"))?;
    write(&layout.conf("provisioner-pod.yaml"), &helper_pod())
}

/// Applies the objects. Nothing changes when they are there.
pub fn apply(layout: &Layout) -> Result<()> {
    let text = format!("{}---\n{}", name_server(), storage());
    output_with_input(
        kubectl(layout).args([
            "apply",
            "--server-side",
            "--force-conflicts",
            "--field-manager=xtask",
            "-f",
            "-",
        ]),
        &text,
    )?;
    Ok(())
}

/// The Service of the name server, which is a process of the first node.
fn name_server() -> String {
    format!(
        "\
apiVersion: v1
kind: Service
metadata:
  name: kube-dns
  namespace: kube-system
  labels:
    k8s-app: kube-dns
spec:
  clusterIP: {DNS_SERVICE}
  ports:
  - {{name: dns, port: 53, protocol: UDP}}
  - {{name: dns-tcp, port: 53, protocol: TCP}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: kube-dns
  namespace: kube-system
  labels:
    kubernetes.io/service-name: kube-dns
    endpointslice.kubernetes.io/managed-by: xtask
addressType: IPv4
endpoints:
- addresses: [{CONTROL_PLANE}]
  conditions: {{ready: true}}
ports:
- {{name: dns, port: 53, protocol: UDP}}
- {{name: dns-tcp, port: 53, protocol: TCP}}
"
    )
}

/// Folders of the nodes as volumes. Nothing grows them, but a larger request is accepted.
fn storage() -> &'static str {
    r#"apiVersion: v1
kind: Namespace
metadata:
  name: local-path-storage
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: local-path-config
  namespace: local-path-storage
data:
  setup: |
    #!/bin/sh
    set -eu
    mkdir -m 0777 -p "$VOL_DIR"
  teardown: |
    #!/bin/sh
    set -eu
    rm -rf "$VOL_DIR"
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: standard
  annotations:
    storageclass.kubernetes.io/is-default-class: "true"
provisioner: rancher.io/local-path
volumeBindingMode: WaitForFirstConsumer
reclaimPolicy: Delete
allowVolumeExpansion: true
"#
}

/// Root, because it makes and removes the folders of all users.
fn helper_pod() -> String {
    format!(
        "\
apiVersion: v1
kind: Pod
metadata:
  name: helper-pod
spec:
  priorityClassName: system-node-critical
  terminationGracePeriodSeconds: 0
  securityContext:
    runAsUser: 0
    runAsGroup: 0
  containers:
  - name: helper-pod
    image: {VALKEY}
    imagePullPolicy: IfNotPresent
"
    )
}
