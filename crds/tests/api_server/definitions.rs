//! The definitions themselves, as the server has them.

use serde_json::Value;
use wellcake_crds::schema;

use crate::server::{VERSIONS, in_namespace};

#[tokio::test]
async fn both_versions_are_served_and_the_newer_one_is_stored() {
    in_namespace("versions", |server| async move {
        for name in [
            "valkeyclusters.cache.wellcake.io",
            "valkeyacls.cache.wellcake.io",
        ] {
            let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
            let crd = server.read(&path).await;
            let versions = crd["spec"]["versions"].as_array().expect("versions");
            let seen: Vec<_> = versions
                .iter()
                .map(|v| (&v["name"], &v["served"], &v["storage"]))
                .collect();
            assert_eq!(
                serde_json::json!(seen),
                serde_json::json!([["v1beta1", true, true], ["v1alpha1", true, false]])
            );
            assert_eq!(
                versions[0]["schema"], versions[1]["schema"],
                "the schemas are identical"
            );
            assert_eq!(
                versions[0]["additionalPrinterColumns"],
                versions[1]["additionalPrinterColumns"]
            );
            assert_eq!(crd["spec"]["conversion"]["strategy"], "None");
            let conditions = crd["status"]["conditions"].as_array().expect("conditions");
            let problems: Vec<_> = conditions
                .iter()
                .filter(|c| {
                    c["type"] == "NonStructuralSchema"
                        || (c["type"] == "NamesAccepted" && c["status"] != "True")
                })
                .collect();
            assert!(problems.is_empty(), "{problems:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn short_names_lead_to_the_kinds() {
    in_namespace("short-names", |server| async move {
        for version in VERSIONS {
            let list = server
                .read(&format!("/apis/cache.wellcake.io/{version}"))
                .await;
            let of = |kind: &str| {
                let resources = list["resources"].as_array().expect("resources");
                let main = resources
                    .iter()
                    .find(|r| r["kind"] == kind && !r["name"].to_string().contains('/'));
                main.expect("the kind is served")["shortNames"].clone()
            };
            assert_eq!(of("ValkeyCluster"), serde_json::json!(["vk", "vkc"]));
            assert_eq!(of("ValkeyACL"), serde_json::json!(["vkacl"]));
        }
    })
    .await;
}

#[tokio::test]
async fn kubectl_explain_finds_every_description() {
    in_namespace("explain", |server| async move {
        for version in VERSIONS {
            let document = server
                .read(&format!("/openapi/v3/apis/cache.wellcake.io/{version}"))
                .await;
            for definition in schema::definitions() {
                let kind = definition["spec"]["names"]["kind"].as_str().expect("kind");
                let published = &document["components"]["schemas"]
                    [format!("io.wellcake.cache.{version}.{kind}")];
                let ours = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
                for part in ["spec", "status"] {
                    let (ours, theirs) =
                        (&ours["properties"][part], &published["properties"][part]);
                    let count = same_descriptions(ours, theirs, &format!("{kind}.{part}"));
                    assert!(count > 2, "{kind}.{part} has descriptions");
                }
            }
        }
    })
    .await;
}

/// Compares the descriptions of all properties and returns how many there are.
fn same_descriptions(ours: &Value, published: &Value, path: &str) -> usize {
    assert_eq!(
        ours.get("description"),
        published.get("description"),
        "{path}"
    );
    let inner = ours["properties"].as_object().into_iter().flatten();
    inner
        .map(|(name, node)| {
            same_descriptions(
                node,
                &published["properties"][name],
                &format!("{path}.{name}"),
            )
        })
        .sum::<usize>()
        + usize::from(ours.get("description").is_some())
}
