// SPDX-License-Identifier: MIT OR Apache-2.0
//! Answers one request.

use super::events::{Event, Events};
use super::gate::{Gate, Rights};
use super::work::Work;
use crate::api::{Answer, Api, Call, Found, Problem, Route, document, find, queries};
use crate::metrics;
use http_body_util::channel::Channel;
use http_body_util::{BodyExt, Either, Full, Limited};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY,
    WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::Value;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, timeout};

/// The largest size of a body, in bytes: that of a large configuration.
const BODY: usize = 4 << 20;
/// The largest number of bodies that are held at a time.
const BODIES: usize = 4;
/// The time that a body may take to arrive.
const ARRIVAL: Duration = Duration::from_secs(10);
/// The time that a connection may last. It has one request. A stream of events may last this long after each event that the
/// client has taken.
pub const CONNECTION: Duration = Duration::from_secs(60);

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";
const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const EVENTS: &str = "text/event-stream";
/// The page uses nothing but its own files and the API.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The body of an answer.
type Body = Either<Full<Bytes>, Channel<Bytes>>;

/// The state that all connections share.
pub struct State {
    pub gate: Gate,
    pub api: Arc<Api>,
    pub events: Arc<Events>,
    pub work: Work,
    bodies: Semaphore,
}

impl State {
    pub fn new(gate: Gate, api: Api) -> State {
        let events = Arc::new(Events::new());
        State { gate, api: Arc::new(api), events, work: Work::new(), bodies: Semaphore::new(BODIES) }
    }
}

/// When a connection ends at the latest.
pub struct Deadline(Mutex<Instant>);

impl Deadline {
    pub fn new() -> Deadline {
        Deadline(Mutex::new(Instant::now() + CONNECTION))
    }
    pub fn get(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn extend(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now() + CONNECTION;
    }
}

/// An answer: the media type and the body.
type Good = (&'static str, Body);

fn whole(kind: &'static str, body: impl Into<Bytes>) -> Good {
    (kind, Either::Left(Full::new(body.into())))
}

/// Answers a request.
pub async fn respond(
    request: Request<Incoming>,
    state: Arc<State>,
    deadline: Arc<Deadline>,
) -> Result<Response<Body>, Infallible> {
    let is_api = request.uri().path().starts_with("/api/");
    let mut allowed = Vec::new();
    let done = answer(request, &state, deadline, &mut allowed).await;
    let (status, (kind, body)) = match done {
        Ok(good) => (200, good),
        Err(e) if is_api => (e.status, whole(JSON, format!("{}\n", e.json()))),
        Err(e) => (e.status, whole(TEXT, format!("{e}\n"))),
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    match status {
        401 => drop(headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))),
        405 => headers.extend(HeaderValue::from_str(&allowed.join(", ")).ok().map(|v| (ALLOW, v))),
        _ => {}
    }
    Ok(response)
}

async fn answer(
    request: Request<Incoming>,
    state: &Arc<State>,
    deadline: Arc<Deadline>,
    allowed: &mut Vec<&'static str>,
) -> Result<Good, Problem> {
    let rights = state.gate.admit(request.headers())?;
    let (route, path) = match find(request.method(), request.uri().path()) {
        Found::Route(route, path) => (route, path),
        Found::Methods(methods) => {
            allowed.extend(methods);
            return Err(Problem::new(405, format!("only {} are allowed", allowed.join(", "))));
        }
        Found::None => return Err(Problem::new(404, "there is no such page")),
    };
    if route.guarded {
        state.gate.may_write(rights)?;
    }
    match route.answer {
        Answer::File(kind, text) => Ok(whole(kind, text)),
        Answer::Document => Ok(whole(JSON, document()?.to_string())),
        Answer::Metrics => {
            let api = state.api.clone();
            let read = move || metrics::text(&mut api.router.open()?);
            Ok(whole(METRICS, state.work.read(read).await?))
        }
        Answer::Events if request.method() == Method::HEAD => Ok(whole(EVENTS, "")),
        Answer::Events => subscribe(state, deadline),
        Answer::Json(_, make) => {
            let query = queries(request.uri().query().unwrap_or_default())?;
            // INVARIANT: bodies are held only while a permit is.
            let permit = match route.body {
                Some(_) => Some(state.bodies.acquire().await.map_err(|e| Problem::gone(e.to_string()))?),
                None => None,
            };
            let body = if permit.is_some() { read_body(request).await? } else { Value::Null };
            let value = call(state, route, make, (path, query, body), rights).await?;
            drop(permit);
            // Bytes of configurations that are not UTF-8 are held as private characters.
            let text = value.to_string();
            Ok(whole(JSON, castanet_lang::bytes::replaced(&text).into_owned()))
        }
    }
}

/// The parameters of a path, those of a query, and a body.
type Parts = (Vec<(&'static str, String)>, Vec<(String, String)>, Value);

/// Calls the router.
async fn call(
    state: &Arc<State>,
    route: &'static Route,
    make: fn(&Api, &mut Call<'_>) -> Result<Value, Problem>,
    (path, query, body): Parts,
    rights: Rights,
) -> Result<Value, Problem> {
    let api = state.api.clone();
    let work = move || {
        let mut router = api.router.open()?;
        let may_write = rights == Rights::Write;
        make(&api, &mut Call { router: &mut router, path, query, body, may_write })
    };
    match route.id {
        "check" | "plan" | "swap" => state.work.text(work).await,
        _ => state.work.read(work).await,
    }
}

/// Reads the body of a request: JSON.
async fn read_body(request: Request<Incoming>) -> Result<Value, Problem> {
    // A page of another site can send other types without asking first.
    let kind = request.headers().get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    if !kind.split(';').next().is_some_and(|k| k.trim().eq_ignore_ascii_case(JSON)) {
        return Err(Problem::new(415, "expected a body of the type application/json"));
    }
    let large = || Problem::new(413, format!("the body is larger than {} MiB", BODY >> 20));
    if request.body().size_hint().lower() > BODY as u64 {
        return Err(large());
    }
    let body = timeout(ARRIVAL, Limited::new(request.into_body(), BODY).collect()).await;
    let body = body.map_err(|_| Problem::new(408, "the body did not arrive in time"))?;
    let body = body.map_err(|e| match e.is::<http_body_util::LengthLimitError>() {
        true => large(),
        false => Problem::new(400, "the body is not complete"),
    })?;
    serde_json::from_slice(&body.to_bytes())
        .map_err(|e| Problem::new(400, format!("the body is not JSON: {e}")))
}

/// Begins a stream of events.
fn subscribe(state: &Arc<State>, deadline: Arc<Deadline>) -> Result<Good, Problem> {
    let full = |_| Problem::new(503, "there are too many streams of events");
    let permit = state.events.free.clone().try_acquire_owned().map_err(full)?;
    let receiver = state.events.subscribe(&state.api, &state.work);
    let (sender, body) = Channel::new(1);
    tokio::spawn(stream(receiver, sender, deadline, permit));
    Ok((EVENTS, Either::Right(body)))
}

/// Sends events to one client. A client that is too slow misses some.
async fn stream(
    mut events: watch::Receiver<Option<Event>>,
    mut sender: http_body_util::channel::Sender<Bytes>,
    deadline: Arc<Deadline>,
    _permit: OwnedSemaphorePermit,
) {
    events.mark_changed();
    while events.changed().await.is_ok() {
        let (text, last) = match events.borrow_and_update().clone() {
            Some(Event::Text(text)) => (text, false),
            Some(Event::End(text)) => (text, true),
            None => continue,
        };
        if sender.send_data(text).await.is_err() || last {
            return;
        }
        deadline.extend();
    }
}
