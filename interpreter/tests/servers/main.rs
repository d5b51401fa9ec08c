//! Connections and polls against real servers, one loopback address for each. The program is taken from `VALKEY_SERVER`, else
//! `valkey-server` is looked for in `PATH`.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod connection;
mod poll;
mod process;
mod unfenced;
