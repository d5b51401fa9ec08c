//! What the operator promises, on a real Kubernetes with real servers and real faults. Every fault is done under load by
//! clients that remember what was acknowledged.

mod adoption;
mod all_pods;
mod changes;
mod configuration;
mod creation;
mod deletion;
mod drain;
mod failover;
mod handover;
mod harness;
mod hibernation;
mod operator;
mod persistence;
mod refusals;
mod replicas;
mod scaling;
mod sequences;
mod steady;
mod told;
mod upgrades;
mod volumes;
