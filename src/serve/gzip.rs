//! JSON documents are sent compressed to clients that like it.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::HeaderMap;
use hyper::header::ACCEPT_ENCODING;

use super::content_type::JSON;

/// The end of the entity tags of compressed bytes.
pub(super) const FORM: &str = "gzip";
/// The shortest document that is compressed.
const LEAST_BYTES: u64 = 512;
/// The longest document that is compressed. It is in memory as a whole.
pub(super) const MOST_BYTES: u64 = 4 << 20;

/// Whether a file of this type and length is compressed.
pub(super) fn is_compressed(content_type: &str, len: u64) -> bool {
    content_type == JSON && (LEAST_BYTES..=MOST_BYTES).contains(&len)
}

/// Whether the client takes compressed bytes.
pub(super) fn is_accepted(headers: &HeaderMap) -> bool {
    let lists = headers.get_all(ACCEPT_ENCODING).into_iter();
    let codings = lists.filter_map(|list| list.to_str().ok());
    codings.flat_map(|list| list.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts
            .next()
            .is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        is_gzip && !parts.any(is_zero)
    })
}

/// Whether a parameter says that a coding is not wanted: `q=0`, with any number of decimals.
fn is_zero(parameter: &str) -> bool {
    let weight = parameter
        .strip_prefix("q=")
        .or(parameter.strip_prefix("Q="));
    weight
        .is_some_and(|weight| weight.starts_with('0') && weight.bytes().all(|b| b"0.".contains(&b)))
}

/// `bytes`, compressed.
pub(super) fn compress(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("a vector takes all");
    encoder.finish().expect("a vector takes all")
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn clients_say_what_they_take() {
        for (header, accepts) in [
            ("gzip", true),
            ("deflate, gzip;q=0.5, br", true),
            ("GZIP ; q=1", true),
            ("gzip;q=0", false),
            ("gzip; q=0.000", false),
            ("br", false),
            ("*", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, header.parse().unwrap());
            assert_eq!(is_accepted(&headers), accepts, "{header}");
        }
        assert!(!is_accepted(&HeaderMap::new()));
    }

    #[test]
    fn documents_come_back() {
        let text = b"{\"a\": 1}".repeat(1000);
        let packed = compress(&text);
        assert!(packed.len() < text.len() / 10);
        let mut back = Vec::new();
        flate2::read::GzDecoder::new(&packed[..])
            .read_to_end(&mut back)
            .unwrap();
        assert_eq!(back, text);
        assert!(is_compressed(JSON, 8000));
        assert!(!is_compressed(JSON, 100) && !is_compressed(JSON, 1 << 30));
        assert!(!is_compressed("image/png", 8000));
    }
}
