//! The grammar of AWS's files `config` and `credentials`. AWS SDKs and Tools Reference Guide,
//! section "Using shared config and credentials files".
//!
//! ```text
//! [default]                      a section: a kind that may be left out, and a name
//! region = eu-west-1             a property; its name is in lower case
//! [profile other] ; comment
//! s3 =                           a property without a value may have properties of its own,
//!   addressing_style = path        which are indented
//! ```
//!
//! `#` and `;` begin a comment at the start of a line, or after a blank. Sections of one name are one section. Of
//! properties of one name, the last counts.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use crate::store::remote::credentials::credential_error::CredentialError;

const BLANKS: [char; 2] = [' ', '\t'];

const NOT_CLOSED: &str = "a section begins with `[`, but does not end with `]`";
const NO_NAME: &str = "a section has no name";
const AFTER_SECTION: &str = "only a comment may follow the `]` of a section";
const NO_SECTION: &str = "a property stands before the first [section]";
const NO_PROPERTY: &str = "expected `name = value`, a [section], or a comment";
const NOTHING_TO_CONTINUE: &str = "an indented line continues nothing; remove the indentation";

/// A file of AWS's configuration.
#[derive(Default)]
pub(crate) struct AwsIni {
    sections: BTreeMap<(String, String), Section>,
}

/// A section.
#[derive(Default)]
pub(crate) struct Section {
    properties: BTreeMap<String, Property>,
}

#[derive(Default)]
struct Property {
    value: String,
    nested: BTreeMap<String, String>,
}

impl fmt::Debug for AwsIni {
    /// Shows the names of sections; values may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.sections.keys()).finish()
    }
}

impl fmt::Debug for Section {
    /// Shows the names of properties; values may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.properties.keys()).finish()
    }
}

impl AwsIni {
    /// Parses `text`. Messages name `path`, and have nothing of the text, which may be secret.
    ///
    /// # Errors
    /// [`CredentialError::Line`].
    pub(crate) fn parse(path: &Path, text: &str) -> Result<AwsIni, CredentialError> {
        let mut parser = Parser::default();
        for (at, line) in text.lines().enumerate() {
            let parsed = parser.line(line);
            parsed.map_err(|problem| CredentialError::Line {
                path: path.to_owned(),
                line: at + 1,
                problem,
            })?;
        }
        Ok(parser.ini)
    }

    /// Removes the section that [`section`](Self::section) would return, and returns it.
    pub(crate) fn take(&mut self, kind: &str, name: &str) -> Option<Section> {
        self.sections.remove(&(kind.to_owned(), name.to_owned()))
    }

    /// The section `[KIND NAME]`, or `[NAME]` where `kind` is empty.
    pub(crate) fn section(&self, kind: &str, name: &str) -> Option<&Section> {
        self.sections.get(&(kind.to_owned(), name.to_owned()))
    }
}

impl Section {
    /// The value of a property, unless it is empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let value = self.properties.get(name)?.value.as_str();
        (!value.is_empty()).then_some(value)
    }

    /// The value of a property of a property, unless it is empty.
    pub(crate) fn nested(&self, name: &str, inner: &str) -> Option<&str> {
        let value = self.properties.get(name)?.nested.get(inner)?.as_str();
        (!value.is_empty()).then_some(value)
    }

    /// Whether a property begins with `prefix`.
    pub(crate) fn has_prefix(&self, prefix: &str) -> bool {
        self.properties.keys().any(|name| name.starts_with(prefix))
    }
}

#[derive(Default)]
struct Parser {
    ini: AwsIni,
    /// The section that properties belong to.
    section: Option<(String, String)>,
    /// The property that an indented line continues.
    property: Option<String>,
}

impl Parser {
    fn line(&mut self, line: &str) -> Result<(), &'static str> {
        let is_indented = line.starts_with([' ', '\t']);
        let content = line.trim();
        if content.is_empty() || content.starts_with(['#', ';']) {
            return Ok(());
        }
        if is_indented {
            return self.continued(content);
        }
        let content = without_comment(content);
        if let Some(rest) = content.strip_prefix('[') {
            let name = section_name(rest)?;
            self.ini.sections.entry(name.clone()).or_default();
            self.section = Some(name);
            self.property = None;
            return Ok(());
        }
        let (name, value) = property(content)?;
        let section = self.section().ok_or(NO_SECTION)?;
        let property = Property {
            value,
            nested: BTreeMap::new(),
        };
        section.properties.insert(name.clone(), property);
        self.property = Some(name);
        Ok(())
    }

    /// An indented line: a property of the property before it, or more of its value.
    fn continued(&mut self, content: &str) -> Result<(), &'static str> {
        let name = self.property.clone().ok_or(NOTHING_TO_CONTINUE)?;
        let section = self.section().ok_or(NO_SECTION)?;
        let outer = section.properties.entry(name).or_default();
        if outer.value.is_empty() {
            let (name, value) = property(without_comment(content))?;
            outer.nested.insert(name, value);
        } else {
            outer.value.push('\n');
            outer.value.push_str(content);
        }
        Ok(())
    }

    fn section(&mut self) -> Option<&mut Section> {
        self.ini.sections.get_mut(self.section.as_ref()?)
    }
}

/// `content` up to a comment, which follows a blank.
fn without_comment(content: &str) -> &str {
    let is_comment = |(at, sign): &(usize, &str)| {
        matches!(*sign, "#" | ";")
            && content
                .get(..*at)
                .is_some_and(|before| before.ends_with(BLANKS))
    };
    let comment = content.match_indices(['#', ';']).find(is_comment);
    let end = comment.map_or(content.len(), |(at, _)| at);
    content.get(..end).unwrap_or(content).trim_end()
}

/// Kind and name in `profile NAME]`.
fn section_name(rest: &str) -> Result<(String, String), &'static str> {
    let (inner, after) = rest.split_once(']').ok_or(NOT_CLOSED)?;
    if !after.is_empty() && !after.starts_with([' ', '\t', '#', ';']) {
        return Err(AFTER_SECTION);
    }
    let inner = inner.trim();
    let (kind, name) = inner.split_once([' ', '\t']).unwrap_or(("", inner));
    let name = name.trim();
    let unquoted = ['"', '\''].iter().find_map(|quote| {
        let name = name.strip_prefix(*quote)?;
        name.strip_suffix(*quote)
    });
    let name = unquoted.unwrap_or(name);
    if name.is_empty() {
        return Err(NO_NAME);
    }
    Ok((kind.to_owned(), name.to_owned()))
}

fn property(content: &str) -> Result<(String, String), &'static str> {
    let (name, value) = content.split_once('=').ok_or(NO_PROPERTY)?;
    let name = name.trim().to_ascii_lowercase();
    if name.is_empty() {
        return Err(NO_PROPERTY);
    }
    Ok((name, value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> AwsIni {
        AwsIni::parse(Path::new("config"), text).unwrap()
    }

    #[test]
    fn sections_and_properties_are_read() {
        let ini = parse(
            "# first\n\n[default]\nregion=us-west-2\nOUTPUT = json ; format\n\n\
             [profile user1] # a comment\r\nrole_arn = arn:aws:iam::1:role/a#b;c\n\
             aws_secret_access_key = a+b/c==\n\t\n; x\ns3 =\n  max = 20 # n\n  # c\n\taddressing_style=path\n\
             after = 1\n[profile   \"my name\"]\na=b=c\n[sso-session s]\nx = 1\n[services 'l']\n\
             s3 = \n  endpoint_url = http://h\n[default]\nregion = eu-west-1\n",
        );
        let default = ini.section("", "default").unwrap();
        assert_eq!(default.get("region"), Some("eu-west-1"));
        assert_eq!(default.get("output"), Some("json"));
        let user = ini.section("profile", "user1").unwrap();
        assert_eq!(user.get("role_arn"), Some("arn:aws:iam::1:role/a#b;c"));
        assert_eq!(user.get("aws_secret_access_key"), Some("a+b/c=="));
        assert_eq!(user.get("s3"), None);
        assert_eq!(user.nested("s3", "max"), Some("20"));
        assert_eq!(user.nested("s3", "addressing_style"), Some("path"));
        assert_eq!(user.get("after"), Some("1"));
        assert!(user.has_prefix("role_") && !user.has_prefix("sso_"));
        let named = ini.section("profile", "my name").unwrap();
        assert_eq!(named.get("a"), Some("b=c"));
        let services = ini.section("services", "l").unwrap();
        assert_eq!(services.nested("s3", "endpoint_url"), Some("http://h"));
        assert!(ini.section("sso-session", "s").is_some());
        assert!(ini.section("", "user1").is_none());
        assert!(parse("").section("", "default").is_none());
    }

    #[test]
    fn a_value_goes_on_in_indented_lines() {
        let ini = parse("[default]\ncredential_process = /bin/a\n  --b # c\n");
        let value = ini.section("", "default").unwrap();
        assert_eq!(value.get("credential_process"), Some("/bin/a\n--b # c"));
    }

    #[test]
    fn errors_have_the_number_of_the_line_and_no_text() {
        for (line, problem) in [
            ("[hunter2", NOT_CLOSED),
            ("[ ]", NO_NAME),
            ("[profile ]", ""),
            ("[\"\"]", NO_NAME),
            ("[a]hunter2", AFTER_SECTION),
            ("hunter2", NO_PROPERTY),
            ("= hunter2", NO_PROPERTY),
            ("\u{feff}[a]", NO_PROPERTY),
        ] {
            let text = format!("[a]\nb =\n{line}\n");
            let error = AwsIni::parse(Path::new("f"), &text);
            if problem.is_empty() {
                // Without a second word, `profile` is the name of the section.
                assert!(error.is_ok(), "{line}");
                continue;
            }
            let message = error.unwrap_err().to_string();
            assert_eq!(message, format!("f: line 3: {problem}"));
        }
        for (text, problem) in [
            ("a = hunter2", NO_SECTION),
            ("  a = hunter2", NOTHING_TO_CONTINUE),
            ("[a]\n  b = hunter2", NOTHING_TO_CONTINUE),
            ("[a]\nb =\n  hunter2", NO_PROPERTY),
        ] {
            let message = AwsIni::parse(Path::new("f"), text).unwrap_err().to_string();
            assert!(message.ends_with(problem), "{text}: {message}");
        }
    }

    #[test]
    fn debug_shows_no_value() {
        let ini = parse("[a]\nk = hunter2\nn =\n  x = hunter2\n");
        let shown = format!("{ini:?}{:?}", ini.section("", "a"));
        assert!(shown.contains('k') && !shown.contains("hunter2"), "{shown}");
    }
}
