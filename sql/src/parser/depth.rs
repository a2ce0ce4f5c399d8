//! How deep the tree of a statement can get, told before it is parsed: the parser library counts
//! what nests in brackets, but a chain of operators nests as well, to the left.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// How many operators may follow each other, over all the brackets around a place. Planning takes
/// time that grows with the cube of it.
pub(super) const OPERATORS_MAX: usize = 100;
/// How many conditions, set operations and joins may.
pub(super) const CHAIN_MAX: usize = 500;

/// What has been counted between two brackets.
#[derive(Default)]
struct Level {
    /// Operators of the operand under way.
    operators: usize,
    /// ANDs and ORs of the expression under way.
    conditions: usize,
    /// Joins of the FROM under way.
    joins: usize,
    /// Set operations.
    sets: usize,
}

impl Level {
    fn depth(&self) -> Depth {
        let chain = self.operators + self.conditions + self.joins + self.sets;
        Depth { operators: self.operators, chain }
    }
}

/// How deep a place is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Depth {
    /// The operators of operands around it.
    pub operators: usize,
    /// Those and all else.
    pub chain: usize,
}

impl Depth {
    /// Whether it is beyond reason.
    pub(super) fn is_too_deep(self) -> bool {
        self.operators > OPERATORS_MAX || self.chain > CHAIN_MAX
    }

    fn plus(self, other: Self) -> Self {
        Self { operators: self.operators + other.operators, chain: self.chain + other.chain }
    }

    fn max(self, other: Self) -> Self {
        Self { operators: self.operators.max(other.operators), chain: self.chain.max(other.chain) }
    }
}

/// The longest chains in a statement, never shorter than its tree is deep beside its brackets.
pub(super) fn longest_chain(tokens: &[TokenWithSpan]) -> Depth {
    let mut level = Level::default();
    // Each with what is around it.
    let mut around: Vec<(Level, Depth)> = vec![];
    let (mut outside, mut longest) = (Depth::default(), Depth::default());
    for token in tokens {
        match &token.token {
            Token::LParen | Token::LBracket => {
                let inner = outside.plus(level.depth());
                around.push((std::mem::take(&mut level), outside));
                outside = inner;
            }
            Token::RParen | Token::RBracket => {
                // One too many is for the parser to tell.
                if let Some(outer) = around.pop() {
                    (level, outside) = outer;
                }
            }
            token => {
                count(token, &mut level);
                longest = longest.max(outside.plus(level.depth()));
            }
        }
    }
    longest
}

fn count(token: &Token, level: &mut Level) {
    match token {
        Token::Comma => (level.operators, level.conditions) = (0, 0),
        Token::Word(word) => match word.keyword {
            Keyword::UNION | Keyword::INTERSECT | Keyword::EXCEPT => level.sets += 1,
            Keyword::JOIN => level.joins += 1,
            Keyword::SELECT => (level.operators, level.conditions, level.joins) = (0, 0, 0),
            // What begins an expression of its own, beside those before.
            Keyword::FROM
            | Keyword::WHERE
            | Keyword::HAVING
            | Keyword::ON
            | Keyword::BY
            | Keyword::SET
            | Keyword::VALUES
            | Keyword::THEN
            | Keyword::ELSE => (level.operators, level.conditions) = (0, 0),
            Keyword::AND | Keyword::OR => {
                level.operators = 0;
                level.conditions += 1;
            }
            Keyword::IS
            | Keyword::IN
            | Keyword::LIKE
            | Keyword::ILIKE
            | Keyword::SIMILAR
            | Keyword::BETWEEN
            | Keyword::COLLATE
            | Keyword::OPERATOR
            | Keyword::NULL
            | Keyword::AT => level.operators += 1,
            _ => {}
        },
        Token::Number(..)
        | Token::SingleQuotedString(_)
        | Token::NationalStringLiteral(_)
        | Token::EscapedStringLiteral(_)
        | Token::DollarQuotedString(_)
        | Token::HexStringLiteral(_)
        | Token::Placeholder(_)
        | Token::Period
        | Token::EOF => {}
        // Every other token is an operator, or rare enough.
        _ => level.operators += 1,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion::sql::sqlparser::tokenizer::Tokenizer;

    use super::*;

    fn longest(sql: &str) -> usize {
        let tokens: Vec<_> = Tokenizer::new(&PostgreSqlDialect {}, sql)
            .tokenize_with_location()
            .expect("tokens")
            .into_iter()
            .filter(|token| !matches!(token.token, Token::Whitespace(_)))
            .collect();
        longest_chain(&tokens).chain
    }

    #[test]
    fn chains_count_and_lists_do_not() {
        assert_eq!(longest("select 1 + 1 + 1"), 2);
        assert_eq!(longest("select a and b or c is null"), 4);
        assert_eq!(longest("select a::int::text || 'x'"), 3);
        assert_eq!(longest("select 1 + 1, 1 + 1, 1 + 1"), 1);
        assert_eq!(longest("insert into t values (-1, 2), (-3, 4), (-5, 6)"), 1);
        assert_eq!(longest("select 1 union all select 2 union all select 3 + 4"), 3);
        assert_eq!(longest("select * from a join b on a.x = b.x join c on b.x = c.x"), 3);
    }

    #[test]
    fn brackets_add_what_is_around_them() {
        assert_eq!(longest("select 1 + (2 + (3 + 4)) + 5"), 3);
        assert_eq!(longest("select (1 + 2), (3 + 4)"), 1);
        assert_eq!(longest("select f(1, -2) + f(3, 4)"), 1);
        assert_eq!(longest("select ) 1 + 1"), 1);
    }
}
