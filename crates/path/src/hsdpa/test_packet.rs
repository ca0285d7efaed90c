//! The packet that tests send.

use crate::{Datagram, QueueReport};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TestPacket {
    pub(crate) user: u16,
    pub(crate) bytes: u32,
    pub(crate) number: u64,
    pub(crate) marked: bool,
    pub(crate) report: Option<QueueReport>,
}

impl TestPacket {
    pub(crate) fn new(user: u16, bytes: u32, number: u64) -> Self {
        Self { user, bytes, number, marked: false, report: None }
    }
}

impl Datagram for TestPacket {
    fn length_bytes(&self) -> u32 {
        self.bytes
    }

    fn header_bytes(&self) -> u32 {
        40
    }

    fn user(&self) -> u16 {
        self.user
    }

    fn understands_marks(&self) -> bool {
        true
    }

    fn mark_congestion(&mut self) {
        self.marked = true;
    }

    fn from_report(user: u16, report: QueueReport) -> Option<Self> {
        Some(Self { report: Some(report), ..Self::new(user, 48, 0) })
    }

    fn duplicate(&self) -> Self {
        self.clone()
    }
}
