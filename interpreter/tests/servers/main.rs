//! Connections and polls against real servers, one loopback address for each. The program is taken from `VALKEY_SERVER`, else
//! `valkey-server` is looked for in `PATH`.

mod connection;
mod poll;
mod process;
