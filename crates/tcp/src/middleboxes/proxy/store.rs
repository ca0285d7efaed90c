//! What a store-and-forward proxy keeps: objects until they are whole, and answers for the next who asks.

use std::collections::{BTreeMap, VecDeque};

use pepscope_path::{Nanoseconds, NEVER};

use crate::packets::run::Run;
use crate::packets::segment::ContentId;

/// An object that the proxy recognises, as a real one does by HTTP's Content-Length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredObject {
    pub content: ContentId,
    pub bytes: u64,
    /// What the receiver gets instead: other content of another length (recompression).
    pub forwarded_as: Option<(ContentId, u64)>,
    /// The request that it answers, if it may be cached.
    pub answer_to: Option<ContentId>,
}

/// When a store releases the held data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// Objects that are known to be whole once their last byte came.
    pub objects: Vec<StoredObject>,
    /// Other bytes are forwarded when nothing followed for so long, or when the sender closed.
    pub pause_ns: Nanoseconds,
    /// Most that is held a direction; a larger object passes through as it comes, unchanged.
    pub storage_bytes: u64,
    /// Most cached bytes; 0 disables the cache.
    pub cache_bytes: u64,
}

/// What a store hands on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Released {
    pub run: Run,
    /// The object that this completes, under its original name.
    pub completed: Option<StoredObject>,
}

/// One direction of one flow.
#[derive(Debug, Default)]
pub(crate) struct Store {
    held: VecDeque<Run>,
    held_bytes: u64,
    /// The content whose start did not fit the storage: the rest of it is not held either.
    passing: Option<ContentId>,
    /// The last bytes held belong to an object of known length whose rest is yet to come.
    is_object_begun: bool,
    last_arrival: Nanoseconds,
}

impl Store {
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// When what is held is let go although it may not be whole; never while the rest of a known object is to come.
    pub fn deadline(&self, pause_ns: Nanoseconds) -> Nanoseconds {
        if self.held.is_empty() || self.is_object_begun {
            NEVER
        } else {
            self.last_arrival.saturating_add(pause_ns)
        }
    }

    /// Takes a run and hands on what is whole.
    pub fn push(&mut self, now: Nanoseconds, run: Run, catalogue: &Catalogue, out: &mut VecDeque<Released>) {
        self.last_arrival = now;
        let object = catalogue.object(run.content);
        let ends_object = object.is_some_and(|object| run.content_offset + run.bytes >= object.bytes);
        if self.passing == Some(run.content) {
            if ends_object {
                self.passing = None;
            }
            out.push_back(Released { run, completed: None });
            return;
        }
        self.held_bytes += run.bytes;
        self.held.push_back(run);
        self.is_object_begun = object.is_some() && !ends_object;
        if let Some(object) = object.filter(|_| ends_object) {
            self.release_object(object, out);
        } else if self.held_bytes >= catalogue.storage_bytes {
            self.passing = Some(run.content);
            self.release(out);
        }
    }

    /// Hands on everything as it came.
    pub fn release(&mut self, out: &mut VecDeque<Released>) {
        out.extend(self.held.drain(..).map(|run| Released { run, completed: None }));
        self.held_bytes = 0;
        self.is_object_begun = false;
    }

    fn release_object(&mut self, object: StoredObject, out: &mut VecDeque<Released>) {
        while self.held.front().is_some_and(|run| run.content != object.content) {
            out.extend(self.held.pop_front().map(|run| Released { run, completed: None }));
        }
        let (content, bytes) = object.forwarded_as.unwrap_or((object.content, object.bytes));
        out.push_back(Released { run: Run { content, content_offset: 0, bytes }, completed: Some(object) });
        self.held.clear();
        self.held_bytes = 0;
    }
}

/// The objects that a proxy recognises, and its cache.
#[derive(Debug)]
pub(crate) struct Catalogue {
    objects: BTreeMap<ContentId, StoredObject>,
    storage_bytes: u64,
    pub pause_ns: Nanoseconds,
    cache_bytes: u64,
    /// Cached answers by request, the least recently used first.
    kept: VecDeque<(ContentId, StoredObject)>,
    kept_bytes: u64,
}

impl Catalogue {
    pub fn new(settings: &StoreSettings) -> Self {
        Self {
            objects: settings.objects.iter().map(|object| (object.content, *object)).collect(),
            storage_bytes: settings.storage_bytes,
            pause_ns: settings.pause_ns,
            cache_bytes: settings.cache_bytes,
            kept: VecDeque::new(),
            kept_bytes: 0,
        }
    }

    pub fn object(&self, content: ContentId) -> Option<StoredObject> {
        self.objects.get(&content).copied()
    }

    /// The cached answer to `request`, which becomes the most recently used one.
    pub fn answer(&mut self, request: ContentId) -> Option<StoredObject> {
        let place = self.kept.iter().position(|(asked, _)| *asked == request)?;
        let entry = self.kept.remove(place)?;
        self.kept.push_back(entry);
        Some(entry.1)
    }

    /// Keeps a whole object if it may be and fits, dropping others that were not used for longer.
    pub fn keep(&mut self, object: StoredObject) {
        let Some(request) = object.answer_to.filter(|_| object.bytes <= self.cache_bytes) else {
            return;
        };
        if self.answer(request).is_some() {
            return;
        }
        self.kept_bytes += object.bytes;
        self.kept.push_back((request, object));
        while self.kept_bytes > self.cache_bytes {
            if let Some((_, dropped)) = self.kept.pop_front() {
                self.kept_bytes -= dropped.bytes;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use pepscope_path::NEVER;

    use super::{Catalogue, Released, Store, StoreSettings, StoredObject};
    use crate::packets::run::Run;
    use crate::packets::segment::ContentId;

    const PAGE: StoredObject =
        StoredObject { content: ContentId(2), bytes: 3000, forwarded_as: None, answer_to: Some(ContentId(1)) };
    const PICTURE: StoredObject = StoredObject {
        content: ContentId(4),
        bytes: 9000,
        forwarded_as: Some((ContentId(5), 1000)),
        answer_to: Some(ContentId(3)),
    };

    fn catalogue(cache_bytes: u64) -> Catalogue {
        Catalogue::new(&StoreSettings {
            objects: vec![PAGE, PICTURE],
            pause_ns: 500,
            storage_bytes: 10_000,
            cache_bytes,
        })
    }

    fn run(content: u32, content_offset: u64, bytes: u64) -> Run {
        Run { content: ContentId(content), content_offset, bytes }
    }

    fn push_all(store: &mut Store, runs: &[Run]) -> Vec<Released> {
        let mut out = VecDeque::new();
        for run in runs {
            store.push(7, *run, &catalogue(0), &mut out);
        }
        out.into()
    }

    #[test]
    fn an_object_leaves_when_it_is_whole() {
        let mut store = Store::default();
        assert_eq!(push_all(&mut store, &[run(2, 0, 1400), run(2, 1400, 1400)]), []);
        assert_eq!((store.held_bytes(), store.deadline(500)), (2800, NEVER));
        let released = push_all(&mut store, &[run(2, 2800, 200)]);
        assert_eq!(released, [Released { run: run(2, 0, 3000), completed: Some(PAGE) }]);
        assert_eq!((store.held_bytes(), store.deadline(500)), (0, NEVER));
    }

    #[test]
    fn bytes_of_no_known_object_wait_for_the_pause() {
        let mut store = Store::default();
        assert_eq!(push_all(&mut store, &[run(9, 0, 100)]), []);
        assert_eq!(store.deadline(500), 507);
        let mut out = VecDeque::new();
        store.release(&mut out);
        assert_eq!((out.len(), store.deadline(500)), (1, NEVER));
    }

    #[test]
    fn a_picture_leaves_smaller() {
        let released = push_all(&mut Store::default(), &[run(4, 0, 9000)]);
        assert_eq!(released, [Released { run: run(5, 0, 1000), completed: Some(PICTURE) }]);
    }

    #[test]
    fn what_is_too_large_to_hold_passes_as_it_comes() {
        let mut store = Store::default();
        let released = push_all(&mut store, &[run(9, 0, 9000), run(9, 9000, 1500), run(9, 10_500, 1500)]);
        let runs: Vec<Run> = released.iter().map(|released| released.run).collect();
        assert_eq!(runs, [run(9, 0, 9000), run(9, 9000, 1500), run(9, 10_500, 1500)]);
        assert_eq!(store.held_bytes(), 0);
    }

    #[test]
    fn the_answer_used_longest_ago_makes_room() {
        let mut kept = catalogue(10_000);
        kept.keep(PAGE);
        assert_eq!(kept.answer(ContentId(1)), Some(PAGE));
        kept.keep(PICTURE);
        assert_eq!((kept.answer(ContentId(1)), kept.answer(ContentId(3))), (None, Some(PICTURE)));
        let mut none = catalogue(0);
        none.keep(PAGE);
        assert_eq!(none.answer(ContentId(1)), None);
    }
}
