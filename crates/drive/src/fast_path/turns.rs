//! Both hosts in turns: each as far as nothing of the other can reach it.
//!
//! What a host does matters to the other one only after the delay of the link between them. So the host whose next event
//! is the earlier one goes on alone, with all that arrives there and is due there, until the first packet could arrive
//! that the other one has not sent yet (Chandy and Misra, "Distributed simulation", 1979: lookahead). Both do what they
//! would do in the order of time, and neither is asked for anything when the other one has something to do.

use pepscope_path::{Nanoseconds, Passage, NEVER};
use pepscope_tcp::{Host, Packet};

use super::ends::End;
use super::{Bounds, Hosts, Lines, Progress};
use crate::chain::Observers;

/// Whether hosts may take turns: there is one link, which takes both directions some time, and the run goes on for as
/// long at least once all flows have finished.
pub(super) fn may_take_turns(ends: &[End; 2], links: usize, bounds: &Bounds) -> bool {
    let lookahead_ns = ends[0].least_delay_ns.min(ends[1].least_delay_ns);
    let is_long_enough = bounds.stop_after_finish_ns.is_none_or(|after_ns| after_ns >= lookahead_ns);
    links == 1 && lookahead_ns > 0 && is_long_enough
}

impl Hosts<'_> {
    /// [`Hosts::run`] in turns.
    pub(super) fn take_turns<L: Passage<Packet>, const LINKS: usize>(
        &mut self,
        [at_server, at_mobile]: &[End; 2],
        down: &mut Lines<L, LINKS>,
        up: &mut Lines<L, LINKS>,
    ) -> Progress {
        let Self { server, mobile, observers, bounds, .. } = self;
        let (up_ns, down_ns) = (at_server.least_delay_ns, at_mobile.least_delay_ns);
        let mut progress = Progress { now: bounds.after, events: 0, waiting: 0, finished_ns: 0 };
        let [mut server_now, mut mobile_now] = [bounds.after; 2];
        let mut before = bounds.before;
        let first_ns = loop {
            let server_ns = up[LINKS - 1].first_arrival().min(server.earliest_timeout());
            let mobile_ns = down[LINKS - 1].first_arrival().min(mobile.earliest_timeout());
            let first_ns = server_ns.min(mobile_ns);
            // Only a client that has not finished opens a connection anew at a server that has.
            let has_finished = bounds.stop_after_finish_ns.is_some() && server.is_finished() && mobile.is_finished();
            if first_ns >= before || progress.events >= bounds.events || has_finished {
                break first_ns;
            }
            // The other host may finish at its next event, however far this one goes.
            let unobserved_until = bounds.unobserved_until(first_ns);
            let bounds = Bounds { before: unobserved_until, stop_after_finish_ns: None, ..*bounds };
            let last = before.min(unobserved_until);
            let stopped = if server_ns <= mobile_ns {
                let until = mobile_ns.min(server_ns.saturating_add(down_ns)).saturating_add(up_ns).min(last);
                let lines = (&mut up[LINKS - 1], &mut *down);
                progress.take_turn(until, &mut server_now, at_server, lines, server, observers, &bounds)
            } else {
                let until = server_ns.min(mobile_ns.saturating_add(up_ns)).saturating_add(down_ns).min(last);
                let lines = (&mut down[LINKS - 1], &mut *up);
                progress.take_turn(until, &mut mobile_now, at_mobile, lines, mobile, observers, &bounds)
            };
            before = before.min(stopped.unwrap_or(NEVER));
        };
        // What is next has not happened, even where the other host is ahead of it.
        progress.now = server_now.max(mobile_now).min(first_ns.saturating_sub(1)).max(bounds.after);
        progress
    }
}

impl Progress {
    /// Lets `host` go on alone until `until`, when the first packet may arrive that is not under way on the line `there`.
    /// Returns the time from which the general loop has to go on, if it has to before.
    #[inline(never)]
    #[allow(clippy::too_many_arguments)]
    fn take_turn<L: Passage<Packet>, const LINKS: usize>(
        &mut self,
        until: Nanoseconds,
        last_ns: &mut Nanoseconds,
        end: &End,
        (there, back): (&mut L, &mut Lines<L, LINKS>),
        host: &mut Host,
        observers: &mut Observers,
        bounds: &Bounds,
    ) -> Option<Nanoseconds> {
        let (takes_time, was_finished) = (host.takes_time(), host.is_finished());
        loop {
            let (arrives_ns, due_ns) = (there.first_arrival(), host.earliest_timeout());
            let now = arrives_ns.min(due_ns);
            if now >= until || self.events >= bounds.events {
                return None;
            }
            if arrives_ns < due_ns && now > *last_ns {
                if takes_time {
                    self.arrive_at_machine(now, end, (there, back), until, host, observers, bounds);
                } else {
                    self.arrive(now, end, (there, back), host, observers, bounds);
                }
            } else if takes_time && due_ns < arrives_ns && now > *last_ns {
                self.wake(now, end, (there, back), until, host, observers, bounds);
            } else {
                // The timeouts of a host on its fast path may be too early: look again with the right ones.
                host.refresh_timeouts();
                if host.earliest_timeout() == due_ns {
                    return Some(now);
                }
                continue;
            }
            *last_ns = now;
            if !was_finished && host.is_finished() {
                self.finished_ns = self.finished_ns.max(now);
                return None;
            }
        }
    }
}
