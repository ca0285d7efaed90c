//! Whatever a proxy's machine is like, bytes arrive whole and in order, limits hold and nothing hangs.

use std::collections::BTreeMap;
use std::sync::Arc;

use pepscope_path::{MILLISECOND, SECOND};
use proptest::option;
use proptest::prelude::{any, prop_assert, prop_assert_eq, prop_oneof, proptest, Just, ProptestConfig, Strategy};

use super::tests::settings;
use super::{
    ConnectionLimit, Forwarding, MachineSettings, Opening, OverLimit, Proxy, ProxySettings, ReuseSettings,
    StoreSettings,
};
use crate::applications::script::Script;
use crate::host::{Outcome, ProcessingSettings};
use crate::packets::segment::ContentId;
use crate::settings::{Settings, Stack};
use crate::test_path::{wired, TestPath, Watched};

const FLOWS: u32 = 3;
const REQUEST_BYTES: u64 = 700;

fn request(flow: u32) -> ContentId {
    ContentId(100 + flow)
}

fn limits() -> impl Strategy<Value = ConnectionLimit> {
    let over_limit = prop_oneof![
        (0usize..3).prop_map(|waiting_limit| OverLimit::Wait { waiting_limit }),
        Just(OverLimit::Refuse),
        Just(OverLimit::Drop),
        Just(OverLimit::Bypass),
    ];
    (1usize..4, over_limit).prop_map(|(connections, over_limit)| ConnectionLimit { connections, over_limit })
}

fn machines() -> impl Strategy<Value = MachineSettings> {
    let reads = (option::of(500u64..20_000), 0.0..=1.0f64, 0u64..5, any::<bool>());
    (reads, option::of(limits()), option::of(1u64..20)).prop_map(|(reads, limit, idle_s)| MachineSettings {
        read_bytes: reads.0.unwrap_or(u64::MAX),
        resume_share: reads.1,
        delay_ns: reads.2 * MILLISECOND,
        times: reads.3.then(ProcessingSettings::default),
        limit,
        reuse: idle_s.map(|idle_s| ReuseSettings {
            idle_ns: idle_s * SECOND,
            servers: vec![Some(1); FLOWS as usize],
            lengths: Arc::new(BTreeMap::new()),
        }),
    })
}

fn legs() -> impl Strategy<Value = Settings> {
    (any::<bool>(), 2000u64..200_000).prop_map(|(is_linux, receive_buffer_bytes)| Settings {
        stack: if is_linux { Stack::Linux } else { Stack::Ideal },
        receive_buffer_bytes,
        ..Settings::default()
    })
}

fn proxies() -> impl Strategy<Value = ProxySettings> {
    let forwardings = prop_oneof![
        (1024u64..200_000).prop_map(|buffer_bytes| Forwarding::Relay { buffer_bytes }),
        (1024u64..200_000).prop_map(|storage_bytes| Forwarding::Store(StoreSettings {
            objects: Vec::new(),
            pause_ns: SECOND,
            storage_bytes,
            cache_bytes: 0,
        })),
    ];
    let openings = prop_oneof![
        Just(Opening::AtOnce),
        Just(Opening::AfterAccept),
        Just(Opening::FarEndFirst),
        Just(Opening::WithData)
    ];
    (forwardings, openings, machines(), legs(), legs()).prop_map(
        |(forwarding, opening, machine, server_leg, mobile_leg)| ProxySettings {
            opening,
            machine,
            server_leg,
            mobile_leg,
            ..settings(forwarding)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn clients_get_their_pages_or_are_refused(
        mut proxy in proxies(),
        pages in proptest::collection::vec(1u64..60_000, FLOWS as usize),
        starts_ms in proptest::collection::vec(0u64..4000, FLOWS as usize),
        loss in prop_oneof![Just(0.0), Just(0.02)],
    ) {
        let lengths = (0..FLOWS).flat_map(|flow| [(request(flow), REQUEST_BYTES), (ContentId(flow), pages[flow as usize])]);
        if let Some(reuse) = &mut proxy.machine.reuse {
            reuse.lengths = Arc::new(lengths.collect());
        }
        let limit = proxy.machine.limit;
        let watched = Watched::new(Proxy::new(proxy, 1, "proxy"));
        let hops =
            vec![wired(100_000_000, 10, 300, 0.0), Box::new(watched.clone()) as _, wired(8_000_000, 15, 60, loss)];
        let mut path = TestPath::new(hops);
        for flow in 0..FLOWS {
            let page_bytes = pages[flow as usize];
            let scripts = [
                Script::http_server(ContentId(flow), REQUEST_BYTES, page_bytes),
                Script::http_client(1, request(flow), REQUEST_BYTES, page_bytes, 0.0),
            ];
            path.add(flow, starts_ms[flow as usize] * MILLISECOND, [Settings::default(); 2], scripts);
            path.server.serve_content(request(flow), flow);
        }
        path.run_until(50_000 * SECOND);
        let may_refuse = limit.is_some_and(|limit| limit.over_limit == OverLimit::Refuse);
        for flow in 0..FLOWS {
            let mobile = path.mobile_result(flow);
            if mobile.outcome == Outcome::Reset {
                prop_assert!(may_refuse);
                prop_assert_eq!(mobile.application.read_bytes, 0);
                continue;
            }
            prop_assert_eq!(mobile.outcome, Outcome::Closed);
            prop_assert_eq!(mobile.application.read_bytes, pages[flow as usize]);
            prop_assert_eq!(path.server_result(flow).outcome, Outcome::Closed);
            path.assert_intact(flow);
        }
        let counts = watched.0.borrow().admissions();
        prop_assert!(limit.is_none_or(|limit| counts.most_at_once <= limit.connections));
        for relay in watched.0.borrow().relays() {
            prop_assert_eq!(relay.taken_bytes, relay.given_bytes);
        }
    }

    #[test]
    fn both_directions_arrive_whole(
        proxy in proxies(),
        down_bytes in 1u64..300_000,
        up_bytes in 1u64..100_000,
        loss in prop_oneof![Just(0.0), Just(0.02)],
    ) {
        let mut proxy = proxy;
        proxy.machine.limit = None;
        let buffer_bytes = match &proxy.forwarding {
            Forwarding::Relay { buffer_bytes } => *buffer_bytes,
            _ => u64::MAX,
        };
        let watched = Watched::new(Proxy::new(proxy, 1, "proxy"));
        let hops =
            vec![wired(100_000_000, 10, 300, 0.0), Box::new(watched.clone()) as _, wired(8_000_000, 15, 60, loss)];
        let mut path = TestPath::new(hops);
        let scripts = [
            Script::exchanger(ContentId(1), down_bytes, up_bytes),
            Script::exchanger(ContentId(2), up_bytes, down_bytes),
        ];
        path.add(0, 0, [Settings::default(); 2], scripts);
        path.run_until(50_000 * SECOND);
        path.assert_intact(0);
        prop_assert_eq!(path.server_result(0).outcome, Outcome::Closed);
        prop_assert_eq!(path.mobile_result(0).outcome, Outcome::Closed);
        let relay = watched.result(0);
        prop_assert_eq!(relay.given_bytes, [down_bytes, up_bytes]);
        prop_assert!(relay.most_held_bytes.iter().all(|held| *held <= buffer_bytes));
    }
}
