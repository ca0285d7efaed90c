//! A capture file from its first byte to its last segment.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use crate::bpf::Filter;
use crate::datagram::DatagramObserver;
use crate::decoding::decode::Decoder;
use crate::decoding::fast_path;
use crate::decoding::position::SegmentPosition;
use crate::error::{CaptureError, Damage, Reject};
use crate::files::container::{Break, Container, FrameSpan};
use crate::files::opening::{decompressed, recognise, FileSource};
use crate::files::series::{Overlap, Parts};
use crate::files::window::ByteWindow;
use crate::headers::link::LinkType;
use crate::segment::Segment;
use crate::tally::Tally;

mod visit;
pub use visit::SegmentVisitor;

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
    /// The files that continue this one.
    parts: Parts,
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

    /// Opens a capture that was divided into files, and reads them as one in the order of their first packets.
    pub fn open_parts(paths: &[PathBuf]) -> Result<CaptureReader, CaptureError> {
        if let [path] = paths {
            return Self::open(path);
        }
        let mut parts = Parts::in_order(paths)?;
        let Some(first) = parts.next() else {
            return Err(CaptureError::Empty { name: "a capture of no files".to_owned() });
        };
        let mut reader = Self::open(&first.path)?;
        reader.file_bytes = parts.file_bytes;
        reader.tally.parts.begins.push((first.path.display().to_string(), 0));
        reader.parts = parts;
        Ok(reader)
    }

    /// Time of the first packet that has one, of any kind; what was read until there is gone.
    pub(crate) fn first_time_ns(&mut self) -> Option<i64> {
        while let Ok(true) = self.container.next_frame(&mut self.window, &mut self.span) {
            if self.span.timed {
                return Some(self.span.time_ns);
            }
        }
        None
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
            parts: Parts::default(),
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
                Ok(false) if self.goes_on(None) => continue,
                Ok(false) => return self.end(None),
                Err(broken) if self.goes_on(Some(&broken)) => continue,
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

    /// Opens the next part where one is left that can be read; the latest one broke off at `broken`, if it did.
    #[cold]
    fn goes_on(&mut self, broken: Option<&Break>) -> bool {
        if self.parts.is_empty() {
            return false;
        }
        let mut ended = self.parts.latest().to_owned();
        if let Some(Break { byte_offset, cause }) = broken {
            let damage = Damage { byte_offset: *byte_offset, cause: cause.clone() };
            self.tally.parts.damage.push((ended.clone(), damage));
        }
        while let Some(part) = self.parts.next() {
            self.tally.bytes_read += self.window.offset();
            let name = self.parts.latest().to_owned();
            match Self::open_part(&part.path, &self.file_bytes_read, &mut self.tally) {
                Ok((window, container)) => {
                    if let Some(by_ns) = part.overlap_ns(self.tally.time_span_ns.map(|(_, last)| last)) {
                        self.tally.parts.overlaps.push(Overlap { part: name, part_before: ended, by_ns });
                    }
                    self.tally.parts.begins.push((self.parts.latest().to_owned(), self.tally.frames));
                    (self.window, self.container) = (window, container);
                    self.current.number = u32::MAX;
                    return true;
                }
                // It could be read when the parts were put in order.
                Err(error) => {
                    let damage = Damage { byte_offset: 0, cause: error.to_string() };
                    self.tally.parts.damage.push((name.clone(), damage));
                    ended = name;
                }
            }
        }
        false
    }

    fn open_part(
        path: &Path,
        file_bytes_read: &Arc<AtomicU64>,
        tally: &mut Tally,
    ) -> Result<(ByteWindow, Container), CaptureError> {
        let FileSource { name, source, .. } = FileSource::open(path)?;
        let counted = Counted { source, count: Arc::clone(file_bytes_read) };
        let mut window = ByteWindow::new(decompressed(&name, Box::new(counted))?);
        let container = recognise(&name, &mut window, tally)?;
        Ok((window, container))
    }

    #[cold]
    fn end<T>(&mut self, broken: Option<Break>) -> Option<T> {
        self.ended = true;
        self.tally.unfinished_datagrams = self.decoder.unfinished_datagrams();
        self.tally.bytes_read += self.window.offset();
        self.tally.damage = broken.map(|Break { byte_offset, cause }| Damage { byte_offset, cause });
        None
    }
}
