//! The little of the wire protocol that scripts need.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

/// How long a connection may take on the machine itself.
const CONNECT: Duration = Duration::from_millis(500);

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A string, a status or a number.
    Text(String),
    /// An error of the server, with its first word.
    Refused(String),
    /// Several replies.
    List(Vec<Self>),
    /// No value.
    Nothing,
}

/// A connection that sends commands and reads their replies in order.
#[derive(Debug)]
pub struct Connection(BufReader<TcpStream>);

impl Connection {
    /// Connects.
    pub fn open(address: IpAddr, port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&SocketAddr::new(address, port), CONNECT)?;
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Sends without waiting for the reply.
    pub fn send(&mut self, words: &[&str]) -> io::Result<()> {
        let mut text = format!("*{}\r\n", words.len());
        for word in words {
            text.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        self.0.get_mut().write_all(text.as_bytes())
    }

    /// Reads the next reply, for at most this long.
    pub fn receive(&mut self, patience: Duration) -> io::Result<Reply> {
        self.0.get_ref().set_read_timeout(Some(patience))?;
        self.read()
    }

    /// Sends a command and reads its reply.
    pub fn ask(&mut self, words: &[&str], patience: Duration) -> io::Result<Reply> {
        self.send(words)?;
        self.receive(patience)
    }

    fn read(&mut self) -> io::Result<Reply> {
        let mut line = String::new();
        if self.0.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end();
        let rest = line.get(1..).unwrap_or_default();
        let count = || rest.parse::<i64>().map_err(|_| malformed(line));
        match line.as_bytes().first() {
            Some(b'+' | b':') => Ok(Reply::Text(rest.to_owned())),
            Some(b'-') => Ok(Reply::Refused(rest.to_owned())),
            Some(b'$') => match usize::try_from(count()?) {
                Ok(length) => self.bulk(length),
                Err(_) => Ok(Reply::Nothing),
            },
            Some(b'*') => (0..count()?)
                .map(|_| self.read())
                .collect::<io::Result<_>>()
                .map(Reply::List),
            _ => Err(malformed(line)),
        }
    }

    fn bulk(&mut self, length: usize) -> io::Result<Reply> {
        let mut bytes = vec![0; length + 2];
        self.0.read_exact(&mut bytes)?;
        bytes.truncate(length);
        String::from_utf8(bytes)
            .map(Reply::Text)
            .map_err(|_| malformed("text that is not UTF-8"))
    }
}

fn malformed(line: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("no reply of a Valkey server: {line}"),
    )
}
