//! Time-division duplex: which intervals carry data down and which up (3GPP TS 38.213, 11.1).

use crate::hop::Direction;
use crate::settings::SettingsError;

/// What one interval (slot) is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    Down,
    /// It begins with data down; the rest is the switch to up and control.
    Special,
    Up,
}

/// Slots that repeat from time 0 on.
#[derive(Clone, Debug, PartialEq)]
pub struct SlotPattern {
    slots: Vec<Slot>,
    special_down_share: f64,
}

impl SlotPattern {
    /// Of letters D, S and U, as `DDDSU`; `special_down_share` of a special slot carries data down.
    ///
    /// # Errors
    /// Refuses other letters, patterns without one of both directions or of more than 100 slots, and no share.
    pub fn new(letters: &str, special_down_share: f64) -> Result<Self, SettingsError> {
        let refuse =
            || SettingsError::new("slots", letters, "1 to 100 letters D, S and U, with at least one D and one U");
        let slots: Option<Vec<Slot>> = letters
            .chars()
            .map(|letter| match letter {
                'D' => Some(Slot::Down),
                'S' => Some(Slot::Special),
                'U' => Some(Slot::Up),
                _ => None,
            })
            .collect();
        let slots = slots.filter(|slots| (1..=100).contains(&slots.len())).ok_or_else(refuse)?;
        if !slots.contains(&Slot::Down) || !slots.contains(&Slot::Up) {
            return Err(refuse());
        }
        if !(0.0..=1.0).contains(&special_down_share) {
            return Err(SettingsError::new("special_down_share", special_down_share, "from 0 to 1"));
        }
        Ok(Self { slots, special_down_share })
    }

    /// Slots until it repeats.
    #[must_use]
    pub fn length(&self) -> usize {
        self.slots.len()
    }

    /// The share of slot number `tti` that carries data in `direction`.
    #[must_use]
    pub fn share(&self, tti: u64, direction: Direction) -> f64 {
        let place = (tti % self.slots.len() as u64) as usize;
        match (self.slots.get(place), direction) {
            (Some(Slot::Down), Direction::Down) | (Some(Slot::Up), Direction::Up) => 1.0,
            (Some(Slot::Special), Direction::Down) => self.special_down_share,
            _ => 0.0,
        }
    }

    /// The mean of [`SlotPattern::share`].
    #[must_use]
    pub fn mean_share(&self, direction: Direction) -> f64 {
        let shares = (0..self.slots.len()).map(|slot| self.share(slot as u64, direction));
        shares.sum::<f64>() / self.slots.len() as f64
    }
}
