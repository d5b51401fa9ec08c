//! The pure core: from what is asked for and what is seen to what is done next, with reasons.
//!
//! * [`facts`]: all that a decision may depend on;
//! * [`step`]: the decision, one file per concern beneath `plan`;
//! * [`effects`]: what a decision asks for, with guards;
//! * [`mod@reasons`] for each of them;
//! * [`status`]: what the user is told;
//! * [`discarded`]: what the demotion of a second primary throws away;
//! * [`render`]: Kubernetes objects and valkey.conf as pure functions of the spec;
//! * [`parse`]: replies of servers;
//! * [`exec`]: order, guards, leadership and outcomes of effects, without sockets or clocks;
//! * [`limits`]: every threshold.

pub mod discarded;
pub mod effects;
pub mod exec;
pub mod facts;
pub mod limits;
pub mod parse;
mod plan;
pub mod reasons;
pub mod render;
pub mod status;

pub use plan::step;
