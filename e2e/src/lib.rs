//! What end-to-end tests and measurements on a real Kubernetes are made of.
//!
//! * [`cluster`]: the Kubernetes under test;
//! * [`namespace`]: a namespace of its own for each test;
//! * [`apply`]: a ValkeyCluster, from its creation to the state that is waited for;
//! * [`valkey`]: the protocol of Valkey, with deadlines of one's own choice;
//! * [`ledger`]: clients that write, and remember what was acknowledged;
//! * [`load`]: the clients that every fault is done under;
//! * [`faults`]: what is done to pods, undone when its guard goes;
//! * [`operator`]: the operator's own pods, log and lease;
//! * [`other`]: the objects of another operator of this API;
//! * [`told`]: clients that are told the address of a new primary at once;
//! * [`truth`]: whether what a status says is so;
//! * [`audit`]: what the API server was asked for, by whom.

pub mod apply;
pub mod audit;
pub mod cluster;
pub mod drain;
pub mod faults;
pub mod hanging;
pub mod ledger;
pub mod load;
pub mod namespace;
pub mod operator;
pub mod other;
pub mod sequences;
pub mod told;
pub mod truth;
pub mod valkey;
