//! Rules about a change, also when a field or its whole block is added or removed.

use serde_json::json;
use wellcake_crds::rules::Kind;

use crate::cases;
use crate::objects::parked;
use crate::rules::refused_by;
use crate::server::in_namespace;

#[tokio::test]
async fn each_rule_about_a_change_accepts_and_refuses() {
    in_namespace("changes", |server| async move {
        let changes = cases::of(Kind::Cluster)
            .into_iter()
            .filter(|case| case.before.is_some());
        for (n, case) in changes.enumerate() {
            let mut before = parked(case.before.clone().expect("filtered"));
            before["metadata"]["name"] = json!(format!("change-{n}"));
            let stored = server.store(&before).await;
            let next = |object: &serde_json::Value| {
                let mut next = parked(object.clone());
                next["metadata"] = stored["metadata"].clone();
                next
            };
            let accepted = server.offer_update(&next(&case.accepted)).await;
            assert!(
                accepted.is_ok(),
                "{} should accept {} → {}: {accepted:?}",
                case.rule,
                before,
                case.accepted
            );
            refused_by(&case, server.offer_update(&next(&case.refused)).await);
            server.release(&stored).await;
        }
    })
    .await;
}
