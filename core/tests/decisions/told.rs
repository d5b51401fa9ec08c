//! What the status says in these situations.

use wellcake_core::facts::*;
use wellcake_core::reasons::Reason;
use wellcake_core::status::{self, Words};
use wellcake_crds::names::ClusterName;
use wellcake_crds::v1beta1::{Phase, ValkeyClusterStatus};

use crate::situation::*;

fn told(s: &Situation) -> status::StatusFacts {
    status::facts(&s.spec, &s.seen, &s.decide(), NOW)
}

fn time() -> k8s_openapi::apimachinery::pkg::apis::meta::v1::Time {
    serde_json::from_value(serde_json::json!("2026-01-01T00:00:00Z")).expect("time")
}

#[test]
fn a_healthy_cluster_is_ready_and_a_new_one_is_not() {
    let facts = told(&healthy(cache()));
    assert_eq!(facts.phase, Phase::Ready);
    assert!(
        facts.ready_condition.0 && facts.available.0 && !facts.degraded.0 && !facts.progressing.0
    );
    let facts = told(&fresh(cache()));
    assert_eq!(facts.phase, Phase::Creating);
    assert!(
        !facts.ready_condition.0 && !facts.available.0 && !facts.degraded.0 && facts.progressing.0
    );
}

#[test]
fn a_lost_replica_degrades_and_a_lost_primary_is_not_available() {
    let mut s = healthy(cache());
    s.kill(2);
    s.silence(2, 10_000);
    let facts = told(&s);
    assert!(facts.available.0 && !facts.ready_condition.0 && facts.degraded.0);
    assert_eq!(facts.ready, 2);
    let mut s = healthy(cache());
    s.silence(0, 10_000);
    let facts = told(&s);
    assert!(!facts.available.0 && facts.degraded.0);
}

#[test]
fn traffic_that_still_goes_elsewhere_is_not_available() {
    let mut s = healthy(cache());
    s.seen.objects.client_route = Some(Ordinal(1));
    assert!(!told(&s).available.0);
}

#[test]
fn transition_times_move_only_with_the_value() {
    let name = ClusterName::parse("web").expect("name");
    let facts = told(&healthy(cache()));
    let first = status::render(
        &facts,
        &name,
        "ns",
        &ValkeyClusterStatus::default(),
        &Words::NONE,
        time(),
    );
    let later: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time =
        serde_json::from_value(serde_json::json!("2026-01-02T00:00:00Z")).expect("time");
    let second = status::render(&facts, &name, "ns", &first, &Words::NONE, later);
    assert_eq!(first, second, "nothing changed, nothing is written");
    assert_eq!(first.internal_endpoint.as_deref(), Some("web.ns.svc:6379"));
    assert_eq!(first.primary.as_deref(), Some("web-0"));
}

#[test]
fn a_field_that_is_not_served_is_named_in_the_ready_condition() {
    let mut s = fresh(cache());
    s.spec.unserved = Some(Unserved::Tls);
    s.seen.pods.clear();
    let name = ClusterName::parse("web").expect("name");
    let facts = told(&s);
    let status = status::render(
        &facts,
        &name,
        "ns",
        &ValkeyClusterStatus::default(),
        &Words::NONE,
        time(),
    );
    let ready = status
        .conditions
        .iter()
        .find(|c| c.type_ == "Ready")
        .expect("Ready");
    assert_eq!(
        (ready.status.as_str(), ready.reason.as_str()),
        ("False", "FieldNotServed")
    );
    assert!(
        ready.message.contains("spec.tls.enabled"),
        "{}",
        ready.message
    );
    assert_eq!(facts.phase, Phase::Failed);
}

#[test]
fn another_operator_is_named_and_stops_no_failover() {
    let mut s = healthy(cache());
    s.seen.rival = true;
    let d = s.decide();
    assert!(refuses(&d, Reason::AnotherOperatorActs), "{d:#?}");
    let told = status::facts(&s.spec, &s.seen, &d, NOW);
    assert!(told.available.0 && told.degraded.0);
    s.kill(0);
    s.unlink(1, 0);
    s.unlink(2, 0);
    assert!(promoted(&s.decide()).is_some());
}

#[test]
fn a_template_of_another_version_is_told_and_keeps_nobody_from_being_ready() {
    let mut s = healthy(cache());
    let name = ClusterName::parse("web").expect("a name");
    let condition = |status: &ValkeyClusterStatus| {
        let found = status.conditions.iter().find(|it| it.type_ == "UpToDate");
        found.map(|it| (it.status.clone(), it.reason.clone()))
    };
    let words = Words {
        config: "0123456789",
        ..Words::NONE
    };
    let none = ValkeyClusterStatus::default();
    let first = status::render(&told(&s), &name, "ns", &none, &words, time());
    assert_eq!(condition(&first), None, "nothing to tell");
    assert_eq!(first.last_good_config_digest.as_deref(), Some("0123456789"));
    s.seen.objects.template_waits = true;
    let facts = told(&s);
    assert!(facts.ready_condition.0);
    let waits = status::render(&facts, &name, "ns", &none, &words, time());
    let wanted = ("False".to_owned(), "TemplateWaits".to_owned());
    assert_eq!(condition(&waits), Some(wanted));
    assert_eq!(
        waits.last_good_config_digest, None,
        "its file is another one"
    );
    s.seen.objects.template_waits = false;
    let after = status::render(&told(&s), &name, "ns", &waits, &words, time());
    let wanted = ("True".to_owned(), "TemplateIsNewest".to_owned());
    assert_eq!(condition(&after), Some(wanted));
}
