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

/// Password of clients.
pub const CLIENTS: &str = "of-clients";
/// Password of the replicas' user.
pub const REPLICAS: &str = "of-replicas";
/// Name of the configuration file that another operator's template starts a server with.
const OTHER_FILE: &str = "runtime.conf";

/// A server; it is killed when dropped.
pub struct Process {
    pub address: IpAddr,
    dir: PathBuf,
    child: Child,
    file: &'static str,
}

/// The default user's connection, with which another operator and clients work.
pub struct Client(redis::aio::MultiplexedConnection);

impl Client {
    async fn send<T: redis::FromRedisValue>(&mut self, words: &[&str]) -> T {
        let (name, rest) = words.split_first().expect("a command");
        let mut command = redis::cmd(name);
        command.arg(rest);
        command.query_async(&mut self.0).await.expect("done")
    }

    pub async fn set(&mut self, key: &str, value: &str) {
        self.send::<()>(&["SET", key, value]).await;
    }

    pub async fn get(&mut self, key: &str) -> Option<String> {
        self.send(&["GET", key]).await
    }

    pub async fn follow(&mut self, primary: IpAddr) {
        let address = primary.to_string();
        self.send::<()>(&["REPLICAOF", &address, "6379"]).await;
    }

    pub async fn make_user(&mut self, name: &str) {
        self.send::<()>(&["ACL", "SETUSER", name, "on", "nopass"])
            .await;
    }
}

impl Process {
    /// Starts a server on an address of its own, with this client port and these lines on top.
    pub fn start(port: u16, lines: &str) -> Self {
        let address = next_address();
        let dir = std::env::temp_dir().join(format!("wellcake-{address}"));
        fs::create_dir_all(&dir).expect("a folder for the server");
        write_configuration(&dir, address, port, lines);
        Self::begin(address, dir, port, "valkey.conf")
    }

    fn begin(address: IpAddr, dir: PathBuf, port: u16, file: &'static str) -> Self {
        let child = spawn(&dir, file);
        let process = Self {
            address,
            dir,
            child,
            file,
        };
        process.wait_for(port);
        process
    }

    /// Starts one as another operator's template does: its users and its file of them, the client port open, and the same
    /// password for clients and replicas. `default` is the line of the default user, if it is another one.
    pub fn of_another_operator(default: &str) -> Self {
        let address = next_address();
        let dir = std::env::temp_dir().join(format!("wellcake-{address}"));
        fs::create_dir_all(&dir).expect("a folder for the server");
        let usual = format!("user default on >{CLIENTS} ~* &* +@all\n");
        let default = if default.is_empty() { &usual } else { default };
        let users = format!("{default}user replicator on >{CLIENTS} +psync +replconf +ping\n");
        fs::write(dir.join("users.acl"), users).expect("written");
        let text = format!(
            "port 6379\nbind {address}\nbind-source-addr {address}\nprotected-mode no\ndir {dir}\n\
             aclfile {dir}/users.acl\nmasterauth {CLIENTS}\nmasteruser replicator\nappendonly no\nsave \"\"\n\
             repl-diskless-sync-delay 0\n",
            dir = dir.display(),
        );
        fs::write(dir.join(OTHER_FILE), text).expect("written");
        Self::begin(address, dir, 6379, OTHER_FILE)
    }

    /// A connection of a client.
    pub async fn client(&self) -> Client {
        let url = format!("redis://default:{CLIENTS}@{}:6379", self.address);
        let client = redis::Client::open(url).expect("an address");
        let connection = client.get_multiplexed_async_connection().await;
        Client(connection.expect("the server answers"))
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
        self.child = spawn(&self.dir, self.file);
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

fn next_address() -> IpAddr {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let (high, low) = (
        std::process::id() as u8,
        NEXT.fetch_add(1, Ordering::Relaxed),
    );
    IpAddr::V4(Ipv4Addr::new(127, 77, high.max(1), low))
}

fn spawn(dir: &std::path::Path, file: &str) -> Child {
    let program = std::env::var("VALKEY_SERVER").unwrap_or_else(|_| "valkey-server".to_owned());
    Command::new(&program)
        .arg(dir.join(file))
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
    let secret = acl_secret(&owner, &spec, Some(CLIENTS), PASSWORD, REPLICAS, None);
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
