//! What kind of exchange it is: the one table of codes and names.

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident $name:literal,)*) => {
        /// Kind of an exchange, as far as the captured bytes show it.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Kind {
            $($(#[$doc])* $kind,)*
        }

        impl Kind {
            /// Names by code.
            pub const NAMES: &'static [&'static str] = &[$($name,)*];

            /// Kinds by code.
            pub const ALL: &'static [Kind] = &[$(Kind::$kind,)*];
        }
    };
}

kinds! {
    /// Anything else: taking turns is all that is known.
    #[default]
    Turn "turn",
    /// A ClientHello and the ServerHello (or HelloRetryRequest) that answers it; asked by the server: a
    /// HelloRetryRequest and the second ClientHello.
    TlsHello "tls-hello",
    /// The handshake's later flights: the server's (ServerHello to ServerHelloDone or Finished) and the client's second
    /// one; asked by the client in TLS 1.2: its key exchange and Finished, and the server's Finished.
    TlsFinished "tls-finished",
    /// TLS 1.2: the server's Finished and the client's first application data, which False Start (RFC 7918) sends
    /// without waiting for it.
    TlsSecondFinished "tls-second-finished",
    /// Encrypted application data, either way.
    TlsData "tls-data",
    /// Not causal: the answer did not need the end of the question. Session tickets (RFC 8446, section 4.6.1), alerts,
    /// and records as long as HTTP/2 control frames (RFC 9113, section 6).
    TlsControl "tls-control",
    /// An HTTP/1 request and its response (RFC 9112).
    HttpRequest "http-request",
    /// An HTTP/1 response and the next request on the same connection.
    HttpNextRequest "http-next-request",
    /// The server speaks first, and the client answers.
    Greeting "greeting",
    /// A later turn of a line protocol (SMTP, FTP, POP3, IMAP), either way.
    Command "command",
    /// Not causal: control frames of HTTP/2 in clear (RFC 9113, section 6), asked or answered.
    Http2Control "http2-control",
    /// Anything of which the capture holds too little to tell TLS from plain text, on either side.
    Unread "unread",
    /// A client asks a proxy for a tunnel (RFC 9110, section 9.3.6), and the proxy opens one: it has reached the server.
    ProxyConnect "proxy-connect",
    /// A request in absolute-form (RFC 9112, section 3.2.2) for another port than the one it is sent to, as only proxies
    /// get it, answered with success.
    ProxyRequest "proxy-request",
    /// Another request in absolute-form, which servers have to accept, too.
    AbsoluteRequest "absolute-request",
    /// Not causal: what a SOCKS proxy answers itself, which is a greeting, authentication (RFC 1928, section 3; RFC 1929)
    /// and a request that it refuses.
    SocksGreeting "socks-greeting",
    /// A SOCKS request (RFC 1928, section 4, or version 4), which the proxy grants: it has reached the server.
    SocksRequest "socks-request",
    /// A client begins with a header of the PROXY protocol: it is a proxy itself, and names the client that it serves.
    ProxyHeader "proxy-header",
    /// Not causal: of a conversation in which a side speaks by itself, so that something else may come before an answer.
    Unasked "unasked",
}
