//! The sender in one direction of a connection, by its stack and its place: hop limit, window and timestamp of its SYN,
//! hop limit and timestamps of what it sent later, and how fast its acknowledgements of trains come.
//!
//! A SYN that a firewall answers for a host (SYN proxy) differs from the host's later segments; hosts that are one box
//! share a stack. Resets are left out: anything in the network sends them in a host's name.

use crate::columns::by_connection_columns;
use crate::packets::{flag, mark, Packets};

/// Calls a macro with the columns of senders: name and type.
#[macro_export]
macro_rules! for_each_sender_column {
    ($act:ident) => {
        $act! {
            connection: u32,
            sent: u8,
            syn_ns: i64,
            syn_hop_limit: i16,
            syn_window: i64,
            syn_tsval: i64,
            later_packets: u32,
            hop_limit: i16,
            ticked_packets: u32,
            first_tick_ns: i64,
            first_tsval: i64,
            last_tick_ns: i64,
            last_tsval: i64,
            train_bytes: i64,
            train_spread_ns: i64,
        }
    };
}

macro_rules! sender_columns {
    ($($name:ident: $element:ty,)*) => {
        /// One sender; -1 stands for what was not seen. `pepscope.captures.senders` says what the fields hold.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Sender {
            $(pub $name: $element,)*
        }

        by_connection_columns! {
            /// Senders as columns of one length, two rows a connection: up, and down.
            #[derive(Clone, Debug, Default, PartialEq, Eq)]
            pub struct SenderColumns { $($name: $element,)* }
        }

        impl SenderColumns {
            pub fn push(&mut self, sender: &Sender) {
                $(self.$name.push(sender.$name);)*
            }
        }
    };
}
for_each_sender_column!(sender_columns);

impl Packets<'_> {
    /// Who sends in a direction of the connection with this number.
    pub fn sender(&self, connection: u32, direction: u8) -> Sender {
        let trains = self.trains(1 - direction.min(1));
        let mut found = Sender {
            connection,
            sent: direction,
            syn_ns: -1,
            syn_hop_limit: -1,
            syn_window: -1,
            syn_tsval: -1,
            later_packets: 0,
            hop_limit: -1,
            ticked_packets: 0,
            first_tick_ns: -1,
            first_tsval: -1,
            last_tick_ns: -1,
            last_tsval: -1,
            train_bytes: trains.bytes,
            train_spread_ns: trains.spread_ns,
        };
        let (mut least, mut most) = (u8::MAX, u8::MIN);
        for place in 0..self.len() {
            let flags = self.flags[place];
            if self.direction[place] != direction || flags & flag::RST != 0 {
                continue;
            }
            let stamp = (self.marks[place] & mark::HAS_TIMESTAMPS != 0).then(|| i64::from(self.tsval[place]));
            if flags & flag::SYN != 0 {
                if found.syn_ns < 0 {
                    found.syn_ns = self.time_ns[place];
                    found.syn_hop_limit = i16::from(self.ttl[place]);
                    found.syn_window = i64::from(self.window_bytes[place]);
                    found.syn_tsval = stamp.unwrap_or(-1);
                }
                continue;
            }
            found.later_packets += 1;
            let limit = self.ttl[place];
            (least, most) = (least.min(limit), most.max(limit));
            if let Some(tsval) = stamp {
                if found.ticked_packets == 0 {
                    (found.first_tick_ns, found.first_tsval) = (self.time_ns[place], tsval);
                }
                found.ticked_packets += 1;
                (found.last_tick_ns, found.last_tsval) = (self.time_ns[place], tsval);
            }
        }
        if found.later_packets > 0 {
            let frequent = if least == most { least } else { self.most_frequent_hop_limit(direction) };
            found.hop_limit = i16::from(frequent);
        }
        found
    }

    /// Of packets without SYN and RST; the lowest of equally frequent ones.
    fn most_frequent_hop_limit(&self, direction: u8) -> u8 {
        let mut counts = [0_u32; 256];
        for place in 0..self.len() {
            if self.direction[place] == direction && self.flags[place] & (flag::SYN | flag::RST) == 0 {
                counts[usize::from(self.ttl[place])] += 1;
            }
        }
        (0..=u8::MAX).rev().max_by_key(|&limit| counts[usize::from(limit)]).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_syn_is_apart_from_what_follows() {
        let packets = Packets {
            time_ns: &[10, 20, 30, 40, 50, 60],
            direction: &[1, 0, 1, 1, 1, 1],
            sequence_offset: &[0; 6],
            acknowledgement_offset: &[1; 6],
            payload_bytes: &[0; 6],
            flags: &[flag::SYN | flag::ACK, flag::ACK, flag::ACK, flag::ACK, flag::ACK, flag::RST],
            ttl: &[64, 64, 57, 57, 58, 255],
            window_bytes: &[0, 9, 500, 600, 700, 0],
            tsval: &[5, 6, 1000, 0, 1020, 0],
            marks: &[mark::HAS_TIMESTAMPS, 0, mark::HAS_TIMESTAMPS, 0, mark::HAS_TIMESTAMPS, 0],
            ..Packets::default()
        };
        let found = packets.sender(3, 1);
        assert_eq!((found.connection, found.sent, found.syn_ns), (3, 1, 10));
        assert_eq!((found.syn_hop_limit, found.syn_window, found.syn_tsval), (64, 0, 5));
        assert_eq!((found.later_packets, found.hop_limit), (3, 57));
        assert_eq!((found.ticked_packets, found.first_tsval, found.last_tsval), (2, 1000, 1020));
        assert_eq!((found.first_tick_ns, found.last_tick_ns), (30, 50));
    }

    #[test]
    fn nothing_seen_is_minus_one() {
        let found = Packets::default().sender(0, 0);
        assert_eq!((found.syn_ns, found.hop_limit, found.last_tsval), (-1, -1, -1));
    }
}
