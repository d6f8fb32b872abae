//! Text to parts.

use alloc::borrow::ToOwned;
use alloc::vec;
use alloc::vec::Vec;

use super::key::{self, Key};
use super::{
    Expression, Literal, MAX_TEMPLATE, MAX_VARIABLES, Modifier, Operator, Part, TemplateError,
    TemplateErrorKind, Variable,
};

pub(super) fn parts(template: &str) -> Result<Vec<Part>, TemplateError> {
    if template.len() > MAX_TEMPLATE {
        return Err(TemplateError { kind: TemplateErrorKind::TooLong, at: MAX_TEMPLATE });
    }
    let mut parts = Vec::new();
    let mut parser = Parser { template, at: 0, variables: 0 };
    while parser.at < template.len() {
        parts.push(if parser.peek() == Some('{') {
            Part::Expression(parser.expression()?)
        } else {
            Part::Literal(parser.literal()?)
        });
    }
    Ok(parts)
}

struct Parser<'t> {
    template: &'t str,
    at: usize,
    variables: usize,
}

impl<'t> Parser<'t> {
    fn peek(&self) -> Option<char> {
        self.template[self.at..].chars().next()
    }

    fn error<T>(&self, kind: TemplateErrorKind) -> Result<T, TemplateError> {
        Err(TemplateError { kind, at: self.at })
    }

    /// Takes characters as long as `take` says so.
    fn take_while(&mut self, mut take: impl FnMut(char) -> bool) -> &'t str {
        let rest = &self.template[self.at..];
        let taken = &rest[..rest.find(|c| !take(c)).unwrap_or(rest.len())];
        self.at += taken.len();
        taken
    }

    fn literal(&mut self) -> Result<Literal, TemplateError> {
        let start = self.at;
        loop {
            match self.peek() {
                None | Some('{') => break,
                Some('}') => return self.error(TemplateErrorKind::Unopened),
                Some('%') => self.triplet()?,
                Some(c) if c.is_control() || matches!(c, ' ' | '"' | '<' | '>' | '\\' | '^' | '`' | '|') => {
                    return self.error(TemplateErrorKind::Literal(c));
                }
                Some(c) => self.at += c.len_utf8(),
            }
        }
        let text = &self.template[start..self.at];
        let keys = known_keys(text);
        // Half a character would become a whole one where the variable between has no value.
        if keys.iter().any(|key| key.char().is_none()) {
            return Err(TemplateError { kind: TemplateErrorKind::NotUtf8, at: start });
        }
        Ok(Literal { text: text.to_owned(), borders: borders(&keys), keys })
    }

    fn triplet(&mut self) -> Result<(), TemplateError> {
        if key::encoded(&self.template[self.at..]).is_none() {
            return self.error(TemplateErrorKind::Percent);
        }
        self.at += 3;
        Ok(())
    }

    fn expression(&mut self) -> Result<Expression, TemplateError> {
        let open = self.at;
        self.at += 1;
        let operator = match self.peek() {
            Some('+') => Operator::Reserved,
            Some('#') => Operator::Fragment,
            Some('.') => Operator::Label,
            Some('/') => Operator::Path,
            Some(';') => Operator::Parameter,
            Some('?') => Operator::Query,
            Some('&') => Operator::Continuation,
            Some(c @ ('=' | ',' | '!' | '@' | '|')) => {
                return self.error(TemplateErrorKind::ReservedOperator(c));
            }
            _ => Operator::Simple,
        };
        if operator != Operator::Simple {
            self.at += 1;
        }
        let mut variables = Vec::new();
        loop {
            self.variables += 1;
            if self.variables > MAX_VARIABLES {
                return self.error(TemplateErrorKind::TooManyVariables);
            }
            variables.push(self.variable(open)?);
            match self.peek() {
                Some(',') => self.at += 1,
                Some('}') => break,
                Some(c) => return self.error(TemplateErrorKind::AfterVariable(c)),
                None => return Err(TemplateError { kind: TemplateErrorKind::Unclosed, at: open }),
            }
        }
        self.at += 1;
        Ok(Expression { operator, variables })
    }

    fn variable(&mut self, open: usize) -> Result<Variable, TemplateError> {
        let start = self.at;
        let mut after_dot = true;
        loop {
            match self.peek() {
                Some('%') => self.triplet()?,
                Some('.') if !after_dot => {
                    self.at += 1;
                    after_dot = true;
                    continue;
                }
                Some(c) if c.is_ascii_alphanumeric() || c == '_' => self.at += 1,
                None => return Err(TemplateError { kind: TemplateErrorKind::Unclosed, at: open }),
                Some('}' | ',' | ':' | '*') if after_dot => {
                    return self.error(TemplateErrorKind::MissingName);
                }
                Some('}' | ',' | ':' | '*') => break,
                Some(c) => return self.error(TemplateErrorKind::Name(c)),
            }
            after_dot = false;
        }
        let name = &self.template[start..self.at];
        Ok(Variable { name: name.to_owned(), keys: known_keys(name), modifier: self.modifier()? })
    }

    fn modifier(&mut self) -> Result<Modifier, TemplateError> {
        match self.peek() {
            Some('*') => {
                self.at += 1;
                Ok(Modifier::Explode)
            }
            Some(':') => {
                self.at += 1;
                let start = self.at;
                let digits = self.take_while(|c| c.is_ascii_digit());
                match digits.parse::<u16>() {
                    Ok(length @ 1..=9999) if !digits.starts_with('0') => Ok(Modifier::Prefix(length)),
                    _ => Err(TemplateError { kind: TemplateErrorKind::Prefix, at: start }),
                }
            }
            _ => Ok(Modifier::None),
        }
    }
}

/// Of text whose triplets were checked.
fn known_keys(text: &str) -> Vec<Key> {
    key::keys(text).filter_map(Result::ok).collect()
}

fn borders(keys: &[Key]) -> Vec<usize> {
    let mut borders = vec![0; keys.len()];
    let mut length = 0;
    for at in 1..keys.len() {
        while length > 0 && keys[at] != keys[length] {
            length = borders[length - 1];
        }
        length += usize::from(keys[at] == keys[length]);
        borders[at] = length;
    }
    borders
}
