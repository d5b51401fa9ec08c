//! Events that broke "S5 death is proven", by `valkey-model shrink`.

use wellcake_crds::v1beta1::Profile;
use wellcake_model_tests::actions::Action::*;
use wellcake_model_tests::dive::Start;
use wellcake_model_tests::world::Disk;

#[test]
fn seed_1_keeps_every_invariant_and_comes_to_rest() {
    let start = Start {
        pods: 3,
        disk: Disk::Aof,
        profile: Profile::Durable,
        made_elsewhere: false,
        faults: None,
    };
    #[rustfmt::skip]
    let events = [
        Freeze(0),
        Advance(1500),
        Stretch(31),
        Terminate(1),
        Watch(0),
        Decide(0),
        Execute(0),
        Execute(0),
        Execute(0),
        Execute(0),
    ];
    let end = start.replay(&events, wellcake_core::step, None);
    assert!(end.is_ok(), "{end:?}");
}
