//! How live objects stand to rendered ones.

use serde_json::{Value, json};
use wellcake_core::facts::{Object, ObjectState};
use wellcake_core::render::compare;

use crate::cases::*;

#[test]
fn an_object_of_somebody_else_is_foreign_where_its_name_is_needed() {
    let mut live = stored(must(Object::ClientService, json!({})));
    live["metadata"]["ownerReferences"][0]["uid"] = json!("another");
    assert_eq!(
        state(Object::ClientService, json!({}), &live),
        Some(ObjectState::Foreign)
    );
    assert_eq!(
        compare(None, Some(&live), UID),
        Some(ObjectState::NotWanted)
    );
    live["metadata"]["ownerReferences"][0]["uid"] = json!(UID);
    live["metadata"]["ownerReferences"][0]["controller"] = json!(false);
    assert_eq!(
        state(Object::ClientService, json!({}), &live),
        Some(ObjectState::Foreign)
    );
    assert_eq!(
        state(Object::ClientService, json!({}), &json!({})),
        Some(ObjectState::Foreign)
    );
}

#[test]
fn absent_superfluous_and_not_wanted_are_told_apart() {
    let wanted = must(Object::ReplicasService, json!({}));
    assert_eq!(compare(Some(&wanted), None, UID), None);
    assert_eq!(compare(None, None, UID), Some(ObjectState::NotWanted));
    assert_eq!(
        compare(None, Some(&wanted), UID),
        Some(ObjectState::Superfluous)
    );
}

#[test]
fn what_others_changed_differs_and_what_they_added_does_not() {
    let live = stored(must(Object::HeadlessService, json!({})));
    let changed = |path: &str, value: Value| {
        let mut live = live.clone();
        *live.pointer_mut(path).expect(path) = value;
        state(Object::HeadlessService, json!({}), &live)
    };
    let differs = Some(ObjectState::Differs);
    assert_eq!(changed("/spec/ports/0/port", json!(1)), differs);
    assert_eq!(changed("/spec/ports", json!([])), differs);
    assert_eq!(
        changed("/spec/publishNotReadyAddresses", json!(false)),
        differs
    );
    assert_eq!(changed("/metadata/labels", json!({})), differs);
    assert_eq!(changed("/spec/selector", Value::Null), differs);
    let mut more = live.clone();
    more["metadata"]["labels"]["team"] = json!("shop");
    more["metadata"]["annotations"]["note"] = json!("x");
    assert_eq!(
        state(Object::HeadlessService, json!({}), &more),
        Some(ObjectState::Matches)
    );
}

#[test]
fn more_pods_can_be_applied_and_everything_about_a_pod_needs_a_roll() {
    let live = stored(must(Object::StatefulSet, json!({ "replicas": 3 })));
    let to = |spec: Value| state(Object::StatefulSet, spec, &live);
    assert_eq!(to(json!({ "replicas": 3 })), Some(ObjectState::Matches));
    assert_eq!(to(json!({ "replicas": 5 })), Some(ObjectState::Differs));
    for needs_roll in [
        json!({ "replicas": 2 }),
        json!({ "image": "valkey/valkey:8.1" }),
        json!({ "replicas": 5, "image": "valkey/valkey:8.1" }),
        json!({ "config": { "timeout": "60" } }),
        json!({ "storage": { "size": "5Gi", "mode": "none" } }),
        json!({ "nodeSelector": { "disk": "fast" } }),
        json!({ "resources": { "limits": { "cpu": "1" } } }),
    ] {
        assert_eq!(
            to(needs_roll.clone()),
            Some(ObjectState::NeedsRoll),
            "{needs_roll}"
        );
    }
    let mut drifted = live.clone();
    drifted["spec"]["updateStrategy"] = json!({ "type": "RollingUpdate" });
    assert_eq!(
        state(Object::StatefulSet, json!({}), &drifted),
        Some(ObjectState::Differs)
    );
    drifted["metadata"]["annotations"] = json!({});
    assert_eq!(
        state(Object::StatefulSet, json!({}), &drifted),
        Some(ObjectState::Differs)
    );
}

#[test]
fn the_client_service_of_another_operator_of_this_api_is_foreign() {
    let mut live = stored(must(Object::ClientService, json!({})));
    live["metadata"]["annotations"] = json!({});
    assert_eq!(
        state(Object::ClientService, json!({}), &live),
        Some(ObjectState::Differs)
    );
    live["spec"]["selector"] = json!({ "app.kubernetes.io/instance": "web" });
    assert_eq!(
        state(Object::ClientService, json!({}), &live),
        Some(ObjectState::Foreign)
    );
}

#[test]
fn a_field_taken_out_of_the_spec_is_seen() {
    let live = stored(must(
        Object::StatefulSet,
        json!({ "nodeSelector": { "disk": "fast" } }),
    ));
    assert_eq!(
        state(Object::StatefulSet, json!({}), &live),
        Some(ObjectState::NeedsRoll)
    );
    let budget = |spec: Value| {
        must(
            Object::DisruptionBudget,
            json!({ "podDisruptionBudget": spec }),
        )
    };
    let live = stored(budget(json!({ "minAvailable": 1 })));
    assert_eq!(
        state(Object::DisruptionBudget, json!({}), &live),
        Some(ObjectState::Differs)
    );
}

#[test]
fn quantities_are_compared_by_value() {
    let desired = json!({ "resources": { "limits": { "memory": "1024Mi", "cpu": "0.5" }, "requests": { "cpu": "1000m" } } });
    let mut live = stored(must(Object::StatefulSet, desired.clone()));
    live["spec"]["template"]["spec"]["containers"][0]["resources"] =
        json!({ "limits": { "memory": "1Gi", "cpu": "500m" }, "requests": { "cpu": "1" } });
    live["spec"]["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"] =
        json!("1024Mi");
    assert_eq!(
        state(Object::StatefulSet, desired.clone(), &live),
        Some(ObjectState::Matches)
    );
    live["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"] =
        json!("1G");
    assert_eq!(
        state(Object::StatefulSet, desired, &live),
        Some(ObjectState::NeedsRoll)
    );
}
