//! What lies on a path, called by enum dispatch instead of through a trait object.

/// Implements [`pepscope_path::Hop`] for an enum by the hop that each of its variants holds: generic parameters in
/// brackets, the enum, its packets, and its variants.
macro_rules! hop_by_enum_dispatch {
    ([$($generics:tt)*] $element:ty, $packet:ty: $($variant:ident),*) => {
        impl $($generics)* pepscope_path::Hop<$packet> for $element {
            #[inline]
            fn handle_packet(
                &mut self,
                now: pepscope_path::Nanoseconds,
                direction: pepscope_path::Direction,
                packet: $packet,
            ) {
                match self {
                    $(Self::$variant(hop) => hop.handle_packet(now, direction, packet),)*
                }
            }

            #[inline]
            fn handle_timeout(&mut self, now: pepscope_path::Nanoseconds) {
                match self {
                    $(Self::$variant(hop) => hop.handle_timeout(now),)*
                }
            }

            #[inline]
            fn poll_transmit(
                &mut self,
                now: pepscope_path::Nanoseconds,
            ) -> Option<(pepscope_path::Direction, $packet)> {
                match self {
                    $(Self::$variant(hop) => hop.poll_transmit(now),)*
                }
            }

            #[inline]
            fn poll_timeout(&self) -> pepscope_path::Nanoseconds {
                match self {
                    $(Self::$variant(hop) => hop.poll_timeout(),)*
                }
            }

            #[inline]
            fn lines(
                &mut self,
            ) -> Option<(&mut pepscope_path::Line<$packet>, &mut pepscope_path::Line<$packet>)> {
                match self {
                    $(Self::$variant(hop) => hop.lines(),)*
                }
            }

            #[inline]
            fn passages(
                &mut self,
            ) -> Option<(pepscope_path::AnyPassage<'_, $packet>, pepscope_path::AnyPassage<'_, $packet>)> {
                match self {
                    $(Self::$variant(hop) => hop.passages(),)*
                }
            }

            fn counts(&self, direction: pepscope_path::Direction) -> pepscope_path::HopCounts {
                match self {
                    $(Self::$variant(hop) => hop.counts(direction),)*
                }
            }

            fn capacity_bits(
                &self,
                now: pepscope_path::Nanoseconds,
                direction: pepscope_path::Direction,
            ) -> Option<u64> {
                match self {
                    $(Self::$variant(hop) => hop.capacity_bits(now, direction),)*
                }
            }

            fn observe(&self, now: pepscope_path::Nanoseconds, record: &mut dyn FnMut(&'static str, f64)) {
                match self {
                    $(Self::$variant(hop) => hop.observe(now, record),)*
                }
            }
        }
    };
}

pub(crate) use hop_by_enum_dispatch;
