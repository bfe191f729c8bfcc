//! Calls that name files, and documents.

use zarr_mount::view::{AttributeChange, HandleAccess, ViewKind, VnodeKind};

use super::{Run, by, done, parent, thread, write};
use crate::model::Manner;
use crate::mount::NEW;
use crate::operations::Placing;

impl Run {
    pub(super) fn truncate(&mut self, file: usize, len: usize) {
        let change = AttributeChange {
            size: Some(len as u64),
            ..AttributeChange::default()
        };
        let id = self.mount.vnode(self.path(file));
        let cut = id.and_then(|id| done(self.mount.view.change_attributes(id, &change)));
        assert_eq!(cut, self.model.truncate(file, len));
    }

    pub(super) fn unlink(&mut self, file: usize) {
        let (directory, name) = parent(&self.mount, self.path(file));
        let removed = self.mount.view.remove(directory, &name, VnodeKind::File);
        assert_eq!(done(removed), self.model.unlink(file));
    }

    /// Writes a new file beside the old one and gives it its name.
    pub(super) fn place(&mut self, file: usize, text: Vec<u8>, placing: Placing) {
        let path = self.path(file);
        let view = &self.mount.view;
        let (directory, name) = parent(&self.mount, path);
        let beside_name = [&name, b".12ab.partial".as_slice()].concat();
        let beside_path = format!("{path}.12ab.partial");
        let created = view.create(directory, &beside_name, NEW, thread(false));
        let handle = done(created).unwrap().1.file;
        write(&handle, 0, &text).unwrap();
        done(by(&handle).flush(Some(thread(false)))).unwrap();
        handle.close();
        let source = self.mount.vnode(&beside_path).unwrap();
        assert_eq!(self.mount.read(&beside_path), Ok(text.clone()));
        let placed = done(match placing {
            Placing::Rename(mode) => view.rename(
                (directory, &beside_name),
                (directory, &name),
                mode,
                NEW.into(),
            ),
            Placing::Link => view.link(source, directory, &name, NEW.into()).map(|_| ()),
        });
        let is_gone = placed.is_ok() && placing != Placing::Link;
        let placed_in_model = self.model.place(file, text, placing);
        // A file that is not complete is refused by rename in either way.
        if (placed, placed_in_model) != (Err(libc::EIO), Err(libc::EINVAL)) {
            assert_eq!(placed, placed_in_model);
        }
        let removed = done(view.remove(directory, &beside_name, VnodeKind::File));
        assert_eq!(removed, if is_gone { Err(libc::ENOENT) } else { Ok(()) });
    }

    pub(super) fn move_file(&mut self, (from, to): (usize, usize), placing: Placing) {
        let is_alike = self.names[from].1 == self.names[to].1;
        // Two names of one file are not renamed to each other: that changes nothing.
        if from == to || !is_alike || self.model.is_same_object(from, to) {
            return;
        }
        // A file that is written in place has one name, because the times of what is written in
        // place do not always tell another program that it was.
        let manner = self.names[from].1;
        if manner == Manner::InPlace && placing == Placing::Link {
            return;
        }
        let view = &self.mount.view;
        let [old, new] = [from, to].map(|file| parent(&self.mount, self.path(file)));
        let moved = match placing {
            Placing::Rename(mode) => {
                done(view.rename((old.0, &old.1), (new.0, &new.1), mode, NEW.into()))
            }
            Placing::Link => {
                let id = self.mount.vnode(self.path(from));
                id.and_then(|id| done(view.link(id, new.0, &new.1, NEW.into()).map(|_| ())))
            }
        };
        if manner == Manner::Chunk {
            assert_eq!(moved, Err(libc::EPERM));
        } else {
            assert_eq!(moved, self.model.move_file(from, to, placing));
        }
    }

    /// Changes the attribute of the array, or tries to save half of a document.
    pub(super) fn document(&mut self, n: u8, is_whole: bool) {
        if self.kind != ViewKind::Chunks {
            return;
        }
        let view = &self.mount.view;
        let id = self.mount.vnode("a/zarr.json").unwrap();
        let shown = self.mount.read("a/zarr.json").unwrap();
        let mut members: serde_json::Value = serde_json::from_slice(&shown).unwrap();
        assert_eq!(members["attributes"]["n"], self.n);
        members["attributes"]["n"] = n.into();
        let mut text = members.to_string();
        if !is_whole {
            text.truncate(text.len() / 2);
        }
        let opened = view.open_for(id, HandleAccess::ReadsAndWrites, thread(false));
        let handle = done(opened).unwrap().unwrap().file;
        done(by(&handle).clear()).unwrap();
        write(&handle, 0, text.as_bytes()).unwrap();
        let flushed = done(by(&handle).flush(Some(thread(false))));
        handle.close();
        assert_eq!(flushed, if is_whole { Ok(()) } else { Err(libc::EINVAL) });
        if is_whole {
            self.n = n;
        }
    }
}
