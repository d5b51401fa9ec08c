//! The API server under test.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::Request;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use wellcake_crds::crds;

pub const VERSIONS: [&str; 2] = ["v1beta1", "v1alpha1"];
const MANAGER: &str = "wellcake-crd-tests";
const FINALIZER: &str = "crd-tests.invalid/held";
/// The definitions are installed once; whoever comes second finds them unchanged.
static INSTALL: Mutex<()> = Mutex::const_new(());

/// A namespace of an API server that has the definitions.
#[derive(Clone)]
pub struct Server {
    client: Client,
    namespace: String,
}

/// Runs a test in a namespace of its own, which is deleted afterwards, also when the test fails.
pub async fn in_namespace<F, T>(name: &str, test: T)
where
    T: FnOnce(Server) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    let client = connect().await;
    install(&client).await;
    let server = Server {
        client,
        namespace: format!("crd-test-{name}-{}", std::process::id()),
    };
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": server.namespace}});
    server
        .send("POST", "/api/v1/namespaces", &namespace)
        .await
        .expect("a namespace can be created");
    let outcome = tokio::spawn(test(server.clone())).await;
    server.unhold_all().await;
    let path = format!("/api/v1/namespaces/{}", server.namespace);
    let deleted = server.send("DELETE", &path, &json!({})).await;
    if let Err(failure) = outcome {
        std::panic::resume_unwind(failure.into_panic());
    }
    deleted.expect("the namespace can be deleted");
}

impl Server {
    /// Offers an object for creation; the server runs everything but keeps nothing.
    pub async fn offer(&self, object: &Value) -> Result<Value, String> {
        self.send(
            "POST",
            &format!(
                "{}?dryRun=All&fieldValidation=Strict",
                self.collection(object)
            ),
            object,
        )
        .await
    }

    /// Stores an object in a state in which an operator leaves it alone: it is being deleted and held by a finalizer.
    /// The API server validates it like any other.
    pub async fn store(&self, object: &Value) -> Value {
        let mut held = object.clone();
        held["metadata"]["finalizers"] = json!([FINALIZER]);
        let path = format!("{}?fieldValidation=Strict", self.collection(object));
        self.send("POST", &path, &held)
            .await
            .unwrap_or_else(|why| panic!("{object} is accepted, but: {why}"));
        self.send("DELETE", &self.item(object), &json!({}))
            .await
            .expect("a stored object can be deleted")
    }

    /// Lets go of a stored object and waits until it is gone.
    pub async fn release(&self, object: &Value) {
        self.unhold(&self.item(object)).await;
        for _ in 0..100 {
            if self
                .send("GET", &self.item(object), &Value::Null)
                .await
                .is_err()
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{object} was released, but is still there after 5 s");
    }

    /// Offers a new spec for a stored object.
    pub async fn offer_update(&self, object: &Value) -> Result<Value, String> {
        let path = format!("{}?dryRun=All&fieldValidation=Strict", self.item(object));
        loop {
            let mut next = object.clone();
            next["metadata"] = self.get(object).await["metadata"].take();
            match self.send("PUT", &path, &next).await {
                Err(why) if why.contains("the object has been modified") => {}
                answer => return answer,
            }
        }
    }

    /// Replaces the status of a stored object.
    pub async fn set_status(&self, object: &Value, status: &Value) {
        // What an operator had begun before the object was deleted is over by then.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let path = format!("{}/status?fieldValidation=Strict", self.item(object));
        for part in [&Value::Null, status] {
            let patch = json!({ "status": part });
            let answer = self
                .call("PATCH", &path, "application/merge-patch+json", &patch)
                .await;
            answer.unwrap_or_else(|why| panic!("{part} is a status, but: {why}"));
        }
    }

    /// Applies a part of the status under a field manager's name.
    pub async fn apply_status(&self, object: &Value, manager: &str) -> Result<Value, String> {
        let path = format!("{}/status?fieldManager={manager}", self.item(object));
        self.call("PATCH", &path, "application/apply-patch+yaml", object)
            .await
    }

    /// Reads an object in the version that it names.
    pub async fn get(&self, object: &Value) -> Value {
        self.read(&self.item(object)).await
    }

    /// Reads an object as the table that `kubectl get` prints.
    pub async fn table(&self, object: &Value) -> Value {
        let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
        let request = Request::builder()
            .uri(self.item(object))
            .header("accept", accept)
            .body(Vec::new());
        self.client
            .request(request.expect("a valid request"))
            .await
            .expect("a table")
    }

    /// Reads any path.
    pub async fn read(&self, path: &str) -> Value {
        self.send("GET", path, &Value::Null)
            .await
            .unwrap_or_else(|why| panic!("GET {path}: {why}"))
    }

    /// Lets go of everything that a failed test left.
    async fn unhold_all(&self) {
        for plural in ["valkeyclusters", "valkeyacls"] {
            let path = format!(
                "/apis/cache.wellcake.io/v1beta1/namespaces/{}/{plural}",
                self.namespace
            );
            let list = self.read(&path).await;
            for left in list["items"].as_array().into_iter().flatten() {
                self.unhold(&format!(
                    "{path}/{}",
                    left["metadata"]["name"].as_str().unwrap_or_default()
                ))
                .await;
            }
        }
    }

    async fn unhold(&self, item: &str) {
        let patch = json!({"metadata": {"finalizers": null}});
        let answer = self
            .call("PATCH", item, "application/merge-patch+json", &patch)
            .await;
        answer.unwrap_or_else(|why| panic!("{item} can be released, but: {why}"));
    }

    fn collection(&self, object: &Value) -> String {
        let version = object["apiVersion"].as_str().expect("apiVersion");
        let plural = match object["kind"].as_str() {
            Some("ValkeyCluster") => "valkeyclusters",
            Some("ValkeyACL") => "valkeyacls",
            other => panic!("no kind of this group: {other:?}"),
        };
        format!("/apis/{version}/namespaces/{}/{plural}", self.namespace)
    }

    fn item(&self, object: &Value) -> String {
        format!(
            "{}/{}",
            self.collection(object),
            object["metadata"]["name"].as_str().expect("name")
        )
    }

    async fn send(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        self.call(method, path, "application/json", body).await
    }

    async fn call(
        &self,
        method: &str,
        path: &str,
        content: &str,
        body: &Value,
    ) -> Result<Value, String> {
        let body = if body.is_null() {
            Vec::new()
        } else {
            body.to_string().into_bytes()
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content)
            .body(body);
        let answer = self
            .client
            .request::<Value>(request.expect("a valid request"))
            .await;
        answer.map_err(|why| match why {
            kube::Error::Api(status) => status.message.clone(),
            other => panic!("{method} {path}: the API server did not answer: {other}"),
        })
    }
}

async fn connect() -> Client {
    let path = kubeconfig();
    let advice = "run `cargo xtask up --no-operator`, or set KUBECONFIG to a Kubernetes for tests";
    let read = Kubeconfig::read_from(&path);
    let file = read.unwrap_or_else(|why| {
        panic!(
            "no API server to test against ({}: {why}): {advice}",
            path.display()
        )
    });
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
    let mut config =
        config.unwrap_or_else(|why| panic!("{} is not usable ({why}): {advice}", path.display()));
    config.connect_timeout = Some(Duration::from_secs(5));
    config.default_retry = false;
    let client = Client::try_from(config).expect("a client for the kubeconfig");
    if let Err(why) = client.apiserver_version().await {
        panic!(
            "the API server of {} does not answer ({why}): {advice}",
            path.display()
        );
    }
    client
}

fn kubeconfig() -> PathBuf {
    match std::env::var_os("KUBECONFIG") {
        Some(path) if !path.is_empty() => PathBuf::from(path),
        _ => Path::new(env!("CARGO_MANIFEST_DIR")).join("../.local/kubeconfig"),
    }
}

/// Installs the definitions of this work tree and waits until the server works by them.
async fn install(client: &Client) {
    let _one_at_a_time = INSTALL.lock().await;
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let mut changed = false;
    for crd in crds() {
        let name = crd.metadata.name.clone().expect("a definition has a name");
        let before = api.get_opt(&name).await.expect("definitions can be read");
        let params = PatchParams::apply(MANAGER).force();
        let after = api.patch(&name, &params, &Patch::Apply(&crd)).await;
        let after = after
            .unwrap_or_else(|why| panic!("the API server refuses the definition {name}: {why}"));
        changed |= before.is_none_or(|b| b.metadata.generation != after.metadata.generation);
        wait_until_established(&api, &name).await;
    }
    if changed {
        // The server swaps the handler of a changed definition a moment after it stored it and tells nobody.
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
}

async fn wait_until_established(api: &Api<CustomResourceDefinition>, name: &str) {
    for _ in 0..100 {
        let crd = api.get(name).await.expect("the definition can be read");
        let conditions = crd
            .status
            .and_then(|status| status.conditions)
            .unwrap_or_default();
        if conditions
            .iter()
            .any(|c| c.type_ == "Established" && c.status == "True")
        {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the API server did not establish {name} within 10 s");
}
