//! Writing files beside a simulation: on a thread of its own, so that it does not wait for the kernel, or, where there
//! is one processor for both, in between.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::sync::Arc;
use std::thread::{available_parallelism, Builder, JoinHandle};

/// Buffers that go round: one is filled while others are written.
const BUFFERS: usize = 4;

/// Where chunks go. What is written is the same, whenever and wherever it is written.
pub(super) enum ChunkSink {
    Thread(Background),
    Here(Foreground),
}

impl ChunkSink {
    /// Takes `sink`, and buffers of `buffer_bytes`. If the system has no thread to give, that is the failure.
    pub(super) fn new(sink: Box<dyn Write + Send>, buffer_bytes: usize) -> Self {
        if available_parallelism().is_ok_and(|processors| processors.get() == 1) {
            Self::Here(Foreground { sink, outcome: Ok(()) })
        } else {
            Self::Thread(Background::new(sink, buffer_bytes))
        }
    }

    /// Writes the first `chunk` bytes of `buffer`, now or later, and leaves what follows, up to `used`, at its
    /// beginning.
    pub(super) fn write(&mut self, buffer: &mut Box<[u8]>, chunk: usize, used: usize) {
        match self {
            Self::Thread(background) => background.write(buffer, chunk, used),
            Self::Here(foreground) => {
                if foreground.outcome.is_ok() {
                    foreground.outcome = foreground.sink.write_all(&buffer[..chunk]);
                }
                buffer.copy_within(chunk..used, 0);
            }
        }
    }

    /// Whether something could not be written.
    pub(super) fn has_failed(&self) -> bool {
        match self {
            Self::Thread(background) => background.has_failed.load(Ordering::Relaxed),
            Self::Here(foreground) => foreground.outcome.is_err(),
        }
    }

    /// Waits until everything is written.
    ///
    /// # Errors
    /// The first failure to write.
    pub(super) fn finish(self) -> io::Result<()> {
        match self {
            Self::Thread(background) => background.finish(),
            Self::Here(mut foreground) => foreground.outcome.and_then(|()| foreground.sink.flush()),
        }
    }
}

pub(super) struct Foreground {
    sink: Box<dyn Write + Send>,
    outcome: io::Result<()>,
}

pub(super) struct Background {
    full: SyncSender<(Box<[u8]>, usize)>,
    empty: Receiver<Box<[u8]>>,
    has_failed: Arc<AtomicBool>,
    /// Or why there is none.
    thread: io::Result<JoinHandle<io::Result<()>>>,
}

impl Background {
    fn new(sink: Box<dyn Write + Send>, buffer_bytes: usize) -> Self {
        let (full, filled) = sync_channel::<(Box<[u8]>, usize)>(BUFFERS);
        let (emptied, empty) = sync_channel(BUFFERS);
        let has_failed = Arc::new(AtomicBool::new(false));
        let failed = Arc::clone(&has_failed);
        let write = move || write_all(sink, &filled, &emptied, &failed, buffer_bytes);
        let thread = Builder::new().name("capture".to_owned()).spawn(write);
        has_failed.store(thread.is_err(), Ordering::Relaxed);
        Self { full, empty, has_failed, thread }
    }

    fn write(&self, buffer: &mut Box<[u8]>, chunk: usize, used: usize) {
        // A thread that has ended has failed; joining it returns the error.
        let Ok(mut empty) = self.empty.recv() else { return };
        empty[..used - chunk].copy_from_slice(&buffer[chunk..used]);
        let _ = self.full.send((std::mem::replace(buffer, empty), chunk));
    }

    fn finish(self) -> io::Result<()> {
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
    for (buffer, chunk) in filled {
        if outcome.is_ok() {
            outcome = sink.write_all(&buffer[..chunk]);
            has_failed.store(outcome.is_err(), Ordering::Relaxed);
        }
        // At the end no buffer is needed again.
        let _ = emptied.send(buffer);
    }
    outcome.and_then(|()| sink.flush())
}

#[cfg(test)]
mod tests {
    use super::{Background, ChunkSink, Foreground};
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    /// Takes so many bytes.
    #[derive(Clone)]
    struct Limited(Arc<Mutex<Vec<u8>>>, usize);

    impl Write for Limited {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let Ok(mut kept) = self.0.lock() else { return Err(io::ErrorKind::Other.into()) };
            if kept.len() + bytes.len() > self.1 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            kept.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Writes 100 chunks of 1000 bytes with 24 behind each; what arrived, and how it ended.
    fn written(limit_bytes: usize, is_thread: bool) -> (Vec<u8>, Result<(), io::ErrorKind>) {
        let file = Limited(Arc::default(), limit_bytes);
        let boxed = Box::new(file.clone());
        let mut sink = match is_thread {
            true => ChunkSink::Thread(Background::new(boxed, 1024)),
            false => ChunkSink::Here(Foreground { sink: boxed, outcome: Ok(()) }),
        };
        let mut buffer = vec![0; 1024].into_boxed_slice();
        let mut behind = 0;
        for number in 0..100 {
            buffer[behind..].fill(number);
            sink.write(&mut buffer, 1000, 1024);
            behind = 24;
        }
        let outcome = sink.finish().map_err(|error| error.kind());
        let bytes = file.0.lock().map(|bytes| bytes.clone()).unwrap_or_default();
        (bytes, outcome)
    }

    #[test]
    fn a_thread_writes_the_same() {
        let (bytes, outcome) = written(usize::MAX, true);
        assert_eq!((bytes.len(), outcome), (100_000, Ok(())));
        assert_eq!((bytes[1023], bytes[1024]), (0, 1));
        assert_eq!(written(usize::MAX, false), (bytes, outcome));
    }

    #[test]
    fn the_first_failure_is_kept() {
        for is_thread in [true, false] {
            let (bytes, outcome) = written(7_500, is_thread);
            assert_eq!((bytes.len(), outcome), (7_000, Err(io::ErrorKind::StorageFull)));
        }
    }
}
