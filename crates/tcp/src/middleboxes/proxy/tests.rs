use pepscope_path::{
    Direction, Hop, LineSettings, LossSettings, Nanoseconds, QueueLimit, QueueSettings, RadioFrames, RateProfile,
    ReportSettings, Service, ServiceRule, VariableRate, VariableRateSettings, VaryingLineSettings, Wired,
    WiredSettings, MILLISECOND, SECOND,
};

use super::{
    AbortPropagation, AdaptationSettings, Forwarding, MachineSettings, Opening, Proxy, ProxySettings, RateSource,
    RelayResult, SlidingModeSettings, StoreSettings, StoredObject,
};
use crate::applications::script::{Pause, Script, Step};
use crate::host::Outcome;
use crate::packets::packet::Packet;
use crate::packets::segment::ContentId;
use crate::settings::Settings;
use crate::test_path::{wired, TestPath, Watched};

pub(super) const FILE: ContentId = ContentId(1);
pub(super) const REQUEST: ContentId = ContentId(2);
const SMALLER_FILE: ContentId = ContentId(3);
pub(super) const FILE_BYTES: u64 = 2_000_000;

impl Watched<Proxy> {
    pub(super) fn result(&self, place: usize) -> RelayResult {
        self.0.borrow().relays().nth(place).expect("a relayed flow")
    }
}

pub(super) fn settings(forwarding: Forwarding) -> ProxySettings {
    ProxySettings {
        server_leg: Settings::default(),
        mobile_leg: Settings::default(),
        forwarding,
        opening: Opening::AtOnce,
        aborts: AbortPropagation::AtOnce,
        bypassed_flows: Vec::new(),
        machine: MachineSettings::default(),
    }
}

pub(super) fn relay() -> ProxySettings {
    settings(Forwarding::Relay { buffer_bytes: 100_000 })
}

pub(super) fn store(cache_bytes: u64, forwarded_as: Option<(ContentId, u64)>) -> ProxySettings {
    let file = StoredObject { content: FILE, bytes: FILE_BYTES, forwarded_as, answer_to: Some(REQUEST) };
    let request = StoredObject { content: REQUEST, bytes: 300, forwarded_as: None, answer_to: None };
    settings(Forwarding::Store(StoreSettings {
        objects: vec![file, request],
        pause_ns: 2 * SECOND,
        storage_bytes: 64 << 20,
        cache_bytes,
    }))
}

/// A fast wired leg, the proxy, a slow leg to the mobile.
pub(super) fn path(proxy: ProxySettings) -> (TestPath, Watched<Proxy>) {
    let proxy = Watched::new(Proxy::new(proxy, 1, "proxy"));
    let hops = vec![wired(100_000_000, 20, 300, 0.0), Box::new(proxy.clone()), wired(4_000_000, 40, 60, 0.0)];
    (TestPath::new(hops), proxy)
}

fn download(proxy: ProxySettings) -> (TestPath, Watched<Proxy>) {
    let (mut path, proxy) = path(proxy);
    path.add(0, 0, [Settings::default(); 2], [Script::sender(FILE, FILE_BYTES), Script::receiver()]);
    path.run_until(100 * SECOND);
    (path, proxy)
}

fn browse(proxy: ProxySettings, page_bytes: u64) -> (TestPath, Watched<Proxy>) {
    let (mut path, proxy) = path(proxy);
    for (flow, start_ns) in [(0, 0), (1, 30 * SECOND)] {
        let scripts =
            [Script::http_server(FILE, 300, FILE_BYTES), Script::http_client(1, REQUEST, 300, page_bytes, 0.0)];
        path.add(flow, start_ns, [Settings::default(); 2], scripts);
    }
    path.run_until(100 * SECOND);
    (path, proxy)
}

#[test]
fn a_split_delivers_what_was_sent_within_its_buffer() {
    let (path, proxy) = download(relay());
    path.assert_intact(0);
    assert_eq!(path.mobile_result(0).outcome, Outcome::Closed);
    assert_eq!(path.server_result(0).outcome, Outcome::Closed);
    let result = proxy.result(0);
    assert_eq!(result.taken_bytes, [FILE_BYTES, 0]);
    assert_eq!(result.given_bytes, [FILE_BYTES, 0]);
    assert!(result.most_held_bytes[0] <= 100_000);
}

#[test]
fn a_split_answers_the_mobile_before_the_server_can() {
    let (path, _) = download(relay());
    let connected = path.mobile_result(0).connected_ns.expect("connected");
    assert!((80 * MILLISECOND..82 * MILLISECOND).contains(&connected), "{connected}");
}

#[test]
fn asking_the_server_first_takes_both_round_trips() {
    let (path, _) = download(ProxySettings { opening: Opening::FarEndFirst, ..relay() });
    path.assert_intact(0);
    let connected = path.mobile_result(0).connected_ns.expect("connected");
    assert!((120 * MILLISECOND..122 * MILLISECOND).contains(&connected), "{connected}");
}

#[test]
fn a_full_buffer_shuts_the_window_advertised_to_the_server() {
    let server_leg = Settings { receive_buffer_bytes: 50_000, ..Settings::default() };
    let (mut path, proxy) = path(ProxySettings { server_leg, ..relay() });
    let pause = Pause { start_ns: SECOND, duration_ns: 20 * SECOND };
    let mobile = Settings { receive_buffer_bytes: 50_000, ..Settings::default() };
    let scripts = [Script::sender(FILE, FILE_BYTES), Script::receiver().pausing(vec![pause])];
    path.add(0, 0, [Settings::default(), mobile], scripts);
    path.run_until(15 * SECOND);
    let held = proxy.result(0);
    assert!(held.given_bytes[0] < FILE_BYTES);
    let window = proxy.observed(15 * SECOND, "server_leg_receive_window_bytes");
    assert!(window < 1460.0, "{window}");
    path.run_until(100 * SECOND);
    path.assert_intact(0);
}

#[test]
fn segments_that_arrive_at_one_time_are_acknowledged_one_by_one() {
    // A link without a rate delivers each window at one instant.
    let line = LineSettings { delay_ns: 20 * MILLISECOND, ..LineSettings::default() };
    let link = Wired::new(&WiredSettings { down: line.clone(), up: line }, 1, "link").expect("a valid link");
    let each = Settings { delayed_acknowledgement: None, ..Settings::default() };
    let proxy = Watched::new(Proxy::new(ProxySettings { server_leg: each, ..relay() }, 1, "proxy"));
    let mut path = TestPath::new(vec![Box::new(link), Box::new(proxy.clone()), wired(10_000_000, 20, 100, 0.0)]);
    path.add(0, 0, [Settings::default(); 2], [Script::sender(FILE, 100 * 1448), Script::receiver()]);
    path.run_until(100 * SECOND);
    path.assert_intact(0);
    let sent = proxy.result(0).server_leg.segments_sent;
    assert!(sent >= 102, "SYN, its handshake's end and an ACK a segment, not {sent}");
}

#[test]
fn an_upload_is_relayed_too() {
    let (mut path, proxy) = path(relay());
    path.add(0, 0, [Settings::default(); 2], [Script::receiver(), Script::sender(FILE, FILE_BYTES)]);
    path.run_until(100 * SECOND);
    path.assert_intact(0);
    assert_eq!(proxy.result(0).given_bytes, [0, FILE_BYTES]);
}

#[test]
fn a_store_forwards_nothing_before_the_object_is_whole() {
    let (mut path, proxy) = path(store(0, None));
    path.add(0, 0, [Settings::default(); 2], [Script::sender(FILE, FILE_BYTES), Script::receiver()]);
    path.run_until(250 * MILLISECOND);
    assert!(proxy.result(0).taken_bytes[0] > 100_000);
    assert_eq!(proxy.result(0).given_bytes[0], 0);
    path.run_until(100 * SECOND);
    path.assert_intact(0);
    assert_eq!(proxy.result(0).most_held_bytes[0], FILE_BYTES);
    let finished = path.server_result(0).ended_ns.or(path.server_result(0).peer_finished_ns).expect("an end");
    assert!(finished > 0);
}

#[test]
fn bytes_of_no_known_object_leave_after_a_pause() {
    let mut proxy = store(0, None);
    if let Forwarding::Store(store) = &mut proxy.forwarding {
        store.objects.clear();
    }
    let (mut path, proxy) = path(proxy);
    let server = Script::new(vec![Step::Send { content: FILE, bytes: 5000 }, Step::Wait { duration_ns: 60 * SECOND }]);
    path.add(0, 0, [Settings::default(); 2], [server, Script::receiver()]);
    path.run_until(1500 * MILLISECOND);
    assert_eq!(proxy.result(0).given_bytes[0], 0);
    path.run_until(4 * SECOND);
    assert_eq!(path.mobile_result(0).application.read_bytes, 5000);
}

#[test]
fn the_second_who_asks_is_answered_from_the_cache() {
    let (path, proxy) = browse(ProxySettings { opening: Opening::WithData, ..store(8 << 20, None) }, FILE_BYTES);
    path.assert_intact(0);
    assert_eq!((proxy.result(0).cache_hits, proxy.result(1).cache_hits), (0, 1));
    assert_eq!(path.mobile_result(1).application.read_digest, path.mobile_result(0).application.read_digest);
    assert_eq!(path.mobile_result(1).outcome, Outcome::Closed);
    assert_eq!(proxy.result(1).far_leg_opened_ns, None);
    assert_eq!(path.server_result(1).connected_ns, None);
}

#[test]
fn without_a_cache_the_server_answers_every_request() {
    let (path, proxy) = browse(store(0, None), FILE_BYTES);
    path.assert_intact(0);
    path.assert_intact(1);
    assert_eq!(proxy.result(1).cache_hits, 0);
}

#[test]
fn a_recompressed_object_arrives_smaller() {
    let (path, _) = browse(store(0, Some((SMALLER_FILE, 300_000))), 300_000);
    let mobile = path.mobile_result(0).application;
    assert_eq!(mobile.read_bytes, 300_000);
    assert_ne!(mobile.read_digest, path.server_result(0).application.written_digest);
    assert_eq!(path.server_result(0).application.written_bytes, FILE_BYTES);
}

/// When the server's end of an aborted download ends, counted from the abort.
fn server_outlives_abort_by(aborts: AbortPropagation) -> Option<Nanoseconds> {
    let (mut path, _) = path(ProxySettings { aborts, ..relay() });
    let mobile = Script::new(vec![Step::Receive { bytes: 300_000 }, Step::Abort]);
    path.add(0, 0, [Settings::default(); 2], [Script::sender(FILE, FILE_BYTES), mobile]);
    path.run_until(60 * SECOND);
    let abort = path.mobile_result(0).ended_ns.expect("the abort");
    path.server_result(0).ended_ns.map(|end| end - abort)
}

#[test]
fn aborts_travel_as_configured() {
    let at_once = server_outlives_abort_by(AbortPropagation::AtOnce).expect("the server's end");
    assert!((60 * MILLISECOND..70 * MILLISECOND).contains(&at_once), "{at_once}");
    let later = server_outlives_abort_by(AbortPropagation::After(5 * SECOND)).expect("the server's end");
    assert_eq!(later - at_once, 5 * SECOND);
    assert_eq!(server_outlives_abort_by(AbortPropagation::Never), None);
}

#[test]
fn what_is_bypassed_stays_end_to_end() {
    let (path, proxy) = download(ProxySettings { bypassed_flows: vec![0], ..relay() });
    path.assert_intact(0);
    assert_eq!(proxy.0.borrow().relays().count(), 0);
    let connected = path.mobile_result(0).connected_ns.expect("connected");
    assert!(connected > 120 * MILLISECOND, "{connected}");
}

/// Server, proxy, 25 ms of backhaul that loses some packets, a link of radio frames, 200 of which fit its queue.
fn frames_path(
    rates: RateProfile,
    loss: f64,
    forwarding: Forwarding,
) -> (TestPath, Watched<Proxy>, Watched<VariableRate<Packet>>) {
    let plain = Settings { timestamps: false, maximum_segment_size: 472, ..Settings::default() };
    let proxy = ProxySettings { server_leg: plain, mobile_leg: plain, ..settings(forwarding) };
    let proxy = Watched::new(Proxy::new(proxy, 1, "proxy"));
    let up = LineSettings { delay_ns: 25 * MILLISECOND, ..LineSettings::default() };
    let down = LineSettings { loss: LossSettings::Independent { probability: loss }, ..up.clone() };
    let backhaul = Wired::new(&WiredSettings { down, up }, 1, "backhaul").expect("a link");
    let down = VaryingLineSettings {
        service: Service::Rates {
            profile: rates,
            rule: ServiceRule::Exact,
            radio_frames: Some(RadioFrames { frame_bytes: 40 }),
        },
        queue: QueueSettings { limit: QueueLimit::Frames(200), ..QueueSettings::default() },
        ..VaryingLineSettings::default()
    };
    let reports = Some(ReportSettings { period_ns: 25 * MILLISECOND, user: 0 });
    let radio = VariableRateSettings { down, up: VaryingLineSettings::default(), reports };
    let radio = Watched::new(VariableRate::new(&radio, 1, "radio").expect("a link"));
    let hops: Vec<Box<dyn Hop<Packet>>> =
        vec![wired(100_000_000, 20, 300, 0.0), Box::new(proxy.clone()), Box::new(backhaul), Box::new(radio.clone())];
    let mut path = TestPath::new(hops);
    path.add(0, 0, [plain; 2], [Script::sender_for(FILE, 400 * SECOND), Script::receiver()]);
    (path, proxy, radio)
}

/// Utilisation of a link of 1160 frames a second on average, its mean queue in frames, and its drops.
fn adapted(rates: RateProfile, forwarding: Forwarding) -> (f64, f64, u64) {
    let (mut path, _, radio) = frames_path(rates, 0.0, forwarding);
    path.run_until(20 * SECOND);
    let before = radio.counts(Direction::Down);
    let mut queue = 0.0;
    for sample in 1..=2000 {
        let now = 20 * SECOND + sample * 40 * MILLISECOND;
        path.run_until(now);
        queue += radio.observed(now, "down_system_bytes") / 512.0 * 13.0 / 2000.0;
    }
    let after = radio.counts(Direction::Down);
    let frames = (after.delivered_packets - before.delivered_packets) as f64 * 13.0;
    (frames / 80.0 / 1160.0, queue, after.overflowed_packets)
}

#[test]
fn window_adaptation_keeps_the_queue_at_its_reference() {
    let adaptation = AdaptationSettings {
        law: SlidingModeSettings::default(),
        rate_source: RateSource::Served,
        spreads_packets: true,
    };
    let forwarding = Forwarding::Adapt { buffer_bytes: 64_000, adaptation };
    let (utilisation, queue, drops) = adapted(RateProfile::constant(1160 * 320), forwarding);
    assert!(utilisation > 0.995, "{utilisation}");
    assert!((80.0..120.0).contains(&queue), "{queue}");
    assert_eq!(drops, 0);
}

#[test]
fn window_adaptation_holds_against_a_rate_that_swings() {
    let adaptation = AdaptationSettings {
        law: SlidingModeSettings::default(),
        rate_source: RateSource::Offered,
        spreads_packets: true,
    };
    for period_ms in [100, 1000, 4000] {
        let rates =
            RateProfile::Random { period_ns: period_ms * MILLISECOND, low_bit_s: 580 * 320, high_bit_s: 1740 * 320 };
        let (_, queue, drops) = adapted(rates.clone(), Forwarding::Adapt { buffer_bytes: 64_000, adaptation });
        assert!((80.0..120.0).contains(&queue), "{period_ms} ms: {queue}");
        assert!(drops < 20, "{period_ms} ms: {drops}");
        let (_, plain_queue, plain_drops) = adapted(rates, Forwarding::Relay { buffer_bytes: 64_000 });
        assert!(plain_drops > drops, "{period_ms} ms: {plain_drops} {plain_queue}");
    }
}

#[test]
fn what_was_lost_is_sent_again_out_of_the_same_quota() {
    let adaptation = AdaptationSettings {
        law: SlidingModeSettings::default(),
        rate_source: RateSource::Served,
        spreads_packets: true,
    };
    let forwarding = Forwarding::Adapt { buffer_bytes: 64_000, adaptation };
    let (mut path, proxy, _) = frames_path(RateProfile::constant(1160 * 320), 0.2, forwarding);
    let mut sent_before = 0;
    for step in 41..2000 {
        // Reports arrive on the grid of 25 ms.
        let now = step * 25 * MILLISECOND - 1;
        path.run_until(now);
        let sent = proxy.counts(Direction::Down).delivered_packets;
        let quota = proxy.observed(now, "quota_packets");
        assert!(step == 41 || (sent - sent_before) as f64 <= quota, "{} of {quota} in step {step}", sent - sent_before);
        sent_before = sent;
    }
    assert!(proxy.result(0).mobile_leg.retransmitted_segments > 500);
}
