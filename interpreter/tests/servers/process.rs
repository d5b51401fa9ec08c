//! A server process with the operator's and the replicas' users, as the rendered Secret gives them.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use wellcake_core::render::{ACL_KEY, FENCE_PORT, Owner, REPLICATION_CONFIG_KEY, acl_secret};
use wellcake_crds::names::ClusterName;
use wellcake_crds::v1beta1::ValkeyClusterSpec;

/// Password of the operator's user.
pub const PASSWORD: &str = "of-the-operator";

/// A server; it is killed when dropped.
pub struct Process {
    pub address: IpAddr,
    dir: PathBuf,
    child: Child,
}

impl Process {
    /// Starts a server on an address of its own, with this client port and these lines on top.
    pub fn start(port: u16, lines: &str) -> Self {
        static NEXT: AtomicU8 = AtomicU8::new(1);
        let (high, low) = (
            std::process::id() as u8,
            NEXT.fetch_add(1, Ordering::Relaxed),
        );
        let address = IpAddr::V4(Ipv4Addr::new(127, 77, high.max(1), low));
        let dir = std::env::temp_dir().join(format!("wellcake-{address}"));
        fs::create_dir_all(&dir).expect("a folder for the server");
        write_configuration(&dir, address, port, lines);
        let child = spawn(&dir);
        let process = Self {
            address,
            dir,
            child,
        };
        process.wait_for(port);
        process
    }

    /// Starts one behind the fence.
    pub fn fenced() -> Self {
        Self::start(
            FENCE_PORT,
            "replicaof 127.0.0.1 1\nreplica-announce-port 6379\n",
        )
    }

    /// Ends the process as a crash does.
    pub fn kill(&mut self) {
        self.child.kill().expect("the server can be killed");
        self.child.wait().expect("the server ends");
    }

    /// Starts the process again, as the kubelet does in the same pod.
    pub fn restart(&mut self, port: u16) {
        self.child = spawn(&self.dir);
        self.wait_for(port);
    }

    fn wait_for(&self, port: u16) {
        let begun = Instant::now();
        while TcpStream::connect((self.address, port)).is_err() {
            assert!(
                begun.elapsed() < Duration::from_secs(10),
                "the server does not listen on {port}"
            );
            sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn spawn(dir: &std::path::Path) -> Child {
    let program = std::env::var("VALKEY_SERVER").unwrap_or_else(|_| "valkey-server".to_owned());
    Command::new(&program)
        .arg(dir.join("valkey.conf"))
        .current_dir(dir)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|why| {
            panic!("cannot start {program}: {why}; put valkey-server into PATH or name it in VALKEY_SERVER")
        })
}

fn write_configuration(dir: &std::path::Path, address: IpAddr, port: u16, lines: &str) {
    let name = ClusterName::parse("test").expect("valid");
    let owner = Owner {
        name: &name,
        namespace: "test",
        uid: "0",
        restart: None,
        asleep: false,
    };
    let spec = ValkeyClusterSpec::default();
    let secret = acl_secret(
        &owner,
        &spec,
        Some("of-clients"),
        PASSWORD,
        "of-replicas",
        None,
    );
    for key in [ACL_KEY, REPLICATION_CONFIG_KEY] {
        let encoded = secret["data"][key].as_str().expect("rendered");
        let text = STANDARD.decode(encoded).expect("base64");
        fs::write(dir.join(key), text).expect("written");
    }
    let text = format!(
        "port {port}\nbind {address}\nbind-source-addr {address}\ndir {dir}\naclfile {dir}/{ACL_KEY}\n\
         include {dir}/{REPLICATION_CONFIG_KEY}\nsave \"\"\nrepl-diskless-sync-delay 0\n{lines}",
        dir = dir.display(),
    );
    fs::write(dir.join("valkey.conf"), text).expect("written");
}
