//! etcd, API server, controller manager, scheduler, kube-proxy, name server and volume provisioner.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::build::images::VALKEY;
use crate::cluster::network::{API_SERVICE, CONTROL_PLANE, NODES, POD_PREFIX, SERVICE_RANGE};
use crate::command::{succeeds, wait_for};
use crate::paths::{Layout, write};
use crate::pki::{self, Leaf};
use crate::processes::Daemon;

/// etcd listens on loopback alone and not at its usual port: it asks nobody who he is.
const ETCD_CLIENT: &str = "127.0.0.1:12379";
const ETCD_PEER: &str = "127.0.0.1:12380";
/// Where the API server listens.
pub const API_SERVER: &str = "10.245.0.1:6443";

/// Programs that a kubeconfig is made for: file, user, group.
const CLIENTS: [(&str, &str, &str); 6] = [
    ("admin", "wellcake-admin", "system:masters"),
    (
        "kube-controller-manager",
        "system:kube-controller-manager",
        "",
    ),
    ("kube-scheduler", "system:kube-scheduler", ""),
    ("kube-proxy", "system:kube-proxy", ""),
    ("coredns", "wellcake-coredns", "system:masters"),
    ("provisioner", "wellcake-provisioner", "system:masters"),
];

/// Writes certificates, kubeconfigs and the other files that the programs read.
pub fn configure(layout: &Layout) -> Result<()> {
    let server_names = [
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
        "127.0.0.1",
        API_SERVICE,
        CONTROL_PLANE,
    ]
    .map(str::to_owned);
    let node_names: Vec<(String, String, [String; 2])> = NODES
        .iter()
        .map(|node| {
            (
                node.name(),
                format!("system:node:{}", node.name()),
                [node.name(), node.address()],
            )
        })
        .collect();
    let mut leaves = vec![
        Leaf {
            file: "apiserver",
            user: "kube-apiserver",
            group: "",
            names: &server_names,
        },
        Leaf {
            file: "apiserver-kubelet",
            user: "kube-apiserver-kubelet",
            group: "system:masters",
            names: &[],
        },
    ];
    leaves.extend(CLIENTS.map(|(file, user, group)| Leaf {
        file,
        user,
        group,
        names: &[],
    }));
    leaves.extend(node_names.iter().map(|(file, user, names)| Leaf {
        file,
        user,
        group: "system:nodes",
        names,
    }));
    pki::ensure(layout, &leaves)?;
    for leaf in &leaves {
        write(
            &layout.conf(&format!("{}.kubeconfig", leaf.file)),
            &kubeconfig(layout, leaf.file),
        )?;
    }
    write(&layout.kubeconfig(), &kubeconfig(layout, "admin"))?;
    write(&layout.conf("audit.yaml"), AUDIT)?;
    write(&layout.conf("kube-proxy.yaml"), &kube_proxy(layout))?;
    write(&layout.conf("Corefile"), &corefile(layout))
}

/// Starts etcd and the API server and waits until the latter answers.
pub fn start_api(layout: &Layout, programs: &Programs) -> Result<()> {
    let etcd = etcd(layout, programs);
    let api = api_server(layout, programs);
    etcd.ensure(layout)?;
    api.ensure(layout)?;
    wait_for(
        "an answer of the API server",
        Duration::from_secs(60),
        || {
            etcd.check_alive(layout)?;
            api.check_alive(layout)?;
            Ok(succeeds(kubectl(layout).args(["get", "--raw", "/readyz"])).then_some(()))
        },
    )
}

/// Starts what needs the API server.
pub fn start_rest(layout: &Layout, programs: &Programs) -> Result<()> {
    for daemon in [
        controller_manager(layout, programs),
        scheduler(layout, programs),
        proxy(layout, programs),
        coredns(layout, programs),
        provisioner(layout, programs),
    ] {
        daemon.ensure(layout)?;
    }
    Ok(())
}

/// Where the built programs are.
#[derive(Clone, Debug)]
pub struct Programs {
    pub kubernetes: PathBuf,
    pub etcd: PathBuf,
    pub coredns: PathBuf,
    pub provisioner: PathBuf,
}

/// kubectl as the administrator.
pub fn kubectl(layout: &Layout) -> Command {
    let mut command = Command::new(layout.bin("kubectl"));
    command.arg("--kubeconfig").arg(layout.kubeconfig());
    command
}

/// Every request once, when it is answered, without bodies.
const AUDIT: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
";

fn etcd(layout: &Layout, programs: &Programs) -> Daemon {
    let data = layout.local.join("etcd");
    Daemon {
        name: "etcd".into(),
        program: programs.etcd.clone(),
        arguments: vec![
            "--name=local".into(),
            format!("--data-dir={}", data.display()),
            format!("--listen-client-urls=http://{ETCD_CLIENT}"),
            format!("--advertise-client-urls=http://{ETCD_CLIENT}"),
            format!("--listen-peer-urls=http://{ETCD_PEER}"),
            format!("--initial-advertise-peer-urls=http://{ETCD_PEER}"),
            format!("--initial-cluster=local=http://{ETCD_PEER}"),
            // A cluster for tests: it survives the death of any process, not the loss of power.
            "--unsafe-no-fsync".into(),
            "--auto-compaction-retention=30m".into(),
            "--quota-backend-bytes=4294967296".into(),
            "--log-level=warn".into(),
        ],
        inputs: vec![],
        listens: vec![ETCD_CLIENT.into(), ETCD_PEER.into()],
    }
}

fn api_server(layout: &Layout, programs: &Programs) -> Daemon {
    let pki = |name: &str| layout.pki(name).display().to_string();
    let arguments = vec![
        format!("--etcd-servers=http://{ETCD_CLIENT}"),
        format!("--bind-address={CONTROL_PLANE}"),
        format!("--advertise-address={CONTROL_PLANE}"),
        "--secure-port=6443".into(),
        format!("--cert-dir={}", layout.local.join("run").display()),
        format!("--tls-cert-file={}", pki("apiserver.crt")),
        format!("--tls-private-key-file={}", pki("apiserver.key")),
        format!("--client-ca-file={}", pki("ca.crt")),
        "--authorization-mode=Node,RBAC".into(),
        "--enable-admission-plugins=NodeRestriction".into(),
        "--allow-privileged=true".into(),
        // The names of the nodes are in no name server.
        "--kubelet-preferred-address-types=InternalIP".into(),
        format!("--kubelet-certificate-authority={}", pki("ca.crt")),
        format!(
            "--kubelet-client-certificate={}",
            pki("apiserver-kubelet.crt")
        ),
        format!("--kubelet-client-key={}", pki("apiserver-kubelet.key")),
        format!("--service-cluster-ip-range={SERVICE_RANGE}"),
        "--service-account-issuer=https://kubernetes.default.svc".into(),
        format!("--service-account-key-file={}", pki("sa.pub")),
        format!("--service-account-signing-key-file={}", pki("sa.key")),
        format!(
            "--audit-policy-file={}",
            layout.conf("audit.yaml").display()
        ),
        format!("--audit-log-path={}", layout.log("audit").display()),
        "--audit-log-maxsize=100".into(),
        "--audit-log-maxbackup=3".into(),
        "--profiling=false".into(),
    ];
    Daemon {
        name: "kube-apiserver".into(),
        program: programs.kubernetes.join("kube-apiserver"),
        arguments,
        inputs: vec![
            layout.pki("ca.crt"),
            layout.pki("apiserver.crt"),
            layout.pki("apiserver-kubelet.crt"),
            layout.pki("sa.pub"),
            layout.conf("audit.yaml"),
        ],
        listens: vec![API_SERVER.into()],
    }
}

fn controller_manager(layout: &Layout, programs: &Programs) -> Daemon {
    let pki = |name: &str| layout.pki(name).display().to_string();
    Daemon {
        name: "kube-controller-manager".into(),
        program: programs.kubernetes.join("kube-controller-manager"),
        arguments: vec![
            kubeconfig_flag(layout, "kube-controller-manager"),
            "--bind-address=127.0.0.1".into(),
            "--secure-port=10257".into(),
            format!("--cert-dir={}", layout.local.join("run").display()),
            "--leader-elect=false".into(),
            "--use-service-account-credentials=true".into(),
            format!("--service-account-private-key-file={}", pki("sa.key")),
            format!("--root-ca-file={}", pki("ca.crt")),
            format!("--cluster-signing-cert-file={}", pki("ca.crt")),
            format!("--cluster-signing-key-file={}", pki("ca.key")),
        ],
        inputs: vec![layout.pki("ca.crt"), layout.pki("sa.pub")],
        listens: vec!["127.0.0.1:10257".into()],
    }
}

fn scheduler(layout: &Layout, programs: &Programs) -> Daemon {
    Daemon {
        name: "kube-scheduler".into(),
        program: programs.kubernetes.join("kube-scheduler"),
        arguments: vec![
            kubeconfig_flag(layout, "kube-scheduler"),
            "--bind-address=127.0.0.1".into(),
            "--secure-port=10259".into(),
            format!("--cert-dir={}", layout.local.join("run").display()),
            "--leader-elect=false".into(),
        ],
        inputs: vec![layout.pki("ca.crt")],
        listens: vec!["127.0.0.1:10259".into()],
    }
}

fn proxy(layout: &Layout, programs: &Programs) -> Daemon {
    Daemon {
        name: "kube-proxy".into(),
        program: programs.kubernetes.join("kube-proxy"),
        arguments: vec![format!(
            "--config={}",
            layout.conf("kube-proxy.yaml").display()
        )],
        inputs: vec![layout.pki("ca.crt"), layout.conf("kube-proxy.yaml")],
        listens: vec!["127.0.0.1:10249".into(), format!("{CONTROL_PLANE}:10256")],
    }
}

fn coredns(layout: &Layout, programs: &Programs) -> Daemon {
    Daemon {
        name: "coredns".into(),
        program: programs.coredns.clone(),
        arguments: vec![format!("-conf={}", layout.conf("Corefile").display())],
        inputs: vec![layout.pki("ca.crt"), layout.conf("Corefile")],
        listens: vec![format!("{CONTROL_PLANE}:53")],
    }
}

fn provisioner(layout: &Layout, programs: &Programs) -> Daemon {
    Daemon {
        name: "local-path-provisioner".into(),
        program: programs.provisioner.clone(),
        arguments: vec![
            "start".into(),
            format!(
                "--kubeconfig={}",
                layout.conf("provisioner.kubeconfig").display()
            ),
            format!("--config={}", layout.conf("provisioner.json").display()),
            format!(
                "--helper-pod-file={}",
                layout.conf("provisioner-pod.yaml").display()
            ),
            "--configmap-name=local-path-config".into(),
            "--namespace=local-path-storage".into(),
            "--provisioner-name=rancher.io/local-path".into(),
            format!("--helper-image={VALKEY}"),
            "--service-account-name=default".into(),
        ],
        inputs: vec![
            layout.pki("ca.crt"),
            layout.conf("provisioner.json"),
            layout.conf("provisioner-pod.yaml"),
        ],
        listens: vec![],
    }
}

fn kubeconfig_flag(layout: &Layout, name: &str) -> String {
    format!(
        "--kubeconfig={}",
        layout.conf(&format!("{name}.kubeconfig")).display()
    )
}

fn kubeconfig(layout: &Layout, name: &str) -> String {
    let pki = |file: &str| layout.pki(file).display().to_string();
    format!(
        "\
apiVersion: v1
kind: Config
clusters:
- name: wellcake
  cluster:
    server: https://{API_SERVER}
    certificate-authority: {ca}
users:
- name: {name}
  user:
    client-certificate: {certificate}
    client-key: {key}
contexts:
- name: wellcake
  context:
    cluster: wellcake
    user: {name}
current-context: wellcake
",
        ca = pki("ca.crt"),
        certificate = pki(&format!("{name}.crt")),
        key = pki(&format!("{name}.key")),
    )
}

/// One proxy serves all nodes, as they share a network namespace. How often it writes is left as Kubernetes ships it.
fn kube_proxy(layout: &Layout) -> String {
    format!(
        "\
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
bindAddress: {CONTROL_PLANE}
healthzBindAddress: {CONTROL_PLANE}:10256
metricsBindAddress: 127.0.0.1:10249
hostnameOverride: node-1
clusterCIDR: {POD_PREFIX}0.0/16
clientConnection:
  kubeconfig: {kubeconfig}
conntrack:
  maxPerCore: 0
",
        kubeconfig = layout.conf("kube-proxy.kubeconfig").display()
    )
}

fn corefile(layout: &Layout) -> String {
    let servers = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    // CoreDNS does not start with a file that names no server.
    let forward = if servers.lines().any(|line| line.starts_with("nameserver")) {
        "    forward . /etc/resolv.conf\n"
    } else {
        ""
    };
    format!(
        "\
.:53 {{
    bind {CONTROL_PLANE}
    errors
    kubernetes cluster.local in-addr.arpa ip6.arpa {{
        kubeconfig {kubeconfig}
        pods insecure
        ttl 1
    }}
{forward}    cache 5
}}
",
        kubeconfig = layout.conf("coredns.kubeconfig").display()
    )
}
