//! Another version of the operator makes pods otherwise.

use serde_json::{Value, json};
use wellcake_core::facts::{Object, ObjectState};
use wellcake_core::render::{over_live, template_waits};
use wellcake_crds::annotations::APPLIED_HASH;

use crate::cases::*;

/// What a version of the operator made that gave servers another second to end.
fn by_another_version(spec: Value) -> Value {
    let mut live = stored(must(Object::StatefulSet, spec));
    live["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(26);
    live["metadata"]["annotations"][APPLIED_HASH] = json!("another");
    live
}

#[test]
fn a_template_that_nobody_asked_for_waits_and_keeps_everything_else_going() {
    let live = by_another_version(json!({}));
    let desired = must(Object::StatefulSet, json!({}));
    assert!(template_waits(&desired, &live));
    let applied = over_live(&desired, Some(&live), None);
    assert_eq!(applied["spec"]["template"], live["spec"]["template"]);
    assert_eq!(
        state(Object::StatefulSet, json!({}), &live),
        Some(ObjectState::Matches)
    );
    // More pods and directives that running servers take ask for no other template.
    for innocent in [
        json!({ "replicas": 5 }),
        json!({ "config": { "timeout": "60" } }),
    ] {
        let desired = must(Object::StatefulSet, innocent);
        let applied = over_live(&desired, Some(&live), None);
        assert_eq!(applied["spec"]["template"], live["spec"]["template"]);
        assert!(template_waits(&desired, &applied), "it still waits");
    }
}

#[test]
fn what_no_pod_depends_on_changes_no_stateful_set() {
    let before = must(Object::StatefulSet, json!({}));
    for other in [
        json!({ "backup": { "schedule": "0 3 * * *" } }),
        json!({ "podDisruptionBudget": { "maxUnavailable": 2 } }),
        json!({ "networkPolicy": { "enabled": true } }),
    ] {
        assert_eq!(must(Object::StatefulSet, other), before);
    }
}

#[test]
fn it_comes_with_the_next_change_of_what_pods_are_made_from_or_a_restart() {
    let live = by_another_version(json!({}));
    for asked in [
        json!({ "image": "valkey/valkey:8.1" }),
        json!({ "config": { "io-threads": "2" } }),
        json!({ "resources": { "limits": { "memory": "1Gi" } } }),
    ] {
        let desired = must(Object::StatefulSet, asked);
        assert!(!template_waits(&desired, &live));
        assert_eq!(over_live(&desired, Some(&live), None), desired);
    }
    let restarted = restarted(Object::StatefulSet, Some("now")).expect("a StatefulSet");
    assert!(!template_waits(&restarted, &live));
}

#[test]
fn what_somebody_changed_by_hand_is_set_right() {
    let mut live = stored(must(Object::StatefulSet, json!({})));
    live["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(1);
    assert!(!template_waits(
        &must(Object::StatefulSet, json!({})),
        &live
    ));
    assert_eq!(
        state(Object::StatefulSet, json!({}), &live),
        Some(ObjectState::Differs)
    );
}
