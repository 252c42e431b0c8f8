// SPDX-License-Identifier: MIT OR Apache-2.0
//! Readings of the router for any number of subscribers, as Server-Sent Events. The router is read once for all of them, and
//! only while there are subscribers.

use super::work::Work;
use crate::api::{Api, Problem, Watch};
use hyper::body::Bytes;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use tokio::time::sleep;

/// The largest number of subscribers.
pub const SUBSCRIBERS: usize = 16;
/// The time between two readings.
const INTERVAL: Duration = Duration::from_secs(1);

/// An event for subscribers.
#[derive(Clone)]
pub enum Event {
    /// An event to pass on.
    Text(Bytes),
    /// The last event: the router has ended.
    End(Bytes),
}

/// The source of events.
pub struct Events {
    latest: watch::Sender<Option<Event>>,
    /// Whether a task reads the router.
    reads: Mutex<bool>,
    /// The subscribers that there may still be.
    pub free: Arc<Semaphore>,
}

/// Formats an event. The data is one line, because JSON escapes line ends.
fn event(name: &str, data: &serde_json::Value) -> Bytes {
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
}

impl Events {
    pub fn new() -> Events {
        let free = Arc::new(Semaphore::new(SUBSCRIBERS));
        Events { latest: watch::Sender::new(None), reads: Mutex::new(false), free }
    }

    /// Adds a subscriber, and starts reading the router if it is the first one.
    pub fn subscribe(self: &Arc<Events>, api: &Arc<Api>, work: &Work) -> watch::Receiver<Option<Event>> {
        let receiver = self.latest.subscribe();
        let mut reads = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut reads, true) {
            // An old reading says nothing of the router now.
            self.latest.send_modify(|latest| *latest = latest.take().filter(|l| matches!(l, Event::End(_))));
            tokio::spawn(read(self.clone(), api.clone(), work.clone()));
        }
        receiver
    }

    /// Tells all subscribers that the router has ended.
    pub fn end(&self) {
        self.latest.send_replace(Some(Event::End(event("end", &serde_json::json!({})))));
    }

    /// Whether to go on reading.
    fn continues(&self) -> bool {
        let mut reads = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        *reads = self.latest.receiver_count() > 0;
        *reads
    }
}

/// Reads the router until there are no subscribers, or until it ends.
async fn read(events: Arc<Events>, api: Arc<Api>, work: Work) {
    let mut watch = Watch::default();
    while events.continues() {
        if api.router.has_ended() {
            events.end();
            return;
        }
        let call = api.clone();
        let done = work
            .read(move || {
                let read = call.router.open().and_then(|mut router| watch.read(&mut router));
                Ok((watch, read))
            })
            .await;
        let read = match done {
            Ok((w, read)) => {
                watch = w;
                read
            }
            // The reading may go on, with the watch that it has.
            Err(e) => {
                watch = Watch::default();
                Err(e)
            }
        };
        let text = match read {
            Ok(reading) => event("reading", &reading),
            Err(e) => event("trouble", &Problem::json(&e)),
        };
        events.latest.send_replace(Some(Event::Text(text)));
        sleep(INTERVAL).await;
    }
}
