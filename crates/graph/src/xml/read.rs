// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads configurations from XML, and writes them in the configuration language.

use super::REQUIRE;
use castanet_lang::format::format;
use castanet_lang::syntax::{MAX_NESTING, SyntaxKind, tree};
use castanet_lang::{Diagnostic, Sources};
use roxmltree::{Document, Node, ParsingOptions};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fmt::Write as _;

/// The largest number of tags, attributes and texts in a document.
const MAX_NODES: u32 = 8_000_000;

/// Why a document is no configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadXml {
    /// The line, from 1.
    pub line: u32,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for BadXml {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.message)
    }
}

impl std::error::Error for BadXml {}

/// Returns the text of the configuration that a document describes.
///
/// # Errors
/// The text is no XML, or lacks attributes, or has names or configuration strings that the language does not allow.
pub fn to_text(xml: &str) -> Result<String, BadXml> {
    let options = ParsingOptions { allow_dtd: true, nodes_limit: MAX_NODES, ..ParsingOptions::default() };
    let document = Document::parse_with_options(xml, options)
        .map_err(|e| BadXml { line: e.pos().row, message: e.to_string() })?;
    let mut reader =
        Reader { document: &document, out: String::new(), names: HashMap::new(), taken: HashSet::new() };
    let root = document.root_element();
    if root.tag_name().name() != "configuration" {
        return Err(reader.wrong(root, "expected the tag 'configuration'"));
    }
    reader.taken = root.descendants().filter_map(|n| n.attribute("name")).collect();
    reader.requirements(root)?;
    reader.scope(root, 0)?;
    let text = reader.out;
    let mut sources = Sources::new();
    let file = sources.add("xml", text);
    format(&mut sources, file).map_err(|all| {
        let message = all.into_iter().find(Diagnostic::is_error).map(|d| d.message).unwrap_or_default();
        BadXml { line: 1, message }
    })
}

struct Reader<'a, 'x> {
    document: &'a Document<'x>,
    out: String,
    /// The names under which classes are written, by their identifiers.
    names: HashMap<&'a str, String>,
    /// The names of all elements.
    taken: HashSet<&'a str>,
}

/// Whether a text is an element's or class's name.
fn is_name(text: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '@');
    !text.is_empty() && text.split('/').all(|p| !p.is_empty() && p.chars().all(part)) && !is_reserved(text)
}

fn is_reserved(text: &str) -> bool {
    matches!(text, "elementclass" | "require" | "provide" | "define")
}

/// Whether a text can stand between the parentheses of an element.
fn is_config(text: &str) -> bool {
    let mut sources = Sources::new();
    let file = sources.add("config", format!("X({text})"));
    let (root, diagnostics) = tree(&mut sources, file);
    let config = root.descendants_with_tokens().find(|t| t.kind() == SyntaxKind::ConfigText);
    let whole = config.as_ref().and_then(|t| t.as_token()).is_none_or(|t| t.text() == text);
    diagnostics.is_empty() && whole && (config.is_some() || text.is_empty())
}

impl<'a> Reader<'a, '_> {
    fn wrong(&self, node: Node<'_, '_>, message: impl Into<String>) -> BadXml {
        let line = self.document.text_pos_at(node.range().start).row;
        BadXml { line, message: message.into() }
    }

    /// Returns an attribute, which must be a name.
    fn name(&self, node: Node<'a, '_>, attribute: &str) -> Result<&'a str, BadXml> {
        let tag = node.tag_name().name();
        match node.attribute(attribute) {
            Some(name) if is_name(name) => Ok(name),
            Some(name) => Err(self.wrong(node, format!("{tag}: {attribute}: bad name '{name}'"))),
            None => Err(self.wrong(node, format!("{tag}: attribute '{attribute}' missing"))),
        }
    }

    fn requirements(&mut self, root: Node<'a, '_>) -> Result<(), BadXml> {
        for (node, pi) in
            root.children().filter_map(|n| n.pi().map(|pi| (n, pi))).filter(|p| p.1.target == REQUIRE)
        {
            let text = pi.value.unwrap_or("");
            if !is_config(text) {
                return Err(self.wrong(node, format!("bad requirement '{text}'")));
            }
            let _ = writeln!(self.out, "require({text});");
        }
        Ok(())
    }

    /// Writes the contents of the configuration or of a compound. `depth` is the number of compounds around it.
    fn scope(&mut self, node: Node<'a, '_>, depth: usize) -> Result<(), BadXml> {
        let mut elements: HashSet<&'a str> = HashSet::new();
        let mut connections = Vec::new();
        for item in node.children().filter(Node::is_element) {
            match item.tag_name().name() {
                "elementclass" => self.class(item, depth)?,
                "element" => {
                    self.element(item)?;
                    elements.extend(item.attribute("name"));
                }
                "connection" => connections.push(item),
                "formal" if depth > 0 => {}
                other => return Err(self.wrong(item, format!("unknown tag '{other}'"))),
            }
        }
        let known = |name: &str| elements.contains(name) || (depth > 0 && matches!(name, "input" | "output"));
        for connection in connections {
            for end in ["from", "to"] {
                let name = self.name(connection, end)?;
                if !known(name) {
                    return Err(
                        self.wrong(connection, format!("connection: {end}: no element '{name}' here"))
                    );
                }
            }
            self.connection(connection)?;
        }
        Ok(())
    }

    /// Returns the name under which the class of a tag is written: that of its identifier, or else its name.
    fn class_name(&self, node: Node<'a, '_>, prefix: &str) -> Result<String, BadXml> {
        let id = node.attribute(format!("{prefix}classid").as_str());
        match id.and_then(|id| self.names.get(id)) {
            Some(name) => Ok(name.clone()),
            None => self.name(node, &format!("{prefix}classname")).map(str::to_string),
        }
    }

    fn class(&mut self, node: Node<'a, '_>, depth: usize) -> Result<(), BadXml> {
        if depth >= MAX_NESTING {
            return Err(self.wrong(node, format!("compounds nest more than {MAX_NESTING} deep")));
        }
        let tags =
            |name: &'static str| node.children().find(move |n| n.is_element() && n.tag_name().name() == name);
        let id = node.attribute("classid");
        if let Some(synonym) = tags("synonym") {
            let (name, class) = (self.name(node, "classname")?, self.class_name(synonym, "")?);
            let _ = writeln!(self.out, "elementclass {name} {class};");
            self.names.extend(id.map(|id| (id, name.to_string())));
            return Ok(());
        }
        let Some(compound) = tags("compound") else {
            return Err(self.wrong(node, "elementclass: expected the tag 'compound' or 'synonym'"));
        };
        let overloads = ["overloadclassid", "overloadclassname"].iter().any(|a| compound.has_attribute(*a));
        let name = match node.attribute("classname") {
            // An alternative of an anonymous class has the name of the alternatives that it refers to.
            Some("") | None if overloads => self.class_name(compound, "overload")?,
            Some("") | None => self.new_name(),
            Some(_) => self.name(node, "classname")?.to_string(),
        };
        let _ = write!(self.out, "elementclass {name} {{");
        self.formals(compound)?;
        self.out.push('\n');
        self.scope(compound, depth + 1)?;
        self.out.push_str(if overloads { "|| ...\n}\n" } else { "}\n" });
        self.names.extend(id.map(|id| (id, name)));
        Ok(())
    }

    /// Returns a name for an anonymous class.
    fn new_name(&self) -> String {
        let free = (self.names.len() + 1..).map(|n| format!("Compound@@{n}"));
        free.into_iter().find(|n| !self.taken.contains(n.as_str())).unwrap_or_default()
    }

    fn formals(&mut self, compound: Node<'a, '_>) -> Result<(), BadXml> {
        let mut all: Vec<(usize, Node<'a, '_>)> = Vec::new();
        for formal in compound.children().filter(|n| n.tag_name().name() == "formal") {
            let number = formal.attribute("number").and_then(|n| n.parse().ok());
            all.push((number.unwrap_or(all.len()), formal));
        }
        all.sort_by_key(|f| f.0);
        for (i, (_, formal)) in all.iter().enumerate() {
            let name = formal.attribute("name").unwrap_or("").trim_start_matches('$');
            if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
                return Err(self.wrong(*formal, format!("formal: name: bad name '{name}'")));
            }
            self.out.push_str(if i == 0 { " " } else { ", " });
            if formal.attribute("key").is_some_and(|k| !k.is_empty()) {
                let key = self.name(*formal, "key")?;
                let _ = write!(self.out, "{key} ");
            }
            let _ = write!(self.out, "${name}");
        }
        if !all.is_empty() {
            self.out.push_str(" |");
        }
        Ok(())
    }

    fn element(&mut self, node: Node<'a, '_>) -> Result<(), BadXml> {
        let (name, class) = (self.name(node, "name")?, self.class_name(node, "")?);
        let config = node.attribute("config").unwrap_or("");
        if !is_config(config) {
            let message =
                format!("element '{name}': config: quotes, comments or parentheses are not balanced");
            return Err(self.wrong(node, message));
        }
        let _ = match config {
            "" => writeln!(self.out, "{name} :: {class};"),
            config => writeln!(self.out, "{name} :: {class}({config});"),
        };
        Ok(())
    }

    fn connection(&mut self, node: Node<'a, '_>) -> Result<(), BadXml> {
        let (from, to) = (self.name(node, "from")?, self.name(node, "to")?);
        let port = |attribute: &str| match node.attribute(attribute).map(str::parse::<u16>) {
            None => Ok(0),
            Some(Ok(port)) => Ok(port),
            Some(Err(_)) => Err(self.wrong(node, format!("connection: {attribute}: bad port"))),
        };
        let output = Some(port("fromport")?).filter(|&p| p != 0).map_or(String::new(), |p| format!(" [{p}]"));
        let input = Some(port("toport")?).filter(|&p| p != 0).map_or(String::new(), |p| format!("[{p}] "));
        let _ = writeln!(self.out, "{from}{output} -> {input}{to};");
        Ok(())
    }
}
