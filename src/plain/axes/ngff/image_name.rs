//! The name of an image: that of its multiscale; else the place of a field on a plate of wells, as OME-NGFF has it for high-content
//! screening; else that of its group.

use super::super::Ancestor;
use crate::metadata::{Attributes, JsonTree};

/// The longest name in bytes; longer ones are not used.
const LONGEST_NAME: usize = 1024;

/// The name of the image with this multiscale. `groups` are the group of the image and those around it, the nearest first.
pub(super) fn image_name(multiscale: &Attributes, groups: &[Ancestor<'_>]) -> Option<String> {
    let group = groups.first()?;
    own_name(multiscale, group)
        .or_else(|| field_name(groups))
        .or_else(|| Some(group.name.to_owned()))
}

/// The name that the multiscale has. Some programs write the path of the group there, beginning with `/`, which is no name.
fn own_name(multiscale: &Attributes, group: &Ancestor<'_>) -> Option<String> {
    let name = name_in(multiscale)?;
    let is_path = name
        .strip_prefix('/')
        .is_some_and(|path| path.is_empty() || path.rsplit('/').next() == Some(group.name));
    (!is_path).then(|| name.to_owned())
}

fn name_in(object: &Attributes) -> Option<&str> {
    let name = object.text("name")?;
    (1..=LONGEST_NAME).contains(&name.len()).then_some(name)
}

/// The name of the plate if it has one, the well and the field, if the groups above the image are a well and a plate that list it.
fn field_name(groups: &[Ancestor<'_>]) -> Option<String> {
    let [image, well, above @ ..] = groups else {
        return None;
    };
    let lists = |object: &Attributes, list: &str, path: &str| {
        let members = object.get(list).and_then(JsonTree::as_list);
        let mut members = members.unwrap_or_default().iter();
        members.any(|it| it.as_object().and_then(|it| it.text("path")) == Some(path))
    };
    if !lists(ome_member(well, "well")?, "images", image.name) {
        return None;
    }
    // The path of the array within the well ends the path within the plate.
    let (plate, path) = above.iter().find_map(|group| {
        let path = group.path.strip_suffix(well.path)?.strip_suffix('/')?;
        let plate = ome_member(group, "plate")?;
        lists(plate, "wells", path).then_some((plate, path))
    })?;
    let plate = name_in(plate).map(|name| format!("{name} "));
    let plate = plate.unwrap_or_default();
    Some(format!("{plate}{path} field {}", image.name))
}

/// The object `name` in the attributes of a group, which version 0.5 and later have within `ome`.
fn ome_member<'a>(group: &Ancestor<'a>, name: &str) -> Option<&'a Attributes> {
    let ome = group.attributes.get("ome").and_then(JsonTree::as_object);
    let mut places = ome.into_iter().chain([group.attributes]);
    places.find_map(|place| place.get(name)?.as_object())
}
