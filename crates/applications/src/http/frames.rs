//! Lengths of HTTP/2 frames (RFC 9113, section 4.1); what they hold is always encrypted here.

/// Every frame's header.
pub(super) const HEADER_BYTES: u64 = 9;
/// The client's preface, SETTINGS with four parameters and a WINDOW_UPDATE of the connection, as browsers send them.
pub(super) const CLIENT_PREFACE_BYTES: u64 = 24 + (HEADER_BYTES + 4 * 6) + (HEADER_BYTES + 4);
/// SETTINGS with three parameters, and a WINDOW_UPDATE.
pub(super) const SERVER_PREFACE_BYTES: u64 = (HEADER_BYTES + 3 * 6) + (HEADER_BYTES + 4);
pub(super) const SETTINGS_ACKNOWLEDGEMENT_BYTES: u64 = HEADER_BYTES;
/// Last stream and error code.
pub(super) const GOAWAY_BYTES: u64 = HEADER_BYTES + 8;
/// What HPACK leaves of the head of a request, beyond the first on a connection: most fields are in the table then
/// (RFC 7541).
pub(super) const REPEATED_REQUEST_SHARE: f64 = 0.25;
/// The head of a response, the first one and later ones.
pub(super) const FIRST_RESPONSE_HEAD_BYTES: u64 = 110;
pub(super) const RESPONSE_HEAD_BYTES: u64 = 45;
/// The largest body of a DATA frame here, nginx's `http2_chunk_size`: streams take turns frame by frame.
pub(super) const DATA_BYTES: u64 = 8192;
