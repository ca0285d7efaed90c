//! A capture file from its first byte to its last segment.

use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use crate::bpf::Filter;
use crate::compression;
use crate::container::{pcap, Break, Container, FrameSpan};
use crate::datagram::DatagramObserver;
use crate::decode::Decoder;
use crate::error::{CaptureError, Damage, Reject};
use crate::link::LinkType;
use crate::place::Place;
use crate::plain;
use crate::segment::Segment;
use crate::tally::{counted, Tally};
use crate::window::{ByteWindow, Shortage};

/// Counts what passes, so that progress can be told in bytes of the file even where it is compressed.
struct Counted {
    source: Box<dyn Read + Send>,
    count: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.count.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// What is known of the link type of the latest frame.
struct CurrentLink {
    /// No link type's before the first frame.
    number: u32,
    index: usize,
    link: Option<LinkType>,
}

/// Where the segment of the latest frame is found.
enum Found {
    /// In the frame itself, the short way.
    Plain(LinkType),
    /// At the place that the decoder gave.
    Elsewhere,
}

/// Reads the TCP segments of one capture in file order.
pub struct CaptureReader {
    name: String,
    window: ByteWindow,
    container: Container,
    decoder: Decoder,
    /// The latest frame.
    span: FrameSpan,
    /// Where the latest segment that is not plain stands.
    elsewhere: Option<Place>,
    filter: Option<Filter>,
    observer: Option<Box<dyn DatagramObserver>>,
    tally: Tally,
    current: CurrentLink,
    ended: bool,
    file_bytes: Option<u64>,
    file_bytes_read: Arc<AtomicU64>,
}

impl CaptureReader {
    /// Opens a capture file, `-` being standard input; its kind is found from its content.
    pub fn open(path: &Path) -> Result<CaptureReader, CaptureError> {
        if path.as_os_str() == "-" {
            return Self::start("standard input".to_owned(), Box::new(std::io::stdin()), None);
        }
        let name = path.display().to_string();
        let open_error = |cause: String| CaptureError::Open { name: path.display().to_string(), cause };
        let file = File::open(path).map_err(|error| open_error(reason(&error)))?;
        let metadata = file.metadata().map_err(|error| open_error(reason(&error)))?;
        if metadata.is_dir() {
            return Err(open_error("it is a directory".to_owned()));
        }
        let file_bytes = metadata.is_file().then_some(metadata.len());
        Self::start(name, Box::new(file), file_bytes)
    }

    /// Reads a capture from a reader of standard input that is the caller's own.
    pub fn from_standard_input(source: Box<dyn Read + Send>) -> Result<CaptureReader, CaptureError> {
        Self::start("standard input".to_owned(), source, None)
    }

    /// Reads a capture from anything that gives its bytes.
    pub fn from_reader(source: Box<dyn Read + Send>) -> Result<CaptureReader, CaptureError> {
        Self::start("the capture".to_owned(), source, None)
    }

    fn start(
        name: String,
        source: Box<dyn Read + Send>,
        file_bytes: Option<u64>,
    ) -> Result<CaptureReader, CaptureError> {
        let file_bytes_read = Arc::new(AtomicU64::new(0));
        let mut source: Box<dyn Read + Send> = Box::new(Counted { source, count: Arc::clone(&file_bytes_read) });
        let read_error = |error: std::io::Error| CaptureError::Read { name: name.clone(), cause: reason(&error) };
        let mut prefix = Vec::with_capacity(compression::PREFIX_BYTES);
        source.by_ref().take(compression::PREFIX_BYTES as u64).read_to_end(&mut prefix).map_err(read_error)?;
        if prefix.is_empty() {
            return Err(CaptureError::Empty { name });
        }
        let whole = Cursor::new(prefix.clone()).chain(source);
        let stream = compression::decompressed(Box::new(whole), &prefix).map_err(read_error)?;
        let mut window = ByteWindow::new(stream);
        let mut tally = Tally::default();
        let container = recognise(&name, &mut window, &mut tally)?;
        Ok(CaptureReader {
            name,
            window,
            container,
            decoder: Decoder::new(),
            span: FrameSpan::default(),
            elsewhere: None,
            filter: None,
            observer: None,
            tally,
            current: CurrentLink { number: u32::MAX, index: 0, link: None },
            ended: false,
            file_bytes,
            file_bytes_read,
        })
    }

    /// Lets only those frames through that the filter's programs accept.
    pub fn set_filter(&mut self, filter: Filter) {
        self.filter = Some(filter);
    }

    /// Shows every UDP datagram with payload outside known tunnels to `observer`, before the segments after it.
    pub fn set_observer(&mut self, observer: Box<dyn DatagramObserver>) {
        self.observer = Some(observer);
    }

    /// Counts so far; complete once `next_segment` has given `None`.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Size of the file, where it is one.
    pub fn file_bytes(&self) -> Option<u64> {
        self.file_bytes
    }

    /// Bytes read from the file, before decompression.
    pub fn file_bytes_read(&self) -> u64 {
        self.file_bytes_read.load(Ordering::Relaxed)
    }

    /// The next TCP segment, `None` at the end. Damage is no error but the end of the capture, see `Tally::damage`.
    pub fn next_segment(&mut self) -> Result<Option<Segment<'_>>, CaptureError> {
        Ok(self.next_found().and_then(|found| self.show(found, |segment| *segment)))
    }

    /// Shows the next TCP segment to `act` and gives what that gave: faster than `next_segment`, and otherwise the same.
    #[inline]
    pub fn visit_next<T>(&mut self, act: impl FnOnce(&Segment<'_>) -> T) -> Result<Option<T>, CaptureError> {
        Ok(self.next_found().and_then(|found| self.show(found, act)))
    }

    #[inline(always)]
    fn show<'a, T>(&'a self, found: Found, act: impl FnOnce(&Segment<'a>) -> T) -> Option<T> {
        let (frame_index, time_ns) = (self.tally.frames - 1, self.span.time_ns);
        let frame = self.window.slice(self.span.position, self.span.captured_bytes);
        match found {
            // Located once more, since that is cheaper than handing a place on.
            Found::Plain(link) => plain::locate(link, frame)?.show(frame, frame_index, time_ns, act),
            Found::Elsewhere => {
                let place = self.elsewhere.as_ref()?;
                let base = if place.assembled { self.decoder.assembled() } else { frame };
                place.show(base, frame_index, time_ns, act)
            }
        }
    }

    #[inline(always)]
    fn next_found(&mut self) -> Option<Found> {
        if self.ended {
            return None;
        }
        loop {
            match self.container.next_frame(&mut self.window, &mut self.span) {
                Ok(true) => {}
                Ok(false) => return self.end(None),
                Err(broken) => return self.end(Some(broken)),
            }
            self.tally.frames += 1;
            if self.current.number != u32::from(self.span.link_type) {
                self.change_link(self.span.link_type);
            }
            let (span, current) = (&self.span, &self.current);
            self.tally.link_types[current.index].frames += 1;
            if span.timed {
                self.tally.extend_time_span(span.time_ns);
            } else {
                self.tally.frames_without_time += 1;
            }
            let Some(link) = current.link else {
                self.tally.unknown_link_type += 1;
                continue;
            };
            let bytes = self.window.slice(span.position, span.captured_bytes);
            if let Some(filter) = &self.filter {
                if !filter.accepts(span.link_type, bytes, span.wire_bytes) {
                    self.tally.filtered_out += 1;
                    continue;
                }
            }
            if plain::locate(link, bytes).is_some() {
                self.tally.tcp_segments += 1;
                return Some(Found::Plain(link));
            }
            match self.decoder.locate_anywhere(link, span.time_ns, bytes, span.wire_bytes as usize) {
                Ok(place) => {
                    self.tally.tcp_segments += 1;
                    self.elsewhere = Some(place);
                    return Some(Found::Elsewhere);
                }
                Err(reject) => {
                    self.tally.count_reject(reject);
                    if reject == Reject::NotTcp && self.observer.is_some() {
                        self.observe();
                    }
                }
            }
        }
    }

    /// Show the observer the datagram that the frame holds, if it does.
    #[inline(never)]
    fn observe(&mut self) {
        let span = &self.span;
        let (Some(observer), Some(place)) = (&mut self.observer, self.decoder.datagram_place()) else { return };
        let base = if place.assembled {
            self.decoder.assembled()
        } else {
            self.window.slice(span.position, span.captured_bytes)
        };
        if let Some(datagram) = place.datagram(base, self.tally.frames - 1, span.time_ns) {
            observer.observe(&datagram);
        }
    }

    #[cold]
    fn change_link(&mut self, number: u16) {
        let index = self.tally.link_type_index(number);
        self.current = CurrentLink { number: number.into(), index, link: LinkType::from_number(number) };
    }

    #[cold]
    fn end<T>(&mut self, broken: Option<Break>) -> Option<T> {
        self.ended = true;
        self.tally.unfinished_datagrams = self.decoder.unfinished_datagrams();
        self.tally.bytes_read = self.window.offset();
        self.tally.damage = broken.map(|broken| Damage {
            byte_offset: broken.byte_offset,
            sentence: format!(
                "{} is damaged at byte {}: {}; the {} before that were read",
                self.name,
                broken.byte_offset,
                broken.cause,
                counted(self.tally.frames, "packet"),
            ),
        });
        None
    }
}

/// Finds the container and reads its file header.
fn recognise(name: &str, window: &mut ByteWindow, tally: &mut Tally) -> Result<Container, CaptureError> {
    const FIRST_BYTES: usize = 8;
    let name = || name.to_owned();
    let short = |window: &ByteWindow, shortage: Shortage| match shortage {
        Shortage::Ended => CaptureError::ShortHeader { name: name(), bytes: window.available().len() },
        Shortage::Failed(cause) => CaptureError::Read { name: name(), cause },
    };
    // What is shorter than the magic number and its surroundings is judged by what there is.
    let demanded = window.demand(FIRST_BYTES);
    if let (Err(shortage), true) = (demanded, window.available().len() < 4) {
        return Err(short(window, shortage));
    }
    let first = window.available();
    let magic = first.first_chunk::<4>().copied().unwrap_or_default();
    let Some(mut container) = Container::recognise(magic) else {
        let first_bytes = first[..first.len().min(FIRST_BYTES)].to_vec();
        return Err(CaptureError::UnknownKind { name: name(), first_bytes });
    };
    match &mut container {
        Container::Pcap(pcap) => {
            if let Err(shortage) = window.demand(pcap::FILE_HEADER_BYTES) {
                return Err(short(window, shortage));
            }
            let link_type = pcap.read_file_header(window);
            tally.link_type_index(link_type);
        }
        Container::Pcapng(pcapng) => {
            if let Err(shortage) = window.demand(12) {
                return Err(short(window, shortage));
            }
            pcapng
                .begin_section(window)
                .map_err(|broken| CaptureError::BadHeader { name: name(), cause: broken.cause })?;
        }
    }
    Ok(container)
}

/// The operating system's reason without its error number.
fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}
