//! From a spec to a Valkey that serves.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::json;
use wellcake_e2e::apply::{Applied, MAKING, PORT, address, is_ready, on_claims, replication};
use wellcake_e2e::cluster::local;
use wellcake_e2e::namespace::beside_others;
use wellcake_e2e::valkey::{Connection, LIMIT_OF_LOOKS, PATIENT, Reply};

#[tokio::test(flavor = "multi_thread")]
async fn a_standalone_gets_one_pod_and_serves() {
    beside_others("standalone", |space| async move {
        let spec =
            json!({"topology": "Standalone", "storage": {"medium": "Memory", "size": "64Mi"}});
        let cluster = Applied::ready(&space, "solo", spec).await?;
        let look = cluster.look().await?;
        ensure!(look.pods.len() == 1, "{} pods", look.pods.len());
        ensure!(look.status().replicas == Some(1) && look.status().ready_replicas == Some(1));
        ensure!(
            look.status().primary.as_deref() == Some("solo-0"),
            "{:?}",
            look.status().primary
        );
        let password = cluster.password().await?;
        let address = cluster.service(&cluster.name.client_service()).await?;
        // kube-proxy may take a second to learn of a new Service.
        let start = std::time::Instant::now();
        let mut server = loop {
            match Connection::open(address, Some(&password), PATIENT) {
                Ok(server) => break server,
                Err(why) if start.elapsed() > std::time::Duration::from_secs(5) => {
                    return Err(why.into());
                }
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
            }
        };
        server.ok(&["SET", "key", "value"])?;
        ensure!(server.text(&["GET", "key"])? == "value");
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replication_is_ready_when_every_replica_is_in_sync_and_every_service_leads_where_it_says()
{
    beside_others("replication", |space| async move {
        let cluster = Applied::ready(&space, "three", replication()).await?;
        let look = cluster.look().await?;
        ensure!(look.pods.len() == 3, "{} pods", look.pods.len());
        ensure!(
            look.epoch() == 1,
            "the first primary has epoch {}",
            look.epoch()
        );
        for (kind, status) in [
            ("Available", "True"),
            ("Progressing", "False"),
            ("Degraded", "False"),
        ] {
            let condition = look
                .condition(kind)
                .with_context(|| format!("no condition {kind}"))?;
            ensure!(condition.status == status, "{condition:?}");
            ensure!(
                condition.observed_generation == look.cluster.metadata.generation,
                "{condition:?}"
            );
        }
        let endpoint = look.status().internal_endpoint.unwrap_or_default();
        ensure!(
            endpoint == format!("three.{}.svc:6379", space.name),
            "{endpoint}"
        );
        let primary = cluster.pod(look.recorded().context("a record")?).await?;
        let replicas: Vec<String> = look
            .pods
            .iter()
            .filter(|pod| pod.name_any() != primary.name_any())
            .map(|pod| Ok(address(pod)?.ip().to_string()))
            .collect::<Result<_>>()?;
        let primary = vec![address(&primary)?.ip().to_string()];
        for (service, expected) in [
            (cluster.name.client_service(), &primary),
            (cluster.name.primary_service(), &primary),
            (cluster.name.replicas_service(), &replicas),
        ] {
            endpoints(&cluster, &service, expected).await?;
        }
        Ok(())
    })
    .await;
}

/// Waits until a Service leads to these addresses; the endpoint controller follows the pods' readiness.
async fn endpoints(cluster: &Applied, service: &str, expected: &[String]) -> Result<()> {
    let mine = ListParams::default().labels(&format!("kubernetes.io/service-name={service}"));
    let mut seen = Vec::new();
    for _ in 0..100 {
        seen = cluster
            .space
            .api::<EndpointSlice>()
            .list(&mine)
            .await?
            .items
            .into_iter()
            .flat_map(|slice| slice.endpoints)
            .filter(|endpoint| {
                endpoint
                    .conditions
                    .as_ref()
                    .and_then(|it| it.ready)
                    .unwrap_or(true)
            })
            .flat_map(|endpoint| endpoint.addresses)
            .collect::<Vec<_>>();
        seen.sort();
        let mut wanted = expected.to_vec();
        wanted.sort();
        if seen == wanted {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    anyhow::bail!("{service} leads to {seen:?} instead of {expected:?}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_of_32_characters_is_made_and_nobody_gets_in_without_it() {
    beside_others("auth", |space| async move {
        let cluster = Applied::ready(&space, "auth", replication()).await?;
        let password = cluster.password().await?;
        ensure!(
            password.chars().count() == 32,
            "{} characters",
            password.chars().count()
        );
        for pod in cluster.pods().await? {
            let mut stranger = Connection::open(address(&pod)?, None, PATIENT)?;
            for command in [
                &["GET", "key"][..],
                &["SET", "key", "value"],
                &["REPLICAOF", "NO", "ONE"],
            ] {
                let reply = stranger.call(command)?;
                let refused = matches!(&reply, Reply::Error(text) if text.starts_with("NOAUTH"));
                ensure!(refused, "{command:?} without a password: {reply:?}");
            }
            let wrong = Connection::open(address(&pod)?, Some("wrong"), PATIENT);
            ensure!(wrong.is_err(), "a wrong password was accepted");
        }
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn until_the_operator_has_verified_a_server_its_client_port_is_closed() {
    beside_others("boot", |space| async move {
        let cluster = Applied::create(&space, "boot", replication()).await?;
        let (mut refused, mut early) = (0, 0);
        loop {
            let look = cluster.look().await?;
            if look.is_ready() {
                break;
            }
            for pod in look
                .pods
                .iter()
                .filter(|pod| pod.status.as_ref().is_some_and(|it| it.pod_ip.is_some()))
            {
                let labelled = pod.labels().contains_key(wellcake_crds::labels::ROLE);
                match std::net::TcpStream::connect_timeout(&address(pod)?, LIMIT_OF_LOOKS) {
                    Err(why) if why.kind() == std::io::ErrorKind::ConnectionRefused => refused += 1,
                    Err(_) => {}
                    // It was verified between the look and the connection, or it should not be open.
                    Ok(_) if labelled || look.recorded().is_some() => {}
                    Ok(_) => {
                        let again = cluster.look().await?;
                        early += i32::from(again.recorded().is_none());
                    }
                }
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        cluster.wait_ready(MAKING).await?;
        ensure!(refused > 0, "no closed client port was ever seen");
        ensure!(
            early == 0,
            "{early} times a client port was open before there was a primary"
        );
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn valkey_8_1_on_claims_is_ready_for_kubectl_wait_and_tells_what_happened() {
    beside_others("kubectl", |space| async move {
        let mut spec = on_claims();
        spec["image"] = json!("valkey/valkey:8.1");
        let cluster = Applied::create(&space, "newer", spec).await?;
        let name = space.name.clone();
        let wait = tokio::task::spawn_blocking(move || {
            Command::new(local("bin/kubectl"))
                .args([
                    "--namespace",
                    &name,
                    "wait",
                    "--for=condition=Ready",
                    "--timeout=120s",
                ])
                .arg("valkeycluster/newer")
                .env(
                    "KUBECONFIG",
                    std::env::var("KUBECONFIG")
                        .unwrap_or_else(|_| local("kubeconfig").display().to_string()),
                )
                .output()
        })
        .await??;
        ensure!(
            wait.status.success(),
            "{}\n{}",
            String::from_utf8_lossy(&wait.stderr),
            cluster.story().await
        );
        let look = cluster.wait_ready(MAKING).await?;
        for pod in &look.pods {
            let version = cluster
                .connect(pod)
                .await?
                .info("server", "valkey_version")?;
            ensure!(version.starts_with("8.1."), "{version}");
        }
        let events = cluster.events().await?;
        for expected in ["CredentialsCreated", "FirstPrimary"] {
            ensure!(
                events.iter().any(|(reason, _)| reason == expected),
                "no event {expected}: {events:?}"
            );
        }
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_services_have_the_port_of_clients() {
    beside_others("ports", |space| async move {
        let cluster = Applied::ready(&space, "ports", replication()).await?;
        let services = space
            .api::<Service>()
            .list(&ListParams::default())
            .await?
            .items;
        let mut names: Vec<String> = services.iter().map(ResourceExt::name_any).collect();
        names.sort();
        let mut expected = [
            cluster.name.client_service(),
            cluster.name.headless_service(),
            cluster.name.primary_service(),
            cluster.name.replicas_service(),
        ];
        expected.sort();
        ensure!(names == expected, "{names:?}");
        for service in services {
            let ports = service.spec.and_then(|spec| spec.ports).unwrap_or_default();
            ensure!(
                ports.len() == 1 && ports[0].port == i32::from(PORT),
                "{ports:?}"
            );
        }
        // The kubelet sees an open port with its next probe, a second later at most.
        cluster
            .wait("every pod is ready", Duration::from_secs(5), |look| {
                look.pods.iter().all(is_ready)
            })
            .await?;
        Ok(())
    })
    .await;
}
