//! Valkey servers: one kept connection to each, read by its own task.

mod connection;
mod pace;
mod server;

pub use connection::{Connection, Failure, Reached, connect};
pub use pace::Pace;
pub use server::{Answer, Server, Snapshot, Surroundings, serve};
