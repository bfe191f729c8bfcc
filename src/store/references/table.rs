//! All references of a set in JSON, in memory.
//!
//! Keys that end in indices are in grids ([`Grid`]), by their heads. All other keys, such as those of documents, are in
//! a map. Addresses and the bytes that the set itself has are kept once.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;

use super::budget::{ENTRY_BYTES, TooLarge};
use super::grid::{Grid, GridBuilder};
use super::grid_key::{GridKey, Indices, index};
use super::product::{Product, ProductKeys};
use super::row::{Found, MOST_ADDRESSES, ReferenceValue, Row};
use super::stored_rows::ROW_BYTES;
use crate::store::key::is_too_deep;
use crate::store::{Key, Prefix};

/// References that are still added.
#[derive(Debug)]
pub(super) struct TableBuilder {
    grids: HashMap<Vec<u8>, Vec<(u8, usize, GridBuilder)>>,
    others: BTreeMap<Vec<u8>, Row>,
    addresses: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32>,
    inline: Vec<u8>,
    /// Memory so far, and the most.
    memory_bytes: u64,
    most_bytes: u64,
    /// The number of keys that cannot be names of files, and are left out.
    pub(super) n_invalid: u64,
}

/// The references of a set.
#[derive(Debug)]
pub(super) struct Table {
    grids: BTreeMap<Vec<u8>, Vec<(u8, Grid)>>,
    others: BTreeMap<Vec<u8>, Row>,
    addresses: Vec<Arc<str>>,
    inline: Bytes,
}

impl TableBuilder {
    pub(super) fn new(most_bytes: u64) -> TableBuilder {
        TableBuilder {
            grids: HashMap::new(),
            others: BTreeMap::new(),
            addresses: Vec::new(),
            numbers: HashMap::new(),
            inline: Vec::new(),
            memory_bytes: 0,
            most_bytes,
            n_invalid: 0,
        }
    }

    /// The memory that the table may take.
    pub(super) fn most_bytes(&self) -> u64 {
        self.most_bytes
    }

    /// The memory that is left.
    pub(super) fn left_bytes(&self) -> u64 {
        self.most_bytes.saturating_sub(self.memory_bytes)
    }

    /// Adds the reference at `key`, in place of an earlier one.
    pub(super) fn add(&mut self, key: &[u8], value: ReferenceValue) -> Result<(), TooLarge> {
        if Key::parse(key).is_err() || is_too_deep(key) {
            self.n_invalid += 1;
            // A generator may make millions of them.
            return self.take(ROW_BYTES + key.len() as u64);
        }
        let row = match value {
            ReferenceValue::Inline(bytes) => {
                let (offset, len) = self.add_bytes(&bytes)?;
                Row::Inline { offset, len }
            }
            ReferenceValue::Bad(problem) => {
                let (offset, len) = self.add_bytes(problem.as_bytes())?;
                Row::Bad { offset, len }
            }
            ReferenceValue::Whole(address) => Row::Whole {
                address: self.number(&address)?,
            },
            ReferenceValue::Range(address, offset, len) => Row::Range {
                address: self.number(&address)?,
                offset,
                len,
            },
        };
        let Some(found) = GridKey::parse(key) else {
            self.take(ENTRY_BYTES + key.len() as u64)?;
            self.others.insert(key.to_vec(), row);
            return Ok(());
        };
        // Most grids are dense in the end; that is checked when all rows are known.
        self.take(ROW_BYTES)?;
        let grid = self.grid(found.head, found.separator, found.indices.len())?;
        grid.push(&found.indices, row);
        Ok(())
    }

    /// Adds all references of `product`, in place of earlier ones with its keys.
    pub(super) fn add_product(&mut self, product: Product) -> Result<(), TooLarge> {
        self.take(product.memory_bytes())?;
        let ProductKeys {
            head,
            separator,
            axes,
        } = product.keys();
        let grid = self.grid(head, *separator, axes.len())?;
        grid.push_product(product);
        Ok(())
    }

    /// The grid of keys with this head, separator and number of indices.
    fn grid(
        &mut self,
        head: &[u8],
        separator: u8,
        n_indices: usize,
    ) -> Result<&mut GridBuilder, TooLarge> {
        if !self.grids.contains_key(head) {
            self.take(ENTRY_BYTES + head.len() as u64)?;
            self.grids.insert(head.to_vec(), Vec::new());
        }
        let of_head = self.grids.get_mut(head).ok_or(TooLarge)?;
        let known = of_head
            .iter()
            .position(|(by, n, _)| (*by, *n) == (separator, n_indices));
        let at = known.unwrap_or(of_head.len());
        if known.is_none() {
            of_head.push((separator, n_indices, GridBuilder::new(n_indices)));
        }
        of_head.get_mut(at).map(|(_, _, grid)| grid).ok_or(TooLarge)
    }

    /// Adds bytes that the set itself has, and returns their place.
    fn add_bytes(&mut self, bytes: &[u8]) -> Result<(u64, u64), TooLarge> {
        let (offset, len) = (self.inline.len() as u64, bytes.len() as u64);
        self.take(len)?;
        self.inline.extend_from_slice(bytes);
        Ok((offset, len))
    }

    /// The number of an address.
    fn number(&mut self, address: &str) -> Result<u32, TooLarge> {
        if let Some(number) = self.numbers.get(address) {
            return Ok(*number);
        }
        let number = u32::try_from(self.addresses.len()).unwrap_or(MOST_ADDRESSES);
        if number >= MOST_ADDRESSES {
            return Err(TooLarge);
        }
        self.take(ENTRY_BYTES + address.len() as u64)?;
        let address: Arc<str> = address.into();
        self.addresses.push(Arc::clone(&address));
        self.numbers.insert(address, number);
        Ok(number)
    }

    fn take(&mut self, bytes: u64) -> Result<(), TooLarge> {
        self.memory_bytes = self.memory_bytes.saturating_add(bytes);
        if self.memory_bytes > self.most_bytes {
            return Err(TooLarge);
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Table {
        drop(self.numbers);
        let mut inline = self.inline;
        inline.shrink_to_fit();
        let grids = self.grids.into_iter().map(|(head, of_head)| {
            let each = of_head.into_iter();
            let mut grids: Vec<_> = each.map(|(by, _, grid)| (by, grid.finish())).collect();
            grids.sort_by_key(|(by, grid)| (*by, grid.n_indices()));
            (head, grids)
        });
        Table {
            grids: grids.collect(),
            others: self.others,
            addresses: self.addresses,
            inline: inline.into(),
        }
    }
}

impl Table {
    /// Memory of the table.
    pub(super) fn memory_bytes(&self) -> u64 {
        let grids = self.grids.iter().map(|(head, grids)| {
            let rows: u64 = grids.iter().map(|(_, grid)| grid.memory_bytes()).sum();
            ENTRY_BYTES + head.len() as u64 + rows
        });
        let others = self.others.keys().map(|key| ENTRY_BYTES + key.len() as u64);
        let addresses = self
            .addresses
            .iter()
            .map(|it| ENTRY_BYTES + it.len() as u64);
        let all: u64 = grids.chain(others).chain(addresses).sum();
        all + self.inline.len() as u64
    }

    /// The addresses of all targets, still templates; and many of those that generators name.
    pub(super) fn addresses(&self) -> impl Iterator<Item = Arc<str>> {
        let generated = self.products().flat_map(Product::some_addresses);
        self.addresses
            .iter()
            .cloned()
            .chain(generated.map(Arc::from))
    }

    /// The generators whose references are made when they are asked for.
    pub(super) fn products(&self) -> impl Iterator<Item = &Product> {
        let grids = self.grids.values().flatten();
        grids.flat_map(|(_, grid)| grid.products())
    }

    /// The reference at `key`.
    pub(super) fn get(&self, key: &[u8]) -> Option<Found> {
        let of_row = |row: Row| row.found(&self.addresses, &self.inline);
        if let Some(row) = self.others.get(key) {
            return of_row(*row);
        }
        let found = GridKey::parse(key)?;
        let of_head = self.grids.get(found.head)?;
        let mut same = of_head
            .iter()
            .filter(|(by, grid)| *by == found.separator && grid.n_indices() == found.indices.len());
        same.find_map(|(_, grid)| grid.get(&found.indices, of_row))
    }

    /// Whether keys lie below `prefix`.
    pub(super) fn has_prefix(&self, prefix: &Prefix) -> bool {
        prefix.is_root()
            || self.next_name(prefix, None).is_some()
            || self
                .grids_in(prefix)
                .any(|(_, grid, fixed)| grid.next_value(&fixed, 0).is_some())
    }

    /// The first name below `prefix` after `after` that is not an index.
    pub(super) fn next_name(&self, prefix: &Prefix, after: Option<&Name>) -> Option<Name> {
        let start = prefix.join(b"");
        let bound = match after {
            None => Bound::Excluded(start.clone()),
            Some(name) if name.is_prefix => {
                // `0` is the byte that follows `/`.
                Bound::Included([start.as_slice(), &name.bytes, b"0"].concat())
            }
            Some(name) => Bound::Excluded([start.as_slice(), &name.bytes].concat()),
        };
        let bounds = (bound, Bound::Unbounded);
        let others = self.others.range::<Vec<u8>, _>(bounds.clone()).next();
        let heads = self.grids.range::<Vec<u8>, _>(bounds).next();
        let keys = others
            .map(|(key, _)| key)
            .into_iter()
            .chain(heads.map(|(head, _)| head));
        let names = keys.filter_map(|key| Name::first(key.strip_prefix(start.as_slice())?));
        names.min_by_key(Name::ordered)
    }

    /// The grids that have names below `prefix`, each with its separator and with the indices that the prefix has.
    pub(super) fn grids_in(&self, prefix: &Prefix) -> impl Iterator<Item = (u8, &Grid, Indices)> {
        let start = prefix.join(b"");
        let mut fixed = Indices::new();
        let mut heads = vec![(start.clone(), fixed.clone())];
        let mut head = start.as_slice();
        // A head may end before indices of the prefix.
        while let Some(without) = head.strip_suffix(b"/") {
            let at = without.iter().rposition(|&byte| byte == b'/');
            let start = at.map_or(0, |at| at + 1);
            let found = without.get(start..).and_then(index);
            let (Some(found), true) = (found, fixed.len() < 16) else {
                break;
            };
            fixed.insert(0, found);
            head = without.get(..start).unwrap_or_default();
            heads.push((head.to_vec(), fixed.clone()));
        }
        heads.into_iter().flat_map(move |(head, fixed)| {
            let grids = self.grids.get(&head).into_iter().flatten();
            let within = grids.filter_map(move |(by, grid)| {
                let is_within = fixed.is_empty() || (*by == b'/' && fixed.len() < grid.n_indices());
                is_within.then(|| (*by, grid, fixed.clone()))
            });
            within.collect::<Vec<_>>()
        })
    }
}

/// A segment of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) bytes: Vec<u8>,
    pub(super) is_prefix: bool,
}

impl Name {
    /// The first segment of `rest`; `None` if there is none.
    fn first(rest: &[u8]) -> Option<Name> {
        let slash = rest.iter().position(|&byte| byte == b'/');
        let bytes = rest.get(..slash.unwrap_or(rest.len()))?.to_vec();
        (!bytes.is_empty()).then_some(Name {
            bytes,
            is_prefix: slash.is_some(),
        })
    }

    /// Bytes that are in the order of keys.
    fn ordered(&self) -> Vec<u8> {
        let slash: &[u8] = if self.is_prefix { b"/" } else { b"" };
        [&self.bytes, slash].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(keys: &[&str]) -> Table {
        let mut builder = TableBuilder::new(1 << 20);
        for key in keys {
            let value = ReferenceValue::Inline(key.as_bytes().to_vec());
            builder.add(key.as_bytes(), value).unwrap();
        }
        builder.finish()
    }

    #[test]
    fn references_are_found_by_their_keys() {
        let keys = ["x/.zarray", "x/0.1", "x/1.0", "y/c/0/1", "z", "0/0", "7"];
        let table = table(&keys);
        for key in keys {
            let expected = Found::Inline(Bytes::copy_from_slice(key.as_bytes()));
            assert_eq!(table.get(key.as_bytes()), Some(expected), "{key}");
        }
        for key in ["x/0.0", "x/0/1", "y/c/0", "y", "x/0.1.0", "8"] {
            assert_eq!(table.get(key.as_bytes()), None, "{key}");
        }
        for (prefix, expected) in [("x", true), ("y/c/0", true), ("y/c/1", false), ("z", false)] {
            let prefix = Prefix::parse(prefix.as_bytes()).unwrap();
            assert_eq!(table.has_prefix(&prefix), expected, "{prefix:?}");
        }
    }

    #[test]
    fn names_are_in_the_order_of_keys() {
        let table = table(&["a", "a-1", "a/b", "a/0.0", "c/0/0", "c/.zarray", "d"]);
        let mut names = Vec::new();
        let mut after = None;
        while let Some(name) = table.next_name(&Prefix::root(), after.as_ref()) {
            names.push((
                String::from_utf8(name.bytes.clone()).unwrap(),
                name.is_prefix,
            ));
            after = Some(name);
        }
        let expected = [
            ("a", false),
            ("a-1", false),
            ("a", true),
            ("c", true),
            ("d", false),
        ];
        assert_eq!(names, expected.map(|(name, is)| (name.to_owned(), is)));
    }

    #[test]
    fn keys_that_are_no_names_count_as_memory() {
        let mut builder = TableBuilder::new(1000);
        let add = |builder: &mut TableBuilder| {
            let value = ReferenceValue::Inline(Vec::new());
            builder.add(b"../x", value)
        };
        let added = std::iter::repeat_with(|| add(&mut builder)).take(100);
        assert!((10..90).contains(&added.take_while(Result::is_ok).count()));
    }

    #[test]
    fn memory_is_bounded_and_the_last_value_counts() {
        let mut builder = TableBuilder::new(1000);
        let value = |len| ReferenceValue::Inline(vec![0; len]);
        builder.add(b"a", value(100)).unwrap();
        assert_eq!(builder.add(b"b", value(1000)), Err(TooLarge));
        let mut builder = TableBuilder::new(1 << 20);
        let deep = "d/".repeat(256) + "x";
        for (key, value) in [
            ("x/0", ReferenceValue::Bad("no".to_owned())),
            ("x/0", ReferenceValue::Whole("u".to_owned())),
            ("../x", value(1)),
            (&deep, value(1)),
        ] {
            builder.add(key.as_bytes(), value).unwrap();
        }
        assert_eq!(builder.n_invalid, 2);
        let table = builder.finish();
        assert_eq!(table.get(b"x/0"), Some(Found::At("u".into(), None)));
    }
}
