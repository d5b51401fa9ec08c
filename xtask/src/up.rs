//! `up` and `operator`: the cluster, the operator in it, and the example.

use anyhow::Result;

use crate::build::operator;
use crate::cluster::network::NODES;
use crate::cluster::{nodes, start};
use crate::install::target::Target;
use crate::install::{chart, example};
use crate::paths::Layout;
use crate::progress::Progress;

/// Everything on this machine, and how to go on.
pub fn up(layout: &Layout, progress: &Progress, with_operator: bool) -> Result<()> {
    start::start(layout, progress)?;
    let surroundings = format!(
        "  export KUBECONFIG={}\n  export PATH={}:$PATH\n",
        layout.kubeconfig().display(),
        layout.local.join("bin").display()
    );
    if !with_operator {
        progress.say(&format!(
            "\nThe local Kubernetes runs, without the operator:\n\n{surroundings}"
        ));
        return Ok(());
    }
    roll(layout, progress)?;
    let next = example::run(layout, progress, &Target::local(layout))?;
    progress.say(&format!(
        "\nThe local Kubernetes runs, with the operator:\n\n{surroundings}\n{next}"
    ));
    Ok(())
}

/// Builds the operator, brings its image to the nodes and lets Helm roll it out.
pub fn roll(layout: &Layout, progress: &Progress) -> Result<()> {
    let image = operator::ensure(layout, progress)?;
    progress.step(
        "operator-import",
        "Importing the operator's image into the nodes",
        |_| {
            NODES
                .iter()
                .try_for_each(|node| nodes::import(layout, *node, &image))
        },
    )?;
    let target = Target::local(layout);
    chart::forget_interrupted(&target)?;
    chart::install(layout, progress, &target, &image.name)?;
    NODES
        .iter()
        .try_for_each(|node| nodes::remove_others(layout, *node, &image))
}
