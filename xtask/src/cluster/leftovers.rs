//! Stopping a cluster, also one that crashed, of which only parts are left, or whose work tree is gone.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cluster::{cgroups, mounts, network};
use crate::paths::RUN_PREFIX;
use crate::processes::{self, Marked};

/// Work trees other than this one whose cluster has running processes.
pub fn foreign(repo: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = processes::all()
        .into_iter()
        .map(|it| it.cluster)
        .filter(|it| it != repo)
        .collect();
    found.sort();
    found.dedup();
    found
}

/// Whether the cluster of a work tree has a running process of its own (a shim of containerd alone is a leftover).
pub fn alive(repo: &Path) -> bool {
    processes::all()
        .iter()
        .any(|it| it.cluster == repo && !is_shim(it))
}

/// Stops every marked process and removes what only a running cluster needs. Data, images and logs stay.
///
/// Names of devices and addresses are the same for all work trees, so only one cluster can run on a machine, and what
/// is removed is removed for all of them.
pub fn stop_everything() {
    let was_here = !mounts::run_folders().is_empty() || !processes::all().is_empty();
    // The kubelets first, or they would start again what is stopped.
    stop_where(|it| it.name.starts_with("kubelet"));
    cgroups::remove();
    stop_where(|it| !is_shim(it));
    stop_where(|_| true);
    mounts::remove();
    network::remove();
    network::remove_partitions();
    if was_here {
        network::remove_service_rules();
    }
    remove_log_links(Path::new("/var/log/containers"));
    remove_dead_sockets(Path::new("/run/containerd/s"));
    remove_network_results(Path::new("/var/lib/cni/results"));
}

/// containerd's shims listen below a folder of the machine, and one that was killed leaves its socket.
fn remove_dead_sockets(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        let refused = UnixStream::connect(&path)
            .is_err_and(|why| why.kind() == std::io::ErrorKind::ConnectionRefused);
        if refused {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// What the network plugins noted about pods that are gone: their network namespaces lie below our run folders.
fn remove_network_results(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        if std::fs::read_to_string(entry.path()).is_ok_and(|text| text.contains(RUN_PREFIX)) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn stop_where(wanted: impl Fn(&Marked) -> bool) {
    let processes: Vec<Marked> = processes::all()
        .into_iter()
        .filter(|it| wanted(it))
        .collect();
    let patience = if processes.iter().all(is_shim) {
        Duration::ZERO
    } else {
        Duration::from_secs(2)
    };
    processes::stop(&processes, patience);
}

/// Whether it only holds a container for containerd.
pub fn is_shim(process: &Marked) -> bool {
    process
        .program
        .to_string_lossy()
        .contains("containerd-shim")
}

/// The kubelet links the logs of containers into a folder of the machine.
fn remove_log_links(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        let ours = std::fs::read_link(&path)
            .is_ok_and(|target| target.to_string_lossy().starts_with(RUN_PREFIX));
        if ours {
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_shim_alone_is_no_living_cluster() {
        let shim = Marked {
            pid: 1,
            cluster: "/src".into(),
            name: "containerd-node-1".into(),
            recipe: String::new(),
            program: "/usr/bin/containerd-shim-runc-v2".into(),
        };
        assert!(is_shim(&shim));
        assert!(!is_shim(&Marked {
            program: "/usr/bin/containerd".into(),
            ..shim
        }));
    }

    #[test]
    fn only_sockets_without_a_listener_are_removed() {
        let folder = std::env::temp_dir().join(format!("wellcake-sockets-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let (dead, living) = (folder.join("dead"), folder.join("living"));
        drop(UnixListener::bind(&dead).expect("a socket"));
        let _listener = UnixListener::bind(&living).expect("a socket");
        remove_dead_sockets(&folder);
        assert!(!dead.exists() && living.exists());
        std::fs::remove_dir_all(&folder).expect("the folder goes");
    }

    #[test]
    fn only_our_links_to_logs_are_removed() {
        let folder = std::env::temp_dir().join(format!("wellcake-links-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let (ours, other) = (folder.join("ours.log"), folder.join("other.log"));
        std::os::unix::fs::symlink(format!("{RUN_PREFIX}0/node-1/x"), &ours).expect("a link");
        std::os::unix::fs::symlink("/var/log/pods/x", &other).expect("a link");
        remove_log_links(&folder);
        assert!(ours.symlink_metadata().is_err() && other.symlink_metadata().is_ok());
        std::fs::remove_dir_all(&folder).expect("the folder goes");
    }
}
