//! The channels of a microscope's image: names, colours and ranges of brightness.
//!
//! OME-NGFF calls them "omero" metadata: <https://ngff.openmicroscopy.org/0.5/#omero-md>.

use crate::metadata::{Attributes, JsonTree};

/// The channels of longer lists are not described.
const MOST_CHANNELS: usize = 1024;
/// The longest name in bytes; longer ones are left out.
const LONGEST_LABEL: usize = 256;

/// The facts about a channel.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Channel {
    /// Its name, which is not empty.
    pub label: Option<String>,
    /// Red, green and blue of its full brightness.
    pub color: Option<[u8; 3]>,
    /// The values that are shown black and in full brightness: finite numbers, the first one the smaller.
    pub window: Option<[f64; 2]>,
}

/// The channels of `omero`, a member of the attributes of a group, by their number in the array. `None` if the list is too
/// long, or if one of its entries is no object, because leaving that one out would change the numbers of the others.
pub(super) fn channels(omero: &JsonTree) -> Option<Vec<Channel>> {
    let entries = omero.as_object()?.get("channels")?.as_list()?;
    if entries.len() > MOST_CHANNELS {
        return None;
    }
    entries
        .iter()
        .map(|entry| Some(channel(entry.as_object()?)))
        .collect()
}

fn channel(entry: &Attributes) -> Channel {
    let window = entry.get("window").and_then(JsonTree::as_object);
    let window = window.and_then(|window| Some([window.number("start")?, window.number("end")?]));
    Channel {
        label: entry
            .text("label")
            .filter(|label| (1..=LONGEST_LABEL).contains(&label.len()))
            .map(str::to_owned),
        color: entry.text("color").and_then(color),
        window: window.filter(|[start, end]| start.is_finite() && end.is_finite() && start < end),
    }
}

/// A colour of six hexadecimal digits, perhaps after `#`.
fn color(text: &str) -> Option<[u8; 3]> {
    let digits = text.strip_prefix('#').unwrap_or(text);
    let is_hexadecimal = digits.len() == 6 && digits.bytes().all(|it| it.is_ascii_hexdigit());
    let number = u32::from_str_radix(digits, 16).ok()?;
    let [_, red, green, blue] = number.to_be_bytes();
    is_hexadecimal.then_some([red, green, blue])
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::attributes;
    use super::*;

    fn of(text: &str) -> Option<Vec<Channel>> {
        channels(attributes(text).get("omero").unwrap())
    }

    #[test]
    fn channels_have_names_colours_and_windows() {
        let text = r##"{"omero": {"channels": [
            {"label": "DAPI", "color": "0000FF", "window": {"start": 10, "end": 1500.5, "min": 0, "max": 65535}},
            {"color": "#00ff00"},
            {}]}}"##;
        let dapi = Channel {
            label: Some("DAPI".to_owned()),
            color: Some([0, 0, 255]),
            window: Some([10.0, 1500.5]),
        };
        let green = Channel {
            color: Some([0, 255, 0]),
            ..Channel::default()
        };
        assert_eq!(of(text), Some(vec![dapi, green, Channel::default()]));
    }

    #[test]
    fn what_is_ill_formed_is_unknown() {
        let long = "x".repeat(257);
        for entry in [
            r#"{"label": 3, "color": 255, "window": [0, 1]}"#,
            r#"{"label": "", "color": "red", "window": {"start": 1, "end": 1}}"#,
            r#"{"color": "+00FF0", "window": {"start": "0", "end": 1}}"#,
            r#"{"color": "0000FF00", "window": {"start": 0, "end": 1e999}}"#,
            &format!(r#"{{"label": "{long}", "color": "ééé"}}"#),
        ] {
            let found = of(&format!(r#"{{"omero": {{"channels": [{entry}]}}}}"#));
            assert_eq!(found, Some(vec![Channel::default()]), "{entry}");
        }
        let many = "{},".repeat(1024);
        for omero in [
            "3".to_owned(),
            r#"{"channels": {}}"#.to_owned(),
            r#"{"channels": [{}, 3]}"#.to_owned(),
            format!(r#"{{"channels": [{many}{{}}]}}"#),
        ] {
            assert_eq!(of(&format!(r#"{{"omero": {omero}}}"#)), None, "{omero}");
        }
    }
}
