//! The files of a repository that have metadata: 39 bytes, and then a table of flatbuffers, which may be compressed.
//!
//! ```text
//! bytes 0..12   ICE🧊CHUNK
//!      12..36   the program that wrote the file, padded with blanks
//!      36       the version of the specification: 1 or 2
//!      37       the kind of the file: 1 a snapshot, 2 a manifest, 6 the list of branches and tags
//!      38       0 for a table that is not compressed, 1 for zstd
//! ```
//!
//! A hostile file may be short and become arbitrarily long. So a limit is checked while it is decompressed, and memory
//! is taken only for bytes that were decompressed.

use bytes::Bytes;
use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer, get_error_name};

use super::flat::Malformed;

const MAGIC: &[u8] = b"ICE\xf0\x9f\xa7\x8aCHUNK";
const HEADER_BYTES: usize = 39;

/// The most memory that zstd may take beside the result: 32 MiB. Its levels up to 19 need 8 MiB.
const MOST_WINDOW_LOG: u32 = 25;

/// Bytes that are decompressed at once.
const STEP_BYTES: usize = 256 << 10;

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileKind {
    Snapshot = 1,
    Manifest = 2,
    Repository = 6,
}

impl FileKind {
    fn in_words(self) -> &'static str {
        match self {
            FileKind::Snapshot => "a snapshot",
            FileKind::Manifest => "a manifest",
            FileKind::Repository => "the list of branches and tags",
        }
    }
}

/// Whether a file that begins with `start` is one of Icechunk.
pub(super) fn has_magic(start: &[u8]) -> bool {
    start.starts_with(MAGIC)
}

/// The table in `file`, which is to be of this `kind`, and may be as long as `most_bytes`.
pub(super) fn table_of(file: &Bytes, kind: FileKind, most_bytes: u64) -> Result<Bytes, Malformed> {
    let malformed = |problem: String| Err(Malformed(problem));
    if !has_magic(file) {
        return malformed("this is no file of Icechunk".to_owned());
    }
    let Some(&[version, found, compression]) = file.get(36..HEADER_BYTES) else {
        return malformed("the file ends within its header".to_owned());
    };
    if !(1..=2).contains(&version) {
        return malformed(format!(
            "version {version} of the Icechunk specification is not supported; 1 and 2 are"
        ));
    }
    if found != kind as u8 {
        let expected = kind.in_words();
        return malformed(format!(
            "a file of kind {found}, where {expected} ({}) was expected",
            kind as u8
        ));
    }
    let body = file.slice(HEADER_BYTES..);
    match compression {
        0 if body.len() as u64 > most_bytes => Err(too_long(most_bytes)),
        0 => Ok(body),
        1 => decompress(&body, most_bytes).map(Bytes::from),
        other => malformed(format!("compression {other} is not supported; 0 and 1 are")),
    }
}

fn too_long(most_bytes: u64) -> Malformed {
    Malformed(format!(
        "it has more than {most_bytes} bytes, which is all that --cache-size allows"
    ))
}

fn decompress(body: &[u8], most_bytes: u64) -> Result<Vec<u8>, Malformed> {
    let failed = |code| Malformed(format!("zstd: {}", get_error_name(code)));
    let mut context = DCtx::try_create().ok_or_else(|| Malformed("no memory".to_owned()))?;
    let window = DParameter::WindowLogMax(MOST_WINDOW_LOG);
    context.set_parameter(window).map_err(failed)?;
    let mut input = InBuffer::around(body);
    let mut decoded: Vec<u8> = Vec::new();
    loop {
        if decoded.len() as u64 > most_bytes {
            return Err(too_long(most_bytes));
        }
        // The memory doubles, so that all copies together are no longer than the result.
        decoded
            .try_reserve(STEP_BYTES)
            .map_err(|_| Malformed("no memory".to_owned()))?;
        let (before, read) = (decoded.len(), input.pos());
        let mut output = OutBuffer::around_pos(&mut decoded, before);
        let left = context
            .decompress_stream(&mut output, &mut input)
            .map_err(failed)?;
        let is_at_end = input.pos() == body.len();
        if left == 0 && is_at_end {
            break;
        }
        if is_at_end && decoded.len() == before && input.pos() == read {
            return Err(Malformed("zstd: the data is truncated".to_owned()));
        }
    }
    if decoded.len() as u64 > most_bytes {
        return Err(too_long(most_bytes));
    }
    decoded.shrink_to_fit();
    Ok(decoded)
}

/// The location of a chunk that was compressed with the `dictionary` of its manifest.
pub(super) fn decompress_location(
    location: &[u8],
    dictionary: &[u8],
    most_bytes: usize,
) -> Result<String, Malformed> {
    let mut context = DCtx::try_create().ok_or_else(|| Malformed("no memory".to_owned()))?;
    let mut decoded = vec![0; most_bytes];
    let len = context
        .decompress_using_dict(decoded.as_mut_slice(), location, dictionary)
        .map_err(|code| Malformed(format!("a location: zstd: {}", get_error_name(code))))?;
    decoded.truncate(len);
    String::from_utf8(decoded).map_err(|_| Malformed("a location is not UTF-8".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(kind: u8, compression: u8, body: &[u8]) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        file.extend([b' '; 24]);
        file.extend([2, kind, compression]);
        file.extend(body);
        file
    }

    fn compressed(bytes: &[u8]) -> Vec<u8> {
        let mut body = Vec::with_capacity(zstd_safe::compress_bound(bytes.len()));
        zstd_safe::compress(&mut body, bytes, 3).unwrap();
        body
    }

    fn problem(file: Vec<u8>) -> String {
        let Malformed(problem) = table_of(&file.into(), FileKind::Snapshot, 1 << 20).unwrap_err();
        problem
    }

    #[test]
    fn tables_are_read_plain_and_compressed() {
        let body = vec![7; 600_000];
        for (compression, stored) in [(0, body.clone()), (1, compressed(&body))] {
            let file = file(1, compression, &stored);
            let table = table_of(&file.into(), FileKind::Snapshot, 1 << 20).unwrap();
            assert_eq!(table, body, "{compression}");
        }
    }

    #[test]
    fn other_files_are_refused_by_what_they_are() {
        let mut later = file(1, 0, b"");
        later[36] = 3;
        let cut = compressed(&[7; 1000]);
        for (file, expected) in [
            (b"{}".to_vec(), "no file of Icechunk"),
            (file(1, 0, b"")[..38].to_vec(), "within its header"),
            (later, "version 3"),
            (file(2, 0, b""), "kind 2, where a snapshot (1)"),
            (file(1, 9, b""), "compression 9"),
            (file(1, 1, b""), "truncated"),
            (file(1, 1, &cut[..cut.len() - 3]), "truncated"),
            (file(1, 1, b"no frame at all"), "zstd: "),
        ] {
            let problem = problem(file);
            assert!(problem.contains(expected), "{expected}: {problem}");
        }
    }

    #[test]
    fn a_short_file_does_not_become_longer_than_the_limit() {
        let bomb = compressed(&vec![0; 64 << 20]);
        assert!(bomb.len() < 100_000);
        assert!(problem(file(1, 1, &bomb)).contains("--cache-size"));
        assert!(problem(file(1, 0, &vec![0; 2 << 20])).contains("--cache-size"));
    }
}
