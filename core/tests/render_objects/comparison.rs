//! How live objects stand to rendered ones.

use serde_json::{Value, json};
use wellcake_core::facts::{Object, ObjectState};
use wellcake_core::render::{compare, over_live};

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
fn all_but_fewer_pods_and_other_volumes_is_applied() {
    let live = stored(must(Object::StatefulSet, json!({ "replicas": 3 })));
    let to = |spec: Value| state(Object::StatefulSet, spec, &live);
    assert_eq!(to(json!({ "replicas": 3 })), Some(ObjectState::Matches));
    assert_eq!(to(json!({ "replicas": 5 })), Some(ObjectState::Differs));
    assert_eq!(to(json!({ "replicas": 2 })), Some(ObjectState::Matches));
    for applied in [
        json!({ "image": "valkey/valkey:8.1" }),
        json!({ "replicas": 5, "image": "valkey/valkey:8.1" }),
        json!({ "config": { "io-threads": "2" } }),
        json!({ "storage": { "size": "5Gi", "mode": "none" } }),
        json!({ "nodeSelector": { "disk": "fast" } }),
        json!({ "resources": { "limits": { "cpu": "1" } } }),
    ] {
        assert_eq!(to(applied.clone()), Some(ObjectState::Differs), "{applied}");
    }
    let mut other = live.clone();
    other["spec"]["selector"]["matchLabels"]["app"] = json!("x");
    other["spec"]["serviceName"] = json!("x");
    assert_eq!(
        state(Object::StatefulSet, json!({}), &other),
        Some(ObjectState::Foreign)
    );
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
        Some(ObjectState::Differs)
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
        Some(ObjectState::Differs)
    );
}

#[test]
fn a_stateful_set_is_applied_over_the_live_one_with_its_volumes_and_no_fewer_pods() {
    let first = json!({ "replicas": 3, "storage": { "size": "1Gi" } });
    let live = stored(must(Object::StatefulSet, first));
    let asked =
        json!({ "replicas": 2, "storage": { "size": "2Gi" }, "image": "valkey/valkey:8.1" });
    let desired = must(Object::StatefulSet, asked);
    let applied = over_live(&desired, Some(&live), None);
    let size = "/spec/volumeClaimTemplates/0/spec/resources/requests/storage";
    assert_eq!(applied["spec"]["replicas"], json!(3));
    assert_eq!(applied.pointer(size), Some(&json!("1Gi")));
    assert_eq!(
        applied.pointer("/spec/template/spec/containers/0/image"),
        Some(&json!("valkey/valkey:8.1"))
    );
    assert_eq!(
        compare(Some(&desired), Some(&applied), UID),
        Some(ObjectState::Matches),
        "what was applied is all that can be"
    );
    let fewer = over_live(&desired, Some(&live), Some(2));
    assert_eq!(fewer["spec"]["replicas"], json!(2));
}

#[test]
fn a_restart_that_is_taken_back_is_no_other_one() {
    let asked = |restart: Option<&str>| restarted(Object::StatefulSet, restart).expect("rendered");
    let token = "/spec/template/metadata/annotations/valkey.wellcake.io~1restarted-at";
    let live = stored(asked(Some("one")));
    assert_eq!(live.pointer(token), Some(&json!("one")));
    for (next, applied) in [(None, "one"), (Some("one"), "one"), (Some("two"), "two")] {
        let over = over_live(&asked(next), Some(&live), None);
        assert_eq!(over.pointer(token), Some(&json!(applied)), "{next:?}");
    }
}
