//! The first ValkeyCluster: applied, waited for, and how to use it.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::command::{output, wait_for};
use crate::install::target::Target;
use crate::paths::Layout;
use crate::progress::Progress;

/// The example, from the root of the work tree.
const EXAMPLE: &str = "docs/examples/replication.yaml";
const PATIENCE: Duration = Duration::from_secs(180);

/// Applies the example and waits until it is ready. Returns what to do next.
pub fn run(layout: &Layout, progress: &Progress, target: &Target) -> Result<String> {
    let ready = progress.step(
        "example",
        &format!("Waiting for {EXAMPLE} to be ready"),
        |note| {
            let file = layout.repo.join(EXAMPLE);
            output(target.kubectl().args(["apply", "--filename"]).arg(&file))?;
            wait_for("readiness of the ValkeyCluster", PATIENCE, || {
                let object = cluster(&serde_json::from_str(&output(
                    target
                        .kubectl()
                        .args(["get", "--output=json", "--filename"])
                        .arg(&file),
                )?)?)
                .with_context(|| format!("{EXAMPLE} holds no ValkeyCluster"))?;
                note.set(remark(&object));
                if is_ready(&object) {
                    return Ok(Some(object));
                }
                std::thread::sleep(Duration::from_millis(200));
                Ok(None)
            })
            .with_context(|| story(target))
        },
    )?;
    Ok(hints(target, &ready))
}

/// The ValkeyCluster in what kubectl gives: one object, or a list.
fn cluster(answer: &Value) -> Option<Value> {
    let items = answer["items"]
        .as_array()
        .map_or(std::slice::from_ref(answer), Vec::as_slice);
    items
        .iter()
        .find(|item| item["kind"] == "ValkeyCluster")
        .cloned()
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"]
        .as_array()?
        .iter()
        .find(|it| it["type"] == kind)
}

/// Ready, and said about the object as it is now.
fn is_ready(object: &Value) -> bool {
    condition(object, "Ready").is_some_and(|ready| {
        ready["status"] == "True" && ready["observedGeneration"] == object["metadata"]["generation"]
    })
}

/// What the operator says while it is not ready.
fn remark(object: &Value) -> String {
    let phase = object["status"]["phase"]
        .as_str()
        .unwrap_or("not seen by the operator yet");
    match condition(object, "Ready").and_then(|ready| ready["message"].as_str()) {
        Some(message) if !message.is_empty() => format!("{phase}, {message}"),
        _ => phase.to_owned(),
    }
}

fn story(target: &Target) -> String {
    let ask = |arguments: &[&str]| {
        output(target.kubectl().args(arguments)).unwrap_or_else(|why| why.to_string())
    };
    format!(
        "it is not ready; what is known:\n{}\n{}",
        ask(&["get", "pods,persistentvolumeclaims", "--output=wide"]),
        ask(&[
            "get",
            "events",
            "--sort-by=.lastTimestamp",
            "--field-selector=type=Warning"
        ]),
    )
}

/// How to connect and what to try.
fn hints(target: &Target, object: &Value) -> String {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let namespace = object["metadata"]["namespace"]
        .as_str()
        .unwrap_or("default");
    let space = if namespace == "default" {
        String::new()
    } else {
        format!(" -n {namespace}")
    };
    let secret = object["spec"]["auth"]["existingSecret"]
        .as_str()
        .filter(|secret| !secret.is_empty())
        .map_or_else(|| format!("{name}-auth"), str::to_owned);
    let kubectl = format!("{}{space}", target.typed());
    format!(
        "\
{name} is ready. Its password, a first command, and a test of its life:

  PASSWORD=$({kubectl} get secret {secret} -o jsonpath='{{.data.password}}' | base64 -d)
  {kubectl} exec {name}-0 -c valkey -- env REDISCLI_AUTH=\"$PASSWORD\" valkey-cli -h {name} set greeting hello
  {kubectl} get valkeyclusters,pods -L valkey.wellcake.io/role
  {kubectl} delete pod \"$({kubectl} get pods -l app.kubernetes.io/instance={name},valkey.wellcake.io/role=primary -o name | cut -d/ -f2)\"
  {kubectl} get valkeycluster {name} --watch
  {kubectl} explain valkeycluster.spec
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(generation: u32, seen: u32, status: &str) -> Value {
        json!({
            "kind": "ValkeyCluster",
            "metadata": {"name": "a", "generation": generation},
            "status": {"phase": "Provisioning", "conditions": [
                {"type": "Ready", "status": status, "observedGeneration": seen, "message": "1 of 3 pods"},
            ]},
        })
    }

    #[test]
    fn a_stale_condition_is_not_readiness() {
        assert!(is_ready(&object(2, 2, "True")));
        assert!(!is_ready(&object(2, 1, "True")));
        assert!(!is_ready(&object(2, 2, "False")));
        assert!(!is_ready(&json!({"metadata": {"generation": 1}})));
    }

    #[test]
    fn the_remark_is_what_the_operator_says() {
        assert_eq!(remark(&object(1, 1, "False")), "Provisioning, 1 of 3 pods");
        assert_eq!(remark(&json!({})), "not seen by the operator yet");
    }

    #[test]
    fn the_cluster_is_found_among_others() {
        let list = json!({"items": [{"kind": "Namespace"}, object(1, 1, "True")]});
        assert_eq!(
            cluster(&list).expect("it is there")["metadata"]["name"],
            "a"
        );
        assert!(cluster(&object(1, 1, "True")).is_some());
        assert!(cluster(&json!({"kind": "Secret"})).is_none());
    }
}
