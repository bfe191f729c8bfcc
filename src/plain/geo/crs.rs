//! A coordinate reference system, as the text of the store describes it. Only its code and its kind are parsed.

use std::borrow::Cow;
use std::sync::Arc;

use super::epsg;
use super::kind::CrsKind;
use super::projjson;
use super::wkt::WktNode;
use crate::error::FormatError;
use crate::metadata::{Attributes, JsonTree};

/// The longest text of a CRS in bytes. The longest in EPSG's dataset has 9 kB.
pub(super) const MOST_TEXT: usize = 64 << 10;
/// The longest authority, and the longest code.
const MOST_CODE: usize = 32;

/// A coordinate reference system. At least one of its members is known.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Crs {
    /// Authority and code, where the store names them apart from the texts.
    pub code: Option<CrsCode>,
    /// Well-Known Text of version 1 or 2.
    pub wkt: Option<Arc<str>>,
    /// PROJJSON, the form of version 2 of Well-Known Text as a JSON object.
    pub projjson: Option<Arc<JsonTree>>,
    /// The attributes of a CF grid mapping variable, with all parameters of the projection.
    pub grid_mapping: Option<Arc<Attributes>>,
}

/// The name of a CRS in a register, such as `EPSG:32632`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrsCode {
    authority: String,
    code: String,
}

impl CrsCode {
    /// The code in `EPSG:4326`, `urn:ogc:def:crs:EPSG::4326` or `http://www.opengis.net/def/crs/EPSG/0/4326`.
    pub fn parse(text: &str) -> Option<CrsCode> {
        let url = ["http://", "https://"]
            .iter()
            .find_map(|scheme| text.strip_prefix(scheme))
            .and_then(|rest| rest.strip_prefix("www.opengis.net/def/crs/"));
        let parts: Vec<&str> = if let Some(path) = url {
            path.split('/').collect()
        } else if let Some(name) = text.strip_prefix("urn:ogc:def:crs:") {
            name.split(':').collect()
        } else {
            text.split(':').collect()
        };
        match parts.as_slice() {
            [authority, code] | [authority, _, code] => CrsCode::new(authority, code),
            _ => None,
        }
    }

    /// The code `code` of `authority`, if both are words.
    pub(super) fn new(authority: &str, code: &str) -> Option<CrsCode> {
        let is_word = |text: &str| {
            let mut characters = text.chars();
            (1..=MOST_CODE).contains(&text.len())
                && characters.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        };
        (is_word(authority) && is_word(code)).then(|| CrsCode {
            authority: authority.to_owned(),
            code: code.to_owned(),
        })
    }

    /// The number in EPSG's dataset. `OGC:CRS84` is EPSG's 4326 with longitudes before latitudes, which is the order of
    /// the axes x and y of every raster.
    pub fn epsg(&self) -> Option<u16> {
        if self.authority.eq_ignore_ascii_case("OGC") && self.code == "CRS84" {
            return Some(4326);
        }
        if self.authority.eq_ignore_ascii_case("EPSG") {
            return self.code.parse().ok().filter(|&code| code > 0);
        }
        None
    }

    /// The address by which GDAL looks the CRS up.
    pub fn url(&self) -> String {
        let CrsCode { authority, code } = self;
        let version = if authority == "OGC" { "1.3" } else { "0" };
        format!("http://www.opengis.net/def/crs/{authority}/{version}/{code}")
    }
}

impl std::fmt::Display for CrsCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.authority, self.code)
    }
}

impl Crs {
    /// The CRS that is described by `text`: Well-Known Text or a code. `place` is the attribute.
    ///
    /// # Errors
    /// When the text is neither, or is too long.
    pub(in crate::plain) fn of_text(place: &str, text: &str) -> Result<Crs, FormatError> {
        check_len(place, text.len())?;
        if let Some(code) = CrsCode::parse(text.trim()) {
            return Ok(Crs {
                code: Some(code),
                ..Crs::default()
            });
        }
        let kind = WktNode::parse(text).and_then(|node| node.kind());
        if kind.is_none() || text.contains('\0') {
            return Err(FormatError::document(
                place,
                "it is neither Well-Known Text of a CRS nor a code like EPSG:4326",
            ));
        }
        Ok(Crs {
            wkt: Some(text.trim().into()),
            ..Crs::default()
        })
    }

    /// The CRS that is described by `value`, an object of PROJJSON.
    ///
    /// # Errors
    /// When it is none, or is too long.
    pub(super) fn of_projjson(place: &str, value: &JsonTree) -> Result<Crs, FormatError> {
        let object = value.as_object();
        let name = object.and_then(|object| object.text("type"));
        if !name.is_some_and(|name| name.ends_with("CRS")) {
            let problem = "it is no PROJJSON of a CRS: an object whose `type` ends with CRS";
            return Err(FormatError::document(place, problem));
        }
        check_len(place, value.to_string().len())?;
        Ok(Crs {
            projjson: Some(Arc::new(value.clone())),
            ..Crs::default()
        })
    }

    /// Authority and code, from the store's own words or from the texts.
    pub fn code(&self) -> Option<CrsCode> {
        let of_wkt = || {
            let (authority, code) = WktNode::parse(self.wkt.as_deref()?)?.id()?;
            CrsCode::new(&authority, &code)
        };
        let of_projjson = || {
            let id = self
                .projjson
                .as_ref()?
                .as_object()?
                .get("id")?
                .as_object()?;
            let code = match id.get("code")? {
                JsonTree::Integer(code) => code.to_string(),
                code => code.as_text()?.to_owned(),
            };
            CrsCode::new(id.text("authority")?, &code)
        };
        self.code.clone().or_else(of_wkt).or_else(of_projjson)
    }

    /// The number in EPSG's dataset, if the CRS is in it.
    pub fn epsg(&self) -> Option<u16> {
        self.code()?.epsg()
    }

    /// The kind of its coordinates. `None` if only a code is known that is not in the table of this program.
    pub fn kind(&self) -> Option<CrsKind> {
        let of_wkt = || WktNode::parse(self.wkt.as_deref()?)?.kind();
        let of_projjson = || Some(kind_of_projjson(self.projjson.as_ref()?.as_object()?));
        let of_code = || WktNode::parse(&epsg::wkt(self.epsg()?)?)?.kind();
        of_wkt().or_else(of_projjson).or_else(of_code)
    }

    /// Well-Known Text: that of the store, or of its PROJJSON. Where the store has only a code, it is that of EPSG's
    /// dataset.
    pub fn wkt(&self) -> Option<Cow<'_, str>> {
        if let Some(wkt) = &self.wkt {
            return Some(Cow::Borrowed(wkt));
        }
        let of_projjson = || projjson::wkt(self.projjson.as_ref()?.as_object()?);
        let of_code = || epsg::wkt(self.epsg()?);
        of_projjson().or_else(of_code).map(Cow::Owned)
    }

    /// Well-Known Text of version 1: that of the store, or that of EPSG's dataset.
    pub fn wkt_1(&self) -> Option<Cow<'_, str>> {
        let is_first = |wkt: &&Arc<str>| {
            let node = WktNode::parse(wkt);
            node.is_some_and(|node| {
                node.is(&["GEOGCS", "PROJCS", "COMPD_CS", "GEOCCS", "LOCAL_CS"])
            })
        };
        match self.wkt.as_ref().filter(is_first) {
            Some(wkt) => Some(Cow::Borrowed(wkt)),
            None => epsg::wkt(self.epsg()?).map(Cow::Owned),
        }
    }

    /// The value of GDAL's attribute `_CRS`, JSON: the store's own descriptions; `None` if it has parameters alone.
    pub fn gdal_attribute(&self) -> Option<String> {
        let url = self.code.as_ref().map(|code| JsonTree::Text(code.url()));
        let wkt = self.wkt.as_deref();
        let wkt = wkt.map(|wkt| JsonTree::Text(wkt.to_owned()));
        let projjson = self.projjson.as_ref();
        let projjson = projjson.map(|projjson| (**projjson).clone());
        let members = [("url", url), ("wkt", wkt), ("projjson", projjson)];
        let known = members.into_iter();
        let known = known.filter_map(|(name, value)| Some((name.to_owned(), value?)));
        let known: Attributes = known.collect();
        (known != Attributes::default()).then(|| known.to_string())
    }

    /// An estimate of its memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let wkt = self.wkt.as_ref().map_or(0, |wkt| wkt.len());
        let projjson = self.projjson.as_ref();
        let projjson = projjson.map_or(0, |value| value.to_string().len());
        let attributes = self.grid_mapping.as_ref();
        let attributes = attributes.map_or(0, |attributes| attributes.to_string().len());
        let trees = (projjson + attributes) as u64;
        wkt as u64 + trees * crate::metadata::attributes::MEMORY_PER_BYTE
    }
}

fn kind_of_projjson(object: &Attributes) -> CrsKind {
    let system = object
        .get("coordinate_system")
        .and_then(JsonTree::as_object);
    let is_ellipsoidal =
        || system.is_some_and(|system| system.text("subtype") == Some("ellipsoidal"));
    match object.text("type") {
        Some("GeographicCRS" | "DerivedGeographicCRS") => CrsKind::Geographic,
        Some("GeodeticCRS" | "DerivedGeodeticCRS") if is_ellipsoidal() => CrsKind::Geographic,
        Some("ProjectedCRS") => CrsKind::Projected,
        _ => CrsKind::Other,
    }
}

fn check_len(place: &str, bytes: usize) -> Result<(), FormatError> {
    let what = "the length of the description of a CRS in bytes";
    FormatError::check_limit(what, bytes as u64, MOST_TEXT as u64)
        .map_err(|error| error.within(place))
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::attributes;
    use super::*;

    #[test]
    fn codes_have_several_spellings() {
        for (text, code) in [
            ("EPSG:4326", Some("EPSG:4326")),
            ("urn:ogc:def:crs:EPSG::32632", Some("EPSG:32632")),
            (
                "http://www.opengis.net/def/crs/EPSG/0/3035",
                Some("EPSG:3035"),
            ),
            (
                "https://www.opengis.net/def/crs/OGC/1.3/CRS84",
                Some("OGC:CRS84"),
            ),
            ("IAU_2015:30100", Some("IAU_2015:30100")),
            ("EPSG", None),
            ("EPSG:", None),
            ("http://example.org/EPSG/0/4326", None),
            ("a b:1", None),
        ] {
            let found = CrsCode::parse(text).map(|code| code.to_string());
            assert_eq!(found.as_deref(), code, "{text}");
        }
        let epsg = |text| CrsCode::parse(text).unwrap().epsg();
        assert_eq!(epsg("epsg:4326"), Some(4326));
        assert_eq!(epsg("OGC:CRS84"), Some(4326));
        assert_eq!(epsg("EPSG:70000"), None);
        assert_eq!(epsg("ESRI:54009"), None);
        let url = CrsCode::parse("OGC:CRS84").unwrap().url();
        assert_eq!(url, "http://www.opengis.net/def/crs/OGC/1.3/CRS84");
    }

    #[test]
    fn code_and_kind_come_from_any_description() {
        let wkt = Crs::of_text("a", r#"GEOGCRS["x", ID["EPSG", 4258]]"#).unwrap();
        assert_eq!(
            (wkt.epsg(), wkt.kind()),
            (Some(4258), Some(CrsKind::Geographic))
        );
        let json = attributes(
            r#"{"a": {"type": "ProjectedCRS", "id": {"authority": "EPSG", "code": 3035}}}"#,
        );
        let json = Crs::of_projjson("a", json.get("a").unwrap()).unwrap();
        assert_eq!(
            (json.epsg(), json.kind()),
            (Some(3035), Some(CrsKind::Projected))
        );
        let code = Crs::of_text("a", "EPSG:32632").unwrap();
        assert_eq!(
            (code.epsg(), code.kind()),
            (Some(32632), Some(CrsKind::Projected))
        );
        assert!(
            code.wkt()
                .unwrap()
                .starts_with("PROJCS[\"WGS 84 / UTM zone 32N\"")
        );
        let unknown = Crs::of_text("a", "ESRI:54009").unwrap();
        assert_eq!((unknown.kind(), unknown.wkt()), (None, None));
    }

    #[test]
    fn gdal_gets_the_words_of_the_store() {
        let gdal = |crs: &Crs| crs.gdal_attribute();
        let mut crs = Crs::of_text("a", "EPSG:32632").unwrap();
        let url = r#""url":"http://www.opengis.net/def/crs/EPSG/0/32632""#;
        assert_eq!(gdal(&crs), Some(format!("{{{url}}}")));
        crs.wkt = Crs::of_text("a", r#"PROJCS["x"]"#).unwrap().wkt;
        let wkt = r#""wkt":"PROJCS[\"x\"]""#;
        assert_eq!(gdal(&crs), Some(format!("{{{url},{wkt}}}")));
        let json = attributes(r#"{"a": {"type": "ProjectedCRS"}}"#);
        let json = Crs::of_projjson("a", json.get("a").unwrap()).unwrap();
        let expected = r#"{"projjson":{"type":"ProjectedCRS"}}"#;
        assert_eq!(gdal(&json).as_deref(), Some(expected));
        assert_eq!(gdal(&Crs::default()), None);
    }

    #[test]
    fn texts_that_are_no_crs_are_refused_with_the_reason() {
        let error = |text: &str| Crs::of_text("`crs_wkt`", text).unwrap_err().to_string();
        assert!(error("+proj=utm +zone=32").contains("neither Well-Known Text"));
        assert!(error("DATUM[\"a\"]").contains("neither Well-Known Text"));
        let long = format!("GEOGCS[\"{}\"]", "a".repeat(MOST_TEXT));
        assert!(
            error(&long).contains("length of the description"),
            "{}",
            error(&long)
        );
        let json = attributes(r#"{"a": {"type": 1}, "b": "EPSG:4326"}"#);
        for name in ["a", "b"] {
            let error = Crs::of_projjson(name, json.get(name).unwrap()).unwrap_err();
            assert!(error.to_string().contains("no PROJJSON"));
        }
    }
}
