//! Valkey servers: one kept connection to each, read by its own task.

mod connection;
mod pace;
mod rivalry;
mod server;
pub mod unfenced;

pub use connection::{Connection, Failure, Fence, Reached, connect};
pub use pace::Pace;
pub use rivalry::Rivalry;
pub use server::{Answer, Server, Snapshot, Surroundings, serve};
