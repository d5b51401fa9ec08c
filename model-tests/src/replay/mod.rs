//! What is judged of a trace, beside each of its decisions.
//!
//! * [`exact`]: whether the present core decides the same;
//! * [`judge`]: the invariants that speak of what was seen and of what was done;
//! * [`lift`](mod@lift): a world of the simulator as an operator saw it, with the worst where it saw nothing;
//! * [`perturb`]: what could have happened instead, one thing for each run;
//! * [`diverge`]: everything that could have happened from one pass on, within a bound.

pub mod diverge;
pub mod exact;
pub mod judge;
pub mod lift;
mod lift_data;
pub mod perturb;
