// SPDX-License-Identifier: MIT OR Apache-2.0
//! The boxes of a drawing: their text, their size, and where their ports are.

use super::scene::{Compound, Item, Scene};
use crate::graph::{Graph, PortKind};
use castanet_lang::args::{cleaned, split};
use castanet_spec::Capability;

/// The widths of a character in the two font sizes (`WIDE`, `NARROW`), and the height of a line (`LINE`), in pixels.
pub(crate) const WIDE: f64 = 7.9;
pub(crate) const NARROW: f64 = 6.7;
pub(crate) const LINE: f64 = 16.0;
/// The height in pixels of a row of ports, above or below the text of a box.
pub(crate) const PORT_ROOM: f64 = 12.0;
/// The width of a digit of a port's number (`DIGIT`), and the distance from the middle of the port to its number
/// (`BESIDE`), in pixels.
pub(crate) const DIGIT: f64 = 5.5;
pub(crate) const BESIDE: f64 = 7.0;
/// Limits on the text of a box: characters in a line of arguments (`CONFIG_LENGTH`), lines of arguments
/// (`CONFIG_LINES`), and characters in a name (`NAME_LENGTH`).
const CONFIG_LENGTH: usize = 26;
const CONFIG_LINES: usize = 2;
const NAME_LENGTH: usize = 40;

/// The font of a piece of text. It depends on what the text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Font {
    Name,
    /// The less important part of a name: the scope, or the number of an unnamed element.
    Dim,
    Class,
    Config,
}

/// The fill and the outline of a box. They depend on what the box shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Look {
    Storage,
    Task,
    Other,
    Unknown,
    Folded,
}

/// A port: its kind, and whether its class declares it agnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Port {
    pub(crate) pull: bool,
    pub(crate) agnostic: bool,
}

impl Port {
    pub(crate) fn new(kind: PortKind, agnostic: bool) -> Port {
        Port { pull: kind == PortKind::Pull, agnostic }
    }
}

/// An element or a folded compound, as drawn.
#[derive(Clone, Debug)]
pub(crate) struct Card {
    pub(crate) look: Look,
    /// The complete text, which is not shortened; a browser shows it as a tooltip.
    pub(crate) title: String,
    /// The lines of text; each is a list of pieces.
    pub(crate) lines: Vec<Vec<(String, Font)>>,
    pub(crate) inputs: Vec<Port>,
    pub(crate) outputs: Vec<Port>,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// The width of a text in pixels.
pub(crate) fn width_of(text: &str, font: Font) -> f64 {
    text.chars().count() as f64 * if font == Font::Config { NARROW } else { WIDE }
}

impl Card {
    pub(crate) fn new(graph: &Graph, scene: &Scene, within: &str, item: Item) -> Card {
        match item {
            Item::Element(e) => Card::element(graph, within, e),
            Item::Compound(c) => scene.compounds.get(c).map_or_else(Card::empty, Card::compound),
        }
        .with_room_for_rates(scene.rates.is_some())
    }

    /// Makes the box so wide that the rate beside the line from one output does not reach the line from the next one.
    fn with_room_for_rates(mut self, rates: bool) -> Card {
        if rates {
            let each = 2.0 * (BESIDE + super::rate::WIDTH);
            self.width = self.width.max(each * self.outputs.len() as f64);
        }
        self
    }

    fn empty() -> Card {
        Card::sized(Look::Other, String::new(), Vec::new(), Vec::new(), Vec::new())
    }

    fn sized(
        look: Look,
        title: String,
        lines: Vec<Vec<(String, Font)>>,
        inputs: Vec<Port>,
        outputs: Vec<Port>,
    ) -> Card {
        let width = |line: &Vec<(String, Font)>| line.iter().map(|(t, f)| width_of(t, *f)).sum::<f64>();
        let text = lines.iter().map(width).fold(0.0, f64::max);
        let ports = row_width(inputs.len().max(outputs.len()));
        let width = (text + 20.0).max(ports).max(56.0);
        let height = lines.len() as f64 * LINE + 2.0 * PORT_ROOM + 2.0;
        Card { look, title, lines, inputs, outputs, width, height }
    }

    fn element(graph: &Graph, within: &str, e: usize) -> Card {
        let (full, class, config) = graph.element(e).map_or(("", "", ""), |e| (&e.name, &e.class, &e.config));
        let own = full.strip_prefix(within).and_then(|n| n.strip_prefix('/')).unwrap_or(full);
        let cut = own.rfind('/').map_or(0, |i| i + 1);
        let (scope, last) = own.split_at_checked(cut).unwrap_or(("", own));
        // An unnamed element is named after its class.
        let number = last.strip_prefix(class).filter(|n| n.starts_with('@') && !class.is_empty());
        let name = [
            (shortened(scope, NAME_LENGTH), Font::Dim),
            (shortened(number.map_or(last, |_| class), NAME_LENGTH), Font::Name),
            (number.unwrap_or("").to_string(), Font::Dim),
        ];
        let mut lines = vec![name.into_iter().filter(|(text, _)| !text.is_empty()).collect()];
        if number.is_none() {
            lines.push(vec![(shortened(class, NAME_LENGTH), Font::Class)]);
        }
        let config = wrapped(&arguments(config), CONFIG_LENGTH, CONFIG_LINES);
        lines.extend(config.into_iter().map(|line| vec![(line, Font::Config)]));
        let look = match graph.spec(e) {
            None => Look::Unknown,
            Some(s) if s.has(Capability::Storage) => Look::Storage,
            Some(s) if s.task => Look::Task,
            Some(_) => Look::Other,
        };
        let inputs = (0..graph.inputs(e))
            .map(|i| Port::new(graph.input_kind(e, i), graph.input_is_agnostic(e, i)))
            .collect();
        let outputs = (0..graph.outputs(e))
            .map(|o| Port::new(graph.output_kind(e, o), graph.output_is_agnostic(e, o)))
            .collect();
        Card::sized(look, summary(graph, e), lines, inputs, outputs)
    }

    fn compound(c: &Compound) -> Card {
        let ports = |kinds: &[PortKind]| kinds.iter().map(|&k| Port::new(k, false)).collect();
        let size = counted(c.elements, "element");
        let lines = vec![
            vec![(shortened(c.name(), NAME_LENGTH), Font::Name)],
            vec![(shortened(&c.class, NAME_LENGTH), Font::Class)],
            vec![(size.clone(), Font::Config)],
        ];
        let title = format!("{}, {size}", c.declaration());
        Card::sized(Look::Folded, title, lines, ports(&c.entries), ports(&c.exits))
    }
}

/// The minimum width in pixels of a row of ports with their numbers.
fn row_width(ports: usize) -> f64 {
    let digits = ports.saturating_sub(1).to_string().len() as f64;
    ports as f64 * 2.0 * (BESIDE + digits * DIGIT + 1.0)
}

/// The horizontal position of a port relative to the middle of its box, in pixels.
pub(crate) fn offset(width: f64, ports: usize, port: usize) -> f64 {
    width * ((port as f64 + 0.5) / ports.max(1) as f64 - 0.5)
}

/// Formats a number and a noun: `1 input`, `2 inputs`.
pub(crate) fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// The declaration and the arguments of an element, on one line.
pub(crate) fn summary(graph: &Graph, e: usize) -> String {
    let Some(element) = graph.element(e) else { return String::new() };
    let config = shortened(&arguments(&element.config), 90);
    if config.is_empty() { element.declaration() } else { format!("{}({config})", element.declaration()) }
}

/// The arguments of a configuration string, without comments.
fn arguments(config: &str) -> String {
    let all = split(config).into_iter().map(|range| cleaned(config, range).trim().to_string());
    all.collect::<Vec<_>>().join(", ")
}

/// Breaks a text into at most `lines` lines of fewer than `length` characters; the last one may be shortened.
fn wrapped(text: &str, length: usize, lines: usize) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut words = text.split_whitespace().peekable();
    while out.len() + 1 < lines {
        let mut line = String::new();
        while let Some(word) = words.peek() {
            let with = line.chars().count() + word.chars().count() + usize::from(!line.is_empty());
            if with >= length {
                break;
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
            words.next();
        }
        if line.is_empty() {
            break;
        }
        out.push(line);
    }
    let rest = shortened(&words.collect::<Vec<_>>().join(" "), length);
    out.extend(Some(rest).filter(|r| !r.is_empty()));
    out
}

/// Shortens a text to at most `length` characters on one line.
fn shortened(text: &str, length: usize) -> String {
    let mut words = text.split_whitespace();
    let mut line = String::new();
    let mut count = 0;
    for word in &mut words {
        let n = word.chars().count();
        if count + n >= length {
            let room = length.saturating_sub(count + 2);
            if count > 0 && room > 0 {
                line.push(' ');
            }
            line.extend(word.chars().take(room));
            line.push('…');
            return line;
        }
        if count > 0 {
            line.push(' ');
        }
        line.push_str(word);
        count += n + 1;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::{shortened, wrapped};

    #[test]
    fn text_is_shortened() {
        assert_eq!(shortened("a  b\n c", 10), "a b c");
        assert_eq!(shortened("", 10), "");
        assert_eq!(shortened("abcdefghijk", 5), "abc…");
        assert_eq!(shortened("ab cdefghijk", 6), "ab c…");
        assert_eq!(shortened("ééééééé", 4), "éé…");
        assert_eq!(shortened("abc de fgh", 8), "abc de…");
    }

    #[test]
    fn text_is_wrapped_between_words() {
        assert!(wrapped("", 10, 2).is_empty());
        assert_eq!(wrapped("a, b", 10, 2), ["a, b"]);
        assert_eq!(wrapped("unreachable, host, more", 15, 2), ["unreachable,", "host, more"]);
        assert_eq!(wrapped("unreachable, host, more and more", 15, 2), ["unreachable,", "host, more and…"]);
        assert_eq!(wrapped("abcdefghijklmnop q", 8, 2), ["abcdef…"]);
    }
}
