//! Writing files on a thread of its own, so that a simulation does not wait for the kernel.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

/// Buffers that go round: one is filled while others are written.
const BUFFERS: usize = 4;

/// A sink behind a thread. What is written is the same, whenever it is written.
pub(super) struct BackgroundSink {
    full: SyncSender<(Box<[u8]>, usize)>,
    empty: Receiver<Box<[u8]>>,
    has_failed: Arc<AtomicBool>,
    /// Or why there is none.
    thread: io::Result<JoinHandle<io::Result<()>>>,
}

impl BackgroundSink {
    /// Hands `sink` to a thread, with buffers of `buffer_bytes`. If the system has no thread to give, that is the failure.
    pub(super) fn new(sink: Box<dyn Write + Send>, buffer_bytes: usize) -> Self {
        let (full, filled) = sync_channel::<(Box<[u8]>, usize)>(BUFFERS);
        let (emptied, empty) = sync_channel(BUFFERS);
        let has_failed = Arc::new(AtomicBool::new(false));
        let failed = Arc::clone(&has_failed);
        let write = move || write_all(sink, &filled, &emptied, &failed, buffer_bytes);
        let thread = Builder::new().name("capture".to_owned()).spawn(write);
        has_failed.store(thread.is_err(), Ordering::Relaxed);
        Self { full, empty, has_failed, thread }
    }

    /// An empty buffer; `None` if the thread is gone.
    pub(super) fn buffer(&self) -> Option<Box<[u8]>> {
        self.empty.recv().ok()
    }

    /// Writes the first `used` bytes of a buffer, some time.
    pub(super) fn write(&self, buffer: Box<[u8]>, used: usize) {
        // A thread that is gone has failed, and says so when it is joined.
        let _ = self.full.send((buffer, used));
    }

    /// Whether something could not be written.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// Waits until everything is written.
    ///
    /// # Errors
    /// The first failure to write.
    pub(super) fn finish(self) -> io::Result<()> {
        drop(self.full);
        self.thread?.join().unwrap_or_else(|_| Err(io::Error::other("the thread that writes the capture broke down")))
    }
}

fn write_all(
    mut sink: Box<dyn Write + Send>,
    filled: &Receiver<(Box<[u8]>, usize)>,
    emptied: &SyncSender<Box<[u8]>>,
    has_failed: &AtomicBool,
    buffer_bytes: usize,
) -> io::Result<()> {
    for _ in 0..BUFFERS {
        let _ = emptied.send(vec![0; buffer_bytes].into_boxed_slice());
    }
    let mut outcome = Ok(());
    for (buffer, used) in filled {
        if outcome.is_ok() {
            outcome = sink.write_all(&buffer[..used]);
            has_failed.store(outcome.is_err(), Ordering::Relaxed);
        }
        // Nobody waits for buffers at the end.
        let _ = emptied.send(buffer);
    }
    outcome.and_then(|()| sink.flush())
}
