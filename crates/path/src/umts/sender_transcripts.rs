//! The sender, step by step.

use super::pdu::{Missing, NumberedCounts, SequenceNumber, StatusPdu};
use super::sender::Sender;
use super::settings::{PollSettings, RadioLinkControlSettings};
use crate::hop::{MILLISECOND, NEVER};
use crate::queues::queue::QueueLimit;

const MS: u64 = MILLISECOND;

/// A sender with `packets` packets that fill a PDU each, and their indicator.
fn sender(settings: RadioLinkControlSettings, packets: u32) -> Sender<u32> {
    let mut sender = Sender::new(&settings, QueueLimit::Unlimited);
    for packet in 0..packets {
        assert!(sender.sdus.take(packet, 37, 37));
    }
    sender
}

/// Numbers and polls of what is sent at `now`.
fn send_all(sender: &mut Sender<u32>, now: u64) -> Vec<(u64, bool)> {
    core::iter::from_fn(|| sender.data_pdu(now)).map(|pdu| (pdu.number.count_from(0), pdu.poll)).collect()
}

fn report(sender: &mut Sender<u32>, now: u64, before: u64, missing: &[u64]) {
    let mut list = NumberedCounts::default();
    missing.iter().for_each(|&count| list.push(SequenceNumber::of(count), 1));
    sender.handle_report(now, SequenceNumber::of(before), Missing::List(list));
}

#[test]
fn missing_pdus_are_repeated_before_new_ones() {
    let mut sender = sender(RadioLinkControlSettings { window_pdus: 4, ..Default::default() }, 6);
    assert_eq!(send_all(&mut sender, 0), [(0, false), (1, false), (2, false), (3, false)]);
    report(&mut sender, 0, 4, &[1, 3]);
    assert_eq!(sender.window_pdus(), 3); // 1 to 3
    assert_eq!(send_all(&mut sender, 0), [(1, false), (3, false), (4, false)]);
    report(&mut sender, 0, 5, &[]);
    assert_eq!(send_all(&mut sender, 0), [(5, false)]);
    assert_eq!((sender.sent_pdus, sender.retransmitted_pdus), (8, 2));
}

#[test]
fn a_pdu_sent_too_often_takes_its_packet_and_moves_the_window() {
    let settings = RadioLinkControlSettings { maximum_transmissions: Some(2), ..Default::default() };
    let mut sender = sender(settings, 3);
    send_all(&mut sender, 0);
    assert_eq!((sender.sdus.deliver(0), sender.sdus.deliver(2)), (Some(0), Some(2)));
    report(&mut sender, 0, 3, &[1]);
    send_all(&mut sender, 0);
    assert_eq!(sender.control_pdu(0), None);
    report(&mut sender, 0, 3, &[1]);
    let mut to = NumberedCounts::default();
    to.push(SequenceNumber::of(2), 0);
    assert_eq!(sender.control_pdu(5 * MS), Some(StatusPdu::MoveWindow(to)));
    assert_eq!(send_all(&mut sender, 5 * MS), []);
    // Unanswered, the command is repeated.
    assert_eq!(sender.next_timer_ns(), 205 * MS);
    sender.handle_timers(205 * MS);
    assert_eq!(sender.control_pdu(205 * MS), Some(StatusPdu::MoveWindow(to)));
    sender.handle_window_moved(SequenceNumber::of(1)); // the answer to another command
    assert_eq!(sender.lost_packets, 0);
    sender.handle_window_moved(SequenceNumber::of(2));
    assert_eq!((sender.lost_packets, sender.window_pdus()), (1, 0));
    assert_eq!(sender.next_timer_ns(), NEVER);
}

#[test]
fn a_packet_given_up_while_it_is_cut_leaves_the_buffer() {
    let settings = RadioLinkControlSettings { maximum_transmissions: Some(1), ..Default::default() };
    let mut sender = Sender::new(&settings, QueueLimit::Unlimited);
    for packet in [0, 1] {
        assert!(sender.sdus.take(packet, 1_000, 1_000));
    }
    assert!(sender.data_pdu(0).is_some());
    assert!(sender.data_pdu(0).is_some());
    report(&mut sender, 0, 2, &[0]);
    assert_eq!(sender.sdus.waiting().packets, 1);
    let mut to = NumberedCounts::default();
    to.push(SequenceNumber::of(2), 0);
    assert_eq!(sender.control_pdu(0), Some(StatusPdu::MoveWindow(to)));
    sender.handle_window_moved(SequenceNumber::of(2));
    assert_eq!(sender.lost_packets, 1);
    let next = sender.data_pdu(0).unwrap();
    assert_eq!((next.number, next.ends), (SequenceNumber::of(2), 0));
}

#[test]
fn a_poll_is_repeated_until_its_pdu_is_reported() {
    let poll = PollSettings { on_last_pdu: true, timer_ns: Some(100 * MS) };
    let mut sender = sender(RadioLinkControlSettings { poll, ..Default::default() }, 2);
    assert_eq!(send_all(&mut sender, 0), [(0, false), (1, true)]);
    report(&mut sender, 50 * MS, 1, &[]); // does not cover the polled one
    assert_eq!(sender.next_timer_ns(), 100 * MS);
    sender.handle_timers(100 * MS);
    assert!(sender.has_data());
    assert_eq!(send_all(&mut sender, 100 * MS), [(1, true)]);
    report(&mut sender, 150 * MS, 2, &[]);
    assert_eq!(sender.next_timer_ns(), NEVER);
    assert!(!sender.has_data());
}
