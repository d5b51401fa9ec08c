//! Rendered objects, and how live objects stand to them.

// Lints see tests only in functions marked as such, not in their helpers.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

mod adoption;
mod cases;

mod comparison;
mod configuration;
mod held;
mod objects;
mod secrets;
