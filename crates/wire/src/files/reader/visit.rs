//! The loop over segments: records that stand in the buffer are gone through without asking for each whether more of
//! the file must be read, and counted together.

use super::CaptureReader;
use crate::decoding::fast_path;
use crate::decoding::plain::PlainSegment;
use crate::files::container::Container;
use crate::headers::link::LinkType;
use crate::segment::Segment;

/// Takes the segments of a capture.
pub trait SegmentVisitor {
    /// Why the visitor stops the reading.
    type Stop;

    /// Takes a plain segment and gives true, or does nothing and gives false: `visit` then gets all of it.
    fn visit_plain(&mut self, segment: &PlainSegment<'_>) -> Result<bool, Self::Stop>;

    fn visit(&mut self, segment: &Segment<'_>) -> Result<(), Self::Stop>;
}

impl CaptureReader {
    /// Shows the next segments to `visitor`, and gives how many: `most`, or fewer at the end of the capture. Damage is
    /// no error but the end, see `Tally::damage`. What it shows is what `next_segment` gives.
    pub fn visit_many<V: SegmentVisitor>(&mut self, most: u32, visitor: &mut V) -> Result<u32, V::Stop> {
        let mut left = most;
        while left > 0 {
            let visited = self.visit_buffered(left, visitor)?;
            left -= visited;
            if left == 0 {
                break;
            }
            let Some(link) = self.next_frame() else { break };
            let frame = self.window.slice(self.span.position, self.span.captured_bytes);
            if show_frame(link, frame, self.tally.frames - 1, self.span.time_ns, visitor)? {
                self.tally.tcp_segments += 1;
                left -= 1;
            } else if self.locate_on_slow_path(link) {
                self.show(super::Located::SlowPath, |segment| visitor.visit(segment)).transpose()?;
                left -= 1;
            }
        }
        Ok(most - left)
    }

    /// The same for the records of a pcap file in the buffer, up to the first one that is not complete or needs the
    /// decoder.
    #[inline(never)]
    fn visit_buffered<V: SegmentVisitor>(&mut self, most: u32, visitor: &mut V) -> Result<u32, V::Stop> {
        let (Container::Pcap(pcap), None, Some(link)) = (&self.container, &self.filter, self.current.link) else {
            return Ok(0);
        };
        let (Some((mut first_ns, mut last_ns)), false) = (self.tally.time_span_ns, self.ended) else { return Ok(0) };
        if self.current.number != u32::from(pcap.link_type()) {
            return Ok(0);
        }
        let buffered = self.window.available();
        let mut rest = buffered;
        let mut visited = 0;
        let outcome = loop {
            if visited == most {
                break Ok(());
            }
            let Some((frame, time_ns, behind)) = pcap.split_record(rest) else { break Ok(()) };
            let shown = show_frame(link, frame, self.tally.frames + u64::from(visited), time_ns, visitor);
            if matches!(shown, Ok(false)) {
                break Ok(());
            }
            rest = behind;
            visited += 1;
            first_ns = first_ns.min(time_ns);
            last_ns = last_ns.max(time_ns);
            if let Err(stop) = shown {
                break Err(stop);
            }
        };
        let read_bytes = buffered.len() - rest.len();
        self.window.consume(read_bytes);
        self.tally.time_span_ns = Some((first_ns, last_ns));
        self.tally.frames += u64::from(visited);
        self.tally.tcp_segments += u64::from(visited);
        self.tally.link_types[self.current.index].frames += u64::from(visited);
        outcome.map(|()| visited)
    }
}

/// Shows the segment that the fast path finds in a frame; false where it finds none.
#[inline(always)]
fn show_frame<V: SegmentVisitor>(
    link: LinkType,
    frame: &[u8],
    frame_index: u64,
    time_ns: i64,
    visitor: &mut V,
) -> Result<bool, V::Stop> {
    if let Some(plain) = PlainSegment::of(link, frame, frame_index, time_ns) {
        if visitor.visit_plain(&plain)? {
            return Ok(true);
        }
    }
    show_whole(link, frame, frame_index, time_ns, visitor)
}

#[inline(never)]
fn show_whole<V: SegmentVisitor>(
    link: LinkType,
    frame: &[u8],
    frame_index: u64,
    time_ns: i64,
    visitor: &mut V,
) -> Result<bool, V::Stop> {
    let Some(place) = fast_path::locate(link, frame) else { return Ok(false) };
    let shown = place.show(frame, frame_index, time_ns, |segment| visitor.visit(segment)).transpose()?;
    Ok(shown.is_some())
}
