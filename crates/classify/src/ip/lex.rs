// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lexer of header expressions.

use std::ops::Range;

use crate::expr::Relation;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Word(&'a str),
    And,
    Or,
    Ampersand,
    Not,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Open,
    Close,
    OpenBracket,
    Question,
    Colon,
    /// Punctuation without a meaning of its own.
    Stray(&'a str),
    End,
}

impl Token<'_> {
    pub(super) fn relation(self) -> Option<Relation> {
        Some(match self {
            Token::Equal => Relation::Equal,
            Token::NotEqual => Relation::NotEqual,
            Token::Less => Relation::Less,
            Token::LessEqual => Relation::LessEqual,
            Token::Greater => Relation::Greater,
            Token::GreaterEqual => Relation::GreaterEqual,
            _ => return None,
        })
    }
}

const SIGNS: [(&str, Token<'static>); 17] = [
    ("&&", Token::And),
    ("||", Token::Or),
    ("<=", Token::LessEqual),
    (">=", Token::GreaterEqual),
    ("!=", Token::NotEqual),
    ("==", Token::Equal),
    ("&", Token::Ampersand),
    ("|", Token::Stray("|")),
    ("<", Token::Less),
    (">", Token::Greater),
    ("!", Token::Not),
    ("=", Token::Equal),
    ("(", Token::Open),
    (")", Token::Close),
    ("[", Token::OpenBracket),
    ("?", Token::Question),
    ("]", Token::Stray("]")),
];

fn ends_word(c: char) -> bool {
    c.is_ascii_whitespace() || "&|<>!=()[],;?".contains(c)
}

/// A position in the text. A copy serves for lookahead.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str, at: usize) -> Lexer<'a> {
        Lexer { text, at }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn next(&mut self) -> (Token<'a>, Range<usize>) {
        let rest = self.rest().trim_ascii_start();
        let start = self.text.len() - rest.len();
        let (token, len) = if rest.is_empty() {
            (Token::End, 0)
        } else if let Some((sign, token)) = SIGNS.iter().find(|s| rest.starts_with(s.0)) {
            (*token, sign.len())
        } else {
            match rest.find(ends_word).unwrap_or(rest.len()) {
                // The characters `,` and `;`.
                0 => (Token::Stray(&rest[..1]), 1),
                1 if rest.starts_with(':') => (Token::Colon, 1),
                n => match &rest[..n] {
                    "and" => (Token::And, n),
                    "or" => (Token::Or, n),
                    "not" => (Token::Not, n),
                    word => (Token::Word(word), n),
                },
            }
        };
        self.at = start + len;
        (token, start..start + len)
    }

    pub(super) fn peek(&self) -> (Token<'a>, Range<usize>) {
        self.clone_and_next().0
    }

    /// The next token, and the lexer after it.
    pub(super) fn clone_and_next(&self) -> ((Token<'a>, Range<usize>), Lexer<'a>) {
        let mut ahead = *self;
        (ahead.next(), ahead)
    }

    /// The text up to the next `]`, with its range. Advances past the bracket.
    pub(super) fn bracketed(&mut self) -> Option<(&'a str, Range<usize>)> {
        let rest = self.rest();
        let len = rest.find(']')?;
        let range = self.at..self.at + len;
        self.at += len + 1;
        Some((&rest[..len], range))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<Token<'_>> {
        let mut lexer = Lexer::new(text, 0);
        let mut out = Vec::new();
        loop {
            match lexer.next().0 {
                Token::End => return out,
                t => out.push(t),
            }
        }
    }

    #[test]
    fn words_end_at_signs() {
        use Token::*;
        assert_eq!(all("port>=80&&!x"), [Word("port"), GreaterEqual, Word("80"), And, Not, Word("x")]);
        assert_eq!(all("ip[0:4]==1"), [Word("ip"), OpenBracket, Word("0:4"), Stray("]"), Equal, Word("1")]);
        assert_eq!(all("a ? b : c:d"), [Word("a"), Question, Word("b"), Colon, Word("c:d")]);
        assert_eq!(
            all("& | < = > ; , ( )"),
            [Ampersand, Stray("|"), Less, Equal, Greater, Stray(";"), Stray(","), Open, Close]
        );
        assert_eq!(all("not android or not"), [Not, Word("android"), Or, Not]);
        assert_eq!(all("  \t\n"), []);
        assert_eq!(all("é!=ü"), [Word("é"), NotEqual, Word("ü")]);
    }

    #[test]
    fn ranges_cover_the_token() {
        let mut lexer = Lexer::new("  ab <= c ", 0);
        assert_eq!(lexer.next().1, 2..4);
        assert_eq!(lexer.next().1, 5..7);
        assert_eq!(lexer.next().1, 8..9);
        assert_eq!(lexer.next(), (Token::End, 10..10));
    }
}
