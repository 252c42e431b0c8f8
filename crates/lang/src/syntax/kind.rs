// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kinds of tokens and nodes of the syntax tree.

/// A kind of token or node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u16)]
pub enum SyntaxKind {
    /// Blanks and line ends.
    Whitespace,
    /// `// …` or `/* … */`.
    Comment,
    /// A line directive: a line that starts with `#`.
    Directive,
    /// A name or number.
    Ident,
    /// `$name`.
    Variable,
    /// `->`.
    Arrow,
    /// `=>`.
    FatArrow,
    /// `::`.
    ColonColon,
    /// `||`.
    BarBar,
    /// `...`.
    Ellipsis,
    /// `;`.
    Semicolon,
    /// `,`.
    Comma,
    /// `(`.
    LParen,
    /// `)`.
    RParen,
    /// `[`.
    LBracket,
    /// `]`.
    RBracket,
    /// `{`.
    LBrace,
    /// `}`.
    RBrace,
    /// `|`.
    Bar,
    /// `-`.
    Dash,
    /// Any other character.
    Other,
    /// The text of a configuration string, without its parentheses.
    ConfigText,
    /// Text nested too deeply, skipped by the parser.
    Skipped,
    /// End of the text; never part of a tree.
    End,
    /// Node: a file.
    Root,
    /// Node: a declaration, or a chain of connections.
    Connection,
    /// Node: one element in a chain, with its ports and configuration.
    Element,
    /// Node: a port list.
    Ports,
    /// Node: a configuration string with its parentheses.
    Config,
    /// Node: `{ … }`.
    Compound,
    /// Node: one alternative of a compound.
    Alternative,
    /// Node: the parameters of an alternative.
    Params,
    /// Node: `( … )` in a chain.
    Group,
    /// Node: `elementclass …`.
    ElementClass,
    /// Node: `require(…)`.
    Require,
    /// Node: `define(…)`.
    Define,
    /// Node: text skipped after a syntax error.
    Error,
}

impl SyntaxKind {
    const ALL: [SyntaxKind; 37] = {
        use SyntaxKind::*;
        [
            Whitespace,
            Comment,
            Directive,
            Ident,
            Variable,
            Arrow,
            FatArrow,
            ColonColon,
            BarBar,
            Ellipsis,
            Semicolon,
            Comma,
            LParen,
            RParen,
            LBracket,
            RBracket,
            LBrace,
            RBrace,
            Bar,
            Dash,
            Other,
            ConfigText,
            Skipped,
            End,
            Root,
            Connection,
            Element,
            Ports,
            Config,
            Compound,
            Alternative,
            Params,
            Group,
            ElementClass,
            Require,
            Define,
            Error,
        ]
    };
    /// Whether the grammar ignores this kind.
    pub fn is_trivia(self) -> bool {
        matches!(self, SyntaxKind::Whitespace | SyntaxKind::Comment | SyntaxKind::Directive)
    }
}

impl From<SyntaxKind> for rowan::SyntaxKind {
    fn from(kind: SyntaxKind) -> rowan::SyntaxKind {
        rowan::SyntaxKind(kind as u16)
    }
}

/// The type that names the configuration language for rowan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConfigLanguage {}

impl rowan::Language for ConfigLanguage {
    type Kind = SyntaxKind;
    fn kind_from_raw(raw: rowan::SyntaxKind) -> SyntaxKind {
        SyntaxKind::ALL.get(usize::from(raw.0)).copied().unwrap_or(SyntaxKind::Error)
    }
    fn kind_to_raw(kind: SyntaxKind) -> rowan::SyntaxKind {
        kind.into()
    }
}

/// A node of the syntax tree.
pub type SyntaxNode = rowan::SyntaxNode<ConfigLanguage>;
/// A token of the syntax tree.
pub type SyntaxToken = rowan::SyntaxToken<ConfigLanguage>;
/// A node or token of the syntax tree.
pub type SyntaxElement = rowan::SyntaxElement<ConfigLanguage>;

#[cfg(test)]
mod tests {
    use super::*;
    use rowan::Language;

    #[test]
    fn raw_kinds_map_back() {
        for kind in SyntaxKind::ALL {
            assert_eq!(ConfigLanguage::kind_from_raw(kind.into()), kind);
        }
        assert_eq!(ConfigLanguage::kind_from_raw(rowan::SyntaxKind(999)), SyntaxKind::Error);
    }
}
