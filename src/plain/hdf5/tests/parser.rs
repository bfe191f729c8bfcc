//! A reader of these HDF5 files, made from the File Format Specification alone: it follows every
//! link from the superblock on, and checks every checksum.

use std::collections::BTreeMap;

use crate::codec::lookup3;

const UNDEFINED: u64 = u64::MAX;

/// An object header, taken apart.
#[derive(Debug, Default)]
pub(super) struct Object {
    pub(super) address: u64,
    /// Lengths; `None` for an object without a dataspace.
    pub(super) shape: Option<Vec<u64>>,
    /// The datatype message; for a shared datatype, that of the committed one.
    pub(super) datatype: Vec<u8>,
    pub(super) fill_value: Option<Vec<u8>>,
    /// Address (`None` if there is none) and bytes.
    pub(super) data: Option<(Option<u64>, u64)>,
    /// Names in the order of their creation, and the objects.
    pub(super) links: Vec<(String, u64)>,
    /// The stored number of references, where it is not 1.
    pub(super) references: Option<u32>,
    /// Name, datatype and value, in the order of their creation.
    pub(super) attributes: Vec<(String, Vec<u8>, Vec<u8>)>,
}

impl Object {
    pub(super) fn attribute(&self, name: &str) -> Option<&[u8]> {
        let found = self.attributes.iter().find(|(own, ..)| own == name);
        found.map(|(.., value)| value.as_slice())
    }
}

/// Every object by its path; the root's is empty.
pub(super) fn objects(file: &[u8]) -> BTreeMap<String, Object> {
    assert_eq!(file[..8], *b"\x89HDF\r\n\x1a\n");
    assert_eq!(file[8..12], [2, 8, 8, 0], "version, sizes, flags");
    assert_eq!(u64_at(file, 12), 0, "base address");
    assert_eq!(u64_at(file, 20), UNDEFINED, "no extension");
    assert_eq!(u64_at(file, 28), file.len() as u64, "end of file");
    assert_eq!(u32_at(file, 44), lookup3(0, &[], &file[..44]));
    let mut found = BTreeMap::new();
    let mut pending = vec![(String::new(), u64_at(file, 36))];
    while let Some((path, address)) = pending.pop() {
        let object = object(file, address);
        for (name, address) in &object.links {
            pending.push((format!("{path}/{name}"), *address));
        }
        assert!(found.insert(path, object).is_none(), "names differ");
    }
    found
}

fn object(file: &[u8], address: u64) -> Object {
    assert_eq!(address % 8, 0);
    let header = &file[usize::try_from(address).unwrap()..];
    assert_eq!(header[..6], *b"OHDR\x02\x06");
    let end = 10 + u32_at(header, 6) as usize;
    assert_eq!(u32_at(header, end), lookup3(0, &[], &header[..end]));
    let mut object = Object {
        address,
        ..Object::default()
    };
    let mut n_links = None;
    let mut n_attributes = 0;
    let mut at = 10;
    while at < end {
        let kind = header[at];
        let len = usize::from(u16_at(header, at + 1));
        let flags = header[at + 3];
        let number = u16_at(header, at + 4);
        let body = &header[at + 6..at + 6 + len];
        at += 6 + len;
        match kind {
            0x01 => object.shape = Some(dataspace(body)),
            0x02 => {
                assert_eq!(body[..2], [0, 1]);
                assert_eq!(body[10..26], [255; 16], "no heap, no tree");
                n_links = Some(u64_at(body, 2));
            }
            0x03 => object.datatype = datatype(file, flags & 2 != 0, body),
            0x05 => {
                assert_eq!(body[0], 3);
                let given = body[1] & 0x20 != 0;
                object.fill_value = given.then(|| {
                    assert_eq!(u32_at(body, 2) as usize, body.len() - 6);
                    body[6..].to_vec()
                });
            }
            0x06 => {
                assert_eq!(body[..2], [1, 0x15]);
                assert_eq!(u64_at(body, 2), object.links.len() as u64);
                assert_eq!(body[10], 1, "UTF-8");
                let end = 13 + usize::from(u16_at(body, 11));
                let name = String::from_utf8(body[13..end].to_vec()).unwrap();
                assert_eq!(body.len(), end + 8);
                object.links.push((name, u64_at(body, end)));
            }
            0x08 => {
                assert_eq!(body[..2], [3, 1], "contiguous");
                assert_eq!(body.len(), 18);
                let address = Some(u64_at(body, 2)).filter(|&address| address != UNDEFINED);
                object.data = Some((address, u64_at(body, 10)));
            }
            0x0a => assert_eq!(body, [0, 0]),
            0x0c => {
                assert_eq!(usize::from(number), object.attributes.len());
                object.attributes.push(attribute(file, body));
            }
            0x15 => {
                assert_eq!(body[..2], [0, 1]);
                n_attributes = usize::from(u16_at(body, 2));
                assert_eq!(body[4..20], [255; 16]);
            }
            0x16 => {
                assert_eq!(body[0], 0);
                assert_eq!(body.len(), 5);
                object.references = Some(u32_at(body, 1));
            }
            other => panic!("message {other:#x}"),
        }
    }
    assert_eq!(at, end);
    assert_eq!(n_attributes, object.attributes.len());
    assert_eq!(n_links.unwrap_or(0), object.links.len() as u64);
    object
}

fn dataspace(body: &[u8]) -> Vec<u64> {
    let rank = usize::from(body[1]);
    assert_eq!([body[0], body[2]], [2, 0]);
    assert_eq!(body.len(), 4 + 8 * rank);
    match body[3] {
        // A null dataspace has no element: here as a length of 0.
        2 => vec![0],
        kind => {
            assert_eq!(kind, u8::from(rank > 0));
            (0..rank).map(|axis| u64_at(body, 4 + 8 * axis)).collect()
        }
    }
}

fn datatype(file: &[u8], is_shared: bool, body: &[u8]) -> Vec<u8> {
    if !is_shared {
        return body.to_vec();
    }
    assert_eq!(body.len(), 10);
    assert_eq!(body[..2], [3, 2]);
    object(file, u64_at(body, 2)).datatype
}

fn attribute(file: &[u8], body: &[u8]) -> (String, Vec<u8>, Vec<u8>) {
    assert_eq!(body[0], 3);
    let [name, of, space] = [2, 4, 6].map(|at| usize::from(u16_at(body, at)));
    assert_eq!(body[8], 1, "UTF-8");
    let (text, rest) = body[9..].split_at(name);
    let text = std::str::from_utf8(text).unwrap().strip_suffix('\0');
    let (of, rest) = rest.split_at(of);
    let (space, value) = rest.split_at(space);
    let of = datatype(file, body[1] & 1 != 0, of);
    let count: u64 = dataspace(space).iter().product();
    assert_eq!(value.len() as u64, count * u64::from(u32_at(&of, 4)));
    (text.unwrap().to_owned(), of, value.to_vec())
}

/// The addresses that the value of a `DIMENSION_LIST` refers to.
pub(super) fn references(file: &[u8], value: &[u8]) -> Vec<u64> {
    let lists = heap_objects(file, value).into_iter();
    lists
        .map(|(count, object)| {
            assert_eq!((count, object.len()), (1, 8));
            u64_at(&object, 0)
        })
        .collect()
}

/// The strings that a value of variable-length strings refers to.
pub(super) fn texts(file: &[u8], value: &[u8]) -> Vec<String> {
    let strings = heap_objects(file, value).into_iter();
    strings
        .map(|(count, object)| {
            assert_eq!(count as usize, object.len());
            String::from_utf8(object).unwrap()
        })
        .collect()
}

/// The number of items, and the bytes, of each list in a value.
fn heap_objects(file: &[u8], value: &[u8]) -> Vec<(u32, Vec<u8>)> {
    let lists = value.chunks_exact(16);
    lists
        .map(|list| {
            let heap = &file[usize::try_from(u64_at(list, 4)).unwrap()..];
            assert_eq!(heap[..8], *b"GCOL\x01\0\0\0");
            let size = usize::try_from(u64_at(heap, 8)).unwrap();
            assert!(size >= 4096);
            let mut at = 16;
            loop {
                assert!(at + 16 <= size);
                let index = u32::from(u16_at(heap, at));
                assert_ne!(index, 0, "free space before the object");
                let len = usize::try_from(u64_at(heap, at + 8)).unwrap();
                if index == u32_at(list, 12) {
                    return (u32_at(list, 0), heap[at + 16..at + 16 + len].to_vec());
                }
                at += 16 + len.next_multiple_of(8);
            }
        })
        .collect()
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap())
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}
