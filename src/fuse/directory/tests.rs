//! A stream over numbers, read through replies of any size, from any offset.

use super::*;
use Fit::{Added, Full};

/// Entries 100, 101, … with a count of requests.
struct Numbers {
    count: usize,
    at: usize,
    fails_at: Option<usize>,
    seeks: usize,
    releases: usize,
    examined: std::cell::Cell<usize>,
    details: Vec<Detail>,
}

impl EntrySource for Numbers {
    type Entry = usize;
    type Position = usize;
    const START: usize = 0;

    fn position(&self) -> usize {
        self.at
    }

    fn seek(&mut self, position: usize) -> Result<(), Error> {
        self.seeks += 1;
        self.at = position;
        Ok(())
    }

    fn next_entry(&mut self, detail: Detail) -> Result<Option<usize>, Error> {
        self.details.push(detail);
        if self.fails_at == Some(self.at) {
            return Err(Error::Stale);
        }
        if self.at >= self.count {
            return Ok(None);
        }
        self.at += 1;
        Ok(Some(99 + self.at))
    }

    fn examine(&self, _: &mut usize) {
        self.examined.set(self.examined.get() + 1);
    }

    fn release(&mut self) {
        self.releases += 1;
    }
}

fn stream(count: usize) -> Stream<Numbers> {
    Stream::new(Numbers {
        count,
        at: 0,
        fails_at: None,
        seeks: 0,
        releases: 0,
        examined: std::cell::Cell::new(0),
        details: Vec::new(),
    })
}

/// `.` is 0, `..` is 1.
fn value(item: &StreamItem<'_, usize>) -> usize {
    match item {
        StreamItem::This => 0,
        StreamItem::Parent => 1,
        StreamItem::Entry(number) => **number,
    }
}

/// A reply with room for `room` items: the items that it got, with the offsets behind them.
fn reply(
    stream: &mut Stream<Numbers>,
    offset: u64,
    room: usize,
    detail: Detail,
) -> Result<Vec<(usize, u64)>, Error> {
    let mut got = Vec::new();
    stream.read(offset, detail, |item, next| {
        if got.len() == room {
            return Full;
        }
        got.push((value(&item), next));
        Added
    })?;
    Ok(got)
}

fn names(stream: &mut Stream<Numbers>, offset: u64, room: usize) -> Vec<(usize, u64)> {
    reply(stream, offset, room, Detail::Names).unwrap()
}

/// The entries that a stream of `count` entries shows after `offset`.
fn expected(count: usize, offset: u64) -> Vec<(usize, u64)> {
    let all = [0, 1].into_iter().chain(100..100 + count);
    let offset = usize::try_from(offset).unwrap();
    all.zip(1..).skip(offset).collect()
}

#[test]
fn replies_of_any_size_show_each_entry_once_without_a_seek() {
    for room in 1..12 {
        let mut stream = stream(9);
        let (mut seen, mut offset) = (Vec::new(), 0);
        loop {
            let got = names(&mut stream, offset, room);
            let Some(last) = got.last() else { break };
            offset = last.1;
            seen.extend(got);
        }
        assert_eq!(seen, expected(9, 0), "room for {room}");
        assert_eq!(stream.entries.seeks, 0, "what did not fit was held");
    }
}

#[test]
fn every_offset_of_the_last_reply_can_be_read_again() {
    for again in 2..9 {
        let mut stream = stream(20);
        names(&mut stream, 0, 2);
        names(&mut stream, 2, 6);
        assert_eq!(names(&mut stream, again, 100), expected(20, again));
        let asked = stream.entries.details.len();
        // 6 entries, one that did not fit, then the rest and the end: nothing is passed over.
        let rest = 20 - (usize::try_from(again).unwrap() - 2) + 1;
        let held = usize::from(again == 8);
        assert_eq!(asked, 7 + rest - held, "from {again}");
    }
}

#[test]
fn older_and_made_up_offsets_are_reached_from_the_start() {
    let mut stream = stream(20);
    for offset in [0, 2, 8, 14] {
        names(&mut stream, offset, 6);
    }
    for offset in [3, 0, 1, 2, 17, 22] {
        assert_eq!(names(&mut stream, offset, 100), expected(20, offset));
    }
    assert_eq!(names(&mut stream, 1000, 100), []);
    assert_eq!(names(&mut stream, 5, 2), expected(20, 5)[..2]);
}

#[test]
fn rewinding_lists_again() {
    let mut stream = stream(0);
    assert_eq!(names(&mut stream, 0, 100), expected(0, 0));
    stream.entries.count = 3;
    assert_eq!(names(&mut stream, 0, 100), expected(3, 0));
    assert_eq!(names(&mut stream, 5, 100), []);
}

#[test]
fn a_reply_without_room_loses_nothing() {
    let mut stream = stream(2);
    for offset in 0..4 {
        assert_eq!(names(&mut stream, offset, 0), []);
    }
    assert_eq!(names(&mut stream, 0, 100), expected(2, 0));
}

#[test]
fn a_held_entry_gets_its_attributes_without_going_back() {
    let mut stream = stream(3);
    names(&mut stream, 0, 2);
    assert_eq!(stream.entries.details, [Detail::Names]);
    let got = reply(&mut stream, 2, 1, Detail::Attributes).unwrap();
    assert_eq!(got, [(100, 3)]);
    assert_eq!(stream.entries.details[1..], [Detail::Attributes]);
    assert_eq!(stream.entries.examined.get(), 1);
    assert_eq!(names(&mut stream, 3, 1), [(101, 4)]);
    assert_eq!(
        stream.entries.seeks, 0,
        "attributes that no caller wants do no harm"
    );
}

#[test]
fn an_error_is_returned_after_the_entries_before_it() {
    let mut stream = stream(5);
    stream.entries.fails_at = Some(2);
    assert_eq!(names(&mut stream, 0, 100), expected(2, 0));
    assert!(reply(&mut stream, 4, 100, Detail::Names).is_err());
    assert!(
        reply(&mut stream, 4, 100, Detail::Names).is_err(),
        "never an end"
    );
    stream.entries.fails_at = None;
    assert_eq!(names(&mut stream, 4, 100), expected(5, 4));
}

#[test]
fn a_stream_releases_its_source_after_each_reply() {
    let mut stream = stream(5);
    for (offset, releases) in [(0, 1), (3, 2)] {
        let mut room = 3;
        stream
            .read(offset, Detail::Names, |_, _| {
                room -= 1;
                if room < 0 { Full } else { Added }
            })
            .unwrap();
        assert_eq!(stream.entries.releases, releases);
    }
}
