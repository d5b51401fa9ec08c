//! A small simulated world around the real decisions: pods with Valkey servers, an API server, clients that remember what
//! was acknowledged, and operators that run [`wellcake_core::step`] and [`wellcake_core::exec::admit`].
//!
//! * [`history`]: a data set with its replication history;
//! * [`world`]: the world as a value;
//! * [`servers`], [`replication`]: what Valkey does with commands, and by itself;
//! * [`operator`]: what an operator sees and does;
//! * [`hands`]: how an operator carries effects out;
//! * [`actions`]: everything that can happen;
//! * [`invariants`]: what must hold, judged on the truth and not on what was observed;
//! * [`random`]: long runs with faults from a seed;
//! * [`weather`]: the same in a world and with faults that are chosen;
//! * [`search`]: every order of events at small scope;
//! * [`objects`]: every state of objects of Kubernetes;
//! * [`crashes`]: operations in which the operator ends at every effect in turn;
//! * [`shrink`]: the few events that it takes to break an invariant;
//! * [`recorded`]: what an operator recorded, decided again;
//! * [`mutants`]: decisions that are wrong on purpose;
//! * [`museum`]: failures of other operators, replayed;
//! * [`differential`]: what the simulated servers do beside what real ones do.

pub mod actions;
mod changes;
pub mod copies;
pub mod crashes;
pub mod differential;
pub mod hands;
pub mod history;
pub mod invariants;
pub mod museum;
pub mod mutants;
pub mod objects;
pub mod operator;
pub mod random;
pub mod recorded;
pub mod replication;
pub mod search;
pub mod servers;
pub mod shrink;
mod sight;
pub mod sorted;
pub mod weather;
pub mod world;
