//! Limits the number of connections, and the time and size of a request's head.

use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;
use tower_service::Service as _;

use crate::half_open::{HalfOpenConnection, oldest_of_the_busiest};

/// Most connections at a time. One more replaces a connection with an incomplete request, or is
/// closed immediately.
pub const CONNECTIONS_MAX: usize = 64;
/// Most bytes of a request's head, the smallest limit that the library accepts.
const HEAD_BYTES_MAX: usize = 8 << 10;
/// Most fields of a request's head.
const FIELDS_MAX: usize = 64;
/// Time limit for a request's head.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// Pause after a failed accept, such as for lack of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Longest wait before the next check for a free place.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Serves each connection with these routes. `time` limits a connection from its start to the end
/// of the answer.
pub(super) async fn serve(listener: TcpListener, routes: Router, time: Duration) {
    let listener = tokio::net::TcpListener::from_std(listener).expect("it was made not to block");
    let free = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut taken = Vec::new();
    for number in 0.. {
        let (stream, peer) = loop {
            match listener.accept().await {
                Ok(accepted) => break accepted,
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        };
        // Without a place the connection is dropped, which closes it.
        let Some(permit) = permit(&free, &mut taken).await else {
            continue;
        };
        let place = Arc::new(ConnectionSlot { _permit: permit, is_asked: AtomicBool::new(false) });
        let connection = HalfOpenConnection { number, peer: peer.ip(), since: Instant::now() };
        let at = Arc::downgrade(&place);
        let task = tokio::spawn(self::connection(stream, place, routes.clone(), time)).abort_handle();
        taken.push(UsedSlot { connection, at, task });
    }
}

/// A place in the server. Each request has it as an extension, and a conversation keeps it.
pub(super) struct ConnectionSlot {
    _permit: OwnedSemaphorePermit,
    /// True if the request is complete: its head, and the body if needed.
    is_asked: AtomicBool,
}

impl ConnectionSlot {
    /// Marks the request as complete, so that it keeps its place.
    pub(super) fn note_asked(&self) {
        self.is_asked.store(true, Ordering::Relaxed);
    }
}

/// A place that is or was in use.
struct UsedSlot {
    connection: HalfOpenConnection,
    at: Weak<ConnectionSlot>,
    task: AbortHandle,
}

impl UsedSlot {
    fn is_half_open(&self) -> bool {
        let place = self.at.upgrade();
        place.is_some_and(|place| !place.is_asked.load(Ordering::Relaxed))
    }
}

/// The permit for a place, either free or from a connection whose request is incomplete.
async fn permit(free: &Arc<Semaphore>, taken: &mut Vec<UsedSlot>) -> Option<OwnedSemaphorePermit> {
    taken.retain(|taken| taken.at.strong_count() > 0);
    assert!(taken.len() <= CONNECTIONS_MAX, "{} of {CONNECTIONS_MAX} places are taken", taken.len());
    loop {
        if let Ok(permit) = Arc::clone(free).try_acquire_owned() {
            return Some(permit);
        }
        let half_open = taken.iter().filter(|taken| taken.is_half_open());
        let half_open: Vec<HalfOpenConnection> = half_open.map(|taken| taken.connection).collect();
        let oldest = oldest_of_the_busiest(&half_open)?;
        let spared_for = oldest.grace_left(Instant::now());
        if spared_for.is_zero() {
            let gives_way = taken.iter().find(|taken| taken.connection.number == oldest.number);
            gives_way?.task.abort();
            // The aborted task ends when the runtime polls it next.
            return Arc::clone(free).acquire_owned().await.ok();
        }
        tokio::time::sleep(spared_for.min(LOOK_AGAIN)).await;
    }
}

async fn connection(stream: TcpStream, place: Arc<ConnectionSlot>, routes: Router, time: Duration) {
    let service = service_fn(|mut request: Request<Incoming>| {
        request.extensions_mut().insert(Arc::clone(&place));
        routes.clone().call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(FIELDS_MAX)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    // All ways to end a connection are equivalent for the server.
    let _ = tokio::time::timeout(time, connection).await;
}
