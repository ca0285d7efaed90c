//! Applications of simulated hosts: state machines that are told what was read and say what to write.
//!
//! Each is a [`pepscope_tcp::Protocol`], and they nest: [`Tls`] around [`HttpClient`] around a browser's or a player's
//! wishes. They do no I/O, never ask for the time, and draw from the random numbers that they are given.

mod agenda;
mod browser;
mod chat;
mod http;
mod ping;
mod quic;
mod tls;
mod video;

pub use browser::{browser, BrowserConnection, BrowserSettings, PageObject};
pub use chat::{Chat, ChatSettings};
pub use http::{HttpClient, HttpServer, HttpVersion, Request, Requester, ServerTimes};
pub use ping::{Ping, PingSettings, LEAST_PING_BYTES, USUAL_PATIENCE_NS, USUAL_PING_BYTES};
pub use quic::{Quic, QuicSettings};
pub use tls::{InnerProtocol, Tls, TlsSettings, TlsVersion};
pub use video::{VideoPlayer, VideoSettings};
