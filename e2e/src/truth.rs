//! Whether what the status says is so: asked of the servers themselves.

use anyhow::{Result, bail, ensure};
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::ResourceExt;
use wellcake_crds::labels;
use wellcake_crds::v1beta1::Topology;

use crate::apply::{Applied, Look, address, ordinal};
use crate::valkey::{Connection, LIMIT_OF_LOOKS, line};

const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";

/// Whether every pod serves in the role that the status, the labels and the Services give it.
///
/// # Errors
/// What is not so.
pub async fn whole(cluster: &Applied, look: &Look) -> Result<()> {
    let spec = &look.cluster.spec;
    let replicated = spec.topology == Topology::Replication;
    let wanted = if replicated {
        usize::try_from(spec.replicas)?
    } else {
        1
    };
    ensure!(
        look.pods.len() == wanted,
        "there are {} pods instead of {wanted}",
        look.pods.len()
    );
    let status = look.status();
    ensure!(
        status.ready_replicas == Some(i32::try_from(wanted)?),
        "readyReplicas is {:?}",
        status.ready_replicas
    );
    let primary = status.primary.unwrap_or_default();
    let auth = spec.auth.as_ref().is_none_or(|auth| auth.enabled);
    let password = if auth {
        Some(cluster.password().await?)
    } else {
        None
    };
    for pod in &look.pods {
        let name = pod.name_any();
        let mut server = Connection::open(address(pod)?, password.as_deref(), LIMIT_OF_LOOKS)
            .map_err(|why| anyhow::anyhow!("{name} does not answer: {why}"))?;
        let info = server.text(&["INFO", "replication"])?;
        if name == primary {
            let replicas = if replicated { wanted - 1 } else { 0 };
            is_primary(&name, &info, replicas)?;
        } else {
            is_replica(&name, &info)?;
        }
        if replicated {
            let role = if name == primary {
                labels::ROLE_PRIMARY
            } else {
                labels::ROLE_REPLICA
            };
            let label = labels_role(pod);
            ensure!(
                label == role,
                "{name} has the role label {label:?} instead of {role:?}"
            );
        }
    }
    ensure!(ordinal(&primary).is_some(), "the status names no primary");
    if replicated {
        routes(cluster, &primary).await?;
    }
    Ok(())
}

fn labels_role(pod: &Pod) -> &str {
    pod.labels().get(labels::ROLE).map_or("", String::as_str)
}

fn is_primary(name: &str, info: &str, replicas: usize) -> Result<()> {
    let role = line(info, "role").unwrap_or_default();
    ensure!(
        role == "master",
        "{name} has the role {role}, and the status calls it primary"
    );
    let online = info
        .lines()
        .filter(|it| it.starts_with("slave") && it.contains("state=online"))
        .count();
    ensure!(
        online == replicas,
        "{online} of {replicas} replicas of {name} are online"
    );
    Ok(())
}

fn is_replica(name: &str, info: &str) -> Result<()> {
    let field = |field: &str| line(info, field).unwrap_or_default();
    if field("role") != "slave" || field("master_link_status") != "up" {
        bail!(
            "{name} is no replica in sync: role {}, link {}",
            field("role"),
            field("master_link_status")
        );
    }
    Ok(())
}

/// Both client Services lead to the primary.
async fn routes(cluster: &Applied, primary: &str) -> Result<()> {
    for name in [
        cluster.name.client_service(),
        cluster.name.primary_service(),
    ] {
        let service = cluster.space.api::<Service>().get(&name).await?;
        let selector = service
            .spec
            .and_then(|spec| spec.selector)
            .unwrap_or_default();
        let pod = selector.get(POD_NAME).map_or("", String::as_str);
        ensure!(
            pod == primary,
            "the Service {name} leads to {pod:?}, the primary is {primary}"
        );
    }
    Ok(())
}
