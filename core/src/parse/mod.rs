//! What comes from outside as text, turned into facts: replies of servers, the spec, the primary record, names of pods.

mod copied;
mod info;
mod pod;
mod record;
mod refusal;
mod server;
mod spec;

pub use copied::file_lacks_copy;
pub use info::{Info, InfoError, InfoRole, OTHER_CONFIG, ReplicaInfo, Unfenced, UpstreamInfo};
pub use pod::{ordinal, ordinal_of_host};
pub use record::{RecordError, record, record_status};
pub use refusal::config_error;
pub use server::server_facts;
pub use spec::{
    failover_token, is_to_hibernate, promote_token, restart_token, spec_facts, unserved,
};
