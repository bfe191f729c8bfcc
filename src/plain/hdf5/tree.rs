//! The objects of a file: an object header for each group, array, dimension and named type, linked
//! by name.

use std::collections::{HashSet, VecDeque};
use std::fmt::Write;

use super::attribute::{self, Own};
use super::block::{FileBlock, FileBlocks, Pointee};
use super::dataset::{self, Content, Dataset};
use super::dimension::{self, Scale};
use super::header::{Datatype, ObjectHeader};
use super::heap::Heap;
use super::types::CommittedTypes;
use super::{Convention, anndata};
use crate::error::FormatError;
use crate::plain::cf::attributes::{OMITTED, set_text};
use crate::plain::cf::{self, Attribute, CfValue, Dimensions, Names};
use crate::plain::{Array, Group, Omitted};

/// The longest value of `zarr_omitted` in bytes.
const MOST_OMITTED: usize = 60_000;

/// The attribute with the original name of an object whose name HDF5 or `NetCDF` cannot have.
const ORIGINAL_NAME: &str = "zarr_name";

/// Links of a group: names and blocks of object headers, in creation order.
type Links = Vec<(String, usize)>;

/// The prefix that the `NetCDF` library puts in front of the name of a dataset that is called like
/// a dimension and is not its coordinate variable.
const NO_COORDINATE: &str = "_nc4_non_coord_";

/// The blocks of the file of `group`, the block of its root group, and what the file omits.
///
/// # Errors
///
/// When the headers would exceed the memory limit.
pub(super) fn of(
    group: &Group,
    convention: Convention,
) -> Result<(FileBlocks, usize, Vec<Omitted>), FormatError> {
    let mut tree = ObjectTree::new(convention);
    let root = tree.blocks.reserve();
    let mut pending = VecDeque::new();
    let (mut names, root_links) = tree.members(group, "", &mut pending)?;
    while let Some(child) = pending.pop_front() {
        let (_, links) = tree.members(child.group, &child.path, &mut pending)?;
        let header = tree.group(child.group, &child.name, &child.path)?;
        tree.finish_group(header, child.block, &links)?;
    }

    // Links to named types come first: readers must see a type before the datasets that use it.
    let mut links: Links = tree.types.links(&mut names);
    links.extend(root_links);
    let mut header = tree.group(group, &group.name, "")?;
    if convention == Convention::NetCdf {
        let text = concat!("version=2,zarr-mount=", env!("CARGO_PKG_VERSION"));
        attribute::add_c_string(&mut header, "_NCProperties", text)?;
    }
    if !tree.omitted.is_empty() {
        let value = CfValue::Text(lines(&tree.omitted));
        attribute::add(&mut header, OMITTED, &value, None)?;
    }
    tree.finish_group(header, root, &links)?;
    tree.heap.finish(&mut tree.blocks)?;
    tree.strings.finish(&mut tree.blocks)?;
    tree.types.finish(&mut tree.blocks)?;
    Ok((tree.blocks, root, tree.omitted))
}

#[derive(Debug)]
struct ObjectTree {
    convention: Convention,
    blocks: FileBlocks,
    /// References and the text of attributes.
    heap: Heap,
    /// The strings of arrays.
    strings: Heap,
    types: CommittedTypes,
    n_dimensions: i64,
    omitted: Vec<Omitted>,
}

/// An array that HDF5 can hold.
struct ArrayObject<'a> {
    array: &'a Array,
    dataset: Dataset,
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
    fn new(convention: Convention) -> ObjectTree {
        ObjectTree {
            convention,
            blocks: FileBlocks::default(),
            heap: Heap::default(),
            strings: Heap::of_arrays(),
            types: CommittedTypes::default(),
            n_dimensions: 0,
            omitted: Vec::new(),
        }
    }

    /// Writes the children of `group`, except that subgroups are added to `pending`.
    fn members<'a>(
        &mut self,
        group: &'a Group,
        path: &str,
        pending: &mut VecDeque<GroupObject<'a>>,
    ) -> Result<(Names, Links), FormatError> {
        let n_omitted = self.omitted.len();
        for omitted in &group.omitted {
            self.omit(format!("{path}{}", omitted.name), omitted.reason.clone());
        }
        let mut names = Names::default();
        let mut members = self.arrays(group, path);
        let mut dimensions = Dimensions::new(members.iter().map(|member| member.array));
        if self.convention.is_for_netcdf() {
            for member in &mut members {
                member.take_dimensions(&mut dimensions);
            }
        }
        let of_dimensions = dimensions.list().iter();
        let of_dimensions: HashSet<&str> = of_dimensions.map(|of| of.name.as_str()).collect();
        for member in &mut members {
            member.name = self.name(&mut names, member.array, &of_dimensions);
        }
        let mut groups = Vec::new();
        for child in &group.groups {
            let block = self.blocks.reserve();
            let name = self.own_name(&mut names, &child.name);
            groups.push((name.clone(), block));
            pending.push_back(GroupObject {
                group: child,
                path: format!("{path}{}/", child.name),
                name,
                block,
            });
        }

        if self.convention == Convention::AnnData {
            let arrays = members.iter().map(|member| member.array.name.as_str());
            let groups = group.groups.iter().map(|child| child.name.as_str());
            let held = arrays.chain(groups).collect();
            anndata::check_parts(group, &held, self.omitted.get(n_omitted))
                .map_err(|error| anndata::at(path, &error))?;
        }

        let mut links = Links::new();
        let scales = self.scales(&dimensions, &members, &mut names, &mut links)?;
        for member in members {
            self.array(&member, &scales, path)?;
            if scales.is_empty() || !cf::is_coordinate(member.array) {
                links.push((member.name, member.block));
            }
        }
        links.extend(groups);
        Ok((names, links))
    }

    /// The arrays of `group` that HDF5 can hold, coordinate variables first.
    fn arrays<'a>(&mut self, group: &'a Group, path: &str) -> Vec<ArrayObject<'a>> {
        let mut members = Vec::new();
        for array in cf::coordinates_first(group) {
            if self.convention == Convention::AnnData && anndata::is_no_raw(group, array) {
                continue;
            }
            match Dataset::of(array, self.convention) {
                Ok(dataset) => members.push(ArrayObject {
                    array,
                    dataset,
                    dimensions: Vec::new(),
                    name: String::new(),
                    block: self.blocks.reserve(),
                }),
                Err(reason) => self.omit(format!("{path}{}", array.name), reason),
            }
        }
        members
    }

    /// The name of the dataset of `array`, in a group whose dimensions are called `dimensions`.
    fn name(&self, names: &mut Names, array: &Array, dimensions: &HashSet<&str>) -> String {
        if self.convention == Convention::NetCdf
            && dimensions.contains(array.name.as_str())
            && !cf::is_coordinate(array)
        {
            return names.take(&format!("{NO_COORDINATE}{}", array.name));
        }
        if self.convention == Convention::NetCdf && array.name.starts_with(NO_COORDINATE) {
            // Readers would take the part after the prefix for the name.
            return names.take(&format!("_{}", array.name));
        }
        self.own_name(names, &array.name)
    }

    /// The name of an object that is called `name` in the store.
    fn own_name(&self, names: &mut Names, name: &str) -> String {
        // No library can ask for a name with a NUL in it.
        if self.convention == Convention::AnnData && !name.contains('\0') {
            return name.to_owned();
        }
        names.take(name)
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
        let (array, dataset) = (member.array, &member.dataset);
        let spelling = &dataset.spelling;
        let element = &array.data_type.element;
        let is_named = self.convention.is_for_netcdf() && spelling.inner.is_none();
        let datatype = if is_named {
            self.types
                .get(element, spelling.datatype.clone(), &mut self.blocks)?
        } else {
            Datatype::Inline(spelling.datatype.clone())
        };
        let (payload, len) = self.payload(&dataset.content)?;
        let mut header = ObjectHeader::new();
        header
            .dataspace(dataset.shape(array).as_deref())?
            .datatype(&datatype)?
            .fill_value(dataset::fill_value(array, spelling).as_deref())?
            .layout(payload, len)?;
        self.dimensions(&mut header, member, scales)?;
        let omit = |name: &str, reason| {
            self.omitted.push(Omitted {
                name: format!("{path}{}:{name}", array.name),
                reason,
            });
        };
        if self.convention == Convention::AnnData {
            let (heap, blocks) = (&mut self.heap, &mut self.blocks);
            anndata::add_all(&mut header, &array.attributes, heap, blocks)
                .map_err(|error| anndata::at(&format!("{path}{}", array.name), &error))?;
        } else {
            let own = Own {
                element,
                datatype: &datatype,
                transform: spelling.transform.clone(),
                item_size: array.data_type.item_size,
            };
            let attributes = attributes_of(member, self.convention);
            attribute::add_all(&mut header, &attributes, Some(&own), omit);
        }
        self.blocks.put(member.block, header.finish()?)
    }

    /// The place of the elements of a dataset, and their length in bytes.
    fn payload(&mut self, content: &Content) -> Result<(Option<Pointee>, u64), FormatError> {
        Ok(match content {
            Content::Elements(elements) if elements.len > 0 => {
                let payload = self.blocks.add_payload(elements.clone());
                (Some(Pointee::Payload(payload)), elements.len)
            }
            Content::Strings(strings) if !strings.is_empty() => {
                let mut block = FileBlock::default();
                for string in strings.iter() {
                    self.strings
                        .push_string(&mut block, string, &mut self.blocks)?;
                }
                let len = block.len() as u64;
                let number = self.blocks.reserve();
                self.blocks.put_strings(number, block);
                (Some(Pointee::Block(number)), len)
            }
            Content::Elements(_) | Content::Strings(_) | Content::Null => (None, 0),
        })
    }

    /// Marks the dataset of `header` as a scale, or attaches its scales.
    fn dimensions(
        &mut self,
        header: &mut ObjectHeader,
        member: &ArrayObject<'_>,
        scales: &[Scale],
    ) -> Result<(), FormatError> {
        let Some(first) = member.dimensions.first().and_then(|&own| scales.get(own)) else {
            return Ok(());
        };
        let dimensions = &member.dimensions;
        let is_scale = cf::is_coordinate(member.array);
        if is_scale {
            first.mark(header, &member.name)?;
        } else {
            dimension::attach(header, dimensions, scales, &mut self.heap, &mut self.blocks)?;
        }
        if self.convention == Convention::NetCdf && (!is_scale || dimensions.len() > 1) {
            dimension::number(header, dimensions, scales)?;
        }
        Ok(())
    }

    /// The object header of a group, with its attributes. It is called `name` in the file.
    fn group(
        &mut self,
        group: &Group,
        name: &str,
        path: &str,
    ) -> Result<ObjectHeader, FormatError> {
        let mut header = ObjectHeader::new();
        let omit = |name: &str, reason| {
            self.omitted.push(Omitted {
                name: format!("{path}:{name}"),
                reason,
            });
        };
        if self.convention == Convention::AnnData {
            let (heap, blocks) = (&mut self.heap, &mut self.blocks);
            anndata::add_all(&mut header, &group.attributes, heap, blocks)
                .map_err(|error| anndata::at(path, &error))?;
        } else {
            let mut attributes = cf::attributes::of_group(group, &[]);
            if name != group.name {
                set_text(&mut attributes, ORIGINAL_NAME, &group.name);
            }
            attribute::add_all(&mut header, &attributes, None, omit);
        }
        Ok(header)
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

impl ArrayObject<'_> {
    /// Finds its dimensions, which are added if they are new.
    fn take_dimensions(&mut self, dimensions: &mut Dimensions) {
        let axes = self.array.dimension_names.iter().zip(&self.array.shape);
        let own = axes.map(|(name, &len)| (name.as_deref(), len));
        let inner = self.dataset.spelling.inner.iter();
        let inner = inner.map(|(name, len)| (Some(name.as_str()), *len));
        let all = own.chain(inner);
        self.dimensions = all.map(|(name, len)| dimensions.take(name, len)).collect();
    }
}

/// The attributes of an array, and those that say what its elements stand for.
fn attributes_of(member: &ArrayObject<'_>, convention: Convention) -> Vec<Attribute> {
    let array = member.array;
    let element = &array.data_type.element;
    let mut attributes = cf::attributes::of_array(array);
    if convention == Convention::NetCdf {
        cf::attributes::say_element(&mut attributes, array);
    }
    let mut say = |name: &str, text: &str| set_text(&mut attributes, name, text);
    let shown = member.name.strip_prefix(NO_COORDINATE);
    if shown.unwrap_or(&member.name) != array.name {
        say(ORIGINAL_NAME, &array.name);
    }
    if dataset::lacks_units(element) {
        say("zarr_data_type", &array.data_type.name);
    }
    attributes
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
