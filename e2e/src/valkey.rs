//! The protocol of Valkey (RESP2) over one blocking socket, with deadlines of one's own choice: clients of the ledger
//! must give up after 50 ms, as the load that figures are taken with says.

use std::io::{BufReader, Error, ErrorKind, Read, Result, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Deadline of connections for a look rather than for load.
pub const PATIENT: Duration = Duration::from_secs(5);

/// Deadline of a look that is repeated: a server that does not answer by then is not fine.
pub const LIMIT_OF_LOOKS: Duration = Duration::from_millis(500);

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A status such as `OK`.
    Status(String),
    /// An error; its first word is the code.
    Error(String),
    /// A number.
    Number(i64),
    /// A string, or nothing.
    Text(Option<Vec<u8>>),
    /// Several answers.
    List(Vec<Reply>),
}

impl Reply {
    /// A text, lossily.
    pub fn text(&self) -> Option<String> {
        match self {
            Self::Status(text) => Some(text.clone()),
            Self::Text(Some(bytes)) => Some(String::from_utf8_lossy(bytes).into_owned()),
            _ => None,
        }
    }
}

/// A connection that was authenticated, if a password was given.
pub struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    /// Connects and authenticates as the default user. `deadline` holds for the connection and for each read and write.
    ///
    /// # Errors
    /// What the socket says, or the server's refusal.
    pub fn open(address: SocketAddr, password: Option<&str>, deadline: Duration) -> Result<Self> {
        let stream = TcpStream::connect_timeout(&address, deadline)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(deadline))?;
        stream.set_write_timeout(Some(deadline))?;
        let mut connection = Self {
            stream: BufReader::new(stream),
        };
        if let Some(password) = password {
            connection.ok(&["AUTH", password])?;
        }
        Ok(connection)
    }

    /// Sends a command and reads its answer.
    ///
    /// # Errors
    /// What the socket says, or an answer that is none.
    pub fn call(&mut self, words: &[&str]) -> Result<Reply> {
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        self.stream.get_mut().write_all(request.as_bytes())?;
        self.read()
    }

    /// Like [`Self::call`]; an error that the server answers is an error as well.
    ///
    /// # Errors
    /// Also the server's own.
    pub fn ok(&mut self, words: &[&str]) -> Result<Reply> {
        match self.call(words)? {
            Reply::Error(text) => Err(Error::other(text)),
            reply => Ok(reply),
        }
    }

    /// Text of a command that answers with one.
    ///
    /// # Errors
    /// As [`Self::ok`].
    pub fn text(&mut self, words: &[&str]) -> Result<String> {
        self.ok(words)?
            .text()
            .ok_or_else(|| invalid("the answer is no text"))
    }

    /// Value of a line `field:value` in an `INFO` section.
    ///
    /// # Errors
    /// As [`Self::ok`]; also when there is no such line.
    pub fn info(&mut self, section: &str, field: &str) -> Result<String> {
        let text = self.text(&["INFO", section])?;
        line(&text, field).ok_or_else(|| invalid(&format!("INFO {section} has no line {field}")))
    }

    fn read(&mut self) -> Result<Reply> {
        let line = self.line()?;
        let (kind, rest) = line
            .split_at_checked(1)
            .ok_or_else(|| invalid("an empty answer"))?;
        Ok(match kind {
            "+" => Reply::Status(rest.to_owned()),
            "-" => Reply::Error(rest.to_owned()),
            ":" => Reply::Number(number(rest)?),
            "$" => match usize::try_from(number(rest)?) {
                Err(_) => Reply::Text(None),
                Ok(length) => {
                    let mut bytes = vec![0; length + 2];
                    self.stream.read_exact(&mut bytes)?;
                    bytes.truncate(length);
                    Reply::Text(Some(bytes))
                }
            },
            "*" => {
                let count = number(rest)?.max(0);
                Reply::List((0..count).map(|_| self.read()).collect::<Result<_>>()?)
            }
            _ => return Err(invalid("an answer of an unknown kind")),
        })
    }

    fn line(&mut self) -> Result<String> {
        let mut bytes = Vec::new();
        loop {
            let mut byte = [0];
            self.stream.read_exact(&mut byte)?;
            if byte == *b"\n" {
                break;
            }
            bytes.push(byte[0]);
        }
        bytes.pop();
        String::from_utf8(bytes).map_err(|_| invalid("an answer that is not UTF-8"))
    }
}

/// Value of a line `field:value`.
pub fn line(info: &str, field: &str) -> Option<String> {
    let values = info.lines().filter_map(|line| line.split_once(':'));
    values
        .into_iter()
        .find(|(name, _)| *name == field)
        .map(|(_, value)| value.trim().to_owned())
}

fn number(text: &str) -> Result<i64> {
    text.parse()
        .map_err(|_| invalid("a length that is no number"))
}

fn invalid(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}
