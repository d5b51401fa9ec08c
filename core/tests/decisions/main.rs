//! What the core decides in named situations.

mod situation;

mod adversity;
mod death;
mod first_primary;
mod full_restart;
mod provisioning;
mod routing;
mod told;
