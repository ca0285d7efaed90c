//! A capture file from its first byte to its last segment.

use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use crate::bpf::Filter;
use crate::compression;
use crate::container::{pcap, snoop, Break, Container, FrameSpan};
use crate::datagram::DatagramObserver;
use crate::decode::Decoder;
use crate::error::{CaptureError, Damage, Reject};
use crate::fast_path;
use crate::link::LinkType;
use crate::position::SegmentPosition;
use crate::segment::Segment;
use crate::tally::Tally;
use crate::window::{ByteWindow, Shortage};

/// Counts the bytes read from the file, so that progress can be reported for compressed files too.
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

/// The link-layer type of the latest frame.
struct CurrentLink {
    /// Before the first frame: a number that no link-layer type has.
    number: u32,
    index: usize,
    link: Option<LinkType>,
}

/// Where the segment of the latest frame is found.
enum Located {
    /// The fast path found it in the frame itself.
    FastPath(LinkType),
    /// The decoder gave its position.
    SlowPath,
}

/// Reads the TCP segments of one capture in file order.
pub struct CaptureReader {
    window: ByteWindow,
    container: Container,
    decoder: Decoder,
    /// The latest frame.
    span: FrameSpan,
    /// Where the latest segment that is not plain stands.
    slow_path_position: Option<SegmentPosition>,
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
        let FileSource { name, source, file_bytes } = FileSource::open(path)?;
        Self::start(name, source, file_bytes)
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
        let counted = Counted { source, count: Arc::clone(&file_bytes_read) };
        let mut window = ByteWindow::new(decompressed(&name, Box::new(counted))?);
        let mut tally = Tally::default();
        let container = recognise(&name, &mut window, &mut tally)?;
        Ok(CaptureReader {
            window,
            container,
            decoder: Decoder::new(),
            span: FrameSpan::default(),
            slow_path_position: None,
            filter: None,
            observer: None,
            tally,
            current: CurrentLink { number: u32::MAX, index: 0, link: None },
            ended: false,
            file_bytes,
            file_bytes_read,
        })
    }

    /// Passes only frames that the filter's programs accept.
    pub fn set_filter(&mut self, filter: Filter) {
        self.filter = Some(filter);
    }

    /// Shows every UDP datagram with payload outside known tunnels, and every ICMP echo message, to `observer`, before
    /// the segments after it.
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
        Ok(self.next_located().and_then(|found| self.show(found, |segment| *segment)))
    }

    /// Shows the next TCP segment to `act` and gives what that gave: faster than `next_segment`, and otherwise the
    /// same.
    #[inline]
    pub fn visit_next<T>(&mut self, act: impl FnOnce(&Segment<'_>) -> T) -> Result<Option<T>, CaptureError> {
        while let Some(link) = self.next_frame() {
            let frame = self.window.slice(self.span.position, self.span.captured_bytes);
            if let Some(place) = fast_path::locate(link, frame) {
                self.tally.tcp_segments += 1;
                return Ok(place.show(frame, self.tally.frames - 1, self.span.time_ns, act));
            }
            if self.locate_on_slow_path(link) {
                return Ok(self.show(Located::SlowPath, act));
            }
        }
        Ok(None)
    }

    #[inline(always)]
    fn show<'a, T>(&'a self, found: Located, act: impl FnOnce(&Segment<'a>) -> T) -> Option<T> {
        let (frame_index, time_ns) = (self.tally.frames - 1, self.span.time_ns);
        let frame = self.window.slice(self.span.position, self.span.captured_bytes);
        match found {
            // Located once more, since that is cheaper than handing a place on.
            Located::FastPath(link) => fast_path::locate(link, frame)?.show(frame, frame_index, time_ns, act),
            Located::SlowPath => {
                let place = self.slow_path_position.as_ref()?;
                let base = if place.assembled { self.decoder.assembled() } else { frame };
                place.show(base, frame_index, time_ns, act)
            }
        }
    }

    fn next_located(&mut self) -> Option<Located> {
        while let Some(link) = self.next_frame() {
            let frame = self.window.slice(self.span.position, self.span.captured_bytes);
            if fast_path::locate(link, frame).is_some() {
                self.tally.tcp_segments += 1;
                return Some(Located::FastPath(link));
            }
            if self.locate_on_slow_path(link) {
                return Some(Located::SlowPath);
            }
        }
        None
    }

    /// Steps to the next frame that can be read and that the filter accepts; gives its link layer.
    #[inline(always)]
    fn next_frame(&mut self) -> Option<LinkType> {
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
            if let Some(filter) = &self.filter {
                let bytes = self.window.slice(span.position, span.captured_bytes);
                if !filter.accepts(span.link_type, bytes, span.wire_bytes) {
                    self.tally.filtered_out += 1;
                    continue;
                }
            }
            return Some(link);
        }
    }

    /// Looks for a segment in the latest frame with the full decoder, and shows the observer what else it holds.
    #[inline(never)]
    fn locate_on_slow_path(&mut self, link: LinkType) -> bool {
        let span = &self.span;
        let frame = self.window.slice(span.position, span.captured_bytes);
        match self.decoder.locate_on_slow_path(link, span.time_ns, frame, span.wire_bytes as usize) {
            Ok(place) => {
                self.tally.tcp_segments += 1;
                self.slow_path_position = Some(place);
                true
            }
            Err(reject) => {
                self.tally.count_reject(reject);
                if let (Reject::NotIp | Reject::NotTcp, Some(content)) = (reject, self.decoder.content()) {
                    self.tally.count_content(content);
                }
                if reject == Reject::NotTcp && self.observer.is_some() {
                    self.observe();
                }
                false
            }
        }
    }

    /// Show the observer the datagram or the echo message that the frame holds, if it does.
    #[inline(never)]
    fn observe(&mut self) {
        let span = &self.span;
        let Some(observer) = &mut self.observer else { return };
        let frame_index = self.tally.frames - 1;
        if let Some(found) = self.decoder.found_echo() {
            observer.observe_echo(&found.echo(frame_index, span.time_ns));
        }
        let Some(place) = self.decoder.datagram_position() else { return };
        let base = if place.assembled {
            self.decoder.assembled()
        } else {
            self.window.slice(span.position, span.captured_bytes)
        };
        if let Some(datagram) = place.datagram(base, frame_index, span.time_ns) {
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
        self.tally.damage = broken.map(|Break { byte_offset, cause }| Damage { byte_offset, cause });
        None
    }
}

/// A capture file that is open.
pub(crate) struct FileSource {
    pub(crate) name: String,
    pub(crate) source: Box<dyn Read + Send>,
    /// Its size, where it is a regular file.
    file_bytes: Option<u64>,
}

impl FileSource {
    pub(crate) fn open(path: &Path) -> Result<FileSource, CaptureError> {
        let name = path.display().to_string();
        let open_error = |cause: String| CaptureError::Open { name: path.display().to_string(), cause };
        let file = File::open(path).map_err(|error| open_error(reason(&error)))?;
        let metadata = file.metadata().map_err(|error| open_error(reason(&error)))?;
        if metadata.is_dir() {
            return Err(open_error("it is a directory".to_owned()));
        }
        let file_bytes = metadata.is_file().then_some(metadata.len());
        Ok(FileSource { name, source: Box::new(file), file_bytes })
    }
}

/// The content of a capture that may be compressed.
pub(crate) fn decompressed(name: &str, mut source: Box<dyn Read + Send>) -> Result<Box<dyn Read + Send>, CaptureError> {
    let read_error = |error: std::io::Error| CaptureError::Read { name: name.to_owned(), cause: reason(&error) };
    let mut prefix = Vec::with_capacity(compression::PREFIX_BYTES);
    source.by_ref().take(compression::PREFIX_BYTES as u64).read_to_end(&mut prefix).map_err(read_error)?;
    if prefix.is_empty() {
        return Err(CaptureError::Empty { name: name.to_owned() });
    }
    let whole = Cursor::new(prefix.clone()).chain(source);
    compression::decompressed(Box::new(whole), &prefix).map_err(read_error)
}

/// Finds the container and reads its file header.
pub(crate) fn recognise(name: &str, window: &mut ByteWindow, tally: &mut Tally) -> Result<Container, CaptureError> {
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
        Container::Snoop(snoop) => {
            if let Err(shortage) = window.demand(snoop::FILE_HEADER_BYTES) {
                return Err(short(window, shortage));
            }
            let link_type =
                snoop.read_file_header(window).map_err(|cause| CaptureError::BadHeader { name: name(), cause })?;
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
pub(crate) fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}
