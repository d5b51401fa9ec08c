//! Nodes are drained, one after the other.

use anyhow::ensure;
use kube::ResourceExt;
use wellcake_e2e::apply::{Applied, MAKING, durable, replication};
use wellcake_e2e::drain::{nodes, while_drained};
use wellcake_e2e::load::Load;
use wellcake_e2e::namespace::alone;
use wellcake_e2e::operator;

#[tokio::test(flavor = "multi_thread")]
async fn all_nodes_are_drained_in_turn_under_load_and_nothing_is_lost() {
    alone("drain", |space| async move {
        // Pods in memory find another node at once; those with volumes of a node come back when it does.
        let moves = Applied::ready(&space, "moves", replication()).await?;
        let stays = Applied::ready(&space, "stays", durable()).await?;
        let loads = [Load::start(&moves).await?, Load::start(&stays).await?];
        for node in nodes(&space).await? {
            while_drained(&space, &node, MAKING, async || {
                moves.wait_ready(MAKING).await?;
                let look = stays.look().await?;
                ensure!(
                    look.says("Available", "True", "PrimaryServes"),
                    "nobody serves while {node} is drained"
                );
                for pod in moves.pods().await? {
                    let at = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
                    ensure!(at != Some(node.as_str()), "{} stayed", pod.name_any());
                }
                Ok(())
            })
            .await?;
            for cluster in [&moves, &stays] {
                cluster.wait_ready(MAKING).await?;
            }
            operator::wait_ready(&space.client, MAKING).await?;
        }
        for (load, cluster) in loads.into_iter().zip([&moves, &stays]) {
            let finished = load.finish(cluster).await?;
            println!(
                "longest gap {:?} at pods, {:?} through the Service",
                finished.at_pods.longest_gap(),
                finished.through_service.longest_gap()
            );
            finished.nothing_lost()?;
        }
        Ok(())
    })
    .await;
}
