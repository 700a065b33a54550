//! Network statistics, counted at the HTTP client: requests, and bytes of bodies.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http_body_util::BodyExt;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
    ReqwestConnector,
};

use crate::stats::Traffic;

/// Statistics of all stores of a client.
#[derive(Debug, Default)]
pub(super) struct Counts {
    requests: AtomicU64,
    failed: AtomicU64,
    received: AtomicU64,
    sent: AtomicU64,
}

impl Counts {
    pub(super) fn traffic(&self) -> Traffic {
        let figure = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Traffic {
            requests: figure(&self.requests),
            retries: figure(&self.failed),
            received_bytes: figure(&self.received),
            sent_bytes: figure(&self.sent),
        }
    }
}

fn add(counter: &AtomicU64, more: usize) {
    counter.fetch_add(more as u64, Ordering::Relaxed);
}

/// Makes counting clients.
#[derive(Debug)]
pub(super) struct Counting(pub(super) Arc<Counts>);

impl HttpConnector for Counting {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = ReqwestConnector::default().connect(options)?;
        Ok(HttpClient::new(Counted { client, counts: Arc::clone(&self.0) }))
    }
}

#[derive(Debug)]
struct Counted {
    client: HttpClient,
    counts: Arc<Counts>,
}

#[async_trait::async_trait]
impl HttpService for Counted {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        add(&self.counts.requests, 1);
        add(&self.counts.sent, request.body().content_length());
        let response = self.client.execute(request).await;
        let response = response.inspect_err(|_| add(&self.counts.failed, 1))?;
        // The client repeats a request after these statuses. All further statuses are final
        // answers.
        let status = response.status();
        if status.is_server_error() || status == 429 || status == 408 {
            add(&self.counts.failed, 1);
        }
        let (head, body) = response.into_parts();
        let (received, broken) = (Arc::clone(&self.counts), Arc::clone(&self.counts));
        let body = body
            .map_frame(move |frame| {
                add(&received.received, frame.data_ref().map_or(0, bytes::Bytes::len));
                frame
            })
            .map_err(move |error| {
                add(&broken.failed, 1);
                error
            });
        Ok(HttpResponse::from_parts(head, HttpResponseBody::new(body)))
    }
}
