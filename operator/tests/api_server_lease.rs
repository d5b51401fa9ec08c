//! The leader election against a real API server.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use wellcake_interpreter::Leadership;
use wellcake_operator::lease::decide::{Identity, Timing};
use wellcake_operator::lease::run::Participant;

const NAME: &str = "election";
const TIMING: Timing = Timing {
    duration: Duration::from_secs(3),
    deadline: Duration::from_secs(1),
    retry: Duration::from_millis(250),
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_leads_and_the_other_takes_over_within_a_second_of_a_release() {
    let lab = Lab::new("release").await;
    let mut first = lab.join("first");
    assert_eq!(first.leads_within(Duration::from_secs(2)).await, Some(1));
    let mut second = lab.join("second");
    assert_eq!(
        second.leads_within(2 * TIMING.duration).await,
        None,
        "the first renews"
    );
    first.end().await;
    assert_eq!(second.leads_within(Duration::from_secs(1)).await, Some(2));
    lab.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_vanished_is_replaced_after_the_duration_and_not_before() {
    let lab = Lab::new("vanished").await;
    let mut first = lab.join("first");
    assert_eq!(first.leads_within(Duration::from_secs(2)).await, Some(1));
    let mut second = lab.join("second");
    tokio::time::sleep(Duration::from_millis(500)).await;
    first.kill();
    let died = Instant::now();
    assert_eq!(second.leads_within(2 * TIMING.duration).await, Some(2));
    let after = died.elapsed();
    let soonest = TIMING.duration - TIMING.retry - Duration::from_millis(100);
    assert!(after >= soonest, "taken over after {after:?}");
    assert!(
        after <= TIMING.duration + Duration::from_secs(1),
        "taken over after {after:?}"
    );
    lab.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_stops_when_the_lease_names_another_and_leads_again_with_a_higher_epoch() {
    let lab = Lab::new("robbed").await;
    let mut first = lab.join("first");
    assert_eq!(first.leads_within(Duration::from_secs(2)).await, Some(1));
    lab.patch(json!({"spec": {"holderIdentity": "robber", "leaseTransitions": 7, "leaseDurationSeconds": 2}}))
        .await;
    assert!(
        first.follows_within(Duration::from_secs(1)).await,
        "another holds the lease"
    );
    assert_eq!(
        first.leads_within(Duration::from_secs(4)).await,
        Some(8),
        "the robber never renewed"
    );
    lab.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_is_deleted_goes_on_with_the_next_epoch_and_what_others_put_there_stays() {
    let lab = Lab::new("deleted").await;
    let mut first = lab.join("first");
    assert_eq!(first.leads_within(Duration::from_secs(2)).await, Some(1));
    lab.patch(json!({"metadata": {"labels": {"owner": "somebody"}}}))
        .await;
    tokio::time::sleep(TIMING.retry * 3).await;
    let labels = lab
        .leases()
        .get(NAME)
        .await
        .expect("it exists")
        .metadata
        .labels;
    assert_eq!(
        labels.and_then(|all| all.get("owner").cloned()).as_deref(),
        Some("somebody")
    );
    lab.leases()
        .delete(NAME, &DeleteParams::default())
        .await
        .expect("it can be deleted");
    assert!(
        first.follows_within(Duration::from_secs(1)).await,
        "there is no lease"
    );
    assert_eq!(first.leads_within(Duration::from_secs(2)).await, Some(2));
    lab.remove().await;
}

/// A namespace for one election.
struct Lab {
    client: Client,
    namespace: String,
}

impl Lab {
    async fn new(name: &str) -> Self {
        let client = connect().await;
        let namespace = format!("lease-test-{name}-{}", std::process::id());
        let object =
            serde_json::from_value(json!({"metadata": {"name": namespace}})).expect("a Namespace");
        let api: Api<Namespace> = Api::all(client.clone());
        api.create(&PostParams::default(), &object)
            .await
            .expect("a namespace can be created");
        Self { client, namespace }
    }

    fn leases(&self) -> Api<Lease> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    async fn patch(&self, patch: Value) {
        let patch = Patch::Merge(patch);
        let patched = self
            .leases()
            .patch(NAME, &PatchParams::default(), &patch)
            .await;
        patched.expect("the lease can be patched");
    }

    fn join(&self, pod: &str) -> Member {
        let (publish, leadership) = watch::channel(Leadership::Follower);
        let me = Identity::new(pod, 1);
        let lease = (self.namespace.as_str(), NAME);
        let mut participant = Participant::new(self.client.clone(), lease, me, TIMING, publish);
        let stop = CancellationToken::new();
        let until = stop.clone();
        let task = tokio::spawn(async move {
            participant.run(&until).await;
            participant.release().await;
        });
        Member {
            task,
            stop,
            leadership,
        }
    }

    async fn remove(self) {
        let api: Api<Namespace> = Api::all(self.client);
        let removed = api.delete(&self.namespace, &DeleteParams::default()).await;
        removed.expect("the namespace can be deleted");
    }
}

/// One participant.
struct Member {
    task: JoinHandle<()>,
    stop: CancellationToken,
    leadership: watch::Receiver<Leadership>,
}

impl Member {
    /// The epoch in which it leads, if it does within this time.
    async fn leads_within(&mut self, limit: Duration) -> Option<u64> {
        let leads = self
            .leadership
            .wait_for(|now| matches!(now, Leadership::Leader { .. }));
        match *tokio::time::timeout(limit, leads)
            .await
            .ok()?
            .expect("it takes part")
        {
            Leadership::Leader { epoch, .. } => Some(epoch),
            Leadership::Follower => None,
        }
    }

    async fn follows_within(&mut self, limit: Duration) -> bool {
        let follows = self.leadership.wait_for(|now| *now == Leadership::Follower);
        tokio::time::timeout(limit, follows).await.is_ok()
    }

    /// As on SIGTERM.
    async fn end(self) {
        self.stop.cancel();
        self.task.await.expect("it ends by itself");
    }

    /// As on SIGKILL.
    fn kill(self) {
        self.task.abort();
    }
}

async fn connect() -> Client {
    let path = kubeconfig();
    let advice = "run `cargo xtask up --no-operator`, or set KUBECONFIG to a Kubernetes for tests";
    let file = Kubeconfig::read_from(&path).unwrap_or_else(|why| {
        panic!(
            "no API server to test against ({}: {why}): {advice}",
            path.display()
        )
    });
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
    let config =
        config.unwrap_or_else(|why| panic!("{} is not usable ({why}): {advice}", path.display()));
    Client::try_from(config).expect("a client for the kubeconfig")
}

/// `KUBECONFIG`, else the local Kubernetes.
fn kubeconfig() -> PathBuf {
    match std::env::var_os("KUBECONFIG") {
        Some(path) => path.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../.local/kubeconfig"),
    }
}
