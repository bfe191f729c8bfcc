//! Names of the arrays view: which files there are, and the meaning of a name.
//!
//! ```text
//! G/            a group, or a directory that is not a node
//! G/t.npy       the array G/t, for each format that can hold it
//! G/t@3.npy     a part of it, found by its name and never listed
//! G/t.geo.tif.aux.xml  what a GeoTIFF cannot say of its CRS
//! G/t.json      a sidecar: the facts that the other files do not have
//! G/G.nc        the arrays of the group G
//! G/G.json      the attributes of the group G, if it has any
//! G/G.ome.tif   the levels of the image G
//! G/t.ERROR.txt the reason why the array G/t has no files
//! ```
//!
//! If several files would have one name, a directory has it first, then the array with the longer name, where the group
//! counts before an array of its name. The others get as many `~` behind the name as it takes to be unique.

use glob::Pattern;

use super::super::options::{ViewKind, selects};
use super::super::vnode::{CONTROL, PlainKind, PlainName, Vnode};
use super::Arrays;
use super::strings;
use crate::error::{Error, ErrorKind};
use crate::fresh::Observations;
use crate::hierarchy::Node;
use crate::plain::{Array, FileFormat, SIGN, Scope, Selection, array_file};
use crate::store::{Prefix, Stat, StatKind};
use crate::view::nodes::damaged::NameUse;
use crate::view::nodes::node::{ShownArray, ShownNode};
use crate::view::nodes::path::NodePath;

const SIDECAR: &str = "json";
const NOTE: &str = "ERROR.txt";
/// Behind the name of an image, GDAL looks for what the image cannot say.
const CRS: &str = "geo.tif.aux.xml";
/// The character that is put behind a name which is taken.
const ANOTHER: u8 = b'~';

/// The meaning of the extension of a file's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileExtension {
    /// A file in this format.
    Format(FileFormat),
    /// A sidecar: the facts about an array or a group that its other files do not have.
    Sidecar,
    /// A file beside a GeoTIFF that has the CRS of the GeoTIFF.
    Crs,
    /// A note: the reason why an array has no files.
    Note,
}

/// The kind of node at a path of the arrays view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathKind {
    /// Nothing.
    Nothing,
    /// A directory: a group, or a directory that is not a node.
    Directory,
    /// An array that can be decoded.
    Array,
    /// A directory: a node that cannot be shown, and is a group, or may be one.
    BrokenGroup,
    /// A node that cannot be shown.
    Unusable,
}

impl PathKind {
    /// Whether it is a directory.
    pub(super) fn is_directory(self) -> bool {
        matches!(self, PathKind::Directory | PathKind::BrokenGroup)
    }
}

impl Arrays {
    /// The kind of the node at `path`.
    pub(super) fn kind_of(&self, path: &Prefix) -> Result<PathKind, Error> {
        self.kind_at(&self.tree.resolve(ViewKind::Arrays, path)?)
    }

    /// Like [`View::kind_of`], of a path that is resolved already.
    fn kind_at(&self, resolved: &NodePath) -> Result<PathKind, Error> {
        Ok(match &resolved.node {
            Node::Array(_) => match self.tree.shown_at(resolved)? {
                ShownNode::Array(_) => PathKind::Array,
                ShownNode::Plain | ShownNode::Unusable(_) => PathKind::Unusable,
            },
            Node::Broken(broken) if broken.kind.may_have_nodes() => PathKind::BrokenGroup,
            Node::Broken(_) => PathKind::Unusable,
            Node::Group(_) | Node::Implicit => {
                match self
                    .tree
                    .directory_meta_at(&resolved.path, &resolved.keys)?
                {
                    Some(_) => PathKind::Directory,
                    None => PathKind::Nothing,
                }
            }
        })
    }

    /// Whether `--array` selects the array at `path`.
    pub fn is_chosen(&self, path: &Prefix) -> bool {
        let only = &self.tree.options.arrays.only;
        only.is_empty() || only.iter().any(|pattern| self.selects(pattern, path))
    }

    /// Whether `pattern` selects the array at `path`.
    pub fn selects(&self, pattern: &Pattern, path: &Prefix) -> bool {
        let name = self.name_of(path);
        let path = if path.is_root() {
            &name
        } else {
            path.as_bytes()
        };
        selects(pattern, path, &String::from_utf8_lossy(&name))
    }

    /// The name of the node at `path`; for the root, the name of the store.
    pub(super) fn name_of(&self, path: &Prefix) -> Vec<u8> {
        match path.to_key() {
            Some(key) => key.name().to_vec(),
            None => self.tree.options.arrays.root_name.clone().into_bytes(),
        }
    }

    /// The stem of the names of the files of the group at `path`, which is the group's own name. For a store in a
    /// directory of stores, `.zarr`, `.zip` and `.ozx` are left out, as for the root.
    pub(super) fn group_stem_of(&self, path: &Prefix) -> Vec<u8> {
        let mut name = self.name_of(path);
        for suffix in [&b".zip"[..], b".ozx", b".zarr"] {
            if name.len() > suffix.len() && name.ends_with(suffix) {
                name.truncate(name.len() - suffix.len());
            }
        }
        name
    }

    /// Like [`Arrays::name_of`], as text for formats and messages.
    pub(super) fn text_name_of(&self, path: &Prefix) -> String {
        String::from_utf8_lossy(&self.name_of(path)).into_owned()
    }

    /// The part of a file's name before the extension.
    pub(super) fn stem_of(&self, path: &Prefix, selection: Option<&Selection>) -> Vec<u8> {
        let mut stem = self.name_of(path);
        if let Some(selection) = selection {
            stem.extend_from_slice(format!("{SIGN}{selection}").as_bytes());
        }
        stem
    }

    /// Names and vnodes of the files of a node, which is an array or cannot be shown, in the
    /// directory that lists it.
    pub(super) fn files_of(&self, resolved: &NodePath) -> Result<Vec<(Vec<u8>, Vnode)>, Error> {
        let path = &resolved.path;
        let mut files = Vec::new();
        match self.tree.shown_at(resolved)? {
            _ if !self.is_chosen(path) => {}
            ShownNode::Array(array) => {
                for &format in &self.tree.options.arrays.files {
                    match self.has_file(&array, format) {
                        Ok(false) => continue,
                        Ok(true) => {}
                        Err(error) if error.kind() == ErrorKind::Stale => return Err(error),
                        // The file is listed, so that a program that copies the directory gets the error of its lookup.
                        // The files of other formats are not concerned.
                        Err(error) => self.tree.warn_once(&(path, format), || {
                            format!("{path}: {} file: {error}", format.title())
                        }),
                    }
                    let kind = PlainKind::Array(format, None);
                    files.push((format.extension(), plain(path, kind)));
                    files.extend(self.crs_of(path, format).ok().flatten());
                }
                if self.tree.options.arrays.sidecars {
                    files.push((SIDECAR, plain(path, PlainKind::Sidecar)));
                }
            }
            ShownNode::Unusable(_) => files.push((NOTE, note(path))),
            ShownNode::Plain => {}
        }
        self.named_together(resolved, files)
    }

    /// The extension and the vnode of the file beside the file in `format` of the array at `path`, if that is a GeoTIFF
    /// that needs one.
    fn crs_of(
        &self,
        path: &Prefix,
        format: FileFormat,
    ) -> Result<Option<(&'static str, Vnode)>, Error> {
        if format != FileFormat::GeoTif {
            return Ok(None);
        }
        let name = PlainName::new(path, PlainKind::Crs(None));
        let file = self.file_or_none(&name)?;
        Ok(file.map(|_| (CRS, Vnode::Plain(name))))
    }

    /// The names of `files` of a node, which are given with their extensions. The store is asked
    /// once for all of them.
    fn named_together(
        &self,
        resolved: &NodePath,
        files: Vec<(&str, Vnode)>,
    ) -> Result<Vec<(Vec<u8>, Vnode)>, Error> {
        let path = &resolved.path;
        let stem = self.name_of(path);
        let base = |extension: &str| [&stem[..], b".", extension.as_bytes()].concat();
        let bases: Vec<_> = files.iter().map(|(extension, _)| base(extension)).collect();
        let are_free = self.are_free(resolved, &bases)?;
        let group = path.to_key().map(|key| key.parent());
        let is_named_as_group = group.is_some_and(|group| stem == self.group_stem_of(&group));
        let mut named = Vec::new();
        for (((extension, vnode), base), is_free) in files.into_iter().zip(bases).zip(are_free) {
            named.push(
                if is_free && !is_named_as_group && !self.has_rivals(&base) {
                    (base, vnode)
                } else {
                    self.named_in_listing(path, extension, vnode)
                },
            );
        }
        Ok(named)
    }

    /// For each of `names` beside the node at `resolved`, whether it is surely not that of a directory.
    fn are_free(&self, resolved: &NodePath, names: &[Vec<u8>]) -> Result<Vec<bool>, Error> {
        // The root is an array, which has no nodes below it.
        let Some(directory) = resolved.path.to_key().map(|key| key.parent()) else {
            return Ok(vec![true; names.len()]);
        };
        if resolved.draft().is_some() {
            return Ok(vec![false; names.len()]);
        }
        let mut told = Vec::new();
        for name in names {
            told.extend(self.tree.hierarchy.has_copied_child(&directory, name)?);
        }
        if told.len() == names.len() {
            return Ok(told.into_iter().map(|is_child| !is_child).collect());
        }
        if self.are_unlisted(&directory, names) {
            return Ok(vec![true; names.len()]);
        }
        let keys = names.iter().map(|name| directory.key(name));
        let keys: Vec<_> = keys.collect::<Result<_, _>>()?;
        let stats = self
            .tree
            .loader
            .sources()
            .store()
            .stat_many(&keys)
            .into_iter();
        let is_free = |stat: Option<Stat>| stat.is_none_or(|stat| stat.kind != StatKind::Prefix);
        // A later lookup of this name alone reports its error.
        Ok(stats.map(|stat| stat.is_ok_and(is_free)).collect())
    }

    /// Whether a file called `base` could also be the file of another array, judging by the name alone: a part of an
    /// array, or a file of a longer extension.
    fn has_rivals(&self, base: &[u8]) -> bool {
        let is_extension = |&at: &usize| {
            let extension = base.get(at + 1..).unwrap_or_default();
            self.meaning_of(extension).is_some()
        };
        let dots = (1..base.len()).filter(|&at| base[at] == b'.');
        base.contains(&(SIGN as u8)) || dots.filter(is_extension).count() > 1
    }

    /// Names and vnodes of the files of the group at `path`, in its own directory.
    pub(super) fn group_files(&self, path: &Prefix) -> Vec<(Vec<u8>, Vnode)> {
        let mut files = Vec::new();
        for format in self.group_formats() {
            let name = PlainName::new(path, PlainKind::Group(format));
            match self.file_or_none(&name) {
                Ok(Some(_)) => {}
                Ok(None) => continue,
                // The file is listed, so that a program that copies the directory gets the error of its lookup.
                Err(error) => self.tree.warn_once(&(&name, "group"), || {
                    format!("{path}: {} file: {error}", format.title())
                }),
            }
            files.push(self.named_in_listing(path, format.extension(), Vnode::Plain(name)));
        }
        files
    }

    /// The name of the sidecar of the group at `path`, and its vnode; `None` if it has none.
    pub(super) fn group_sidecar(&self, path: &Prefix) -> Option<(Vec<u8>, Vnode)> {
        if !self.tree.options.arrays.sidecars {
            return None;
        }
        let is_there = self.has_group_sidecar(path).unwrap_or_else(|error| {
            // A lookup of the file gives the error.
            self.tree.warn_once(&(path, "sidecar"), || {
                format!("{path}: JSON file of the group: {error}")
            });
            true
        });
        let name = PlainName::new(path, PlainKind::GroupSidecar);
        is_there.then(|| self.named_in_listing(path, SIDECAR, Vnode::Plain(name)))
    }

    /// Whether the group at `path` may have a file in `format`.
    fn may_have_file(&self, path: &Prefix, format: FileFormat) -> Result<bool, Error> {
        if format.holds_levels() {
            return self.is_image(path);
        }
        Ok(format.has(Scope::Group))
    }

    /// The requested formats that hold groups.
    pub(super) fn group_formats(&self) -> impl Iterator<Item = FileFormat> {
        let formats = self.tree.options.arrays.files.iter().copied();
        formats.filter(|format| format.has(Scope::Group))
    }

    /// Whether `array` has a file in `format`. This does not decode strings to find out.
    fn has_file(&self, array: &ShownArray, format: FileFormat) -> Result<bool, Error> {
        let path = &array.path;
        let name = PlainName::new(path, PlainKind::Array(format, None));
        if !format.has(Scope::Array) {
            return Ok(false);
        }
        // Files of these formats do not depend on attributes.
        if format.tells_only_elements() && holds_elements(array, format) {
            return Ok(true);
        }
        if format == FileFormat::Jsonl {
            let facts = self.array_facts(path)?;
            return Ok(facts.is_some_and(|facts| {
                strings::kind_of(&facts).is_some() && !self.is_too_long(&facts)
            }));
        }
        Ok(self.file_or_none(&name)?.is_some())
    }

    /// Like [`Arrays::named`]. A file whose name cannot be found out has its plain name, of which a lookup gives the error.
    fn named_in_listing(&self, path: &Prefix, extension: &str, vnode: Vnode) -> (Vec<u8>, Vnode) {
        let named = self.named(path, extension, vnode.clone());
        named.unwrap_or_else(|_| (self.plain_name(path, extension, &vnode), vnode))
    }

    /// The name of a file of the node at `path` if no other one has it.
    fn plain_name(&self, path: &Prefix, extension: &str, vnode: &Vnode) -> Vec<u8> {
        let stem = if matches!(vnode, Vnode::Plain(name) if name.is_of_group()) {
            self.group_stem_of(path)
        } else {
            self.name_of(path)
        };
        [&stem[..], b".", extension.as_bytes()].concat()
    }

    /// The name of a file of the node at `path`, and its vnode.
    pub(super) fn named(
        &self,
        path: &Prefix,
        extension: &str,
        vnode: Vnode,
    ) -> Result<(Vec<u8>, Vnode), Error> {
        let base = self.plain_name(path, extension, &vnode);
        let directory = directory_of(&vnode);
        let claims = self.claims(&directory, &base)?;
        let name = claims.into_iter().find(|(_, claimed)| *claimed == vnode);
        Ok((name.map_or(base, |(name, _)| name), vnode))
    }

    /// Observes the directory that would take the name `name` from the file `vnode`.
    pub(super) fn observe_name(
        &self,
        vnode: &Vnode,
        name: &[u8],
        observed: &mut Observations,
    ) -> Result<(), Error> {
        if name.ends_with(&[ANOTHER]) {
            // The plain name may become free.
            observed.add_unobserved();
            return Ok(());
        }
        let directory = directory_of(vnode);
        // Elsewhere, no request for the name alone shows that there is a directory.
        if !self.tree.store().profile().has_directories {
            return Ok(());
        }
        let Ok(key) = directory.key(name) else {
            return Ok(());
        };
        let path = key.to_prefix();
        let found = if self.are_unlisted(&directory, &[name]) {
            None
        } else {
            self.tree.stat_prefix(&path)?
        };
        observed.add_directory(&path, found.as_ref());
        Ok(())
    }

    /// Whether the elements of the array at `path`, or of a part of it, are in the file that the headers beside it name,
    /// and not those of another array.
    pub(super) fn has_own_raw(
        &self,
        path: &Prefix,
        selection: Option<&Selection>,
    ) -> Result<bool, Error> {
        let base = [&self.stem_of(path, selection)[..], b".raw"].concat();
        let raw = plain(path, PlainKind::Array(FileFormat::Raw, selection.cloned()));
        let claims = self.claims(&directory_of(&raw), &base)?;
        let mut claims = claims.into_iter();
        Ok(claims.all(|(name, claimed)| (name == base) == (claimed == raw)))
    }

    /// The file called `name` in the directory at `path`; `None` when there is none.
    pub(super) fn find_file(&self, path: &Prefix, name: &[u8]) -> Result<Option<Vnode>, Error> {
        let mut base = name;
        loop {
            let claims = self.claims(path, base)?;
            let found = claims.into_iter().find(|(claimed, _)| claimed == name);
            if let Some((_, vnode)) = found {
                return Ok(Some(vnode));
            }
            match base.strip_suffix(&[ANOTHER]) {
                Some(shorter) => base = shorter,
                None => return Ok(None),
            }
        }
    }

    /// Fails if the damaged document of the directory at `path` may hide a node called `name`, or a node with a file of
    /// this name. `name` was not found in the directory.
    ///
    /// # Errors
    /// The reason why the node at `path` cannot be shown; those of looking for another node.
    pub(in crate::view) fn check_undamaged(&self, path: &Prefix, name: &[u8]) -> Result<(), Error> {
        let folder = self.tree.folder(ViewKind::Arrays, path)?;
        let check = |name| self.tree.check_undamaged(&folder, name, NameUse::Absent);
        check(name)?;
        for dot in (1..name.len()).filter(|&at| name[at] == b'.') {
            let (stem, extension) = (&name[..dot], &name[dot + 1..]);
            if matches!(
                self.meaning_of(extension),
                Some(FileExtension::Format(_) | FileExtension::Sidecar | FileExtension::Crs)
            ) {
                check(stem)?;
                for at in (1..stem.len()).filter(|&at| stem[at] == SIGN as u8) {
                    check(&stem[..at])?;
                }
            }
        }
        Ok(())
    }

    /// All files in the directory at `path` that would be called `base`, with the names that they
    /// get instead.
    fn claims(&self, path: &Prefix, base: &[u8]) -> Result<Vec<(Vec<u8>, Vnode)>, Error> {
        let mut claims = Vec::new();
        for dot in (0..base.len()).rev().filter(|&at| base[at] == b'.') {
            let (stem, extension) = (&base[..dot], &base[dot + 1..]);
            if !stem.is_empty() {
                self.claims_of(path, stem, extension, &mut claims)?;
            }
        }
        let mut name = base.to_vec();
        let mut named = Vec::new();
        for vnode in claims {
            while self.is_taken(path, &name)? {
                name.push(ANOTHER);
            }
            named.push((name.clone(), vnode));
            name.push(ANOTHER);
        }
        Ok(named)
    }

    fn claims_of(
        &self,
        path: &Prefix,
        stem: &[u8],
        extension: &[u8],
        claims: &mut Vec<Vnode>,
    ) -> Result<(), Error> {
        let Some(meaning) = self.meaning_of(extension) else {
            return Ok(());
        };
        if let FileExtension::Format(format) = meaning {
            if stem == self.group_stem_of(path) && self.may_have_file(path, format)? {
                claims.push(plain(path, PlainKind::Group(format)));
            }
            if !format.has(Scope::Array) {
                return Ok(());
            }
        }
        // The names of a directory that was just listed show without a request that no node is called like its group.
        let child = if self.are_unlisted(path, &[stem]) {
            None
        } else {
            self.node_called(path, stem)?
        };
        if let Some(child) = child {
            match (self.kind_of(&child)?, meaning) {
                _ if !self.is_chosen(&child) => {}
                (PathKind::Array, FileExtension::Format(format)) => {
                    claims.push(plain(&child, PlainKind::Array(format, None)));
                }
                (PathKind::Array, FileExtension::Sidecar) => {
                    claims.push(plain(&child, PlainKind::Sidecar));
                }
                (PathKind::Array, FileExtension::Crs) => {
                    claims.push(plain(&child, PlainKind::Crs(None)));
                }
                (PathKind::Unusable | PathKind::BrokenGroup, FileExtension::Note) => {
                    claims.push(note(&child));
                }
                _ => {}
            }
        }
        match meaning {
            FileExtension::Format(format) => {
                let kind = |selection| PlainKind::Array(format, selection);
                self.selections(path, stem, kind, claims)?;
            }
            FileExtension::Crs => self.selections(path, stem, PlainKind::Crs, claims)?,
            FileExtension::Sidecar if stem == self.group_stem_of(path) => {
                claims.push(plain(path, PlainKind::GroupSidecar));
            }
            FileExtension::Sidecar | FileExtension::Note => {}
        }
        Ok(())
    }

    /// The meaning of `extension`; `None` when no file has it.
    fn meaning_of(&self, extension: &[u8]) -> Option<FileExtension> {
        let mut formats = self.tree.options.arrays.files.iter().copied();
        let format = formats.find(|format| format.extension().as_bytes() == extension);
        let is = |other: &str| extension == other.as_bytes();
        format
            .map(FileExtension::Format)
            .or_else(|| {
                let is_sidecar = self.tree.options.arrays.sidecars && is(SIDECAR);
                is_sidecar.then_some(FileExtension::Sidecar)
            })
            .or_else(|| {
                let is_told = self.tree.options.arrays.files.contains(&FileFormat::GeoTif);
                (is_told && is(CRS)).then_some(FileExtension::Crs)
            })
            .or_else(|| is(NOTE).then_some(FileExtension::Note))
    }

    /// Adds the parts of arrays called `stem`: the name of an array, `@`, and a selection.
    fn selections(
        &self,
        path: &Prefix,
        stem: &[u8],
        kind: impl Fn(Option<Selection>) -> PlainKind,
        claims: &mut Vec<Vnode>,
    ) -> Result<(), Error> {
        for at in (1..stem.len()).rev().filter(|&at| stem[at] == SIGN as u8) {
            let Ok(text) = str::from_utf8(&stem[at + 1..]) else {
                continue;
            };
            // A part has one spelling: `03` is not a selection.
            let selection = Selection::parse(text);
            let Some(selection) = selection.filter(|parsed| parsed.to_string() == text) else {
                continue;
            };
            if let Some(child) = self.node_called(path, &stem[..at])?
                && self.kind_of(&child)? == PathKind::Array
                && self.is_chosen(&child)
            {
                claims.push(plain(&child, kind(Some(selection))));
            }
        }
        Ok(())
    }

    /// The path of the node called `name` in the directory at `path`: a child, or the root itself if that is an array.
    fn node_called(&self, path: &Prefix, name: &[u8]) -> Result<Option<Prefix>, Error> {
        let kind = (path.is_root()).then(|| self.kind_of(path)).transpose()?;
        let is_of_root = kind == Some(PathKind::BrokenGroup) && name == self.name_of(path);
        if is_of_root || kind.is_some_and(|kind| !kind.is_directory()) {
            return Ok((name == self.name_of(path)).then(Prefix::root));
        }
        if name == CONTROL {
            return Ok(None);
        }
        self.child_called(path, name)
    }

    /// The path of the child `name` of a directory, whether or not it exists.
    pub(super) fn child_called(&self, path: &Prefix, name: &[u8]) -> Result<Option<Prefix>, Error> {
        let Ok(key) = path.key(name) else {
            return Ok(None);
        };
        if key.name() != name {
            return Ok(None);
        }
        let folder = self.tree.folder(ViewKind::Arrays, path)?;
        match folder.resolved.draft() {
            Some(_) => self.tree.draft_child(&folder, name),
            None if self.tree.is_closed_store(&folder, name)? => Ok(None),
            None if folder.has_children() => {
                self.tree.check_undamaged(&folder, name, NameUse::Found)?;
                Ok(Some(key.to_prefix()))
            }
            None => Ok(None),
        }
    }

    /// Whether a file in the directory at `path` cannot be called `name`, because a directory has this name.
    fn is_taken(&self, path: &Prefix, name: &[u8]) -> Result<bool, Error> {
        if self.are_unlisted(path, &[name])
            || self.tree.hierarchy.has_copied_child(path, name)? == Some(false)
        {
            return Ok(false);
        }
        self.is_directory(path, name)
    }

    /// Whether the directory at `path` contains a directory called `name`.
    pub(super) fn is_directory(&self, path: &Prefix, name: &[u8]) -> Result<bool, Error> {
        let Some(child) = self.child_called(path, name)? else {
            return Ok(false);
        };
        // The cheap check comes first, because this function is called for the name of every file.
        let is_of_draft = self.tree.resolve(ViewKind::Arrays, path)?.draft().is_some();
        if !is_of_draft && self.tree.stat_prefix(&child)?.is_none() {
            return Ok(false);
        }
        Ok(self.kind_of(&child)?.is_directory())
    }
}

/// Whether `format`, which holds only elements, can hold those of `array`.
fn holds_elements(array: &ShownArray, format: FileFormat) -> bool {
    let layout = array.chunked.layout();
    let elements = Array::of_elements(
        array.node.metadata.shape.clone(),
        layout.data_type().clone(),
        layout.fill_value().clone(),
    );
    !layout.data_type().is_variable() && array_file(format, &elements, None).is_ok()
}

fn plain(path: &Prefix, kind: PlainKind) -> Vnode {
    Vnode::Plain(PlainName::new(path, kind))
}

fn note(path: &Prefix) -> Vnode {
    Vnode::ErrorNote {
        view: ViewKind::Arrays,
        path: path.clone(),
    }
}

/// The directory that lists a file.
fn directory_of(vnode: &Vnode) -> Prefix {
    match vnode {
        Vnode::Plain(name) if name.is_of_group() => name.path.clone(),
        Vnode::Plain(PlainName { path, .. }) | Vnode::ErrorNote { path, .. } => {
            path.to_key().map_or_else(Prefix::root, |key| key.parent())
        }
        _ => Prefix::root(),
    }
}
