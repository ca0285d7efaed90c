//! The sending half: what may leave now, and what acknowledgements of it mean.

mod acknowledge;
mod header_prediction;
mod kernel_prediction;
mod offload;
mod pacing;
mod rate;
mod transmit;

use pepscope_path::{Nanoseconds, NEVER};

use crate::control::{Acknowledged, Cause, Congestion, CongestionControl, Control, ControlSettings, Needs};
use crate::packets::run::Run;
use crate::packets::segment::{ContentId, SackBlocks};
use crate::packets::sequence::number;
use crate::sending::flight::Flight;
use crate::sending::recovery::linux::LinuxRecovery;
use crate::sending::recovery::Episode;
use crate::sending::retransmission_timer::RetransmissionTimer;
use crate::sending::send_queue::SendQueue;
use crate::settings::{EcnMode, Recovery, Settings};
use crate::statistics::Statistics;

pub(crate) use header_prediction::Burst;
pub(crate) use kernel_prediction::KernelBurst;
use offload::Offload;
use rate::DeliveryRate;

/// A segment that should leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outgoing {
    pub start: u64,
    pub payload_bytes: u16,
    pub content: ContentId,
    pub content_offset: u64,
    pub has_fin: bool,
    pub has_push: bool,
    pub is_new: bool,
    /// Congestion-window-reduced flag (RFC 3168, section 6.1.2).
    pub announces_reduction: bool,
}

/// What the sender did with an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AckOutcome {
    /// It was for data that was never sent, and was ignored.
    NeverSent,
    /// It was older than the last one, and was ignored.
    Stale,
    Accepted {
        /// The application waits for room in the send buffer, and there is room again.
        writable: bool,
    },
}

/// Sending half of a connection.
#[derive(Debug)]
pub(crate) struct Sender {
    pub(crate) initial: u32,
    pub(crate) flight: Flight,
    pub(crate) queue: SendQueue,
    pub(crate) control: Control,
    /// The control's window, asked for once an ACK.
    pub(crate) window_bytes: u64,
    pub(crate) segment_bytes: u64,
    pub(crate) episode: Episode,
    pub(crate) timer: RetransmissionTimer,
    pub(crate) deadline: Nanoseconds,
    /// Times that the timer expired without an ACK in between.
    pub(crate) retries: u32,
    rate: DeliveryRate,
    /// What the control needs besides ACKs and losses.
    needs: Needs,
    /// The control needs nothing else, which header prediction presumes.
    control_needs_only_acknowledgements: bool,
    pub(crate) limited_transmit: bool,
    pub(crate) ecn: EcnMode,
    marks_answered_until: u64,
    reduction_unannounced: bool,
    /// How much may be retransmitted, where a window-adaptation proxy rations it.
    repeat_allowance_bytes: Option<u64>,
    /// The next retransmission leaves regardless of the window.
    pub(crate) is_forced: bool,
    is_window_limited: bool,
    /// Nothing can leave until something changes.
    is_resting: bool,
    /// A round-trip sample is taken once what was in flight at the last one is acknowledged.
    timed_until: u64,
    /// The shortest round-trip sample and the latest time of sending of a delivered segment, for [`Recovery::Rack`].
    pub(crate) shortest_round_trip: Nanoseconds,
    pub(crate) latest_delivered_sent_at: Option<Nanoseconds>,
    /// Delivered according to duplicates without SACK, and not yet acknowledged.
    assumed_bytes: u64,
    /// The SACK blocks of the last ACK that had any; most ACKs repeat them.
    last_blocks: SackBlocks,
    // The peer's window.
    right_edge: u64,
    largest_window: u64,
    window_field: u16,
    window_sequence: u64,
    window_acknowledgement: u64,
    pub(crate) window_shift: u8,
    window_limit: Option<u64>,
    // The persist timer and its zero-window probes.
    probe_deadline: Nanoseconds,
    probe_interval: Nanoseconds,
    probe_due: bool,
    probed: bool,
    // Pacing.
    is_paced: bool,
    /// Segments with data that have left, as far as pacing begins behind them, and what a late burst may make up for.
    unpaced_segments: u32,
    pacing_credit: Nanoseconds,
    release_at: Nanoseconds,
    pub(crate) pacing_deadline: Nanoseconds,
    // Idle.
    restart_after_idle: bool,
    last_sent_at: Nanoseconds,
    fin_requested: bool,
    /// It is requested, but not on the data that may leave before.
    fin_waits: bool,
    fin_sent: bool,
    /// The burst under way, where the stack is a kernel's.
    pub(crate) offload: Option<Offload>,
    /// What Linux's recovery keeps.
    pub(crate) linux: Option<Box<LinuxRecovery>>,
}

impl Sender {
    pub fn new(settings: &Settings) -> Self {
        let segment_bytes = u64::from(settings.announced_segment_size().max(1));
        let control = Control::new(settings.control, &control_settings(settings, segment_bytes));
        let needs = control.needs();
        Self {
            initial: settings.initial_sequence_number,
            flight: Flight::new(1, needs.rate_samples),
            queue: SendQueue::new(settings.send_buffer_bytes),
            window_bytes: control.window_bytes(),
            rate: DeliveryRate::new(needs.rate_samples),
            needs,
            control_needs_only_acknowledgements: needs == Needs::default() && !settings.pacing,
            control,
            segment_bytes,
            episode: Episode::new(settings.recovery),
            timer: RetransmissionTimer::new(settings.retransmission),
            deadline: NEVER,
            retries: 0,
            limited_transmit: settings.limited_transmit,
            ecn: EcnMode::Off,
            marks_answered_until: 0,
            reduction_unannounced: false,
            repeat_allowance_bytes: None,
            is_forced: false,
            is_window_limited: true,
            is_resting: false,
            timed_until: 0,
            shortest_round_trip: NEVER,
            latest_delivered_sent_at: None,
            assumed_bytes: 0,
            last_blocks: SackBlocks::default(),
            right_edge: 1,
            largest_window: 0,
            window_field: 0,
            window_sequence: 0,
            window_acknowledgement: 0,
            window_shift: 0,
            window_limit: None,
            probe_deadline: NEVER,
            probe_interval: 0,
            probe_due: false,
            probed: false,
            is_paced: settings.pacing,
            unpaced_segments: 0,
            pacing_credit: 0,
            release_at: 0,
            pacing_deadline: NEVER,
            restart_after_idle: settings.restart_after_idle,
            last_sent_at: 0,
            fin_requested: false,
            fin_waits: false,
            fin_sent: false,
            offload: Offload::new(settings.stack),
            linux: None,
        }
    }

    /// The options are negotiated: `segment_bytes` of payload fit a segment.
    pub fn begin(&mut self, settings: &Settings, segment_bytes: u64, sack: bool, handshake_was_retransmitted: bool) {
        self.segment_bytes = segment_bytes.max(1);
        self.control = Control::new(settings.control, &control_settings(settings, self.segment_bytes));
        self.window_bytes = self.control.window_bytes();
        if matches!(settings.recovery, Recovery::Sack | Recovery::Rack) && !sack {
            self.episode = Episode::new(Recovery::NewReno);
        }
        self.linux = LinuxRecovery::new(settings, sack);
        self.timer.begin_data(handshake_was_retransmitted);
        self.deadline = NEVER;
        self.retries = 0;
    }

    /// The window of a SYN, which is never scaled (RFC 7323, section 2.2).
    pub fn begin_window(&mut self, field: u16, sequence: u64) {
        self.window_field = field;
        self.right_edge = self.flight.unacknowledged() + u64::from(field);
        self.largest_window = u64::from(field);
        self.window_sequence = sequence;
        self.window_acknowledgement = self.flight.unacknowledged();
    }

    #[inline]
    pub fn next_number(&self) -> u32 {
        number(self.flight.next(), self.initial)
    }

    #[inline]
    pub fn uses_sack(&self) -> bool {
        matches!(self.episode.kind(), Recovery::Sack | Recovery::Rack)
    }

    /// Nothing is due any more.
    pub fn stop(&mut self) {
        self.deadline = NEVER;
        self.probe_deadline = NEVER;
        self.pacing_deadline = NEVER;
    }

    /// Whether asking for a segment makes sense.
    #[inline]
    pub fn may_transmit(&self) -> bool {
        !self.is_resting
    }

    /// Nothing leaves until an ACK, a timer or the application changes something.
    #[inline]
    pub fn rest(&mut self) {
        self.is_resting = true;
    }

    /// Takes what fits the send buffer.
    #[inline(always)]
    pub fn write(&mut self, run: Run) -> u64 {
        self.is_resting = false;
        self.queue.write(run)
    }

    /// FIN follows the last byte written. A kernel sends what it may when that is written; only what is left then can
    /// carry the FIN.
    pub fn request_fin(&mut self) {
        self.is_resting = false;
        self.fin_requested = self.offload.is_none();
        self.fin_waits = self.offload.is_some();
    }

    /// What may leave without the FIN has left; whether the FIN may leave now for the first time.
    pub fn release_fin(&mut self) -> bool {
        self.fin_requested |= self.fin_waits;
        std::mem::take(&mut self.fin_waits)
    }

    pub fn is_fin_requested(&self) -> bool {
        self.fin_requested || self.fin_waits
    }

    pub fn is_fin_acknowledged(&self) -> bool {
        self.fin_sent && self.flight.outstanding_bytes() == 0
    }

    pub fn limit_window(&mut self, bytes: Option<u64>) {
        self.is_resting = false;
        self.window_limit = bytes;
    }

    /// From now on retransmissions need [`Sender::allow_repeat`].
    pub fn ration_repeats(&mut self) {
        self.repeat_allowance_bytes.get_or_insert(0);
    }

    /// Whether a retransmission waits for its allowance.
    pub fn wants_repeat(&self) -> bool {
        self.repeat_allowance_bytes.is_some_and(|allowance| allowance < self.flight.pending_bytes())
    }

    /// Allows one retransmission.
    pub fn allow_repeat(&mut self) {
        if let Some(allowance) = &mut self.repeat_allowance_bytes {
            *allowance += self.segment_bytes;
            self.is_resting = false;
        }
    }

    /// Written and not sent.
    pub fn queued_bytes(&self) -> u64 {
        self.queue.end().saturating_sub(self.flight.next())
    }

    /// Payload acknowledged since the start.
    pub fn acknowledged_bytes(&self) -> u64 {
        self.flight.unacknowledged().min(self.queue.end()).saturating_sub(1)
    }

    /// The next time that something is due here.
    #[inline]
    pub fn poll_timeout(&self) -> Nanoseconds {
        self.deadline.min(self.probe_deadline).min(self.pacing_deadline)
    }

    #[inline]
    pub(crate) fn restart_timer(&mut self, now: Nanoseconds) {
        if self.linux.is_some() {
            self.restart_linux_timer(now);
            return;
        }
        self.deadline =
            if self.flight.outstanding_bytes() > 0 { now.saturating_add(self.timer.timeout()) } else { NEVER };
    }

    /// Makes the control slow down, and announces it to the peer with standard ECN.
    pub(crate) fn slow_down(&mut self, now: Nanoseconds, cause: Cause, is_repeated: bool) {
        let outstanding_bytes = self.flight.outstanding_bytes().saturating_sub(self.episode.limited_bytes());
        // In recovery each duplicate ACK allows one segment, since one arrived. Half of all that is unacknowledged
        // would after many losses be more than the window that caused them.
        let in_flight_bytes =
            if self.episode.is_recovering() { outstanding_bytes.min(self.window_bytes) } else { outstanding_bytes };
        self.control.on_congestion(&Congestion { now, cause, in_flight_bytes, is_repeated });
        self.window_bytes = self.control.window_bytes();
        self.marks_answered_until = self.flight.next();
        self.reduction_unannounced = self.ecn == EcnMode::Standard;
    }

    /// Serves the timers that are due; `false` once `retries_limit` is used up.
    pub fn handle_timeout(&mut self, now: Nanoseconds, retries_limit: u32, statistics: &mut Statistics) -> bool {
        self.is_resting = false;
        if now >= self.pacing_deadline {
            self.pacing_deadline = NEVER;
        }
        if now >= self.probe_deadline {
            self.probe_deadline = NEVER;
            if self.retries >= retries_limit {
                return false;
            }
            self.probe_due = true;
        }
        if now < self.deadline || self.handle_linux_timer(now, statistics) {
            return true;
        }
        if self.retries >= retries_limit {
            self.deadline = NEVER;
            return false;
        }
        statistics.timeouts += 1;
        let is_repeated = self.retries > 0;
        self.begin_loss_as_linux();
        self.retries += 1;
        self.slow_down(now, Cause::Timeout, is_repeated);
        self.episode.abandon(self.flight.next());
        self.flight.declare_all_lost();
        self.rate.lose(&mut self.flight); // the control knows of the timeout
        self.last_blocks = SackBlocks::default();
        self.assumed_bytes = 0;
        self.timed_until = 0;
        self.is_forced = true;
        self.timer.back_off();
        self.restart_timer(now);
        true
    }

    /// Reports an ACK to the control and takes over its window.
    #[inline(always)]
    fn notify_control(&mut self, acknowledged: &Acknowledged) {
        if acknowledged.newly_acknowledged_bytes > 0 {
            self.control.on_acknowledged(acknowledged);
        } else {
            self.control.on_duplicate(acknowledged);
        }
        self.window_bytes = self.control.window_bytes();
    }
}

fn control_settings(settings: &Settings, segment_bytes: u64) -> ControlSettings {
    ControlSettings {
        maximum_segment_size: segment_bytes as u32,
        initial_window_bytes: u64::from(settings.initial_window_segments.max(1)) * segment_bytes,
        initial_slow_start_threshold_bytes: settings.initial_slow_start_threshold_bytes,
        byte_counting_limit_segments: settings.byte_counting_limit_segments,
        is_paced: settings.pacing,
    }
}
