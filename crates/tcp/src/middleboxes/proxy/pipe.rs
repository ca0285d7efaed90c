//! One direction of a relay: the bytes that go from one leg to the other, and the buffer between them.

use std::collections::VecDeque;

use pepscope_path::{Nanoseconds, NEVER};

use super::gate::Gate;
use super::machine::MachineSettings;
use super::reuse::{Messages, ReuseSettings};
use super::store::{Catalogue, Released, Store, StoredObject};
use crate::connection::Connection;
use crate::packets::run::Run;

/// One direction of a relayed flow. A full buffer is not read into, so that its leg's receive window closes: this is
/// the relay's back-pressure on the sender.
#[derive(Debug)]
pub(crate) struct Pipe {
    /// The bytes that may leave, in order.
    ready: VecDeque<Run>,
    ready_bytes: u64,
    limit_bytes: u64,
    /// The most that is read at a time.
    read_bytes: u64,
    /// What a pipe that was full holds at most before it is read into again.
    resume_bytes: u64,
    is_full: bool,
    /// Messages that came in, and those that may leave, where the connection may serve another client later.
    messages: Option<[Messages; 2]>,
    store: Option<Store>,
    released: VecDeque<Released>,
    taken_bytes: u64,
    given_bytes: u64,
    most_held_bytes: u64,
}

impl Pipe {
    /// A pipe that passes bytes on as they come and holds at most `limit_bytes`.
    pub fn relaying(limit_bytes: u64) -> Self {
        Self {
            ready: VecDeque::new(),
            ready_bytes: 0,
            limit_bytes,
            read_bytes: u64::MAX,
            resume_bytes: limit_bytes,
            is_full: false,
            messages: None,
            store: None,
            released: VecDeque::new(),
            taken_bytes: 0,
            given_bytes: 0,
            most_held_bytes: 0,
        }
    }

    /// A pipe that holds objects until they are whole.
    pub fn storing(storage_bytes: u64) -> Self {
        Self { store: Some(Store::default()), ..Self::relaying(storage_bytes) }
    }

    /// The same pipe, read as the program of `machine` reads.
    pub fn read_by(mut self, machine: &MachineSettings) -> Self {
        self.read_bytes = machine.read_bytes;
        self.resume_bytes = (machine.resume_share * self.limit_bytes as f64) as u64;
        self
    }

    /// The same pipe, which counts messages.
    pub fn counting(mut self, reuse: &ReuseSettings) -> Self {
        self.messages = Some([Messages::new(reuse), Messages::new(reuse)]);
        self
    }

    /// How many messages came in, if there was nothing else.
    pub fn whole_taken(&self) -> Option<u64> {
        self.messages.as_ref()?[0].whole()
    }

    /// How many messages were let go, if there was nothing else.
    pub fn whole_passed(&self) -> Option<u64> {
        self.messages.as_ref()?[1].whole()
    }

    pub fn held_bytes(&self) -> u64 {
        self.ready_bytes + self.store.as_ref().map_or(0, Store::held_bytes)
    }

    pub fn is_empty(&self) -> bool {
        self.held_bytes() == 0
    }

    pub fn taken_bytes(&self) -> u64 {
        self.taken_bytes
    }

    pub fn given_bytes(&self) -> u64 {
        self.given_bytes
    }

    pub fn most_held_bytes(&self) -> u64 {
        self.most_held_bytes
    }

    /// When something that is held is let go although it may not be whole.
    pub fn deadline(&self, catalogue: Option<&Catalogue>) -> Nanoseconds {
        match (&self.store, catalogue) {
            (Some(store), Some(catalogue)) => store.deadline(catalogue.pause_ns),
            _ => NEVER,
        }
    }

    /// Whether [`Pipe::take`] would read from a leg with something to read.
    pub fn may_take(&self, outstanding_bytes: u64) -> bool {
        let held_bytes = self.held_bytes() + outstanding_bytes;
        if self.is_full {
            held_bytes <= self.resume_bytes
        } else {
            held_bytes < self.limit_bytes
        }
    }

    /// Whether the program reads by pieces, and may have more to read once it has done the rest.
    pub fn reads_by_pieces(&self) -> bool {
        self.read_bytes < u64::MAX
    }

    /// Reads from a leg, at most as much as the program reads at a time, what there is room for beside the `outstanding_bytes` that the other leg has yet to deliver.
    pub fn take(
        &mut self,
        now: Nanoseconds,
        from: &mut Connection,
        outstanding_bytes: u64,
        catalogue: Option<&Catalogue>,
    ) {
        if self.is_full && !self.may_take(outstanding_bytes) {
            return;
        }
        self.is_full = false;
        let mut left = self.read_bytes;
        loop {
            let held_bytes = self.held_bytes() + outstanding_bytes;
            let room = self.limit_bytes.saturating_sub(held_bytes);
            self.is_full = room == 0 && self.resume_bytes < self.limit_bytes;
            let Some(run) = from.read(room.min(left)) else {
                break;
            };
            left -= run.bytes;
            self.taken_bytes += run.bytes;
            if let Some([taken, _]) = &mut self.messages {
                taken.note(run);
            }
            match (&mut self.store, catalogue) {
                (Some(store), Some(catalogue)) => store.push(now, run, catalogue, &mut self.released),
                _ => self.add(run),
            }
            self.most_held_bytes = self.most_held_bytes.max(held_bytes + run.bytes);
            if !self.released.is_empty() {
                break;
            }
        }
    }

    /// Releases held data after a pause of sufficient length, or at the end of the stream (`ended`).
    pub fn release_incomplete(&mut self, now: Nanoseconds, ended: bool, catalogue: Option<&Catalogue>) {
        let is_due = ended || self.deadline(catalogue) <= now;
        if let Some(store) = self.store.as_mut().filter(|_| is_due) {
            store.release(&mut self.released);
        }
    }

    /// What the store released and the relay has yet to handle.
    pub fn next_released(&mut self) -> Option<Released> {
        self.released.pop_front()
    }

    /// Bytes that may leave.
    pub fn add(&mut self, run: Run) {
        if let Some([_, passed]) = &mut self.messages {
            passed.note(run);
        }
        self.ready_bytes += run.bytes;
        match self.ready.back_mut() {
            Some(last) if last.content == run.content && last.content_offset + last.bytes == run.content_offset => {
                last.bytes += run.bytes;
            }
            _ => self.ready.push_back(run),
        }
    }

    /// The answer to a request that is not passed on.
    pub fn add_object(&mut self, object: &StoredObject) {
        let (content, bytes) = object.forwarded_as.unwrap_or((object.content, object.bytes));
        self.add(Run { content, content_offset: 0, bytes });
    }

    /// Writes to a leg as much as it accepts and as the gate, if there is one, permits.
    ///
    /// What was lost goes first, out of the same quota: whatever a step sends joins the queue (seed 003, eq. 17).
    pub fn give(&mut self, now: Nanoseconds, to: &mut Connection, mut gate: Option<&mut Gate>) {
        if let Some(gate) = &mut gate {
            to.ration_repeats();
            while to.wants_repeat() {
                if !gate.spend(now) {
                    return;
                }
                to.allow_repeat();
            }
        }
        while let Some(front) = self.ready.front_mut() {
            let mut most = front.bytes;
            if let Some(gate) = &mut gate {
                most = most.min(to.segment_payload_bytes());
                if to.writable_bytes() < most || !gate.spend(now) {
                    return;
                }
            }
            let given = to.write(front.content, front.content_offset, most);
            front.content_offset += given;
            front.bytes -= given;
            self.ready_bytes -= given;
            self.given_bytes += given;
            if front.bytes == 0 {
                self.ready.pop_front();
            } else if given < most {
                return;
            }
        }
    }

    /// Drops the held data.
    pub fn clear(&mut self) {
        self.ready.clear();
        self.ready_bytes = 0;
        self.released.clear();
        if let Some(store) = &mut self.store {
            *store = Store::default();
        }
    }
}
