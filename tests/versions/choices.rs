//! The random choices of a writer, within the limits of its version.

use proptest::prelude::*;

use super::codecs::{Codec, Number};
use super::kind::Kind;
use super::model::{Model, Version};
use super::types::Type;

/// Sizes along one axis: array, inner chunk, inner chunks per shard, and per inner shard.
type Axis = (usize, usize, usize, usize);

pub fn model(versions: &'static [Version]) -> impl Strategy<Value = Model> {
    let axes = prop::collection::vec((0..6_usize, 1..4_usize, 1..4_usize, 1..3_usize), 0..=4);
    let flags = prop::collection::vec(any::<bool>(), 18);
    let picks = prop::collection::vec((0..16_usize, 0..10_usize), 0..4);
    (
        prop::sample::select(versions),
        axes,
        flags,
        0..64_usize,
        picks,
        (any::<u64>(), 0..64_usize, 0..3_usize),
        any::<u64>(),
    )
        .prop_map(
            |(version, axes, flags, item, picks, (absent, fill, order), seed)| {
                Choices {
                    version,
                    axes,
                    flags,
                    item,
                    picks,
                    fill,
                    order,
                }
                .model(absent & seed, seed)
            },
        )
}

struct Choices {
    version: Version,
    axes: Vec<Axis>,
    flags: Vec<bool>,
    item: usize,
    picks: Vec<(usize, usize)>,
    fill: usize,
    order: usize,
}

impl Choices {
    fn model(mut self, absent: u64, seed: u64) -> Model {
        let version = self.version;
        if self.axes.is_empty() && matches!(version, Version::V1 | Version::PreV1) {
            // A chunk would have no name.
            self.axes.push((4, 2, 1, 1));
        }
        let rank = self.axes.len();
        if rank >= 3 {
            for axis in &mut self.axes {
                axis.0 = axis.0.min(4);
                axis.1 = axis.1.max(2);
            }
        }
        let flag = |i: usize| self.flags[i];
        let item = self.item_type();
        let codecs = self.codecs(&item);
        let by_blosc = matches!(codecs[..], [Codec::Blosc(_)]);
        let mut axes: Vec<usize> = (0..rank).collect();
        match (version, self.order) {
            (Version::PreV1, _) | (_, 0) => {}
            (Version::V1, _) if !by_blosc => {}
            (Version::V3, 1) => axes.rotate_left(usize::from(rank > 0)),
            _ => axes.reverse(),
        }
        let draft = matches!(version, Version::Protocol | Version::Core);
        let sharded = flag(0) && (draft || version == Version::V3);
        let nested = sharded && flag(1) && !draft;
        let numeric = codecs.iter().find_map(|codec| match codec {
            Codec::Delta { from, .. } | Codec::Scale { from, .. } | Codec::AsType { from, .. } => {
                Some(from)
            }
            _ => None,
        });
        let mut fill = match numeric {
            Some(number) => number.put(self.fill as i64 % 40),
            None => item.fill(self.fill),
        };
        if version != Version::V3 && item.has_odd_nan(&fill) {
            fill = item.fill(0);
        }
        let old = matches!(version, Version::V1 | Version::PreV1);
        // They had no way to say bytes.
        let unspelled = match &item {
            Type::Plain(field) => matches!(field.kind, Kind::Raw(_) | Kind::Bytes(_)),
            _ => true,
        };
        let may_be_null = old || matches!(version, Version::V2 | Version::Protocol);
        let no_fill = (may_be_null && flag(2) && flag(3)) || (old && unspelled);
        let names = [Some("y"), Some("x"), Some(""), Some("y")];
        let mut names: Vec<_> = names[..rank].to_vec();
        if version == Version::V3 && flag(4) && rank > 1 {
            names[1] = None;
        }
        Model {
            version,
            base: if flag(5) { "" } else { "d" },
            path: if flag(6) { "" } else { "g/a" },
            shape: self.axes.iter().map(|axis| axis.0).collect(),
            inner: self.axes.iter().map(|axis| axis.1).collect(),
            per_shard: sharded.then(|| self.axes.iter().map(|axis| axis.2).collect()),
            nested: nested.then(|| self.axes.iter().map(|axis| axis.3).collect()),
            axes,
            transposed_outside: flag(7) && sharded && version == Version::V3,
            codecs,
            last_compresses: flag(8),
            separator: if old || flag(9) { '.' } else { '/' },
            v2_keys: flag(10),
            index_at_start: flag(11) && !draft,
            index_checksum: flag(12) && !draft,
            gzip_inner_shards: flag(13) && !draft,
            gzip_shards: flag(14) && flag(3) && !draft,
            fill: (!no_fill).then_some(fill),
            dimension_names: (flag(15) && rank > 0).then_some(names),
            shrunk: flag(2) != flag(3),
            older: flag(16),
            item,
            absent,
            seed,
        }
    }

    fn item_type(&self) -> Type {
        let (big, mixed) = (self.flags[17], self.flags[4]);
        let mixed = mixed && !matches!(self.version, Version::V3);
        let fits = |item: &Type| match (item, self.version) {
            (Type::Strings | Type::ByteStrings, version) => {
                matches!(version, Version::V2 | Version::V3 | Version::Protocol)
            }
            (Type::Plain(field), version) => {
                field.kind != Kind::BrainFloat || version == Version::V3
            }
            (Type::Record(_), _) => true,
        };
        let all: Vec<_> = Type::all(big, mixed).into_iter().filter(fits).collect();
        all[self.item % all.len()].clone()
    }

    fn codecs(&self, item: &Type) -> Vec<Codec> {
        let mut size = item.size().max(1);
        let wide = size.min(255);
        let picks = self.picks.iter();
        match self.version {
            Version::PreV1 => return vec![Codec::Blosc(wide)],
            Version::V1 => {
                let known = [Codec::Blosc(wide), Codec::Zlib, Codec::Bz2];
                return picks
                    .take(1)
                    .map(|pick| known[pick.0 % 3].clone())
                    .collect();
            }
            Version::Core => {
                let known = [Codec::Blosc(1), Codec::Gzip];
                return picks
                    .take(2)
                    .map(|pick| known[pick.0 % 2].clone())
                    .collect();
            }
            Version::V2 | Version::V3 | Version::Protocol => {}
        }
        let mut numbers: Option<Number> = match item {
            Type::Plain(field) => match field.kind {
                Kind::Int(_) | Kind::Unsigned(_) | Kind::Float(4 | 8) => Some(Number {
                    kind: field.kind.clone(),
                    big: field.big,
                }),
                _ => None,
            },
            _ => None,
        };
        let is_bool = matches!(item, Type::Plain(field) if field.kind == Kind::Bool);
        let mut found: Vec<Codec> = Vec::new();
        for &(pick, to) in picks {
            let on_bytes = found
                .iter()
                .any(|codec| codec.is_on_bytes() || *codec == Codec::PackBits);
            let codec = match (pick, &numbers) {
                (0..=4, Some(from)) if !on_bytes && found.len() < 2 => {
                    // A second step of bytes would leave their range.
                    let pick = if found.is_empty() || from.kind.size() > 1 {
                        pick
                    } else {
                        0
                    };
                    let codec = filter(pick, to, from.clone());
                    numbers = codec.to().cloned();
                    size = numbers.as_ref().unwrap().kind.size();
                    // Differences that wrapped are large.
                    numbers = numbers.filter(|to| !matches!(to.kind, Kind::Unsigned(2..)));
                    codec
                }
                (0..=4, None) if !on_bytes && is_bool => Codec::PackBits,
                (5..=6, _) if !on_bytes && !item.is_variable() => Codec::Shuffle(size),
                (7, _) => Codec::Crc32,
                (8, _) => Codec::Adler32,
                (9, _) => Codec::Crc32c,
                (10, _) => Codec::Zlib,
                (11, _) => Codec::Gzip,
                (12, _) => Codec::Bz2,
                (13, _) => Codec::Lz4,
                (14, _) => Codec::Blosc(if on_bytes { 1 } else { size.min(255) }),
                (15, _) => Codec::Zstd,
                _ => continue,
            };
            found.push(codec);
        }
        found
    }
}

/// A filter of numbers from 0 to 60, or what others made of them.
fn filter(pick: usize, to: usize, from: Number) -> Codec {
    let unsigned = matches!(from.kind, Kind::Unsigned(_));
    let kinds: [Kind; 5] = [
        Kind::Int(2),
        Kind::Int(4),
        Kind::Int(8),
        Kind::Float(4),
        Kind::Float(8),
    ];
    let kind = kinds[to % 5].clone();
    let mut to = Number { kind, big: to >= 5 };
    match pick {
        0 | 1 => {
            if unsigned {
                // Differences wrap.
                to = Number {
                    big: to.big && from.kind.size() > 1,
                    ..from.clone()
                };
            }
            if matches!(from.kind, Kind::Int(_)) && matches!(to.kind, Kind::Float(_)) {
                // Refused by name.
                to.kind = Kind::Int(to.kind.size());
            }
            Codec::Delta { from, to }
        }
        2 | 3 => {
            let offset = if unsigned { 0 } else { 10 };
            if from.kind.size() == 1 {
                // 60 times 2 is in range, and so is minus 20.
                return Codec::Scale {
                    offset,
                    scale: 2,
                    to: from.clone(),
                    from,
                };
            }
            Codec::Scale {
                offset,
                scale: 2,
                from,
                to,
            }
        }
        _ => Codec::AsType { from, to },
    }
}
