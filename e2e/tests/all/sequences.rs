//! Random sequences of changes and faults. `cargo xtask bench sequences` plays as many as are asked for.

use anyhow::ensure;
use wellcake_e2e::namespace::beside_others;
use wellcake_e2e::sequences::play;

async fn nothing_is_lost(seed: u64) {
    beside_others("sequence", |space| async move {
        let lost = play(&space, seed).await?;
        ensure!(lost == 0, "{lost} acknowledged writes were lost");
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_random_sequence_of_changes_and_faults_loses_nothing_and_ends_whole() {
    nothing_is_lost(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_random_sequence_of_changes_and_faults_loses_nothing_and_ends_whole() {
    nothing_is_lost(2).await;
}
