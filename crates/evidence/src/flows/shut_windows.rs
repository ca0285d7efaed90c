//! Receive windows that the sender saw shut: whether the receiver or a middlebox on the way may have shut them.

use crate::distinct::distinct;
use crate::packets::{flag, Packets};

/// The packets of one capture, and the power of two by which it scales the windows that are looked at, where it knows.
#[derive(Clone, Copy, Debug)]
pub struct Scaled<'a> {
    pub packets: Packets<'a>,
    pub window_shift: Option<u32>,
}

/// Which host may have shut the windows that the sender saw shut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShutBy {
    /// The receiver, in acknowledgements that its own capture lacks: those before the first that it holds, behind the
    /// last, or, of those that a filter takes away, between.
    PerhapsReceiver,
    /// A middlebox, in the receiver's own packets.
    OnReceiversPackets,
    AnotherHost,
}

/// The row of a packet that advertises a window, what it acknowledges, and the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Offer {
    row: usize,
    acknowledged: i64,
    window: i64,
}

/// Who may have shut the windows that packets in the `advertising` direction show the sender, those that are at most
/// `shut_share` of the largest so far. `shift` is added to what the receiver's capture holds acknowledged.
///
/// A receiver may not shrink its window (RFC 9293, section 3.8.6): what it once offered to take, in bytes of the stream,
/// stays offered, but for what its scale rounds down (RFC 7323, section 2.4). Where every shut window that the sender saw
/// ends at or beyond all that the receiver had offered by then, the receiver may have sent it; where one ends before, only
/// another host can have. Where neither capture knows the scale, windows are no bytes.
///
/// Windows came on the receiver's packets where these are its own by their fields at half or more of the places in the
/// stream that its capture holds acknowledged, too (a filter may take most of its acknowledgements away).
pub fn shut_by(sender: Scaled<'_>, receiver: Scaled<'_>, advertising: u8, shift: i64, shut_share: f64) -> ShutBy {
    let shut = shut_offers(&sender.packets, advertising, shut_share);
    let mut own: Vec<Offer> = offers(&receiver.packets, advertising)
        .map(|offer| Offer { acknowledged: offer.acknowledged.wrapping_add(shift), ..offer })
        .collect();
    // In order already unless packets overtook each other, which a stable sort sees at once.
    own.sort_by_key(|offer| offer.acknowledged);
    if may_be_receivers(&shut, &own, sender.window_shift, receiver.window_shift) {
        return ShutBy::PerhapsReceiver;
    }
    let known_as = emitted(&receiver.packets, advertising, shift, &shut);
    let is_own = |offer: &&Offer| {
        let fields = fields(&sender.packets, offer.row, 0);
        fields.ip_id != 0 && known_as.binary_search(&fields).is_ok()
    };
    let on_own = distinct(shut.iter().filter(is_own).map(|offer| offer.acknowledged).collect());
    let held = |place: &&i64| own.binary_search_by_key(*place, |offer| offer.acknowledged).is_ok();
    let places = distinct(shut.iter().map(|offer| offer.acknowledged).collect());
    if !on_own.is_empty() && 2 * on_own.len() >= places.iter().filter(held).count() {
        ShutBy::OnReceiversPackets
    } else {
        ShutBy::AnotherHost
    }
}

/// Those of packets that carry ACK and neither SYN, FIN nor RST.
fn offers<'a>(packets: &'a Packets<'_>, advertising: u8) -> impl Iterator<Item = Offer> + 'a {
    const LOOKED_AT: u16 = flag::SYN | flag::FIN | flag::RST | flag::ACK;
    let is_one =
        move |&row: &usize| packets.direction[row] == advertising && packets.flags[row] & LOOKED_AT == flag::ACK;
    (0..packets.len()).filter(is_one).map(|row| Offer {
        row,
        acknowledged: packets.acknowledgement_offset[row],
        window: packets.window_bytes[row].into(),
    })
}

fn shut_offers(packets: &Packets<'_>, advertising: u8, shut_share: f64) -> Vec<Offer> {
    let mut largest = 0;
    let is_shut = |offer: &Offer| {
        largest = largest.max(offer.window);
        offer.window as f64 <= shut_share * largest as f64
    };
    offers(packets, advertising).filter(is_shut).collect()
}

/// `own` are the receiver's, by what they acknowledge.
fn may_be_receivers(shut: &[Offer], own: &[Offer], at_sender: Option<u32>, at_receiver: Option<u32>) -> bool {
    // Of the same bytes the receiver may have opened the window later.
    let before = |offer: &Offer| own.partition_point(|own| own.acknowledged < offer.acknowledged);
    // If the receiver's own windows reach the sender, one scale is that of both.
    let Some(power) = at_receiver.or(at_sender) else {
        return !shut.iter().any(|offer| (1..own.len()).contains(&before(offer)));
    };
    let bytes = |window: i64, known: Option<u32>| if known.is_none() { window << (power & SHIFT_BITS) } else { window };
    let mut most = i64::MIN;
    let offered: Vec<i64> = own
        .iter()
        .map(|offer| {
            most = most.max(offer.acknowledged.saturating_add(bytes(offer.window, at_receiver)));
            most.saturating_sub(1 << (power & SHIFT_BITS))
        })
        .collect();
    let is_anothers = |offer: &Offer| {
        let end = offer.acknowledged.saturating_add(bytes(offer.window, at_sender));
        before(offer).checked_sub(1).is_some_and(|last| end <= offered[last])
    };
    !shut.iter().any(is_anothers)
}

/// A scale is 14 at most (RFC 7323, section 2.2).
const SHIFT_BITS: u32 = 31;

/// By what a packet is known as the same one elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Fields {
    ip_id: u16,
    acknowledged: i64,
    tsval: u32,
    tsecr: u32,
    payload_bytes: u32,
}

fn fields(packets: &Packets<'_>, row: usize, shift: i64) -> Fields {
    Fields {
        ip_id: packets.ip_id[row],
        acknowledged: packets.acknowledgement_offset[row].wrapping_add(shift),
        tsval: packets.tsval[row],
        tsecr: packets.tsecr[row],
        payload_bytes: packets.payload_bytes[row],
    }
}

/// The receiver's packets that acknowledge what the shut windows do, in order.
fn emitted(packets: &Packets<'_>, advertising: u8, shift: i64, shut: &[Offer]) -> Vec<Fields> {
    let places = distinct(shut.iter().map(|offer| offer.acknowledged).collect());
    let is_asked = |&row: &usize| {
        packets.direction[row] == advertising
            && places.binary_search(&packets.acknowledgement_offset[row].wrapping_add(shift)).is_ok()
    };
    let mut known: Vec<Fields> = (0..packets.len()).filter(is_asked).map(|row| fields(packets, row, shift)).collect();
    known.sort_unstable();
    known
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packets::{DOWN, UP};

    /// One capture's acknowledgements by the receiver.
    struct Side {
        time_ns: Vec<i64>,
        direction: Vec<u8>,
        flags: Vec<u16>,
        acknowledged: Vec<i64>,
        windows: Vec<u32>,
        ip_ids: Vec<u16>,
        zeros: Vec<u32>,
    }

    impl Side {
        /// What is acknowledged with which window, in packets whose IP IDs count from `first_id` on.
        fn new(offers: &[(i64, u32)], first_id: u16) -> Self {
            let count = offers.len();
            let (acknowledged, windows) = offers.iter().copied().unzip();
            Self {
                time_ns: vec![0; count],
                direction: vec![UP; count],
                flags: vec![flag::ACK; count],
                acknowledged,
                windows,
                ip_ids: (first_id..).take(count).collect(),
                zeros: vec![0; count],
            }
        }

        fn scaled(&self, window_shift: Option<u32>) -> Scaled<'_> {
            let packets = Packets {
                time_ns: &self.time_ns,
                direction: &self.direction,
                flags: &self.flags,
                acknowledgement_offset: &self.acknowledged,
                window_bytes: &self.windows,
                ip_id: &self.ip_ids,
                tsval: &self.zeros,
                tsecr: &self.zeros,
                payload_bytes: &self.zeros,
                ..Packets::default()
            };
            Scaled { packets, window_shift }
        }

        fn shut_by(&self, receiver: &Self, [at_sender, at_receiver]: [Option<u32>; 2], shift: i64) -> ShutBy {
            let (sender, receiver) = (self.scaled(at_sender), receiver.scaled(at_receiver));
            assert_eq!(shut_by(sender, receiver, DOWN, shift, 0.05), ShutBy::PerhapsReceiver);
            shut_by(sender, receiver, UP, shift, 0.05)
        }
    }

    const KNOWN: [Option<u32>; 2] = [Some(0), Some(0)];

    #[test]
    fn a_window_that_ends_before_what_was_offered_is_another_hosts() {
        let receiver = Side::new(&[(0, 1000), (500, 1000), (900, 1000)], 70);
        assert_eq!(Side::new(&[(0, 1000), (600, 0)], 7).shut_by(&receiver, KNOWN, 0), ShutBy::AnotherHost);
        assert_eq!(Side::new(&[(0, 1000), (1600, 0)], 7).shut_by(&receiver, KNOWN, 0), ShutBy::AnotherHost);
        // All that was offered is used up, or nothing had been acknowledged before.
        assert_eq!(Side::new(&[(0, 1000), (1900, 0)], 7).shut_by(&receiver, KNOWN, 0), ShutBy::PerhapsReceiver);
        assert_eq!(Side::new(&[(-9, 1000), (0, 0)], 7).shut_by(&receiver, KNOWN, 0), ShutBy::PerhapsReceiver);
    }

    #[test]
    fn scales_that_one_capture_knows_are_those_of_both() {
        let receiver = Side::new(&[(0, 4000), (500, 4000), (900, 4000)], 70);
        let sender = Side::new(&[(0, 1000), (4800, 0)], 7);
        assert_eq!(sender.shut_by(&receiver, [None, Some(2)], 0), ShutBy::AnotherHost);
        let receiver = Side::new(&[(0, 1000), (500, 1000), (900, 1000)], 70);
        assert_eq!(sender.shut_by(&receiver, [Some(2), None], 0), ShutBy::AnotherHost);
        assert_eq!(sender.shut_by(&receiver, KNOWN, 0), ShutBy::PerhapsReceiver);
        // Without a scale only acknowledgements before and behind tell.
        assert_eq!(sender.shut_by(&receiver, [None, None], 0), ShutBy::PerhapsReceiver);
        assert_eq!(Side::new(&[(0, 1000), (600, 0)], 7).shut_by(&receiver, [None, None], 0), ShutBy::AnotherHost);
    }

    #[test]
    fn the_receivers_packets_are_known_by_their_fields() {
        let receiver = Side::new(&[(100, 1000), (600, 1000), (1000, 1000)], 70);
        let narrowed = Side::new(&[(0, 1000), (500, 0), (900, 0)], 70);
        assert_eq!(narrowed.shut_by(&receiver, KNOWN, -100), ShutBy::OnReceiversPackets);
        assert_eq!(narrowed.shut_by(&receiver, KNOWN, 0), ShutBy::AnotherHost);
        // No number is none that a packet is known by.
        let unnumbered = |side: Side| Side { ip_ids: vec![0; 3], ..side };
        assert_eq!(unnumbered(narrowed).shut_by(&unnumbered(receiver), KNOWN, -100), ShutBy::AnotherHost);
    }
}
