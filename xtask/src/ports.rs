//! Who holds a port that is needed.

use std::net::TcpListener;
use std::process::Command;

use anyhow::{Result, bail};

use crate::command;

/// An error of one sentence when something else listens on an address such as `127.0.0.1:6443`.
pub fn check_free(address: &str) -> Result<()> {
    let Err(why) = TcpListener::bind(address) else {
        return Ok(());
    };
    let port = address.rsplit(':').next().unwrap_or_default();
    let listing = command::output(Command::new("ss").args(["-Hltnp", &format!("sport = :{port}")]))
        .unwrap_or_default();
    match holder(&listing) {
        Some((name, pid)) => bail!(
            "port {port} is held by {name} (pid {pid}): stop that process, then run this command again"
        ),
        None => bail!(
            "cannot listen on {address} ({why}): free that address, then run this command again"
        ),
    }
}

/// The first program in the answer of `ss -p`: `users:(("nginx",pid=12,fd=6))`.
fn holder(listing: &str) -> Option<(String, u32)> {
    let (_, rest) = listing.split_once("users:((\"")?;
    let (name, rest) = rest.split_once('"')?;
    let (_, rest) = rest.split_once("pid=")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some((name.to_owned(), digits.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_named() {
        let listing = "LISTEN 0 128 0.0.0.0:6443 0.0.0.0:* users:((\"nginx\",pid=812,fd=6),(\"nginx\",pid=813,fd=6))";
        assert_eq!(holder(listing), Some(("nginx".to_owned(), 812)));
        assert_eq!(holder(""), None);
    }

    #[test]
    fn a_held_port_is_one_sentence() {
        let held = TcpListener::bind("127.0.0.1:0").expect("some port is free");
        let address = held.local_addr().expect("it has an address").to_string();
        let error = check_free(&address)
            .expect_err("the port is held")
            .to_string();
        assert!(error.contains("then run this command again"), "{error}");
        drop(held);
        check_free(&address).expect("the port is free again");
    }
}
