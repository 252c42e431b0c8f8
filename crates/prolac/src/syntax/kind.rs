// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kinds of tokens and nodes of the syntax tree.

/// Declares the kinds, with the list of all of them and the texts of the punctuation.
macro_rules! kinds {
    (
        words { $($(#[$wdoc:meta])* $word:ident,)* }
        punctuation { $($punct:ident $text:literal,)* }
        nodes { $($(#[$ndoc:meta])* $node:ident,)* }
    ) => {
        /// A kind of token or node.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u16)]
        pub enum SyntaxKind {
            $($(#[$wdoc])* $word,)*
            $(#[doc = concat!("The token `", $text, "`.")] $punct,)*
            $($(#[$ndoc])* $node,)*
        }

        /// All kinds, in the order of their numbers.
        const ALL: &[SyntaxKind] = &[
            $(SyntaxKind::$word,)*
            $(SyntaxKind::$punct,)*
            $(SyntaxKind::$node,)*
        ];

        /// The punctuation. A text that begins with another one stands before it.
        pub(super) const PUNCTUATION: &[(&str, SyntaxKind)] = &[$(($text, SyntaxKind::$punct),)*];
    };
}

kinds! {
    words {
        /// Blanks and line ends.
        Whitespace,
        /// `// …` or `/* … */`.
        Comment,
        /// A name or a keyword.
        Ident,
        /// A number.
        Number,
        /// A string with its quotes.
        Text,
        /// Any other characters.
        Other,
        /// End of the text; never part of a tree.
        End,
    }
    punctuation {
        ThenArrow "==>",
        ShlEq "<<=",
        ShrEq ">>=",
        Define "::=",
        MaxEq "max=",
        MinEq "min=",
        TypeMark ":>",
        ColonEq ":=",
        Arrow "->",
        PlusPlus "++",
        MinusMinus "--",
        AndAnd "&&",
        OrOr "||",
        EqEq "==",
        NotEq "!=",
        LessEq "<=",
        MoreEq ">=",
        Shl "<<",
        Shr ">>",
        PlusEq "+=",
        MinusEq "-=",
        StarEq "*=",
        SlashEq "/=",
        PercentEq "%=",
        AndEq "&=",
        OrEq "|=",
        CaretEq "^=",
        SomeEq "?=",
        Default "??",
        LBrace "{",
        RBrace "}",
        LParen "(",
        RParen ")",
        LBracket "[",
        RBracket "]",
        Semicolon ";",
        Comma ",",
        Dot ".",
        Colon ":",
        Question "?",
        Eq "=",
        Less "<",
        More ">",
        Plus "+",
        Minus "-",
        Star "*",
        Slash "/",
        Percent "%",
        And "&",
        Or "|",
        Caret "^",
        Not "!",
        Tilde "~",
    }
    nodes {
        /// Node: a file.
        Root,
        /// Node: `module NAME … { … }`.
        Module,
        /// Node: `NAME { … }`, a namespace.
        Namespace,
        /// Node: the braces of a module or namespace, with what they contain.
        Body,
        /// Node: a method, constant or constructor.
        Method,
        /// Node: a field.
        Field,
        /// Node: `exception …;`.
        Exceptions,
        /// Node: `include …;`.
        Include,
        /// Node: `hookup …;`.
        Hookup,
        /// Node: `export …;`.
        Export,
        /// Node: `host …;`.
        Host,
        /// Node: the parameters of a method, with their parentheses.
        Params,
        /// Node: a module operator.
        Operator,
        /// Node: a name with dots.
        Path,
        /// Node: a type.
        Type,
        /// Node: an expression with operands on both sides of its operator.
        Binary,
        /// Node: an operator before its operand.
        Unary,
        /// Node: an operand before `++`, `--`, `as`, or an index.
        Postfix,
        /// Node: a call with parentheses.
        Call,
        /// Node: a member, after `.` or `->`.
        Member,
        /// Node: an expression in parentheses.
        Paren,
        /// Node: `let … end`.
        Let,
        /// Node: `try … end`.
        Try,
        /// Node: an action in braces.
        Action,
        /// Node: a name, number, string or another expression of one token.
        Atom,
        /// Node: text skipped after a syntax error.
        Error,
    }
}

impl SyntaxKind {
    /// Whether the grammar ignores this kind.
    pub fn is_trivia(self) -> bool {
        matches!(self, SyntaxKind::Whitespace | SyntaxKind::Comment)
    }
}

impl From<SyntaxKind> for rowan::SyntaxKind {
    fn from(kind: SyntaxKind) -> rowan::SyntaxKind {
        rowan::SyntaxKind(kind as u16)
    }
}

/// The type that names the language for rowan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Prolac {}

impl rowan::Language for Prolac {
    type Kind = SyntaxKind;
    fn kind_from_raw(raw: rowan::SyntaxKind) -> SyntaxKind {
        ALL.get(usize::from(raw.0)).copied().unwrap_or(SyntaxKind::Error)
    }
    fn kind_to_raw(kind: SyntaxKind) -> rowan::SyntaxKind {
        kind.into()
    }
}

/// A node of the syntax tree.
pub type SyntaxNode = rowan::SyntaxNode<Prolac>;
/// A token of the syntax tree.
pub type SyntaxToken = rowan::SyntaxToken<Prolac>;

#[cfg(test)]
mod tests {
    use super::*;
    use rowan::Language;

    #[test]
    fn raw_kinds_map_back() {
        for &kind in ALL {
            assert_eq!(Prolac::kind_from_raw(kind.into()), kind);
        }
        assert_eq!(Prolac::kind_from_raw(rowan::SyntaxKind(999)), SyntaxKind::Error);
    }

    #[test]
    fn longer_punctuation_comes_first() {
        for (i, (text, _)) in PUNCTUATION.iter().enumerate() {
            assert!(PUNCTUATION.iter().skip(i + 1).all(|(later, _)| !later.starts_with(text)), "{text}");
        }
    }
}
