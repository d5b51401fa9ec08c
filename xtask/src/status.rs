//! What runs of the local Kubernetes.

use anyhow::Result;

use crate::cluster::leftovers;
use crate::command::output;
use crate::install::target::Target;
use crate::paths::Layout;
use crate::processes;

/// Prints processes, nodes and ValkeyClusters.
pub fn show(layout: &Layout) -> Result<()> {
    for other in leftovers::foreign(&layout.repo) {
        println!("a local Kubernetes of {} runs", other.display());
    }
    let mut own: Vec<String> = processes::all()
        .into_iter()
        .filter(|it| it.cluster == layout.repo && !leftovers::is_shim(it))
        .map(|it| format!("{:<26} pid {}", it.name, it.pid))
        .collect();
    if own.is_empty() {
        println!(
            "nothing of this work tree's local Kubernetes runs: start it with `cargo xtask up`"
        );
        return Ok(());
    }
    own.sort();
    println!("{}", own.join("\n"));
    let target = Target::local(layout);
    for what in ["nodes", "deployments", "valkeyclusters"] {
        match output(target.kubectl().args(["get", what, "--all-namespaces"])) {
            Ok(text) => print!("\n{text}"),
            Err(why) => println!("\n{why}"),
        }
    }
    Ok(())
}
