//! Valkey servers: one kept connection to each, read by its own task.

mod connection;
mod pace;
mod server;

pub use connection::{Connection, Failure};
pub use pace::Pace;
pub use server::{Server, Snapshot, Surroundings, serve};
