//! Texts with expressions in double braces, which are the templates in sets of references.
//!
//! ```text
//! {{u}}/a_{{ 2 * i + 1 }}.nc      names, integers, + - * // % and parentheses
//! {{f(c='text')}}                 a template that is a function of its names
//! ```
//!
//! The syntax is a small part of Jinja. A text is parsed once and computed often.

use std::collections::{BTreeMap, BTreeSet};

use super::lexer::{Lexer, Token};

/// The most parentheses within each other.
const MOST_DEPTH: usize = 32;

/// The longest expression, which bounds how deep a sum of many numbers is.
const MOST_LENGTH: usize = 1000;

/// The longest text, which is an address of a target or a key. Names may stand for far longer texts, and each may be
/// named many times.
pub(super) const MOST_TEXT_BYTES: usize = 64 << 10;

/// Memory of an expression, for each byte of its text: `1+` takes the most.
const BYTES_OF_BYTE: u64 = 64;

/// A text with expressions.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pattern {
    parts: Vec<Part>,
    memory_bytes: u64,
}

/// A text in which `0` stands for some expressions.
pub(super) struct Skeleton<'p> {
    pub(super) text: String,
    /// These expressions, with their places in the text.
    pub(super) expressions: Vec<(usize, &'p Expression)>,
}

#[derive(Debug, Clone, PartialEq)]
enum Part {
    Text(String),
    Computed(Expression),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expression {
    Integer(i64),
    Name(String),
    Call(String, BTreeMap<String, String>),
    Negated(Box<Expression>),
    Binary(Box<Expression>, Operator, Box<Expression>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Plus,
    Minus,
    Times,
    Quotient,
    Remainder,
}

/// The values of names.
pub(super) trait Names {
    /// The integer that `name` stands for.
    fn integer(&self, name: &str) -> Option<i64>;
    /// The text of the template `name`.
    fn text(&self, name: &str) -> Option<&str>;
}

impl Pattern {
    /// Parses `text`.
    ///
    /// # Errors
    /// A message, for expressions that are not understood.
    pub(super) fn parse(text: &str) -> Result<Pattern, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let (inside, after) = after
                .split_once("}}")
                .ok_or_else(|| format!("`{text}`: `{{{{` without `}}}}`"))?;
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            let parsed = parse_expression(inside);
            let refused = |problem| format!("`{{{{{inside}}}}}`: {problem}");
            parts.push(Part::Computed(parsed.map_err(refused)?));
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Ok(Pattern {
            parts,
            memory_bytes: memory_bytes(text),
        })
    }

    /// Like [`Pattern::parse`], where the pattern may take `most_bytes` of memory.
    ///
    /// # Errors
    /// Those of [`Pattern::parse`]; also for a text that is too long.
    pub(super) fn parse_within(text: &str, most_bytes: u64) -> Result<Pattern, String> {
        if memory_bytes(text) > most_bytes {
            return Err(
                "its expressions take too much memory; give more with --cache-size".to_owned(),
            );
        }
        Pattern::parse(text)
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// All names of the expressions.
    pub(super) fn names(&self) -> BTreeSet<&str> {
        let computed = self.parts.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Computed(expression) => Some(expression.names()),
        });
        computed.flatten().collect()
    }

    /// The text, in which `0` stands for each expression with a variable name (`is_variable`). All other expressions are
    /// computed.
    ///
    /// # Errors
    /// Those of [`Pattern::text`], for the other expressions.
    pub(super) fn skeleton(
        &self,
        names: &dyn Names,
        is_variable: impl Fn(&str) -> bool,
    ) -> Result<Skeleton<'_>, String> {
        let mut skeleton = Skeleton {
            text: String::new(),
            expressions: Vec::new(),
        };
        for part in &self.parts {
            match part {
                Part::Computed(expression) if expression.names().into_iter().any(&is_variable) => {
                    skeleton.expressions.push((skeleton.text.len(), expression));
                    push(&mut skeleton.text, "0")?;
                }
                part => part.add_to(&mut skeleton.text, names)?,
            }
        }
        Ok(skeleton)
    }

    /// The text, with the values of `names` in its expressions.
    ///
    /// # Errors
    /// A message, for names without a value, numbers beyond 64 bits, and texts beyond 64 KiB.
    pub(super) fn text(&self, names: &dyn Names) -> Result<String, String> {
        let mut text = String::new();
        for part in &self.parts {
            part.add_to(&mut text, names)?;
        }
        Ok(text)
    }
}

fn memory_bytes(text: &str) -> u64 {
    BYTES_OF_BYTE.saturating_mul(text.len() as u64)
}

impl Part {
    fn add_to(&self, text: &mut String, names: &dyn Names) -> Result<(), String> {
        match self {
            Part::Text(part) => push(text, part)?,
            Part::Computed(Expression::Name(name)) if names.integer(name).is_none() => {
                let found = names.text(name).ok_or_else(|| unknown(name))?;
                if found.contains("{{") {
                    return Err(format!("`{name}` is a function, and is not called"));
                }
                push(text, found)?;
            }
            Part::Computed(Expression::Call(name, arguments)) => {
                let body = names.text(name).ok_or_else(|| unknown(name))?;
                push(text, &called(body, arguments)?)?;
            }
            Part::Computed(expression) => push(text, &expression.value(names)?.to_string())?,
        }
        Ok(())
    }
}

/// Adds `part` to `text`, unless that becomes too long.
fn push(text: &mut String, part: &str) -> Result<(), String> {
    if text.len() + part.len() > MOST_TEXT_BYTES {
        return Err(too_long());
    }
    text.push_str(part);
    Ok(())
}

/// The message that a text is too long.
pub(super) fn too_long() -> String {
    format!("a text of more than {MOST_TEXT_BYTES} bytes is no address or key")
}

/// The text of a function, with its arguments in the places of their names. It names no other templates, so it cannot
/// call itself.
fn called(body: &str, arguments: &BTreeMap<String, String>) -> Result<String, String> {
    struct Arguments<'a>(&'a BTreeMap<String, String>);

    impl Names for Arguments<'_> {
        fn integer(&self, _name: &str) -> Option<i64> {
            None
        }

        fn text(&self, name: &str) -> Option<&str> {
            self.0.get(name).map(String::as_str)
        }
    }

    if body.len() > MOST_TEXT_BYTES {
        return Err(too_long());
    }
    Pattern::parse(body)?.text(&Arguments(arguments))
}

fn unknown(name: &str) -> String {
    format!("no template or dimension is called `{name}`")
}

impl Expression {
    /// All names that are not those of functions.
    pub(super) fn names(&self) -> BTreeSet<&str> {
        match self {
            Expression::Integer(_) | Expression::Call(..) => BTreeSet::new(),
            Expression::Name(name) => BTreeSet::from([name.as_str()]),
            Expression::Negated(of) => of.names(),
            Expression::Binary(left, _, right) => &left.names() | &right.names(),
        }
    }

    /// The number, computed with the values of `names`.
    ///
    /// # Errors
    /// Those of [`Pattern::text`].
    pub(super) fn value(&self, names: &dyn Names) -> Result<i64, String> {
        let value = match self {
            Expression::Integer(value) => Some(*value),
            Expression::Name(name) => {
                let missing = || match names.text(name) {
                    Some(_) => format!("`{name}` is a text, with which nothing is computed"),
                    None => unknown(name),
                };
                Some(names.integer(name).ok_or_else(missing)?)
            }
            Expression::Call(name, _) => {
                return Err(format!(
                    "`{name}` is a text, with which nothing is computed"
                ));
            }
            Expression::Negated(of) => of.value(names)?.checked_neg(),
            Expression::Binary(left, operator, right) => {
                operator.apply(left.value(names)?, right.value(names)?)
            }
        };
        value.ok_or_else(|| "the number is beyond 64 bits, or a division is by 0".to_owned())
    }
}

impl Operator {
    /// The result as Python has it: quotients are rounded down.
    fn apply(self, left: i64, right: i64) -> Option<i64> {
        match self {
            Operator::Plus => left.checked_add(right),
            Operator::Minus => left.checked_sub(right),
            Operator::Times => left.checked_mul(right),
            Operator::Quotient => {
                let quotient = left.checked_div(right)?;
                let is_cut_up = left % right != 0 && (left < 0) != (right < 0);
                Some(quotient - i64::from(is_cut_up))
            }
            Operator::Remainder => {
                let quotient = Operator::Quotient.apply(left, right)?;
                left.checked_sub(quotient.checked_mul(right)?)
            }
        }
    }
}

fn parse_expression(text: &str) -> Result<Expression, String> {
    if text.len() > MOST_LENGTH {
        return Err(format!("longer than {MOST_LENGTH} bytes"));
    }
    let mut lexer = Lexer::new(text);
    let found = sum(&mut lexer, 0)?;
    match lexer.next()? {
        None => Ok(found),
        Some(token) => Err(format!("{token} is not understood here")),
    }
}

/// `product ((+|-) product)*`
fn sum(lexer: &mut Lexer<'_>, depth: usize) -> Result<Expression, String> {
    let mut left = product(lexer, depth)?;
    loop {
        let operator = match lexer.peek()? {
            Some(Token::Sign('+')) => Operator::Plus,
            Some(Token::Sign('-')) => Operator::Minus,
            _ => return Ok(left),
        };
        lexer.next()?;
        let right = product(lexer, depth)?;
        left = Expression::Binary(Box::new(left), operator, Box::new(right));
    }
}

/// `factor ((*|//|%) factor)*`
fn product(lexer: &mut Lexer<'_>, depth: usize) -> Result<Expression, String> {
    let mut left = factor(lexer, depth)?;
    loop {
        let operator = match lexer.peek()? {
            Some(Token::Sign('*')) => Operator::Times,
            Some(Token::Quotient) => Operator::Quotient,
            Some(Token::Sign('%')) => Operator::Remainder,
            _ => return Ok(left),
        };
        lexer.next()?;
        let right = factor(lexer, depth)?;
        left = Expression::Binary(Box::new(left), operator, Box::new(right));
    }
}

/// An integer, a name, a call, or either of a sum in parentheses and a negated factor.
fn factor(lexer: &mut Lexer<'_>, depth: usize) -> Result<Expression, String> {
    if depth >= MOST_DEPTH {
        return Err(format!(
            "more than {MOST_DEPTH} parentheses within each other"
        ));
    }
    match lexer.next()? {
        Some(Token::Integer(value)) => Ok(Expression::Integer(value)),
        Some(Token::Sign('-')) => {
            let of = factor(lexer, depth + 1)?;
            Ok(Expression::Negated(Box::new(of)))
        }
        Some(Token::Sign('(')) => {
            let found = sum(lexer, depth + 1)?;
            expect(lexer, ')')?;
            Ok(found)
        }
        Some(Token::Name(name)) => {
            if lexer.peek()? != Some(Token::Sign('(')) {
                return Ok(Expression::Name(name.to_owned()));
            }
            lexer.next()?;
            let arguments = arguments(lexer)?;
            Ok(Expression::Call(name.to_owned(), arguments))
        }
        Some(token) => Err(format!("{token} is not understood here")),
        None => Err("an expression ends too early".to_owned()),
    }
}

/// `name = 'text', …)`
fn arguments(lexer: &mut Lexer<'_>) -> Result<BTreeMap<String, String>, String> {
    let mut arguments = BTreeMap::new();
    if lexer.peek()? == Some(Token::Sign(')')) {
        lexer.next()?;
        return Ok(arguments);
    }
    loop {
        let Some(Token::Name(name)) = lexer.next()? else {
            return Err("an argument has no name".to_owned());
        };
        expect(lexer, '=')?;
        let value = match lexer.next()? {
            Some(Token::Text(text)) => text.to_owned(),
            Some(Token::Integer(value)) => value.to_string(),
            _ => {
                return Err(format!(
                    "the argument `{name}` is neither a text nor an integer"
                ));
            }
        };
        arguments.insert(name.to_owned(), value);
        match lexer.next()? {
            Some(Token::Sign(',')) => {}
            Some(Token::Sign(')')) => return Ok(arguments),
            _ => return Err("a call ends too early".to_owned()),
        }
    }
}

fn expect(lexer: &mut Lexer<'_>, sign: char) -> Result<(), String> {
    if lexer.next()? == Some(Token::Sign(sign)) {
        return Ok(());
    }
    Err(format!("`{sign}` is missing"))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Known;

    impl Names for Known {
        fn integer(&self, name: &str) -> Option<i64> {
            match name {
                "i" => Some(7),
                "j" => Some(-3),
                _ => None,
            }
        }

        fn text(&self, name: &str) -> Option<&str> {
            match name {
                "u" => Some("s3://b/d"),
                "f" => Some("x-{{c}}.nc"),
                "loop" => Some("{{loop(c='1')}}"),
                _ => None,
            }
        }
    }

    #[test]
    fn expressions_are_computed_as_in_python() {
        for (text, expected) in [
            ("{{u}}/a", Ok("s3://b/d/a")),
            ("{{ i }}.{{j}}", Ok("7.-3")),
            ("{{i*2+1}}", Ok("15")),
            ("{{2 * (i + 1)}}", Ok("16")),
            ("{{j // 2}} {{j % 2}}", Ok("-2 1")),
            ("{{-i // 2}}", Ok("-4")),
            ("{{f(c='9')}}", Ok("x-9.nc")),
            ("{{f(c=9)}}", Ok("x-9.nc")),
            ("plain } {", Ok("plain } {")),
            ("{{f}}", Err("is a function")),
            (
                "{{loop(c='1')}}",
                Err("no template or dimension is called `loop`"),
            ),
            ("{{k}}", Err("called `k`")),
            ("{{u + 1}}", Err("is a text")),
            ("{{i / 2}}", Err("`/`")),
            ("{{i ** 2}}", Err("`*`")),
            ("{{i | hex}}", Err("`|`")),
            ("{{'%03d' % i}}", Err("'%03d'")),
            ("{{i", Err("without")),
            ("{{}}", Err("ends too early")),
            ("{{i // 0}}", Err("by 0")),
            ("{{9223372036854775807 + 1}}", Err("beyond 64 bits")),
            ("{{99999999999999999999}}", Err("64 bits")),
        ] {
            let found = Pattern::parse(text).and_then(|pattern| pattern.text(&Known));
            match (found, expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{text}"),
                (Err(found), Err(expected)) => {
                    assert!(found.contains(expected), "{text}: {found}");
                }
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }

    #[test]
    fn texts_are_bounded() {
        struct Long(String);

        impl Names for Long {
            fn integer(&self, _name: &str) -> Option<i64> {
                None
            }

            fn text(&self, name: &str) -> Option<&str> {
                Some(if name == "a" {
                    &self.0[..60_000]
                } else {
                    &self.0
                })
            }
        }

        let long = Long("{{c}}".repeat(20_000).replace("{{c}}", "aaaa") + "{{c}}");
        for (text, is_bounded) in [
            ("{{a}}", true),
            ("{{a}}{{a}}", false),
            ("{{f(c='')}}", false),
        ] {
            let text = Pattern::parse(text).unwrap().text(&long);
            assert_eq!(text.is_ok(), is_bounded, "{text:?}");
        }
        let skeleton = Pattern::parse("{{a}}{{a}}{{i}}").unwrap();
        assert!(skeleton.skeleton(&long, |name| name == "i").is_err());
    }

    #[test]
    fn depth_is_bounded() {
        let deep = format!("{{{{{}1}}}}", "(".repeat(100_000));
        assert!(Pattern::parse(&deep).is_err());
        let minus = format!("{{{{{}1}}}}", "-".repeat(100_000));
        assert!(Pattern::parse(&minus).is_err());
    }
}
