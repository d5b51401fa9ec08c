//! The way to the API server: the service beneath the Kubernetes client.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::Frame;
use kube::client::Body;
use wellcake_model_tests::invariants::Violation;

use crate::api::{Answer, Request};
use crate::cluster::{Cluster, LATENCY, Shared, lock};
use crate::objects::Kind;
use crate::wrong::Wrong;

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is answered.
    Answered,
    /// It is refused with this code.
    Refused(u16),
    /// It never arrives.
    Lost,
    /// It arrives, and its answer never does.
    Unheard,
}

/// A request on its way, or its answer.
#[derive(Clone)]
pub struct Flight {
    due: u64,
    request: Request,
    slot: Arc<Mutex<Slot>>,
    answered: bool,
    /// Whether it is lost with the operator: it has not been sent yet.
    held_back: bool,
}

#[derive(Default)]
struct Slot {
    answer: Option<Answer>,
    waker: Option<Waker>,
}

/// The service.
#[derive(Clone)]
pub struct Http(pub Shared);

type Answered = Pin<Box<dyn Future<Output = Result<http::Response<Reply>, Infallible>> + Send>>;

impl tower::Service<http::Request<Body>> for Http {
    type Response = http::Response<Reply>;
    type Error = Infallible;
    type Future = Answered;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Answered {
        let cluster = Arc::clone(&self.0);
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let body = body.collect_bytes().await.unwrap_or_default();
            let media = head.headers.get(http::header::CONTENT_TYPE);
            let media = media
                .and_then(|media| media.to_str().ok())
                .unwrap_or_default();
            let read = Request::read(head.method.as_str(), &head.uri, media, &body);
            let Some(request) = read else {
                lock(&cluster).judge(Err(unknown(&head.uri)));
                return std::future::pending().await;
            };
            if request.query.contains_key("watch") {
                return Ok(http::Response::new(Reply::watch(&cluster, &request)));
            }
            let slot = lock(&cluster).send_request(request);
            let answer = std::future::poll_fn(|context| {
                let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
                slot.waker = Some(context.waker().clone());
                slot.answer.take().map_or(Poll::Pending, Poll::Ready)
            });
            let answer = answer.await;
            let mut response = http::Response::new(Reply::Whole(Some(answer.body)));
            *response.status_mut() =
                http::StatusCode::from_u16(answer.code).unwrap_or(http::StatusCode::BAD_GATEWAY);
            Ok(response)
        })
    }
}

impl Cluster {
    fn send_request(&mut self, mut request: Request) -> Arc<Mutex<Slot>> {
        let due = self.now() + LATENCY;
        self.wrong.alter(&mut request);
        let slot = Arc::<Mutex<Slot>>::default();
        let mut flight = Flight {
            due,
            request,
            slot: Arc::clone(&slot),
            answered: false,
            held_back: false,
        };
        if self.wrong == Wrong::RecordUnawaited && flight.request.is_record() {
            // Told as done at once, and sent a moment later.
            fill(&slot, self.clone().answer(&flight.request));
            flight.slot = Arc::default();
            flight.due += self.wrong.delay();
            flight.held_back = true;
        }
        self.touches += 1;
        self.flights.push(flight);
        slot
    }

    /// Requests and answers that are due arrive, in the order in which they were sent.
    pub fn requests_arrive(&mut self) {
        let now = self.now();
        let (due, rest): (Vec<Flight>, Vec<Flight>) =
            self.flights.drain(..).partition(|flight| flight.due <= now);
        self.flights = rest;
        for flight in due {
            if flight.answered {
                if let Some(waker) = flight.waker() {
                    waker.wake();
                }
                continue;
            }
            let fate = self.fate(&flight.request);
            let answer = match fate {
                Fate::Lost => continue,
                Fate::Refused(code) => Answer::refusal(code, reason(code), "refused on purpose"),
                Fate::Answered | Fate::Unheard => self.carry(&flight.request),
            };
            if fate != Fate::Unheard {
                fill(&flight.slot, answer);
                self.flights.push(Flight {
                    due: now + LATENCY,
                    answered: true,
                    ..flight
                });
            }
        }
    }

    fn fate(&mut self, request: &Request) -> Fate {
        if !request.is_write() {
            return Fate::Answered;
        }
        self.requests += 1;
        let meant = self.misfortune.filter(|(nth, _)| *nth == self.requests);
        meant.map_or(Fate::Answered, |(_, fate)| fate)
    }

    fn carry(&mut self, request: &Request) -> Answer {
        let answer = self.answer(request);
        if request.is_write() {
            self.note_write(|| {
                let name = request.name.as_deref().unwrap_or_default();
                let part = request.part.as_deref().unwrap_or_default();
                let Request { method, kind, .. } = request;
                format!("{method} {kind:?} {name} {part}: {}", answer.code)
            });
        }
        answer
    }

    /// The operator ended: what it sent arrives later, and nobody hears the answer.
    pub fn flights_are_left(&mut self, late: u64) {
        self.flights
            .retain(|flight| !flight.answered && !flight.held_back);
        for flight in &mut self.flights {
            flight.due += late;
            flight.slot = Arc::default();
        }
    }
}

impl Flight {
    fn waker(&self) -> Option<Waker> {
        let slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        slot.waker.clone()
    }
}

fn unknown(uri: &http::Uri) -> Violation {
    Violation {
        invariant: "the simulated API server knows every request",
        seen: uri.to_string(),
    }
}

fn fill(slot: &Mutex<Slot>, answer: Answer) {
    slot.lock().unwrap_or_else(PoisonError::into_inner).answer = Some(answer);
}

const fn reason(code: u16) -> &'static str {
    match code {
        409 => "Conflict",
        422 => "Invalid",
        429 => "TooManyRequests",
        _ => "InternalError",
    }
}

/// A body: an answer, or the lines of a watch.
pub enum Reply {
    /// All of it, once.
    Whole(Option<Bytes>),
    /// A watch.
    Watch(Watch),
}

/// A watch of one kind.
pub struct Watch {
    cluster: Shared,
    kind: Kind,
    next: usize,
}

impl Reply {
    fn watch(cluster: &Shared, request: &Request) -> Self {
        let since = request.query.get("resourceVersion");
        let since: u64 = since.and_then(|version| version.parse().ok()).unwrap_or(0);
        let log = &lock(cluster).objects.log;
        Self::Watch(Watch {
            cluster: Arc::clone(cluster),
            kind: request.kind,
            next: log.partition_point(|change| change.version <= since),
        })
    }
}

impl Watch {
    fn next(&mut self, context: &Context<'_>) -> Option<Bytes> {
        let mut cluster = lock(&self.cluster);
        let now = cluster.now();
        while let Some(change) = cluster.objects.log.get(self.next) {
            if change.at + LATENCY > now {
                break;
            }
            self.next += 1;
            if change.kind == self.kind {
                return Some(change.line.clone());
            }
        }
        cluster.watchers.push(context.waker().clone());
        None
    }
}

impl http_body::Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Self::Whole(body) => Poll::Ready(body.take().map(|body| Ok(Frame::data(body)))),
            Self::Watch(watch) => match watch.next(context) {
                Some(line) => Poll::Ready(Some(Ok(Frame::data(line)))),
                None => Poll::Pending,
            },
        }
    }
}
