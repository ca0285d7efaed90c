//! A browser that loads pages: a document, and objects that are discovered once others have come, from several servers
//! over several connections.
//!
//! All connections of one browser share its state: what arrives on one may need another, which is then woken or opened.

use core::cell::RefCell;
use std::rc::Rc;

use pepscope_path::{Nanoseconds, Random, NEVER, SECOND};

use crate::http::{HttpVersion, Request, Requester};

/// One object of a page; the first is the document.
#[derive(Clone, Debug, PartialEq)]
pub struct PageObject {
    pub name: String,
    /// Which of the browser's servers has it.
    pub server: usize,
    pub bytes: u64,
    /// Asked for once this earlier object has come, and this long after; `None` for the document.
    pub after: Option<usize>,
    pub discovered_after_ns: Nanoseconds,
}

/// What is loaded, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct BrowserSettings {
    pub version: HttpVersion,
    pub objects: Vec<PageObject>,
    pub pages: u32,
    /// Mean of the exponential time from the end of a page to the next one.
    pub think_time_mean_s: f64,
    pub request_bytes: u64,
    /// Names of the servers.
    pub hosts: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Connecting {
    NotYet,
    UnderWay,
    Done,
    Over,
}

#[derive(Debug)]
struct Line {
    flow: u32,
    server: usize,
    state: Connecting,
    asked: usize,
    /// Objects that it is to ask for.
    assigned: Vec<usize>,
}

#[derive(Debug)]
struct Browser {
    settings: BrowserSettings,
    random: Random,
    lines: Vec<Line>,
    page: u32,
    left: usize,
    /// Objects to be asked for: when, and which.
    wanted: Vec<(Nanoseconds, usize)>,
    /// What was wanted by then waits for connections, not for a time.
    dispatched_ns: Nanoseconds,
    to_wake: Vec<u32>,
    is_over: bool,
}

/// A browser's use of one of its connections.
#[derive(Clone, Debug)]
pub struct BrowserConnection {
    browser: Rc<RefCell<Browser>>,
    line: usize,
}

/// The connections that a browser may use, as flow and server; the first is opened at the beginning, to the document's
/// server.
#[must_use]
pub fn browser(settings: BrowserSettings, random: Random, flows: &[(u32, usize)]) -> Vec<BrowserConnection> {
    let lines = flows.iter().map(|&(flow, server)| Line {
        flow,
        server,
        state: Connecting::NotYet,
        asked: 0,
        assigned: Vec::new(),
    });
    let mut browser = Browser {
        random,
        lines: lines.collect(),
        page: 0,
        left: 0,
        wanted: Vec::new(),
        dispatched_ns: 0,
        to_wake: Vec::new(),
        is_over: false,
        settings,
    };
    if let Some(first) = browser.lines.first_mut() {
        first.state = Connecting::UnderWay;
    }
    browser.begin_page(0);
    let browser = Rc::new(RefCell::new(browser));
    (0..flows.len()).map(|line| BrowserConnection { browser: browser.clone(), line }).collect()
}

impl Browser {
    fn begin_page(&mut self, at: Nanoseconds) {
        self.left = self.settings.objects.len();
        self.wanted = vec![(at, 0)];
    }

    fn may_take(&self, line: &Line) -> bool {
        let is_free = match self.settings.version {
            HttpVersion::Http11 => line.asked == 0 && line.assigned.is_empty(),
            HttpVersion::Http2 => true,
        };
        line.state == Connecting::Done && is_free
    }

    /// Gives what is wanted by now to connections that are free, and opens further ones.
    fn dispatch(&mut self, now: Nanoseconds) {
        self.dispatched_ns = now;
        let mut place = 0;
        while let Some(&(at, object)) = self.wanted.get(place) {
            let Some(server) = self.settings.objects.get(object).map(|object| object.server).filter(|_| at <= now)
            else {
                break;
            };
            let free = (0..self.lines.len())
                .find(|&line| self.lines[line].server == server && self.may_take(&self.lines[line]));
            if let Some(line) = free {
                self.wanted.remove(place);
                self.lines[line].assigned.push(object);
                self.to_wake.push(self.lines[line].flow);
                continue;
            }
            // As many connections are opened as there are objects that wait for one.
            let waiting = self.wanted[..=place].iter().filter(|(_, other)| self.server_of(*other) == server).count();
            let opening = |line: &&mut Line| line.server == server && line.state == Connecting::UnderWay;
            let count = self.lines.iter_mut().filter(opening).count();
            let closed = |line: &&mut Line| line.server == server && line.state == Connecting::NotYet;
            if count < waiting {
                if let Some(line) = self.lines.iter_mut().find(closed) {
                    line.state = Connecting::UnderWay;
                    self.to_wake.push(line.flow);
                }
            }
            place += 1;
        }
    }

    fn server_of(&self, object: usize) -> usize {
        self.settings.objects.get(object).map_or(0, |object| object.server)
    }

    fn take_in(&mut self, now: Nanoseconds, object: usize) {
        for (number, other) in self.settings.objects.iter().enumerate() {
            if other.after == Some(object) {
                let at = now.saturating_add(other.discovered_after_ns);
                let place = self.wanted.partition_point(|(earlier, _)| *earlier <= at);
                self.wanted.insert(place, (at, number));
            }
        }
        self.left = self.left.saturating_sub(1);
        if self.left > 0 {
            return;
        }
        self.page += 1;
        if self.page < self.settings.pages {
            let think_ns = (self.random.exponential(self.settings.think_time_mean_s) * SECOND as f64) as Nanoseconds;
            self.begin_page(now.saturating_add(think_ns));
        } else {
            self.is_over = true;
            let open = self.lines.iter().filter(|line| line.state == Connecting::Done);
            self.to_wake.extend(open.map(|line| line.flow));
        }
    }
}

impl Requester for BrowserConnection {
    fn handle_connected(&mut self, now: Nanoseconds) {
        let mut browser = self.browser.borrow_mut();
        browser.lines[self.line].state = Connecting::Done;
        browser.dispatch(now);
    }

    fn handle_answer(&mut self, now: Nanoseconds, number: u64) {
        let mut browser = self.browser.borrow_mut();
        browser.lines[self.line].asked -= 1;
        let object = (number % browser.settings.objects.len() as u64) as usize;
        browser.take_in(now, object);
        browser.dispatch(now);
    }

    fn handle_end(&mut self, now: Nanoseconds) {
        let mut browser = self.browser.borrow_mut();
        browser.lines[self.line].state = Connecting::Over;
        browser.dispatch(now);
    }

    fn handle_timeout(&mut self, now: Nanoseconds) {
        self.browser.borrow_mut().dispatch(now);
    }

    fn poll_timeout(&self) -> Nanoseconds {
        let browser = self.browser.borrow();
        if browser.lines[self.line].state != Connecting::Done {
            return NEVER;
        }
        let later = browser.wanted.iter().find(|(at, _)| *at > browser.dispatched_ns);
        later.map_or(NEVER, |(at, _)| *at)
    }

    fn poll_request(&mut self, _now: Nanoseconds) -> Option<Request> {
        let mut browser = self.browser.borrow_mut();
        let line = &mut browser.lines[self.line];
        if line.assigned.is_empty() {
            return None;
        }
        let object = line.assigned.remove(0);
        line.asked += 1;
        let (settings, page) = (&browser.settings, browser.page);
        let wanted = settings.objects.get(object)?;
        Some(Request {
            host: settings.hosts.get(wanted.server).cloned().unwrap_or_default(),
            path: format!("/page-{page}/{}", wanted.name),
            number: u64::from(page) * settings.objects.len() as u64 + object as u64,
            request_bytes: settings.request_bytes,
            answer_bytes: wanted.bytes,
        })
    }

    fn poll_wake(&mut self) -> Option<u32> {
        let mut browser = self.browser.borrow_mut();
        let own = browser.lines[self.line].flow;
        let to_wake = &mut browser.to_wake;
        // This connection is acting already.
        to_wake.retain(|flow| *flow != own);
        (!to_wake.is_empty()).then(|| to_wake.remove(0))
    }

    fn is_over(&self) -> bool {
        self.browser.borrow().is_over
    }
}
