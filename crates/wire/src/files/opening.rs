//! How a capture is opened: the file, the compression around it, the container with its header.

use std::fs::File;
use std::io::{Cursor, ErrorKind, Read};
use std::path::Path;

use crate::error::CaptureError;
use crate::files::compression;
use crate::files::container::{pcap, snoop, Container};
use crate::files::other_kinds;
use crate::files::window::{ByteWindow, Shortage};
use crate::tally::Tally;

/// A capture file that is open.
pub(crate) struct FileSource {
    pub(crate) name: String,
    pub(crate) source: Box<dyn Read + Send>,
    /// Its size, where it is a regular file.
    pub(crate) file_bytes: Option<u64>,
}

impl FileSource {
    pub(crate) fn open(path: &Path) -> Result<FileSource, CaptureError> {
        let name = path.display().to_string();
        let open_error = |cause: String| CaptureError::Open { name: path.display().to_string(), cause };
        let file = File::open(path).map_err(|error| open_error(unopened(&name, &error)))?;
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
        // What is shorter is of no known kind.
        let _ = window.demand(other_kinds::FIRST_BYTES);
        let first = window.available();
        let first_bytes = first[..first.len().min(other_kinds::FIRST_BYTES)].to_vec();
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

/// Why a name cannot be opened, also where it is none of a file.
fn unopened(name: &str, error: &std::io::Error) -> String {
    match name {
        "" => "a capture must have a name, got ''".to_owned(),
        url if error.kind() == ErrorKind::NotFound && url.contains("://") => {
            "URLs are not fetched: download it, or pipe it in (`curl -s URL | pepscope detect -`)".to_owned()
        }
        _ => reason(error),
    }
}

/// The operating system's reason without its error number.
fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}
