//! Addresses, bridges and kernel settings.
//!
//! The nodes share the network namespace of the machine. Each has an address of its own on one bridge, so that all of
//! them use the ports that nodes usually use; each has a bridge of its own for its pods.

use std::process::Command;

use anyhow::{Context, Result};

use crate::command::{output, succeeds};

/// The bridge that carries the addresses of the nodes.
pub const NODE_BRIDGE: &str = "wellcake0";
/// The first addresses of the pods of all nodes.
pub const POD_PREFIX: &str = "10.244.";
/// Service addresses; the first is the API server, the tenth the name server.
pub const SERVICE_RANGE: &str = "10.96.0.0/16";
/// The address of the API server as pods see it.
pub const API_SERVICE: &str = "10.96.0.1";
/// The address of the name server as pods see it.
pub const DNS_SERVICE: &str = "10.96.0.10";
/// The address at which the control plane listens: that of the first node.
pub const CONTROL_PLANE: &str = "10.245.0.1";

/// How many watches of files one user may have: each node needs some dozens, and the usual limit is 128.
const INOTIFY_INSTANCES: u32 = 1024;
/// From a pod and to a pod.
const DIRECTIONS: [&str; 2] = ["-i", "-o"];

/// A node of the cluster.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// Counts from 1.
    pub index: u8,
}

/// The nodes of the cluster.
pub const NODES: [Node; 3] = [Node { index: 1 }, Node { index: 2 }, Node { index: 3 }];

impl Node {
    pub fn name(self) -> String {
        format!("node-{}", self.index)
    }

    pub fn address(self) -> String {
        format!("10.245.0.{}", self.index)
    }

    pub fn zone(self) -> String {
        format!("zone-{}", char::from(b'a' + self.index - 1))
    }

    /// At most 15 characters, the limit of the kernel.
    pub fn pod_bridge(self) -> String {
        format!("wellcake-pod{}", self.index)
    }

    pub fn pod_range(self) -> String {
        format!("{POD_PREFIX}{}.0/24", self.index)
    }
}

/// Makes the node bridge with its addresses and lets the kernel route between the pods.
pub fn ensure() -> Result<()> {
    // Both may be built in or already there; what is really missing shows in the settings below.
    for module in ["overlay", "br_netfilter"] {
        succeeds(Command::new("modprobe").arg(module));
    }
    set("net/ipv4/ip_forward", "1")
        .context("pods of different nodes could not reach each other")?;
    // Without it the answer of a pod on the same bridge bypasses the translation of Service addresses.
    set("net/bridge/bridge-nf-call-iptables", "1").context(
        "the kernel module br_netfilter is needed: load it with `modprobe br_netfilter`",
    )?;
    if !succeeds(ip().args(["link", "show", NODE_BRIDGE])) {
        output(ip().args(["link", "add", NODE_BRIDGE, "type", "bridge"]))?;
    }
    output(ip().args(["link", "set", NODE_BRIDGE, "up"]))?;
    let addresses = output(ip().args(["-4", "-o", "addr", "show", "dev", NODE_BRIDGE]))?;
    for node in NODES {
        let address = format!("{}/24", node.address());
        if !addresses.contains(&format!(" {address} ")) {
            output(ip().args(["addr", "add", &address, "dev", NODE_BRIDGE]))?;
        }
    }
    // Also on a machine without a default route the addresses of Services must lead somewhere before they are translated.
    output(ip().args(["route", "replace", SERVICE_RANGE, "dev", NODE_BRIDGE]))?;
    let watches = "fs/inotify/max_user_instances";
    if setting(watches)?
        .parse::<u32>()
        .is_ok_and(|now| now < INOTIFY_INSTANCES)
    {
        set(watches, &INOTIFY_INSTANCES.to_string())?;
    }
    let_pods_through()
}

/// Docker and firewalls close the FORWARD chain, through which everything from and to a pod goes.
fn let_pods_through() -> Result<()> {
    let rules = output(Command::new("iptables").args(["-w", "-S", "FORWARD"]))?;
    if !rules.lines().any(|line| line == "-P FORWARD DROP") {
        return Ok(());
    }
    for direction in DIRECTIONS {
        let rule = [direction, "wellcake+", "-j", "ACCEPT"];
        if !succeeds(
            Command::new("iptables")
                .args(["-w", "-C", "FORWARD"])
                .args(rule),
        ) {
            output(
                Command::new("iptables")
                    .args(["-w", "-I", "FORWARD"])
                    .args(rule),
            )?;
        }
    }
    Ok(())
}

/// Removes the bridges and the pods' ends of them, and what lets their packets through.
pub fn remove() {
    let links = output(ip().args(["-o", "link", "show"])).unwrap_or_default();
    for link in ours(&links) {
        succeeds(ip().args(["link", "delete", &link]));
    }
    for direction in DIRECTIONS {
        succeeds(Command::new("iptables").args([
            "-w",
            "-D",
            "FORWARD",
            direction,
            "wellcake+",
            "-j",
            "ACCEPT",
        ]));
    }
}

/// Rules in the FORWARD chain that cut off single pods: a test that was killed leaves them, and the addresses return.
pub fn remove_partitions() {
    let rules = output(Command::new("iptables").args(["-w", "-S", "FORWARD"])).unwrap_or_default();
    for rule in partitions(&rules) {
        succeeds(Command::new("iptables").arg("-w").arg("-D").args(rule));
    }
}

/// The Service rules of kube-proxy, which are of no use without it.
pub fn remove_service_rules() {
    for family in ["ip", "ip6"] {
        succeeds(Command::new("nft").args(["delete", "table", family, "kube-proxy"]));
    }
}

fn ip() -> Command {
    Command::new("ip")
}

/// Writes a kernel setting unless it already has the value.
fn set(name: &str, value: &str) -> Result<()> {
    if setting(name)? != value {
        let path = format!("/proc/sys/{name}");
        std::fs::write(&path, value).with_context(|| format!("cannot write {path}"))?;
    }
    Ok(())
}

fn setting(name: &str) -> Result<String> {
    let path = format!("/proc/sys/{name}");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    Ok(text.trim().to_owned())
}

/// Our bridges and the devices attached to them, the latter first.
fn ours(links: &str) -> Vec<String> {
    let named = |line: &str| {
        let name = line.split(": ").nth(1)?;
        Some(name.split('@').next().unwrap_or(name).to_owned())
    };
    let ports = links
        .lines()
        .filter(|line| line.contains(" master wellcake-pod"));
    let bridges = links.lines().filter(|line| {
        named(line).is_some_and(|name| name == NODE_BRIDGE || name.starts_with("wellcake-pod"))
    });
    ports.chain(bridges).filter_map(named).collect()
}

/// The rules of `iptables -S` that name an address of our pods, without their leading `-A`.
fn partitions(rules: &str) -> Vec<Vec<String>> {
    rules
        .lines()
        .filter_map(|line| line.strip_prefix("-A "))
        .map(|line| {
            line.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .filter(|words| {
            words.windows(2).any(|pair| {
                matches!(pair[0].as_str(), "-s" | "-d")
                    && NODES
                        .iter()
                        .any(|node| pair[1].starts_with(&format!("{POD_PREFIX}{}.", node.index)))
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_links_are_removed() {
        let links = "\
3: eth0: <UP> mtu 1500 qdisc noop state UP
4: docker0: <UP> mtu 1500 qdisc noop state UP
5: wellcake0: <UP> mtu 1500 qdisc noop state UP
6: wellcake-pod1: <UP> mtu 1500 qdisc noop state UP
7: veth12ab@if2: <UP> mtu 1500 qdisc noqueue master wellcake-pod1 state UP
8: veth34cd@if2: <UP> mtu 1500 qdisc noqueue master docker0 state UP";
        assert_eq!(ours(links), ["veth12ab", "wellcake0", "wellcake-pod1"]);
    }

    #[test]
    fn only_rules_about_our_pods_are_partitions() {
        let rules = "\
-P FORWARD ACCEPT
-A FORWARD -d 10.244.2.7/32 -j DROP
-A FORWARD -s 10.244.9.7/32 -j DROP
-A FORWARD -i eth0 -j ACCEPT";
        assert_eq!(
            partitions(rules),
            [["FORWARD", "-d", "10.244.2.7/32", "-j", "DROP"]]
        );
    }

    #[test]
    fn names_of_bridges_fit_the_kernel() {
        for node in NODES {
            assert!(node.pod_bridge().len() <= 15);
        }
        assert_eq!(NODES[2].zone(), "zone-c");
    }
}
