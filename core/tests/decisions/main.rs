//! What the core decides in named situations.

// A test may stop with a message.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

mod situation;

mod adoption;
mod adversity;
mod by_hand;
mod configuration;
mod death;
mod discarded;
mod field_reports;
mod first_primary;
mod full_restart;
mod handover;
mod hibernation;
mod newest_data;
mod provisioning;
mod rolling;
mod routing;
mod scaling;
mod self_stop;
mod silence;
mod told;
