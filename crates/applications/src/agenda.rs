//! What a protocol is going to do, and when.

use std::collections::VecDeque;

use pepscope_path::{Nanoseconds, NEVER};
use pepscope_tcp::{Action, Write};

/// Actions by the time at which they are due; of equal times the one that was added first comes first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Agenda {
    actions: VecDeque<(Nanoseconds, Action)>,
}

impl Agenda {
    pub(crate) fn add(&mut self, at: Nanoseconds, action: Action) {
        let place = self.actions.partition_point(|(other, _)| *other <= at);
        self.actions.insert(place, (at, action));
    }

    pub(crate) fn write(&mut self, at: Nanoseconds, write: Write) {
        self.add(at, Action::Write(write));
    }

    pub(crate) fn next_time(&self) -> Nanoseconds {
        self.actions.front().map_or(NEVER, |(at, _)| *at)
    }

    pub(crate) fn pop(&mut self, now: Nanoseconds) -> Option<Action> {
        self.actions.front().filter(|(at, _)| *at <= now)?;
        self.actions.pop_front().map(|(_, action)| action)
    }
}

#[cfg(test)]
mod tests {
    use super::Agenda;
    use pepscope_path::NEVER;
    use pepscope_tcp::Action;

    #[test]
    fn actions_come_in_the_order_of_their_times() {
        let mut agenda = Agenda::default();
        for (at, flow) in [(5, 1), (3, 2), (5, 3), (4, 4)] {
            agenda.add(at, Action::Wake { flow });
        }
        let mut order = Vec::new();
        while agenda.next_time() != NEVER {
            let now = agenda.next_time();
            assert_eq!(agenda.pop(now - 1), None);
            order.push(agenda.pop(now));
        }
        assert_eq!(order, [2, 4, 1, 3].map(|flow| Some(Action::Wake { flow })));
    }
}
