//! A real server started from rendered files.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use wellcake_core::parse::Info;
use wellcake_core::render::{
    self, ACL_KEY, CLIENT_PORT, FENCE_PORT, Owner, REPLICATION_CONFIG_KEY,
};
use wellcake_crds::names::ClusterName;
use wellcake_crds::v1beta1::ValkeyClusterSpec;

pub const OPERATOR_PASSWORD: &str = "op";
pub const REPLICATION_PASSWORD: &str = "rep";
pub const USER_PASSWORD: &str = "user";

/// A server process in a folder of its own; both go with it.
pub struct Server {
    child: Child,
    folder: PathBuf,
    pub port: u16,
}

/// Passwords that a server is made with.
pub struct Passwords<'a> {
    pub user: Option<&'a str>,
    pub operator: &'a str,
    pub replication: &'a str,
}

impl Default for Passwords<'_> {
    fn default() -> Self {
        Self {
            user: Some(USER_PASSWORD),
            operator: OPERATOR_PASSWORD,
            replication: REPLICATION_PASSWORD,
        }
    }
}

impl Server {
    pub fn start(spec: &ValkeyClusterSpec) -> Self {
        Self::start_with(spec, &Passwords::default())
    }

    /// Starts a server from the rendered files, of which only paths and the port are replaced.
    pub fn start_with(spec: &ValkeyClusterSpec, passwords: &Passwords<'_>) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("wellcake-{}-{number}", std::process::id()));
        std::fs::create_dir_all(folder.join("data")).unwrap();
        std::fs::create_dir_all(folder.join("secret")).unwrap();
        write_secret(&folder.join("secret"), spec, passwords);
        let port = free_port();
        std::fs::write(
            folder.join("valkey.conf"),
            local(&render::config(spec), &folder, port),
        )
        .unwrap();
        let log = std::fs::File::create(folder.join("log")).unwrap();
        let child = Command::new(program())
            .arg(folder.join("valkey.conf"))
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .stdin(Stdio::null())
            .spawn()
            .unwrap_or_else(|why| panic!("{} does not start: {why}", program().display()));
        let mut server = Self {
            child,
            folder,
            port,
        };
        server.wait_until_it_listens();
        server
    }

    fn wait_until_it_listens(&mut self) {
        let until = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let ended = self.child.try_wait().unwrap();
            assert!(
                ended.is_none() && Instant::now() < until,
                "the server does not listen:\n{}\n{}",
                std::fs::read_to_string(self.folder.join("valkey.conf")).unwrap(),
                std::fs::read_to_string(self.folder.join("log")).unwrap()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// A connection that has not logged in.
    pub fn connect(&self) -> Connection {
        Connection::open(self.port)
    }

    /// A connection of a user.
    pub fn login(&self, user: &str, password: &str) -> Connection {
        let mut connection = self.connect();
        assert_eq!(connection.ask(&["AUTH", user, password]), "+OK", "{user}");
        connection
    }

    pub fn operator(&self) -> Connection {
        self.login("valkey-operator", OPERATOR_PASSWORD)
    }

    /// What it says of itself, as the operator asks.
    pub fn info(&self) -> Info {
        let sections = ["INFO", "server", "replication", "persistence", "keyspace"];
        Info::parse(&self.operator().ask(&sections)).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A connection that speaks RESP2.
pub struct Connection(BufReader<TcpStream>);

impl Connection {
    pub fn open(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        Self(BufReader::new(stream))
    }

    /// Sends a command; the reply as text: bulk strings as they are, lists joined by blanks, `+` and `-` kept.
    pub fn ask(&mut self, words: &[&str]) -> String {
        let mut bytes = format!("*{}\r\n", words.len());
        for word in words {
            bytes.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        self.0.get_mut().write_all(bytes.as_bytes()).unwrap();
        self.reply()
    }

    fn reply(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        let line = line.trim_end();
        let (kind, rest) = line
            .split_at_checked(1)
            .unwrap_or_else(|| panic!("connection closed"));
        match kind {
            "$" if rest == "-1" => String::new(),
            "$" => {
                let mut bulk = vec![0; rest.parse::<usize>().unwrap() + 2];
                self.0.read_exact(&mut bulk).unwrap();
                bulk.truncate(bulk.len() - 2);
                String::from_utf8(bulk).unwrap()
            }
            "*" => {
                let parts: Vec<_> = (0..rest.parse::<i32>().unwrap())
                    .map(|_| self.reply())
                    .collect();
                parts.join(" ")
            }
            _ => line.to_owned(),
        }
    }

    /// The value of a directive.
    pub fn directive(&mut self, name: &str) -> String {
        let reply = self.ask(&["CONFIG", "GET", name]);
        reply
            .strip_prefix(&format!("{name} "))
            .unwrap_or_else(|| panic!("{name}: {reply}"))
            .to_owned()
    }
}

/// The program: `VALKEY_SERVER`, or `valkey-server` in `PATH`.
pub fn program() -> PathBuf {
    if let Some(given) = std::env::var_os("VALKEY_SERVER") {
        return PathBuf::from(given);
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).map(|folder| folder.join("valkey-server")).find(|file| file.is_file()).expect(
        "this test needs a real valkey-server (8.0 or newer): put one into PATH or name it in VALKEY_SERVER; \
         `cargo xtask test` brings one",
    )
}

fn local(config: &str, folder: &Path, port: u16) -> String {
    let paths = config
        .replace(
            "/etc/valkey/secret",
            &folder.join("secret").display().to_string(),
        )
        .replace(
            "dir /data",
            &format!("dir {}", folder.join("data").display()),
        );
    let lines = paths.lines().map(|line| match line.strip_prefix("port ") {
        Some(given) => {
            assert!(
                [CLIENT_PORT, FENCE_PORT]
                    .map(|port| port.to_string())
                    .contains(&given.to_owned())
            );
            format!("port {port}\n")
        }
        None => format!("{line}\n"),
    });
    lines.collect()
}

fn write_secret(folder: &Path, spec: &ValkeyClusterSpec, passwords: &Passwords<'_>) {
    let name = ClusterName::parse("web").unwrap();
    let owner = Owner {
        name: &name,
        namespace: "default",
        uid: "uid",
        restart: None,
        asleep: false,
    };
    let secret = render::acl_secret(
        &owner,
        spec,
        passwords.user,
        passwords.operator,
        passwords.replication,
        None,
    );
    for key in [ACL_KEY, REPLICATION_CONFIG_KEY] {
        if let Some(Value::String(text)) = secret["data"].get(key) {
            std::fs::write(folder.join(key), STANDARD.decode(text).unwrap()).unwrap();
        }
    }
}

pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}
