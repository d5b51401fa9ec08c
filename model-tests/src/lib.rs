//! A small simulated world around the real decisions: pods with Valkey servers, an API server, clients that remember what
//! was acknowledged, and operators that run [`wellcake_core::step`] and [`wellcake_core::exec::admit`].
//!
//! * [`history`]: a data set with its replication history;
//! * [`world`]: the world as a value;
//! * [`servers`], [`replication`]: what Valkey does with commands, and by itself;
//! * [`operator`]: what an operator sees and does;
//! * [`hands`]: how an operator carries effects out;
//! * [`actions`]: everything that can happen;
//! * [`faults`]: what goes wrong beside the faults of searches, and how often each kind took effect;
//! * [`invariants`]: what must hold, judged on the truth and not on what was observed;
//! * [`dive`]: long runs with faults from a seed;
//! * [`random`]: what happens in such a run, and how it must end;
//! * [`rates`]: how often each kind of fault comes in it;
//! * [`weather`]: the same in a world and with faults that are chosen;
//! * [`search`]: every order of events at small scope;
//! * [`objects`]: every state of objects of Kubernetes;
//! * [`crashes`]: operations in which the operator ends at every effect in turn;
//! * [`shrink`]: the few events that it takes to break an invariant;
//! * [`recorded`]: what an operator recorded, decided again;
//! * [`replay`]: what is judged of it: decisions, what was seen and done, and what could have happened instead;
//! * [`explain`]: the same in words and as a page;
//! * [`mutants`]: decisions that are wrong on purpose;
//! * [`museum`]: failures of other operators, replayed;
//! * [`differential`]: what the simulated servers do beside what real ones do.

pub mod actions;
mod changes;
pub mod copies;
pub mod crashes;
pub mod differential;
pub mod dive;
pub mod explain;
pub mod faults;
pub mod hands;
pub mod history;
pub mod invariants;
mod judge;
pub mod museum;
pub mod mutants;
pub mod objects;
pub mod operator;
pub mod random;
pub mod rates;
pub mod recorded;
pub mod replay;
pub mod replication;
pub mod search;
pub mod servers;
pub mod shrink;
mod sight;
pub mod sorted;
pub mod weather;
pub mod world;
