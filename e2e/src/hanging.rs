//! An API server that hangs for one kind of request.

use std::net::TcpListener;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::namespace::Space;

/// The API server learns of a webhook within this time.
const LEARNING: Duration = Duration::from_secs(2);
/// By then the operator has seen that the object is missing and has asked for it again.
const BEGUN: Duration = Duration::from_secs(1);

/// An Apply of the operator that hangs: its PodDisruptionBudget was deleted, and a webhook that accepts connections and never
/// answers must agree before it is created again.
pub struct HangingApply {
    webhooks: Api<ValidatingWebhookConfiguration>,
    budgets: Api<PodDisruptionBudget>,
    name: String,
    budget: String,
    listener: TcpListener,
}

impl HangingApply {
    /// Lets the Apply hang in a namespace with one cluster.
    ///
    /// # Errors
    /// When there is no budget, or the API server refuses the webhook.
    pub async fn start(space: &Space) -> Result<Self> {
        let budgets: Api<PodDisruptionBudget> = space.api();
        let found = budgets.list(&ListParams::default()).await?.items;
        let budget = found.first().map(ResourceExt::name_any);
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let hanging = Self {
            webhooks: Api::all(space.client.clone()),
            name: space.name.clone(),
            budget: budget.context("no PodDisruptionBudget")?,
            budgets,
            listener,
        };
        hanging.create().await?;
        tokio::time::sleep(LEARNING).await;
        hanging
            .budgets
            .delete(&hanging.budget, &DeleteParams::default())
            .await?;
        tokio::time::sleep(BEGUN).await;
        Ok(hanging)
    }

    async fn create(&self) -> Result<()> {
        let url = format!("https://{}/", self.listener.local_addr()?);
        let object = serde_json::from_value(json!({
            "metadata": { "name": self.name },
            "webhooks": [{
                "name": "hangs.example.com",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "timeoutSeconds": 30,
                "failurePolicy": "Fail",
                "clientConfig": { "url": url },
                "namespaceSelector": {
                    "matchLabels": { "kubernetes.io/metadata.name": self.name }
                },
                "rules": [{
                    "apiGroups": ["policy"],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE"],
                    "resources": ["poddisruptionbudgets"],
                }],
            }],
        }))?;
        self.webhooks
            .create(&PostParams::default(), &object)
            .await?;
        Ok(())
    }

    /// Lets the API server answer again.
    ///
    /// # Errors
    /// When the Apply had not hung: then nothing was shown.
    pub async fn end(self) -> Result<()> {
        let hung = self.budgets.get_opt(&self.budget).await?.is_none();
        self.webhooks
            .delete(&self.name, &DeleteParams::default())
            .await?;
        ensure!(hung, "the Apply did not hang");
        Ok(())
    }
}
