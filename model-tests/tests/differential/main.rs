//! The simulated replication beside real servers. The program is taken from `VALKEY_SERVER`, else from `PATH`; without one the
//! tests fail.

mod scripts;

use std::path::PathBuf;

use wellcake_model_tests::differential::many::run_all;
use wellcake_model_tests::differential::process::Program;

/// Seeds of the scripts.
const SEEDS: std::ops::Range<u64> = 0..60;
/// Scripts at a time: they mostly wait.
const AT_A_TIME: usize = 10;
/// These scripts meet more pairs of command and state than this (measured: 309); fewer would say that scripts do less.
const PAIRS: usize = 250;

#[test]
fn real_servers_do_what_the_model_allows() {
    let sum = run_all(&program(), SEEDS, AT_A_TIME);
    println!("{sum}");
    let all = sum.failures.is_empty() && sum.differences.is_empty();
    assert!(
        all,
        "to see one again: valkey-model differential --first SEED --scripts 1\n{sum}"
    );
    assert_eq!(sum.scripts, SEEDS.end - SEEDS.start);
    assert!(sum.covered.len() > PAIRS, "{} pairs", sum.covered.len());
}

fn program() -> Program {
    let path = std::env::var_os("VALKEY_SERVER").unwrap_or_else(|| "valkey-server".into());
    Program {
        path: PathBuf::from(path),
        logs: None,
    }
}
