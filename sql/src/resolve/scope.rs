//! Which names can be used at a place, and what they mean.

use std::collections::BTreeSet;

use datafusion::sql::sqlparser::ast::Expr;
use stillframe_protocol::RelationId;

use super::{OutputName, resolved};

/// The names that can be used, with those of the query around.
pub(super) struct Scope<'a> {
    pub(super) items: Vec<Item>,
    pub(super) parent: Option<&'a Scope<'a>>,
}

/// What one item of FROM offers: a relation, or a tree of joins.
#[derive(Clone, Debug, Default)]
pub(super) struct Item {
    pub(super) relations: Vec<Source>,
    /// What can be named without a relation, and what `*` stands for: a column that USING has
    /// merged is here once.
    pub(super) columns: Vec<Visible>,
}

/// A relation under the name by which columns are qualified.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) alias: String,
    /// The schema, for a relation without an alias: it may qualify as well.
    pub(super) schema: Option<String>,
    /// What the resolved query calls it: unlike every other relation that can be named there.
    pub(super) internal: String,
    pub(super) columns: Vec<OutputName>,
    /// The places of the primary key's columns, if it is a table that has one.
    pub(super) key: Vec<usize>,
    /// Whether its rows are plain values of a function: the relation's name is that of the value too.
    pub(super) is_scalar: bool,
}

/// A column that can be named without a relation.
#[derive(Clone, Debug)]
pub(super) struct Visible {
    pub(super) name: String,
    pub(super) expr: Expr,
    pub(super) origin: Option<(RelationId, i16)>,
}

/// What a name means, and in which scope it was found: 0 is the innermost.
pub(super) struct Found {
    pub(super) expr: Expr,
    pub(super) level: usize,
}

/// Why a name means nothing.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    /// No column of this name.
    Column,
    /// Several columns of this name.
    Ambiguous,
    /// No relation of this name.
    Relation,
}

impl<'a> Scope<'a> {
    pub(super) fn new(items: Vec<Item>, parent: Option<&'a Scope<'a>>) -> Self {
        Self { items, parent }
    }

    pub(super) fn empty(parent: Option<&'a Scope<'a>>) -> Self {
        Self::new(vec![], parent)
    }

    /// A scope in which the columns of a result can be named.
    pub(super) fn of_output(columns: &[OutputName], parent: Option<&'a Scope<'a>>) -> Self {
        let visible = columns.iter().map(|column| Visible {
            name: column.name.clone(),
            expr: Expr::Identifier(resolved(&column.internal)),
            origin: None,
        });
        let item = Item { relations: vec![], columns: visible.collect() };
        Self::new(vec![item], parent)
    }

    /// What a column's bare name means.
    pub(super) fn column(&self, name: &str) -> Result<Found, Unknown> {
        let mut scope = Some(self);
        let mut level = 0;
        while let Some(current) = scope {
            let columns = current.items.iter().flat_map(|item| &item.columns);
            let mut found = columns.filter(|column| column.name == name);
            match (found.next(), found.next()) {
                (Some(column), None) => return Ok(Found { expr: column.expr.clone(), level }),
                (Some(_), Some(_)) => return Err(Unknown::Ambiguous),
                (None, _) => {}
            }
            scope = current.parent;
            level += 1;
        }
        Err(Unknown::Column)
    }

    /// The relation that qualifies a column, and the level of its scope.
    pub(super) fn source(&self, schema: Option<&str>, alias: &str) -> Option<(&Source, usize)> {
        let mut scope = Some(self);
        let mut level = 0;
        while let Some(current) = scope {
            let mut sources = current.items.iter().flat_map(|item| &item.relations);
            let found = sources.find(|source| {
                source.alias == alias
                    && schema.is_none_or(|schema| source.schema.as_deref() == Some(schema))
            });
            if let Some(found) = found {
                return Some((found, level));
            }
            scope = current.parent;
            level += 1;
        }
        None
    }

    /// What a qualified column means.
    pub(super) fn qualified(
        &self,
        schema: Option<&str>,
        alias: &str,
        name: &str,
    ) -> Result<Found, Unknown> {
        let (source, level) = self.source(schema, alias).ok_or(Unknown::Relation)?;
        let mut found = (0..source.columns.len()).filter(|p| source.columns[*p].name == name);
        match (found.next(), found.next()) {
            (Some(place), None) => Ok(Found { expr: source.column(place), level }),
            (Some(_), Some(_)) => Err(Unknown::Ambiguous),
            (None, _) => Err(Unknown::Column),
        }
    }

    /// Whether a relation of one of the innermost scopes has a column that the resolved query calls so.
    pub(super) fn has_column_within(&self, scopes: usize, internal: &str) -> bool {
        let around = std::iter::successors(Some(self), |scope| scope.parent).take(scopes);
        let mut columns = around.flat_map(Self::own_sources).flat_map(|source| &source.columns);
        columns.any(|column| column.internal == internal)
    }

    /// All names that resolved queries call relations by here and around.
    pub(super) fn internal_names(&self) -> BTreeSet<&str> {
        let mut names = BTreeSet::new();
        let mut scope = Some(self);
        while let Some(current) = scope {
            let sources = current.items.iter().flat_map(|item| &item.relations);
            names.extend(sources.map(|source| source.internal.as_str()));
            scope = current.parent;
        }
        names
    }

    /// The relations of this scope alone.
    pub(super) fn own_sources(&self) -> impl Iterator<Item = &Source> {
        self.items.iter().flat_map(|item| &item.relations)
    }
}

impl Source {
    /// A column as the resolved query has it.
    pub(super) fn column(&self, place: usize) -> Expr {
        let column = &self.columns[place];
        Expr::CompoundIdentifier(vec![resolved(&self.internal), resolved(&column.internal)])
    }

    /// The item of FROM that this relation is by itself.
    pub(super) fn into_item(self) -> Item {
        let columns = self.columns.iter().enumerate().map(|(place, column)| Visible {
            name: column.name.clone(),
            expr: self.column(place),
            origin: column.origin,
        });
        let columns = columns.collect();
        Item { relations: vec![self], columns }
    }
}
