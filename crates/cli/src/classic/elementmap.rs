// SPDX-License-Identifier: MIT OR Apache-2.0
//! `click-mkelemmap`: prints the element map, an XML file from which tools learn the classes.

use super::input::{print, say};
use super::options::{About, Opt, VERSION, Value, Word, Wrong};
use castanet_classes::Registry;
use castanet_spec::ClassSpec;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::process::ExitCode;

const UNUSED: &str = "accepted; the classes are those of this program, not of source files";

const ABOUT: About = About {
    name: "click-mkelemmap",
    usage: "[OPTION]...",
    summary: "Prints the element map: the declarations of all classes, as XML.",
    options: &[
        Opt::new(&["provide"], "r", Value::Required("NAME"), "add NAME to what the map provides"),
        Opt::new(&["drivers"], "t", Value::Required("DRIVERS"), "the drivers of the map"),
        Opt::new(&["dochref"], "d", Value::Required("URL"), "the address of the documentation"),
        Opt::new(&["files"], "f", Value::Required("FILE"), UNUSED),
        Opt::new(&["prefix"], "p", Value::Required("PREFIX"), UNUSED),
        Opt::new(&["include"], "I", Value::Required("DIR"), UNUSED),
        Opt::new(&["sourcedir"], "s", Value::Required("DIR"), UNUSED),
        Opt::new(&["verbose"], "V", Value::None, "accepted, without effect"),
        Opt::new(&["help"], "h", Value::None, "print this message and exit"),
        VERSION,
    ],
};

/// Runs as `click-mkelemmap`.
pub fn main(words: Vec<OsString>) -> ExitCode {
    match text(words) {
        Ok(text) => ExitCode::from(u8::from(!print(ABOUT.name, &text))),
        Err(wrong) => ABOUT.complain(&wrong),
    }
}

fn text(words: Vec<OsString>) -> Result<String, Wrong> {
    let mut map = Map { provides: Vec::new(), drivers: "userlevel".into(), dochref: None };
    let mut unused = false;
    for word in ABOUT.read(words)? {
        match word {
            Word::Option("provide", v, _) => map.provides.extend(v),
            Word::Option("drivers", v, _) => map.drivers = v.unwrap_or_default(),
            Word::Option("dochref", v, _) => map.dochref = v,
            Word::Option("version", ..) => return Ok(ABOUT.version()),
            Word::Option("help", ..) => return Ok(ABOUT.help()),
            Word::Option("verbose", ..) => {}
            Word::Option(..) | Word::Plain(_) => unused = true,
        }
    }
    if unused {
        say(&format!("{}: note: source files are not read; the map is of the classes here", ABOUT.name));
    }
    Ok(map.xml(&Registry::new().classes()))
}

/// The attributes of the map, from the command line.
struct Map {
    provides: Vec<String>,
    drivers: String,
    dochref: Option<String>,
}

impl Map {
    /// Returns the map of some classes. Each alias has an entry of its own.
    fn xml(&self, classes: &[&'static ClassSpec]) -> String {
        let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n");
        out.push_str("<elementmap xmlns=\"http://www.lcdf.org/click/xml/\"");
        attribute(&mut out, "provides", &self.provides.join(" "));
        attribute(&mut out, "drivers", &self.drivers);
        attribute(&mut out, "dochref", self.dochref.as_deref().unwrap_or(""));
        out.push_str(">\n");
        let mut entries: Vec<(&str, &ClassSpec)> = Vec::new();
        for class in classes {
            entries.push((class.name, class));
            entries.extend(class.aliases.iter().map(|alias| (*alias, *class)));
        }
        entries.sort_unstable_by_key(|e| e.0);
        for (name, class) in entries {
            out.push_str("  <entry");
            attribute(&mut out, "name", name);
            attribute(&mut out, "cxxclass", class.name);
            attribute(&mut out, "docname", class.name);
            attribute(&mut out, "portcount", class.ports);
            attribute(&mut out, "processing", class.processing);
            attribute(&mut out, "flowcode", class.flow);
            out.push_str(" />\n");
        }
        out + "</elementmap>\n"
    }
}

/// Adds an attribute, unless its value is empty.
fn attribute(out: &mut String, name: &str, value: &str) {
    if value.is_empty() {
        return;
    }
    let mut quoted = String::new();
    for c in value.chars() {
        match c {
            '&' => quoted.push_str("&amp;"),
            '<' => quoted.push_str("&lt;"),
            '>' => quoted.push_str("&gt;"),
            '"' => quoted.push_str("&quot;"),
            c => quoted.push(c),
        }
    }
    let _ = write!(out, " {name}=\"{quoted}\"");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_and_alias_has_an_entry() {
        let classes = Registry::new().classes();
        let map =
            Map { provides: vec!["a".into(), "<b>".into()], drivers: "userlevel".into(), dochref: None };
        let text = map.xml(&classes);
        assert!(text.contains(" provides=\"a &lt;b&gt;\" drivers=\"userlevel\">\n"), "{text}");
        let names = classes.iter().flat_map(|c| c.aliases.iter().copied().chain([c.name]));
        let mut count = 0;
        for name in names {
            count += 1;
            assert_eq!(text.matches(&format!("<entry name=\"{name}\" ")).count(), 1, "{name}");
        }
        assert_eq!(text.matches("<entry ").count(), count);
        let line = "  <entry name=\"DecIPTTL\" cxxclass=\"DecIPTTL\" docname=\"DecIPTTL\" portcount=\"1/1-2\" \
                    processing=\"a/ah\" flowcode=\"x/x\" />\n";
        assert!(text.contains(line), "{text}");
    }
}
