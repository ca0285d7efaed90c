//! How much a buffer holds, and when it warns.

use crate::settings::SettingsError;

/// What the limit of a buffer counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueLimit {
    #[default]
    Unlimited,
    Packets(u32),
    /// IP bytes.
    Bytes(u64),
    /// Radio frames, where the link sends such ([`crate::RadioFrames`]); the sent frames of a packet in service have
    /// left the buffer.
    Frames(u32),
}

/// Whether the packet in service takes a place of the buffer.
///
/// Simulators differ by one packet here. ns-2's `limit 15` takes a fifteenth packet only if one of them is in service
/// (14 wait): [`Places::WaitingAndInService`] with 15. ns-3's `15p` holds 15 beside the one that the device is sending:
/// [`Places::Waiting`] with 15.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Places {
    /// The limit is on the packets that wait; the one in service comes on top.
    #[default]
    Waiting,
    /// The limit is on everything in the system, the packet in service included (whole, until its last bit is out).
    WaitingAndInService,
}

/// Marking of every packet that arrives while the average queue is long: TCP-Jersey's congestion warning (Xu, Tian and
/// Ansari, "TCP-Jersey for wireless IP communications", JSAC 2004; seed 002, section II).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MarkingSettings {
    /// Average number of waiting packets above which packets are marked.
    pub threshold_packets: f64,
    /// Share of a new sample in the average, above 0 and at most 1.
    pub weight: f64,
}

/// A drop-tail buffer; nothing is dropped once it is in.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueueSettings {
    pub limit: QueueLimit,
    pub places: Places,
    pub marking: Option<MarkingSettings>,
}

impl QueueSettings {
    /// Checks the ranges.
    ///
    /// # Errors
    /// Refuses a limit that leaves no room even for an idle link's packet, and marking outside its ranges.
    pub fn check(&self) -> Result<(), SettingsError> {
        if self.places == Places::WaitingAndInService {
            match self.limit {
                QueueLimit::Packets(0) => {
                    return Err(SettingsError::new("queue limit in packets", 0, "at least 1 with the one in service"))
                }
                QueueLimit::Bytes(0) => {
                    return Err(SettingsError::new("queue limit in bytes", 0, "at least 1 with the packet in service"))
                }
                QueueLimit::Frames(0) => {
                    return Err(SettingsError::new("queue limit in frames", 0, "at least 1 with the packet in service"))
                }
                _ => {}
            }
        }
        if let Some(marking) = self.marking {
            if !(marking.threshold_packets >= 0.0 && marking.threshold_packets.is_finite()) {
                let value = marking.threshold_packets;
                return Err(SettingsError::new("marking threshold_packets", value, "a number of packets from 0"));
            }
            if !(marking.weight > 0.0 && marking.weight <= 1.0) {
                return Err(SettingsError::new("marking weight", marking.weight, "above 0 and at most 1"));
            }
        }
        Ok(())
    }

    /// Whether a packet of size `arriving` may enter where `system` are already, `in_service` of them being the packet
    /// that is sent now (`None` if the link is idle, which then takes the packet straight into service).
    #[inline(always)]
    #[must_use]
    pub fn admits(&self, system: Occupancy, in_service: Option<Size>, arriving: Size) -> bool {
        match (self.places, in_service) {
            (Places::Waiting, None) => true,
            (Places::Waiting, Some(served)) => self.limit.admits(system.without(served), arriving),
            (Places::WaitingAndInService, _) => self.limit.admits(system, arriving),
        }
    }
}

impl QueueLimit {
    #[inline]
    fn admits(self, occupied: Occupancy, arriving: Size) -> bool {
        match self {
            Self::Unlimited => true,
            Self::Packets(limit) => occupied.packets < limit,
            Self::Bytes(limit) => occupied.bytes.saturating_add(u64::from(arriving.bytes)) <= limit,
            Self::Frames(limit) => occupied.frames.saturating_add(arriving.frames) <= limit,
        }
    }
}

/// What one packet takes of a buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// IP bytes.
    pub bytes: u32,
    /// Radio frames; 0 where a link sends none.
    pub frames: u32,
}

/// How full a buffer is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    pub packets: u32,
    /// IP bytes; a packet counts whole until its last bit is out.
    pub bytes: u64,
    pub frames: u32,
}

impl Occupancy {
    #[inline(always)]
    pub(crate) fn add(&mut self, size: Size) {
        self.packets += 1;
        self.bytes += u64::from(size.bytes);
        self.frames += size.frames;
    }

    #[inline(always)]
    pub(crate) fn remove(&mut self, size: Size) {
        self.packets -= 1;
        self.bytes -= u64::from(size.bytes);
        self.frames -= size.frames;
    }

    #[inline]
    #[must_use]
    pub(crate) fn without(mut self, size: Size) -> Self {
        self.remove(size);
        self
    }
}

/// The moving average of a queue's length that decides on ECN marks.
///
/// Sampled at every arrival; an idle spell counts as as many samples of zero as packets could have been sent in it
/// (Floyd and Jacobson, "Random early detection gateways", 1993, section 4).
#[derive(Clone, Debug)]
pub struct AverageQueue {
    settings: MarkingSettings,
    average_packets: f64,
}

impl AverageQueue {
    #[must_use]
    pub fn new(settings: MarkingSettings) -> Self {
        Self { settings, average_packets: 0.0 }
    }

    /// Takes the number of packets `waiting` at an arrival that found the link idle for `idle_packets` packet times;
    /// whether the arriving packet is to be marked.
    pub fn sample(&mut self, waiting: u32, idle_packets: f64) -> bool {
        let weight = self.settings.weight;
        if idle_packets > 0.0 {
            self.average_packets *= libm::pow(1.0 - weight, idle_packets);
        }
        self.average_packets += weight * (f64::from(waiting) - self.average_packets);
        self.average_packets > self.settings.threshold_packets
    }

    #[must_use]
    pub fn average_packets(&self) -> f64 {
        self.average_packets
    }
}

#[cfg(test)]
mod tests {
    use super::{AverageQueue, MarkingSettings, Occupancy, Places, QueueLimit, QueueSettings, Size};

    fn settings(limit: QueueLimit, places: Places) -> QueueSettings {
        QueueSettings { limit, places, marking: None }
    }

    /// How many of 100 packets of 500 bytes an empty link takes at one instant.
    fn admitted_at_once(settings: &QueueSettings) -> u32 {
        let packet = Size { bytes: 500, frames: 13 };
        let mut system = Occupancy::default();
        for _ in 0..100 {
            let in_service = (system.packets > 0).then_some(packet);
            if settings.admits(system, in_service, packet) {
                system.add(packet);
            }
        }
        system.packets
    }

    #[test]
    fn fifteen_is_fifteen_in_one_simulator_and_sixteen_in_the_other() {
        assert_eq!(admitted_at_once(&settings(QueueLimit::Packets(15), Places::WaitingAndInService)), 15);
        assert_eq!(admitted_at_once(&settings(QueueLimit::Packets(15), Places::Waiting)), 16);
        assert_eq!(admitted_at_once(&settings(QueueLimit::Bytes(7_999), Places::WaitingAndInService)), 15);
        assert_eq!(admitted_at_once(&settings(QueueLimit::Bytes(7_999), Places::Waiting)), 16);
        assert_eq!(admitted_at_once(&settings(QueueLimit::Frames(200), Places::WaitingAndInService)), 15); // seed 003
        assert_eq!(admitted_at_once(&settings(QueueLimit::Unlimited, Places::Waiting)), 100);
    }

    #[test]
    fn no_waiting_place_still_serves_an_idle_link() {
        assert_eq!(admitted_at_once(&settings(QueueLimit::Packets(0), Places::Waiting)), 1);
        assert!(settings(QueueLimit::Packets(0), Places::WaitingAndInService).check().is_err());
        assert!(settings(QueueLimit::Bytes(0), Places::WaitingAndInService).check().is_err());
    }

    #[test]
    fn marking_outside_its_ranges_is_refused_by_name() {
        for (threshold_packets, weight) in [(-1.0, 0.2), (f64::NAN, 0.2), (5.0, 0.0), (5.0, 1.5), (5.0, f64::NAN)] {
            let marking = Some(MarkingSettings { threshold_packets, weight });
            assert!(QueueSettings { marking, ..QueueSettings::default() }.check().is_err());
        }
        let marking = Some(MarkingSettings { threshold_packets: 5.0, weight: 0.0 });
        let refused = QueueSettings { marking, ..QueueSettings::default() }.check().unwrap_err();
        assert_eq!(refused.to_string(), "marking weight must be above 0 and at most 1, got 0");
    }

    #[test]
    fn the_average_follows_the_queue_and_decays_in_idle_periods() {
        let mut average = AverageQueue::new(MarkingSettings { threshold_packets: 5.0, weight: 0.5 });
        assert!(!average.sample(8, 0.0)); // 4
        assert!(average.sample(8, 0.0)); // 6
        assert!(average.sample(8, 0.0)); // 7
        assert!(!average.sample(0, 2.0)); // 7 / 4, then halved
        assert!((average.average_packets() - 0.875).abs() < 1e-12);
    }
}
