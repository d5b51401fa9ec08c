//! Time of one decision on three pods: converged, and in the failover that does the most work.
//!
//! `cargo bench -p wellcake-core --bench step` prints nanoseconds per call and their ratio, and writes
//! `target/bench/step.json`.

// A measuring program, not the core: it may stop with a message.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods
)]

use std::hint::black_box;
use std::time::Instant;

use wellcake_core::facts::{Known, Tick};
use wellcake_core::step;

#[path = "../tests/decisions/situation.rs"]
#[allow(dead_code)]
mod situation;

use situation::{NOW, Situation, booted, cache, healthy};

/// Nanoseconds per call in each of `runs` batches.
fn measure(situation: &Situation, runs: usize) -> Vec<f64> {
    const BATCH: u32 = 20_000;
    (0..runs)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..BATCH {
                let decision = step(
                    black_box(&situation.spec),
                    black_box(&situation.seen),
                    black_box(&situation.hints),
                    NOW,
                );
                black_box(&decision);
            }
            start.elapsed().as_secs_f64() * 1e9 / f64::from(BATCH)
        })
        .collect()
}

fn failover() -> Situation {
    let mut situation = healthy(cache());
    situation.serve(0, booted(0));
    situation.unlink(1, 0);
    situation.unlink(2, 0);
    situation
}

fn stale() -> Situation {
    let mut situation = healthy(cache());
    for n in 0..3 {
        situation.silence(n, 30_000);
        situation.seen.pods[usize::from(n)].claim = Known::unknown(Tick(0));
    }
    situation
}

fn main() {
    let table = [
        ("step_converged", healthy(cache()), 1_000.0),
        ("step_failover", failover(), 10_000.0),
        ("step_nothing_visible", stale(), 10_000.0),
    ];
    let mut rows = Vec::new();
    let mut base = 0.0;
    for (name, situation, bound) in table {
        let mut values = measure(&situation, 30);
        values.sort_by(f64::total_cmp);
        let (median, p95, max) = (values[15], values[28], values[29]);
        if base == 0.0 {
            base = median;
        }
        println!(
            "{name}: median {median:.0} ns, p95 {p95:.0} ns, max {max:.0} ns (bound {bound:.0} ns), x{:.1} of converged",
            median / base
        );
        rows.push(serde_json::json!({
            "measure": name, "unit": "ns", "values": values, "median": median, "p95": p95, "max": max,
            "bound": bound, "higher_is_better": false, "peer": null,
        }));
    }
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/bench");
    std::fs::create_dir_all(&folder).expect("make target/bench");
    std::fs::write(
        folder.join("step.json"),
        serde_json::to_string_pretty(&rows).expect("JSON"),
    )
    .expect("write step.json");
}
