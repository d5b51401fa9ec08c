//! A run as a test in Rust.

use std::fmt::Write as _;

use super::saved::Saved;

/// A file for `model-tests/tests` whose test fails as long as the real decisions break an invariant with these events.
pub fn rust_test(saved: &Saved) -> String {
    let head = &saved.head;
    let start = head.start;
    let mut events = String::new();
    for event in &saved.events {
        let _ = writeln!(events, "        {event:?},");
    }
    let mishaps = match start.faults {
        Some(_) => "use wellcake_model_tests::faults::Mishap::*;\n",
        None => "",
    };
    format!(
        "//! Events that broke \"{breaks}\", by `valkey-model shrink`.

use wellcake_crds::v1beta1::Profile;
use wellcake_model_tests::actions::Action::*;
use wellcake_model_tests::dive::Start;
{mishaps}use wellcake_model_tests::world::Disk;

#[test]
fn seed_{seed}_keeps_every_invariant_and_comes_to_rest() {{
    let start = Start {{
        pods: {pods},
        disk: Disk::{disk:?},
        profile: Profile::{profile:?},
        made_elsewhere: {made_elsewhere},
        faults: {faults:?},
    }};
    #[rustfmt::skip]
    let events = [
{events}    ];
    let end = start.replay(&events, wellcake_core::step, None);
    assert!(end.is_ok(), \"{{end:?}}\");
}}
",
        breaks = head.breaks,
        seed = head.seed,
        pods = start.pods,
        disk = start.disk,
        profile = start.profile,
        made_elsewhere = start.made_elsewhere,
        faults = start.faults,
    )
}
