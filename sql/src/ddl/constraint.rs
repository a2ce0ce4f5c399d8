//! Constraints of tables as statements define them: what they may say, and what PostgreSQL calls
//! them.

mod check;
mod foreign_key;

use std::collections::BTreeSet;

use datafusion::sql::sqlparser::ast::{
    CheckConstraint, ConstraintCharacteristics, DeferrableInitial, Expr, ForeignKeyConstraint,
    Ident, IndexColumn, NullsDistinctOption, TableConstraint,
};

pub(super) use check::{columns_of, generated, kind_of};

use crate::query::QueryContext;
use crate::{
    Catalog, Constraint, ConstraintKind, Deferral, Error, Relation, RelationKind, SqlState, Type,
    names,
};

/// How long a name may be.
const NAME_BYTES_MAX: usize = 63;

/// Adds constraints to a table. The table is in the catalog already.
pub(super) struct Definer<'a> {
    pub(super) context: &'a QueryContext,
    pub(super) catalog: &'a mut Catalog,
    /// The table.
    pub(super) relation: Relation,
}

impl Definer<'_> {
    /// Adds a table's constraint.
    pub(super) fn add(&mut self, constraint: &TableConstraint) -> Result<(), Error> {
        match constraint {
            TableConstraint::PrimaryKey(key) => {
                refuse_deferrable(key.characteristics.as_ref())?;
                let columns = self.key_places(&key.columns, "primary key")?;
                self.primary_key(key.name.as_ref(), columns)
            }
            TableConstraint::Unique(unique) => {
                refuse_deferrable(unique.characteristics.as_ref())?;
                if unique.nulls_distinct == NullsDistinctOption::NotDistinct {
                    return Err(Error::unsupported("NULLS NOT DISTINCT"));
                }
                let columns = self.key_places(&unique.columns, "unique")?;
                self.unique(unique.name.as_ref(), columns, false)
            }
            TableConstraint::ForeignKey(key) => {
                let columns = key.columns.iter().map(|column| {
                    let name = names::fold(column);
                    self.place(&name).ok_or_else(|| {
                        let message = format!(
                            "column \"{name}\" referenced in foreign key constraint does not exist"
                        );
                        Error::new(SqlState::UNDEFINED_COLUMN, message)
                    })
                });
                let columns = columns.collect::<Result<Vec<_>, _>>()?;
                self.foreign_key(key.name.as_ref(), columns, key)
            }
            TableConstraint::Check(check) => self.check(check.name.as_ref(), check, None),
            other => Err(Error::unsupported(format!("the constraint {other}"))),
        }
    }

    /// Makes some columns the primary key. The table has no rows yet.
    pub(super) fn primary_key(
        &mut self,
        name: Option<&Ident>,
        columns: Vec<usize>,
    ) -> Result<(), Error> {
        self.refuse_numerics(&columns, "a primary key")?;
        let table = self.relation.name.clone();
        let RelationKind::Table { key } = &mut self.relation.kind else {
            return Err(Error::internal("a key of what is no table"));
        };
        if !key.is_empty() {
            let message = format!("multiple primary keys for table \"{table}\" are not allowed");
            return Err(Error::new(SqlState::INVALID_TABLE_DEFINITION, message));
        }
        for place in &columns {
            check_key(&self.relation.columns[*place].kind)?;
        }
        key.clone_from(&columns);
        for place in &columns {
            self.relation.columns[*place].not_null = true;
        }
        let name = self.index_name(name, &[], "pkey")?;
        self.push(name, ConstraintKind::PrimaryKey);
        Ok(())
    }

    /// Lets values of some columns be a row's alone.
    pub(super) fn unique(
        &mut self,
        name: Option<&Ident>,
        columns: Vec<usize>,
        is_index: bool,
    ) -> Result<(), Error> {
        for place in &columns {
            check_key(&self.relation.columns[*place].kind)?;
        }
        self.refuse_numerics(&columns, "UNIQUE")?;
        let name = self.index_name(name, &columns, if is_index { "idx" } else { "key" })?;
        self.push(name, ConstraintKind::Unique { columns, is_index });
        Ok(())
    }

    /// Lets values of some columns be those of a row of another table.
    pub(super) fn foreign_key(
        &mut self,
        name: Option<&Ident>,
        columns: Vec<usize>,
        key: &ForeignKeyConstraint,
    ) -> Result<(), Error> {
        let deferral = deferral(key.characteristics.as_ref())?;
        self.refuse_numerics(&columns, "FOREIGN KEY")?;
        let kind = foreign_key::kind(self, columns.clone(), key)?;
        let name = self.constraint_name(name, &columns, "fkey")?;
        self.push(name, kind);
        if let Some(constraint) = self.relation.constraints.last_mut() {
            constraint.deferral = deferral;
        }
        Ok(())
    }

    /// Lets an expression be not false of any row. `column` is the one whose definition has it.
    pub(super) fn check(
        &mut self,
        name: Option<&Ident>,
        check: &CheckConstraint,
        column: Option<usize>,
    ) -> Result<(), Error> {
        if check.enforced == Some(false) {
            return Err(Error::unsupported("NOT ENFORCED"));
        }
        let (expression, used) = check::text(self.context, &self.relation, &check.expr)?;
        // As in PostgreSQL, the one column that it is about lends it its name.
        let named: Vec<_> = match (column, used.as_slice()) {
            (Some(column), _) => vec![column],
            (None, [one]) => vec![*one],
            _ => vec![],
        };
        let name = self.constraint_name(name, &named, "check")?;
        self.push(name, ConstraintKind::Check { expression });
        Ok(())
    }

    /// 1.0 and 1.00 are one key, and other bytes.
    fn refuse_numerics(&self, columns: &[usize], what: &str) -> Result<(), Error> {
        let is_numeric = |place: &usize| self.relation.columns[*place].kind == Type::Numeric(None);
        if !columns.iter().any(is_numeric) {
            return Ok(());
        }
        let what = format!("{what} of a numeric without precision");
        Err(Error::unsupported(what)
            .with_hint("Give it a precision and a scale, as in numeric(12,2)."))
    }

    fn push(&mut self, name: String, kind: ConstraintKind) {
        let oid = self.catalog.allocate();
        self.relation.constraints.push(Constraint::new(oid, name, kind));
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.relation.columns.iter().position(|column| column.name == name)
    }

    /// The columns that a key names.
    pub(super) fn key_places(&self, key: &[IndexColumn], what: &str) -> Result<Vec<usize>, Error> {
        let mut places = vec![];
        for part in key {
            let Expr::Identifier(identifier) = &part.column.expr else {
                return Err(Error::unsupported(format!("an expression in a {what}")));
            };
            let name = names::fold(identifier);
            let place = self.place(&name).ok_or_else(|| {
                let message = match what {
                    "index" => format!("column \"{name}\" does not exist"),
                    _ => format!("column \"{name}\" named in key does not exist"),
                };
                Error::new(SqlState::UNDEFINED_COLUMN, message)
            })?;
            if places.contains(&place) && what != "index" {
                let message = format!("column \"{name}\" appears twice in {what} constraint");
                return Err(Error::new(SqlState::DUPLICATE_COLUMN, message));
            }
            places.push(place);
        }
        Ok(places)
    }

    /// A name for what has an index, which no relation of the schema has.
    fn index_name(
        &self,
        given: Option<&Ident>,
        columns: &[usize],
        label: &str,
    ) -> Result<String, Error> {
        let schema = &self.relation.schema;
        let is_taken = |name: &str| {
            is_relation_name(self.catalog, schema, name)
                || self.relation.constraint(name).is_some()
                || self.relation.name == name
        };
        match given {
            Some(name) => {
                let name = names::fold(name);
                if is_taken(&name) {
                    return Err(super::already_exists(&name));
                }
                Ok(name)
            }
            None => Ok(self.choose(columns, label, is_taken)),
        }
    }

    /// A name that no constraint of the table has.
    fn constraint_name(
        &self,
        given: Option<&Ident>,
        columns: &[usize],
        label: &str,
    ) -> Result<String, Error> {
        let is_taken = |name: &str| self.relation.constraint(name).is_some();
        match given {
            Some(name) => {
                let name = names::fold(name);
                if is_taken(&name) {
                    let table = &self.relation.name;
                    let message =
                        format!("constraint \"{name}\" for relation \"{table}\" already exists");
                    return Err(Error::new(SqlState::DUPLICATE_OBJECT, message));
                }
                Ok(name)
            }
            None => Ok(self.choose(columns, label, is_taken)),
        }
    }

    /// `table_column_label`, with a number if it is taken.
    fn choose(&self, columns: &[usize], label: &str, is_taken: impl Fn(&str) -> bool) -> String {
        let columns = columns.iter().map(|place| self.relation.columns[*place].name.as_str());
        let columns = columns.collect::<Vec<_>>().join("_");
        let mut number = 0;
        loop {
            let label = match number {
                0 => label.to_owned(),
                number => format!("{label}{number}"),
            };
            let name = object_name(&self.relation.name, &columns, &label);
            if !is_taken(&name) {
                return name;
            }
            number += 1;
        }
    }
}

/// Parts of a name, shortened where the whole would be too long: the longer one first.
pub(super) fn object_name(table: &str, columns: &str, label: &str) -> String {
    let room = NAME_BYTES_MAX - label.len() - 1 - usize::from(!columns.is_empty());
    let (mut first, mut second) = (table.len(), columns.len());
    while first + second > room {
        if first > second {
            first -= 1;
        } else {
            second -= 1;
        }
    }
    let table = &table[..table.floor_char_boundary(first)];
    let columns = &columns[..columns.floor_char_boundary(second)];
    match columns {
        "" => format!("{table}_{label}"),
        columns => format!("{table}_{columns}_{label}"),
    }
}

/// Whether a schema has a relation or an index of a name.
pub(super) fn is_relation_name(catalog: &Catalog, schema: &str, name: &str) -> bool {
    catalog.find(schema, name).is_some()
        || catalog.find_sequence(schema, name).is_some()
        || find_index(catalog, schema, name).is_some()
}

/// The index of a name, and its table.
pub(crate) fn find_index<'a>(
    catalog: &'a Catalog,
    schema: &str,
    name: &str,
) -> Option<(&'a Relation, &'a Constraint)> {
    let mut relations = catalog.relations.values().filter(|relation| relation.schema == schema);
    relations.find_map(|relation| {
        let constraint = relation.constraint(name)?;
        let has_index = matches!(
            constraint.kind,
            ConstraintKind::PrimaryKey
                | ConstraintKind::Unique { .. }
                | ConstraintKind::Index { .. }
        );
        has_index.then_some((relation, constraint))
    })
}

/// When a constraint must be true.
fn deferral(characteristics: Option<&ConstraintCharacteristics>) -> Result<Deferral, Error> {
    let Some(characteristics) = characteristics else { return Ok(Deferral::Never) };
    if characteristics.enforced == Some(false) {
        return Err(Error::unsupported("NOT ENFORCED"));
    }
    let is_deferred = characteristics.initially == Some(DeferrableInitial::Deferred);
    match characteristics.deferrable {
        Some(false) if is_deferred => {
            let message = "constraint declared INITIALLY DEFERRED must be DEFERRABLE";
            Err(Error::new(SqlState::SYNTAX_ERROR, message))
        }
        _ if is_deferred => Ok(Deferral::Initially),
        Some(true) => Ok(Deferral::OnDemand),
        _ => Ok(Deferral::Never),
    }
}

/// Keys tell rows apart whenever they are written.
fn refuse_deferrable(characteristics: Option<&ConstraintCharacteristics>) -> Result<(), Error> {
    match deferral(characteristics)? {
        Deferral::Never => Ok(()),
        _ => Err(Error::unsupported("a DEFERRABLE key")
            .with_hint("Only foreign keys can be DEFERRABLE.")),
    }
}

/// The columns of both lists are the same, whatever their order.
pub(super) fn same_columns(left: &[usize], right: &[usize]) -> bool {
    left.len() == right.len()
        && left.iter().collect::<BTreeSet<_>>() == right.iter().collect::<BTreeSet<_>>()
}

/// Refuses types whose equal values can differ: a key's rows are found by their bytes.
fn check_key(kind: &Type) -> Result<(), Error> {
    match kind {
        Type::Interval | Type::Jsonb => Err(Error::unsupported(format!("a key of type {kind}"))),
        Type::Json => {
            let message =
                "data type json has no default operator class for access method \"btree\"";
            Err(Error::new(SqlState::UNDEFINED_OBJECT, message))
        }
        _ => Ok(()),
    }
}
