//! The objects of a file: an object header for each group, array, dimension and named type, linked
//! by name.

use std::collections::VecDeque;
use std::fmt::Write;

use super::attribute::{self, Own};
use super::block::{FileBlocks, Pointee};
use super::dataset;
use super::datatype;
use super::dimension::{self, Scale};
use super::header::ObjectHeader;
use super::heap::Heap;
use super::types::CommittedTypes;
use crate::error::FormatError;
use crate::plain::cf::attributes::{OMITTED, set_text};
use crate::plain::cf::{self, Attribute, CfValue, Dimensions, Names};
use crate::plain::{Array, Elements, Group, Omitted};

/// The longest value of `zarr_omitted` in bytes.
const MOST_OMITTED: usize = 60_000;

/// The attribute with the original name of an object whose name HDF5 or `NetCDF` cannot have.
const ORIGINAL_NAME: &str = "zarr_name";

/// Links of a group: names and blocks of object headers, in creation order.
type Links = Vec<(String, usize)>;

/// The blocks of the file of `group`, the block of its root group, and what the file omits.
///
/// # Errors
///
/// When the headers would exceed the memory limit.
pub(super) fn of(group: &Group) -> Result<(FileBlocks, usize, Vec<Omitted>), FormatError> {
    let mut tree = ObjectTree::default();
    let root = tree.blocks.reserve();
    let mut pending = VecDeque::new();
    let (mut names, root_links) = tree.members(group, "", &mut pending)?;
    while let Some(child) = pending.pop_front() {
        let (_, links) = tree.members(child.group, &child.path, &mut pending)?;
        let mut attributes = cf::attributes::of_group(child.group, &[]);
        if child.name != child.group.name {
            set_text(&mut attributes, ORIGINAL_NAME, &child.group.name);
        }
        let header = tree.group(&attributes, &child.path);
        tree.finish_group(header, child.block, &links)?;
    }

    // Links to named types come first: readers must see a type before the datasets that use it.
    let mut links: Links = tree.types.links(&mut names);
    links.extend(root_links);
    let attributes = cf::attributes::of_group(group, &[]);
    let mut header = tree.group(&attributes, "");
    if !tree.omitted.is_empty() {
        let value = CfValue::Text(lines(&tree.omitted));
        attribute::add(&mut header, OMITTED, &value, None)?;
    }
    tree.finish_group(header, root, &links)?;
    tree.heap.finish(&mut tree.blocks)?;
    tree.types.finish(&mut tree.blocks)?;
    Ok((tree.blocks, root, tree.omitted))
}

#[derive(Debug, Default)]
struct ObjectTree {
    blocks: FileBlocks,
    heap: Heap,
    types: CommittedTypes,
    n_dimensions: i64,
    omitted: Vec<Omitted>,
}

/// An array that HDF5 can hold.
struct ArrayObject<'a> {
    array: &'a Array,
    elements: Elements,
    /// The indices of its dimension scales.
    dimensions: Vec<usize>,
    name: String,
    block: usize,
}

/// A subgroup whose header is still to be written.
struct GroupObject<'a> {
    group: &'a Group,
    /// Its path relative to the group of the file, with a slash at the end.
    path: String,
    name: String,
    block: usize,
}

impl ObjectTree {
    /// Writes the children of `group`, except that subgroups are added to `pending`.
    fn members<'a>(
        &mut self,
        group: &'a Group,
        path: &str,
        pending: &mut VecDeque<GroupObject<'a>>,
    ) -> Result<(Names, Links), FormatError> {
        for omitted in &group.omitted {
            self.omit(format!("{path}{}", omitted.name), omitted.reason.clone());
        }
        let mut names = Names::default();
        let mut members = self.arrays(group, path, &mut names);
        let mut groups = Vec::new();
        for child in &group.groups {
            let block = self.blocks.reserve();
            let name = names.take(&child.name);
            groups.push((name.clone(), block));
            pending.push_back(GroupObject {
                group: child,
                path: format!("{path}{}/", child.name),
                name,
                block,
            });
        }

        let mut dimensions = Dimensions::new(members.iter().map(|member| member.array));
        for member in &mut members {
            let array = member.array;
            let axes = array.dimension_names.iter().zip(&array.shape);
            member.dimensions = axes
                .map(|(name, &len)| dimensions.take(name.as_deref(), len))
                .collect();
        }

        let mut links = Links::new();
        let scales = self.scales(&dimensions, &members, &mut names, &mut links)?;
        for member in members {
            self.array(&member, &scales, path)?;
            if !cf::is_coordinate(member.array) {
                links.push((member.name, member.block));
            }
        }
        links.extend(groups);
        Ok((names, links))
    }

    /// The arrays of `group` that HDF5 can hold, coordinate variables first.
    fn arrays<'a>(
        &mut self,
        group: &'a Group,
        path: &str,
        names: &mut Names,
    ) -> Vec<ArrayObject<'a>> {
        let mut members = Vec::new();
        for array in cf::coordinates_first(group) {
            match dataset::elements(array) {
                Ok(elements) => members.push(ArrayObject {
                    array,
                    elements,
                    dimensions: Vec::new(),
                    name: names.take(&array.name),
                    block: self.blocks.reserve(),
                }),
                Err(reason) => self.omit(format!("{path}{}", array.name), reason),
            }
        }
        members
    }

    /// The scale of each of `dimensions`: its coordinate variable, or a dataset of its own.
    fn scales(
        &mut self,
        dimensions: &Dimensions,
        members: &[ArrayObject<'_>],
        names: &mut Names,
        links: &mut Links,
    ) -> Result<Vec<Scale>, FormatError> {
        let mut coordinates = vec![None; dimensions.list().len()];
        for member in members.iter().filter(|m| cf::is_coordinate(m.array)) {
            let own = member.dimensions.first().copied();
            if let Some(coordinate) = own.and_then(|own| coordinates.get_mut(own)) {
                *coordinate = Some(member);
            }
        }
        let mut scales = Vec::with_capacity(coordinates.len());
        for (dimension, coordinate) in dimensions.list().iter().zip(coordinates) {
            let mut scale = Scale {
                block: 0,
                id: self.n_dimensions,
            };
            self.n_dimensions += 1;
            let name = if let Some(member) = coordinate {
                scale.block = member.block;
                member.name.clone()
            } else {
                let block = scale.without_variable(dimension.len)?;
                scale.block = self.blocks.add(block)?;
                names.take(&dimension.name)
            };
            links.push((name, scale.block));
            scales.push(scale);
        }
        Ok(scales)
    }

    /// Writes the header of an array.
    fn array(
        &mut self,
        member: &ArrayObject<'_>,
        scales: &[Scale],
        path: &str,
    ) -> Result<(), FormatError> {
        let array = member.array;
        let element = &array.data_type.element;
        let (spelled, _) = datatype::of_array(element)?;
        let datatype = self.types.get(element, spelled, &mut self.blocks)?;
        let len = member.elements.len;
        let transform = member.elements.transform;
        let elements = member.elements.clone();
        let payload = (len > 0).then(|| Pointee::Payload(self.blocks.add_payload(elements)));

        let mut header = ObjectHeader::new();
        header
            .dataspace(Some(&array.shape))?
            .datatype(&datatype)?
            .fill_value(dataset::fill_value(array, transform).as_deref())?
            .layout(payload, len)?;
        let own_dimension = member.dimensions.first().and_then(|&own| scales.get(own));
        match own_dimension {
            Some(scale) if cf::is_coordinate(array) => scale.mark(&mut header, &member.name)?,
            Some(_) => {
                let (heap, blocks) = (&mut self.heap, &mut self.blocks);
                dimension::attach(&mut header, &member.dimensions, scales, heap, blocks)?;
            }
            None => {}
        }

        let mut attributes = cf::attributes::of_array(array);
        if member.name != array.name {
            set_text(&mut attributes, ORIGINAL_NAME, &array.name);
        }
        if dataset::lacks_units(element) {
            set_text(&mut attributes, "zarr_data_type", &array.data_type.name);
        }
        let own = Own {
            element,
            datatype: &datatype,
            transform,
            item_size: array.data_type.item_size,
        };
        attribute::add_all(&mut header, &attributes, Some(&own), |name, reason| {
            self.omit(format!("{path}{}:{name}", array.name), reason);
        });
        self.blocks.put(member.block, header.finish()?)
    }

    /// The object header of a group, with its attributes.
    fn group(&mut self, attributes: &[Attribute], path: &str) -> ObjectHeader {
        let mut header = ObjectHeader::new();
        attribute::add_all(&mut header, attributes, None, |name, reason| {
            self.omit(format!("{path}:{name}"), reason);
        });
        header
    }

    fn finish_group(
        &mut self,
        mut header: ObjectHeader,
        block: usize,
        links: &Links,
    ) -> Result<(), FormatError> {
        header.group(links.len())?;
        for (number, (name, target)) in links.iter().enumerate() {
            header.link(number, name, *target)?;
        }
        self.blocks.put(block, header.finish()?)
    }

    fn omit(&mut self, name: String, reason: FormatError) {
        self.omitted.push(Omitted { name, reason });
    }
}

/// The omitted objects, one on each line, as far as they fit an attribute.
fn lines(omitted: &[Omitted]) -> String {
    let mut text = String::new();
    for (i, one) in omitted.iter().enumerate() {
        let line = format!("{}: {}", one.name, one.reason);
        let line = line.replace(char::is_control, "?");
        if text.len() + line.len() > MOST_OMITTED {
            let _ = write!(text, "and {} more", omitted.len() - i);
            break;
        }
        text.push_str(&line);
        text.push('\n');
    }
    text.trim_end().to_owned()
}
