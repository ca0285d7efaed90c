//! One end of one TCP connection (RFC 9293), without I/O and without a clock.

mod arrival;
mod departure;
mod handshake;
mod header_prediction;
mod kernel_prediction;

use pepscope_path::{Nanoseconds, NEVER};

use crate::control::CongestionControl;
use crate::packets::run::Run;
use crate::packets::segment::{ContentId, Segment};
use crate::receiving::receiver::Receiver;
use crate::sending::sender::Sender;
use crate::settings::{Settings, Stack};
use crate::state::{Event, Events, State};
use crate::statistics::Statistics;
use crate::timestamp_clock::TimestampClock;

use handshake::Handshake;

/// One end of one connection.
///
/// Order of calls: after [`Connection::handle_segment`], [`Connection::handle_timeout`] or a call of the application,
/// take [`Connection::poll_event`] and [`Connection::poll_transmit`] until each gives `None`, then ask
/// [`Connection::poll_timeout`]. `now` never goes back. Segments that arrive together must each be followed by
/// `poll_transmit`: those handled without it share one ACK, as with receive offload.
#[derive(Debug)]
pub struct Connection {
    settings: Settings,
    flow: u32,
    user: u16,
    state: State,
    sender: Sender,
    receiver: Receiver,
    handshake: Handshake,
    timestamps: TimestampClock,
    /// The acknowledgement that the last segment carried (Last.ACK.sent of RFC 7323, section 4.3).
    last_acknowledgement: u64,
    time_wait_until: Nanoseconds,
    reset_due: Option<Segment>,
    ip_identification: u16,
    /// What each packet adds: nothing with XNU, none of whose packets may be fragmented (RFC 6864).
    identification_step: u16,
    events: Events,
    statistics: Statistics,
}

impl Connection {
    /// The end that will connect.
    #[must_use]
    pub fn client(settings: Settings, flow: u32, user: u16) -> Self {
        Self::new(settings, flow, user, State::Closed)
    }

    /// The end that waits for a SYN.
    #[must_use]
    pub fn server(settings: Settings, flow: u32, user: u16) -> Self {
        Self::new(settings, flow, user, State::Listen)
    }

    fn new(settings: Settings, flow: u32, user: u16, state: State) -> Self {
        Self {
            flow,
            user,
            state,
            sender: Sender::new(&settings),
            receiver: Receiver::new(&settings),
            handshake: Handshake::default(),
            timestamps: TimestampClock::new(settings.timestamp_offset, settings.timestamp_tick),
            last_acknowledgement: 0,
            time_wait_until: NEVER,
            reset_due: None,
            ip_identification: if settings.stack == Stack::Darwin { 0 } else { settings.ip_identification },
            identification_step: u16::from(settings.stack != Stack::Darwin),
            events: Events::default(),
            statistics: Statistics::default(),
            settings,
        }
    }

    #[inline]
    pub(crate) fn predicts(&self) -> bool {
        self.settings.header_prediction && self.settings.stack == Stack::Ideal
    }

    /// Opens the connection: a SYN is due. Only the first call of a client that is closed does anything.
    pub fn connect(&mut self, now: Nanoseconds) {
        if self.state == State::Closed && self.handshake.is_unused() {
            self.state = State::SynSent;
            self.handshake.begin(now, self.sender.timer.timeout());
        }
    }

    /// The next event for the application.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// Whether the application has events to take.
    pub(crate) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Whether [`Connection::take_only_data_events`] would give something.
    #[inline]
    pub(crate) fn has_only_data_events(&self) -> bool {
        self.state == State::Established && self.events.are_usual()
    }

    /// Takes all events of an established connection if there is at most more to read or room to write; whether there
    /// is room.
    #[inline]
    pub(crate) fn take_only_data_events(&mut self) -> Option<bool> {
        if self.state == State::Established {
            self.events.take_usual()
        } else {
            None
        }
    }

    /// Whether data arrive that are not the next ones, of which the application does not learn.
    #[inline]
    #[must_use]
    pub(crate) fn is_behind_gap(&self, segment: &Segment) -> bool {
        segment.sequence != self.receiver.acknowledgement()
    }

    /// When [`Connection::handle_timeout`] is due; [`NEVER`] if nothing is pending.
    #[must_use]
    #[inline]
    pub fn poll_timeout(&self) -> Nanoseconds {
        self.sender
            .poll_timeout()
            .min(self.receiver.deadline())
            .min(self.handshake.deadline())
            .min(self.time_wait_until)
    }

    /// Does what is due at `now`; calling it early changes nothing.
    pub fn handle_timeout(&mut self, now: Nanoseconds) {
        if now >= self.time_wait_until {
            self.close_down();
            return;
        }
        if now >= self.handshake.deadline() {
            self.statistics.timeouts += 1;
            if !self.handshake.keeps_interval(self.settings.stack) {
                self.sender.timer.back_off();
            }
            if !self.handshake.retry(now, self.sender.timer.timeout(), self.settings.handshake_retries) {
                self.give_up();
                return;
            }
        }
        self.receiver.handle_timeout(now);
        if now >= self.sender.poll_timeout()
            && !self.sender.handle_timeout(now, self.settings.retransmission_retries, &mut self.statistics)
        {
            self.give_up();
        }
    }

    fn give_up(&mut self) {
        self.close_down();
        self.events.push(Event::TimedOut);
    }

    /// Nothing is pending any more; what arrived can still be read.
    fn close_down(&mut self) {
        self.state = State::Closed;
        self.time_wait_until = NEVER;
        self.handshake.end();
        self.sender.stop();
        self.receiver.acknowledged();
    }

    /// Hands over bytes to send, by the content they belong to, and gives how many fitted the send buffer. Contents
    /// that do not continue one another never share a segment. After [`Connection::close`] nothing fits.
    #[inline(always)]
    pub fn write(&mut self, content: ContentId, content_offset: u64, bytes: u64) -> u64 {
        if self.sender.is_fin_requested() || matches!(self.state, State::TimeWait) || self.is_over() {
            return 0;
        }
        self.sender.write(Run { content, content_offset, bytes })
    }

    fn is_over(&self) -> bool {
        self.state == State::Closed && !self.handshake.is_unused()
    }

    /// Bytes received in order and not read.
    #[must_use]
    #[inline]
    pub fn readable(&self) -> u64 {
        self.receiver.readable_bytes()
    }

    /// The content of the next byte to be read.
    #[must_use]
    pub fn next_content(&self) -> Option<ContentId> {
        self.receiver.next_content()
    }

    /// Takes up to `limit` received bytes that belong to one content. The room is offered to the peer with the next
    /// segment, or at once if that is worth one.
    #[inline]
    pub fn read(&mut self, limit: u64) -> Option<Run> {
        self.receiver.read(limit, self.state != State::Closed)
    }

    /// No more to send: FIN follows what was written. Reading goes on.
    pub fn close(&mut self, _now: Nanoseconds) {
        if self.sender.is_fin_requested() {
            return;
        }
        match self.state {
            State::Closed | State::Listen | State::SynSent => {
                self.close_down();
                self.handshake.use_up();
            }
            State::SynReceived => self.sender.request_fin(),
            State::Established => {
                self.sender.request_fin();
                self.state = State::FinWait1;
            }
            State::CloseWait => {
                self.sender.request_fin();
                self.state = State::LastAck;
            }
            State::FinWait1 | State::FinWait2 | State::Closing | State::LastAck | State::TimeWait => {}
        }
    }

    /// Ends the connection at once: it sends RST, drops what was not read or sent, and gives no event.
    pub fn abort(&mut self, now: Nanoseconds) {
        let tells_peer = matches!(
            self.state,
            State::SynReceived
                | State::Established
                | State::FinWait1
                | State::FinWait2
                | State::CloseWait
                | State::Closing
                | State::LastAck
        );
        if tells_peer {
            self.reset_due = Some(self.abort_segment(now));
        }
        self.close_down();
        self.handshake.use_up();
        self.receiver.discard();
    }

    /// A bound on what may be outstanding, beside the congestion and the peer's window; `None` for no bound.
    pub fn window_limit(&mut self, bytes: Option<u64>) {
        self.sender.limit_window(bytes);
    }

    /// From now on retransmissions wait for [`Connection::allow_repeat`], by which a proxy rations them.
    pub fn ration_repeats(&mut self) {
        self.sender.ration_repeats();
    }

    /// Whether a retransmission waits to be allowed.
    #[must_use]
    pub fn wants_repeat(&self) -> bool {
        self.sender.wants_repeat()
    }

    /// Allows one retransmission.
    pub fn allow_repeat(&mut self) {
        self.sender.allow_repeat();
    }

    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    #[must_use]
    pub fn flow(&self) -> u32 {
        self.flow
    }

    #[must_use]
    pub fn user(&self) -> u16 {
        self.user
    }

    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    #[must_use]
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Room in the send buffer.
    #[must_use]
    #[inline]
    pub fn writable_bytes(&self) -> u64 {
        self.sender.queue.room_bytes()
    }

    /// Sent and not acknowledged (FlightSize of RFC 5681).
    #[must_use]
    pub fn unacknowledged_bytes(&self) -> u64 {
        self.sender.flight.outstanding_bytes()
    }

    /// Estimate of what is in the network: without what is lost or was reported by SACK (pipe of RFC 6675).
    #[must_use]
    pub fn in_flight_bytes(&self) -> u64 {
        self.sender.flight.pipe_bytes()
    }

    /// Written and not sent yet.
    #[must_use]
    pub fn queued_bytes(&self) -> u64 {
        self.sender.queued_bytes()
    }

    /// Payload that the peer acknowledged since the start.
    #[must_use]
    pub fn bytes_acknowledged(&self) -> u64 {
        self.sender.acknowledged_bytes()
    }

    /// Payload received in order since the start.
    #[must_use]
    pub fn bytes_received(&self) -> u64 {
        self.receiver.received_bytes()
    }

    /// Whether everything written was acknowledged.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.sender.acknowledged_bytes() + 1 == self.sender.queue.end()
    }

    /// The congestion window in bytes, without what fast recovery adds for a while.
    #[must_use]
    pub fn congestion_window(&self) -> u64 {
        self.sender.window_bytes
    }

    /// The slow-start threshold in bytes; `u64::MAX` until there was a loss.
    #[must_use]
    pub fn slow_start_threshold(&self) -> u64 {
        self.sender.control.slow_start_threshold_bytes()
    }

    /// The congestion control's estimate of the path's delivery rate, if it has one.
    #[must_use]
    pub fn estimated_bandwidth_bytes_s(&self) -> Option<u64> {
        self.sender.control.estimated_bandwidth_bytes_s()
    }

    /// Bytes of payload in a full segment.
    #[must_use]
    pub fn segment_payload_bytes(&self) -> u64 {
        self.sender.segment_bytes
    }

    #[must_use]
    pub fn smoothed_round_trip_time(&self) -> Option<Nanoseconds> {
        self.sender.timer.smoothed()
    }

    #[must_use]
    pub fn retransmission_timeout(&self) -> Nanoseconds {
        self.sender.timer.timeout()
    }

    /// The window last offered to the peer, in bytes.
    #[must_use]
    pub fn receive_window(&self) -> u64 {
        self.receiver.offered_window()
    }

    /// Whether fast recovery goes on.
    #[must_use]
    pub fn is_recovering(&self) -> bool {
        self.sender.episode.is_recovering()
    }
}
