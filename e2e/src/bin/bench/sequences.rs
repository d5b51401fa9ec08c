//! Random sequences of changes and faults, two beside each other.

use anyhow::Result;
use futures::StreamExt;
use futures::stream;
use kube::Client;
use wellcake_e2e::namespace::Space;
use wellcake_e2e::sequences::play;

use crate::Options;
use crate::figures::Figure;

const BESIDE: usize = 2;

/// Plays as many as there are runs, from the seed after `--first-seed`.
pub async fn run(client: Client, options: &Options, taken: &mut Vec<Figure>) -> Result<()> {
    let first = options.first_seed;
    let last = first + options.runs as u64;
    let seed_of = |number| if options.same_seed { first } else { number };
    let played: Vec<Result<usize>> = stream::iter(first..last)
        .map(|number| one(client.clone(), seed_of(number)))
        .buffer_unordered(BESIDE)
        .collect()
        .await;
    let mut lost = Vec::new();
    let mut stuck = Vec::new();
    for outcome in played {
        match outcome {
            Ok(writes) => {
                lost.push(writes as f64);
                stuck.push(0.0);
            }
            Err(why) => {
                println!("{why:#}");
                stuck.push(1.0);
            }
        }
    }
    let titles = [
        ("acknowledged writes lost in a random sequence", lost),
        ("random sequences that did not end whole", stuck),
    ];
    for (title, values) in titles {
        taken.push(Figure::new(title, "count", &values, Some(0.0)));
    }
    Ok(())
}

async fn one(client: Client, seed: u64) -> Result<usize> {
    let space = Space::create(client, "sequence").await?;
    let started = std::time::Instant::now();
    let outcome = play(&space, seed).await;
    let took = started.elapsed();
    println!("seed {seed}: {:?} in {took:.0?}", outcome.as_ref().ok());
    space.delete().await?;
    outcome
}
