//! The references of a generator, each of which is made when it is asked for.
//!
//! ```text
//! key "x/{{i}}.{{2 * j}}"    indices 7, 4 ──> i = 7, j = 2 ──> url, offset and length
//! ```
//!
//! That needs a key in which each expression is one index, and names one dimension that no other names. The indices of an
//! axis then depend on that dimension alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::axis::Axis;
use super::generated::Generator;
use super::grid_key::{GridKey, Indices, most_index};
use super::row::{Found, ReferenceValue};
use super::stored_rows::first_of_product;
use super::templates::Templates;
use crate::store::Key;

/// The most addresses that are computed to find out which targets a generator names.
const MOST_ADDRESSES: u64 = 10_000;

/// All references of a generator.
#[derive(Debug)]
pub(super) struct Product {
    keys: ProductKeys,
    generator: Generator,
    templates: Arc<Templates>,
}

/// The keys of a product.
#[derive(Debug)]
pub(super) struct ProductKeys {
    pub(super) head: Vec<u8>,
    pub(super) separator: u8,
    pub(super) axes: Vec<ProductAxis>,
}

/// The indices at one place of the keys.
#[derive(Debug)]
pub(super) struct ProductAxis {
    indices: Axis,
    /// The number of the dimension that makes them; `None` if all keys have the same index.
    dimension: Option<usize>,
}

impl ProductKeys {
    /// The keys of `generator`, if their indices depend on one dimension each, and what is known of them takes at most
    /// `most_bytes`.
    pub(super) fn of(
        generator: &Generator,
        templates: &Templates,
        most_bytes: u64,
    ) -> Option<ProductKeys> {
        let skeleton = generator.key_skeleton(templates).ok()?;
        Key::parse(skeleton.text.as_bytes()).ok()?;
        let key = GridKey::parse(skeleton.text.as_bytes())?;
        let mut left_bytes = most_bytes;
        let mut dimensions = BTreeSet::new();
        let mut expressions = skeleton.expressions.into_iter().peekable();
        let mut start = key.head.len();
        let mut axes = Vec::with_capacity(key.indices.len());
        for &index in &key.indices {
            let end = start + index.to_string().len();
            axes.push(match expressions.next_if(|(at, _)| *at < end) {
                None => ProductAxis {
                    indices: Axis::of(1, 0, |_| Some(index))?,
                    dimension: None,
                },
                // Digits beside the expression are a part of the same index.
                Some((at, _)) if at != start || end != start + 1 => return None,
                Some((_, expression)) => {
                    let dimension = generator.only_dimension(expression)?;
                    if !dimensions.insert(dimension) {
                        return None;
                    }
                    let most_index = most_index(key.indices.len());
                    let indices = Axis::of(generator.len_of(dimension)?, left_bytes, |place| {
                        let value = generator.value_at(expression, dimension, place)?;
                        u32::try_from(value)
                            .ok()
                            .filter(|&index| index <= most_index)
                    })?;
                    left_bytes -= indices.memory_bytes();
                    ProductAxis {
                        indices,
                        dimension: Some(dimension),
                    }
                }
            });
            start = end + 1;
        }
        Some(ProductKeys {
            head: key.head.to_vec(),
            separator: key.separator,
            axes,
        })
    }
}

impl Product {
    pub(super) fn new(
        keys: ProductKeys,
        generator: Generator,
        templates: &Arc<Templates>,
    ) -> Product {
        Product {
            keys,
            generator,
            templates: Arc::clone(templates),
        }
    }

    pub(super) fn keys(&self) -> &ProductKeys {
        &self.keys
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        let axes = self
            .keys
            .axes
            .iter()
            .map(|axis| axis.indices.memory_bytes());
        self.generator.memory_bytes() + axes.sum::<u64>()
    }

    pub(super) fn get(&self, indices: &[u32]) -> Option<Found> {
        // Of several combinations of values with one key, the last counts.
        let mut places = self.generator.last_places();
        for (axis, &index) in self.keys.axes.iter().zip(indices) {
            let place = axis.indices.place(index)?;
            if let Some(of) = axis.dimension.and_then(|at| places.get_mut(at)) {
                *of = place;
            }
        }
        Some(match self.generator.reference(&places, &self.templates) {
            Ok(ReferenceValue::Whole(address)) => Found::At(address.into(), None),
            Ok(ReferenceValue::Range(address, offset, len)) => {
                Found::At(address.into(), Some((offset, len)))
            }
            Ok(ReferenceValue::Inline(bytes)) => Found::Inline(bytes.into()),
            Ok(ReferenceValue::Bad(problem)) | Err(problem) => Found::Bad(problem),
        })
    }

    /// The first indices that have a reference and are not before `indices`.
    pub(super) fn first_from(&self, indices: &[u32]) -> Option<Indices> {
        first_of_product(indices, |axis, start| {
            self.keys.axes.get(axis)?.indices.first_from(start)
        })
    }

    /// The addresses of targets, or many of them.
    pub(super) fn some_addresses(&self) -> BTreeSet<String> {
        self.generator
            .some_addresses(&self.templates, MOST_ADDRESSES)
    }
}
