// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arguments that elements for summary dumps have in common.

use castanet_element::prelude::*;
use castanet_io::summary::{self, Field, Flow};
use castanet_lang::args;

/// The fields of a summary dump, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FieldList(pub Vec<&'static Field>);

/// The maximum number of fields in a dump.
const MOST: usize = 256;

impl ArgValue for FieldList {
    const TYPE: &'static str = "list of fields";
    fn parse(text: &str, _: &ArgCx<'_>) -> Result<FieldList, ValueError> {
        let words = args::words(text);
        if words.len() > MOST {
            return Err(format!("more than {MOST} fields").into());
        }
        let field = |word: &str| {
            let name = args::unquote(word);
            Field::find(&name).ok_or_else(|| {
                let names = summary::FIELDS.iter().map(|f| f.name);
                let near = castanet_lang::nearest(&name, names);
                let hint = near.map(|n| format!(", did you mean '{n}'?")).unwrap_or_default();
                ValueError::whole(format!("unknown content type '{name}'{hint}"))
            })
        };
        let list = words.into_iter().map(|r| field(text.get(r).unwrap_or("")));
        list.collect::<Result<_, _>>().map(FieldList)
    }
}

/// An IP protocol, by letter, name or number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol(pub u8);

impl ArgValue for Protocol {
    const TYPE: &'static str = "ip protocol";
    fn parse(text: &str, _: &ArgCx<'_>) -> Result<Protocol, ValueError> {
        let number = summary::protocol(&args::unquote(text));
        Ok(number
            .map(Protocol)
            .ok_or_else(|| format!("'{text}' is not an IP protocol; expected a name or a number"))?)
    }
}

/// Addresses and ports: `SRC SPORT DST DPORT [PROTO]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowId(pub Flow);

impl ArgValue for FlowId {
    const TYPE: &'static str = "flow ID";
    fn parse(text: &str, _: &ArgCx<'_>) -> Result<FlowId, ValueError> {
        let text = args::unquote(text);
        let words: Vec<&str> = text.split_whitespace().collect();
        Flow::parse(&words).map(FlowId).ok_or_else(|| "expected 'SRC SPORT DST DPORT [PROTO]'".into())
    }
}
