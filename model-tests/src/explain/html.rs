//! Elements of a page. Text and attributes are escaped where they are written, and nowhere else.

use std::fmt;

/// A part of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// Text.
    Text(String),
    /// An element.
    Element(Element),
    /// The text of a style sheet or a script of this program, which is not escaped. No part of a trace may come here.
    Own(&'static str),
}

/// An element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    name: &'static str,
    attributes: Vec<(&'static str, String)>,
    children: Vec<Node>,
}

/// Elements that have no end tag.
const VOID: [&str; 2] = ["meta", "link"];

/// An element without attributes.
pub const fn element(name: &'static str) -> Element {
    Element {
        name,
        attributes: Vec::new(),
        children: Vec::new(),
    }
}

impl Element {
    /// With an attribute.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.attributes.push((name, value.into()));
        self
    }

    /// With text at its end.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.children.push(Node::Text(text.into()));
        self
    }

    /// With something at its end.
    #[must_use]
    pub fn and(mut self, child: impl Into<Node>) -> Self {
        self.children.push(child.into());
        self
    }

    /// With all of these at its end.
    #[must_use]
    pub fn all<N: Into<Node>>(mut self, children: impl IntoIterator<Item = N>) -> Self {
        self.children.extend(children.into_iter().map(Into::into));
        self
    }
}

impl From<Element> for Node {
    fn from(element: Element) -> Self {
        Self::Element(element)
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => escape(text, f),
            Self::Own(text) => f.write_str(text),
            Self::Element(element) => element.fmt(f),
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{}", self.name)?;
        for (name, value) in &self.attributes {
            write!(f, " {name}=\"")?;
            escape(value, f)?;
            f.write_str("\"")?;
        }
        f.write_str(">")?;
        if VOID.contains(&self.name) {
            return Ok(());
        }
        for child in &self.children {
            child.fmt(f)?;
        }
        write!(f, "</{}>", self.name)
    }
}

fn escape(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut rest = text;
    while let Some(at) = rest.find(['&', '<', '>', '"', '\'']) {
        let (before, after) = rest.split_at(at);
        f.write_str(before)?;
        f.write_str(match after.chars().next() {
            Some('&') => "&amp;",
            Some('<') => "&lt;",
            Some('>') => "&gt;",
            Some('"') => "&quot;",
            _ => "&#39;",
        })?;
        rest = after.get(1..).unwrap_or_default();
    }
    f.write_str(rest)
}
