//! No pods and the volumes kept, until the cluster is woken.

use wellcake_core::effects::{Decision, Verb};
use wellcake_core::facts::*;
use wellcake_core::reasons::Reason;
use wellcake_core::status;
use wellcake_crds::v1beta1::{Phase, Topology};

use crate::situation::*;

fn tired() -> Situation {
    let mut s = healthy(durable());
    s.spec.hibernate = true;
    s
}

fn asleep() -> Situation {
    let mut s = tired();
    s.seen.objects.replicas_applied = 0;
    for pod in &mut s.seen.pods {
        pod.object = Known::Absent;
        pod.server = Known::Absent;
    }
    s
}

fn goes_to_sleep(decision: &Decision) -> bool {
    let mut effects = decision.effects.iter();
    effects.any(|effect| matches!(effect.verb, Verb::ScaleIn { to: 0 }))
}

#[test]
fn all_pods_are_taken_away_while_a_primary_serves_and_not_before() {
    let decision = tired().decide();
    assert!(goes_to_sleep(&decision));
    assert_eq!(decision.effects.len(), 1, "{decision:?}");
    let guard = decision.effects[0].guard;
    assert_eq!(guard.pod, Some((Ordinal(0), PodUid(0))));
    assert_eq!(guard.replica, Some(false));
    let mut s = tired();
    s.kill(0);
    for pod in [1, 2] {
        s.unlink(pod, 0);
    }
    let decision = s.decide();
    assert!(
        !goes_to_sleep(&decision),
        "copies in memory are all there is"
    );
    assert!(promoted(&decision).is_some());
}

#[test]
fn a_sleeping_cluster_is_left_alone_and_says_so() {
    let s = asleep();
    let decision = s.decide();
    assert_eq!(decision, Decision::default());
    let told = status::facts(&s.spec, &s.seen, &decision, NOW);
    assert_eq!(told.phase, Phase::Hibernated);
    let values = [
        told.ready_condition,
        told.available,
        told.progressing,
        told.degraded,
    ];
    assert_eq!(values.map(|(value, _)| value), [false; 4]);
    assert_eq!(told.ready_condition.1, status::Cause::Hibernated);
}

#[test]
fn a_cluster_that_goes_to_sleep_promotes_nobody_and_waits_for_the_last_pod() {
    let mut s = tired();
    s.seen.objects.replicas_applied = 0;
    for pod in 0..3 {
        s.object(pod, |o| o.terminating = true);
    }
    s.kill(0);
    for pod in [1, 2] {
        s.unlink(pod, 0);
    }
    let decision = s.decide();
    assert!(decision.effects.is_empty(), "{decision:?}");
    assert!(waits_for(&decision, Reason::GoingToSleep));
    let told = status::facts(&s.spec, &s.seen, &decision, NOW);
    assert_ne!(told.phase, Phase::Hibernated);
}

#[test]
fn a_stateful_set_that_was_not_looked_at_is_no_sleep() {
    let mut s = tired();
    s.seen.objects.replicas_applied = 0;
    s.seen.objects.set(Object::StatefulSet, Known::unknown(NOW));
    s.kill(0);
    for pod in [1, 2] {
        s.unlink(pod, 0);
    }
    assert!(promoted(&s.decide()).is_some(), "failover goes on");
}

#[test]
fn the_recorded_primary_leads_again_when_the_cluster_is_woken() {
    let mut s = healthy(durable());
    for pod in 0..3u8 {
        s.object(pod, |o| o.uid = PodUid(30 + u16::from(pod)));
        s.serve(
            pod,
            ServerFacts {
                pod_uid: PodUid(30 + u16::from(pod)),
                keys: 10,
                uptime: 5,
                ..booted(pod)
            },
        );
    }
    s.seen.primary_down_since = Some(Tick(NOW.0 - 25_000));
    let decision = s.decide();
    assert_eq!(promoted(&decision), Some(Ordinal(0)));
    assert_eq!(decision.effects[0].reason, Reason::PrimaryReturned);
}

#[test]
fn a_standalone_goes_to_sleep_too() {
    let mut s = tired();
    s.spec.topology = Topology::Standalone;
    s.spec.pods = 1;
    s.seen.pods.truncate(1);
    s.seen.objects.replicas_applied = 1;
    s.seen.record = None;
    assert!(goes_to_sleep(&s.decide()));
    s.seen.objects.replicas_applied = 0;
    s.seen.pods[0].object = Known::Absent;
    assert_eq!(s.decide(), Decision::default());
}
