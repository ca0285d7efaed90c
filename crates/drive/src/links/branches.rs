//! Branches: a wired link of its own for each mobile, or for each server.

use pepscope_path::{Branches, BranchesBy, BranchesSettings, Datagram, SettingsError, WiredSettings};

use super::wired::read_line;
use super::Link;
use crate::fields::{Fields, Read};

pub use pepscope_path::BranchesSettings as Settings;

impl Link for BranchesSettings {
    const KIND: &'static str = "branches";
    type Model<P: Datagram> = Branches<P>;

    /// Reads links beside each other, one for each mobile, so that flows that share another hop have round trips, rates or
    /// losses of their own: `by` `mobile` (default) or `server`, and `terminals`, a list whose places are the `user`s of
    /// the traffic, or the `server_number`s, each with
    ///
    /// | field | unit, range | default | meaning |
    /// |---|---|---|---|
    /// | `count` | 1-1000 | 1 | how many mobiles have such a link, in a row |
    /// | `down`, `up` | table | `up` as `down` | see [`super::wired`] |
    ///
    /// # Errors
    /// If a field is outside its range.
    fn read(fields: &mut Fields) -> Read<Self> {
        // Absent it stays, so that scenarios without it are resolved as they were before it existed.
        let by =
            if fields.is_given("by") { fields.choice("by", &[("mobile", false), ("server", true)])? } else { false };
        fields.default_tables("terminals", &[[]] as &[[(&str, &str); 0]]);
        let groups = fields.sections("terminals", |terminal| {
            let count = terminal.integer("count", 1..=1000, 1)? as usize;
            terminal.default_to_sibling("up", "down");
            let down = terminal.section("down", read_line)?;
            Ok((count, WiredSettings { down, up: terminal.section("up", read_line)? }))
        })?;
        let by = if by { BranchesBy::Server(Vec::new()) } else { BranchesBy::Mobile };
        let links = groups.into_iter().flat_map(|(count, link)| std::iter::repeat_n(link, count)).collect();
        Ok(Self { links, by })
    }

    fn build<P: Datagram>(&self, seed: u64, name: &str) -> Result<Branches<P>, SettingsError> {
        Branches::new(self, seed, name)
    }

    fn terminals(&self) -> Option<usize> {
        (self.by == BranchesBy::Mobile).then_some(self.links.len())
    }

    fn assign_servers(&mut self, numbers: &[u16]) -> Result<(), usize> {
        let BranchesBy::Server(known) = &mut self.by else { return Ok(()) };
        known.clear();
        known.extend(numbers);
        let is_there = numbers.iter().all(|number| usize::from(*number) < self.links.len());
        if is_there {
            Ok(())
        } else {
            Err(self.links.len())
        }
    }
}
