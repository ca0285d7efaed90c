//! HTTP/1.1 with keep-alive and HTTP/2: a client that asks for what a [`Requester`] wants, and a server that answers.

mod client;
mod frames;
mod heads;
mod server;

use pepscope_path::Nanoseconds;

pub use client::HttpClient;
pub use server::{HttpServer, ServerTimes};

/// Which HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpVersion {
    /// One request at a time on a connection, which stays open (RFC 9112, section 9.3).
    Http11,
    /// Requests beside each other as streams (RFC 9113); under TLS alone.
    Http2,
}

/// One thing to be asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    pub host: String,
    pub path: String,
    /// What the [`Requester`] knows it by; below 2^62.
    pub number: u64,
    /// Length of the request's head, or the least that it takes.
    pub request_bytes: u64,
    /// Length of the answer's body.
    pub answer_bytes: u64,
}

/// What a client wants, over one connection.
pub trait Requester: core::fmt::Debug {
    /// The connection is ready for requests.
    fn handle_connected(&mut self, now: Nanoseconds);

    /// The answer to a request was read whole.
    fn handle_answer(&mut self, now: Nanoseconds, number: u64);

    /// The connection is over.
    fn handle_end(&mut self, now: Nanoseconds);

    /// The time of [`Requester::poll_timeout`] has come.
    fn handle_timeout(&mut self, now: Nanoseconds);

    fn poll_timeout(&self) -> Nanoseconds;

    /// The next request on this connection, which has room for one.
    fn poll_request(&mut self, now: Nanoseconds) -> Option<Request>;

    /// Another flow that has to act, or be opened.
    fn poll_wake(&mut self) -> Option<u32> {
        None
    }

    /// Nothing more will be wanted.
    fn is_over(&self) -> bool;
}
