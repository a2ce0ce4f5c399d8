//! Functions in FROM.
//!
//! A set-returning function is `unnest` of arrays. One that takes columns of what stands before it in
//! FROM is a LATERAL subquery with `unnest` in its select list.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, ObjectName, ObjectNamePart, SelectItem,
    TableAlias, TableAliasColumnDef, TableFactor, TableFunctionArgs, UnaryOperator, Value,
    visit_expressions,
};

use super::expressions::Place;
use super::from::{call, unlike};
use super::scope::{Item, Scope, Source};
use super::{OutputName, Resolver, internal_alias, resolved, whole_table};
use crate::functions::set_returning::{self, SetColumn};
use crate::{Error, names};

/// A function in FROM, as it is written.
struct Call {
    name: String,
    arguments: Vec<Expr>,
    alias: Option<TableAlias>,
    with_ordinality: bool,
}

impl Resolver<'_> {
    /// Resolves a function, and writes it as something that DataFusion plans.
    pub(super) fn call_in_from(
        &mut self,
        factor: &mut TableFactor,
        before: &Scope<'_>,
        beside: &Item,
    ) -> Result<Item, Error> {
        let call = Call::new(factor)?;
        let mut items = before.items.clone();
        items.push(beside.clone());
        let around = Scope::new(items, before.parent);
        let source = match call.columns() {
            Some(columns) if !call.is_plain_series() => {
                self.unnested(factor, call, columns, &around)?
            }
            _ => self.table_function(factor, call, &around)?,
        };
        Ok(source.into_item())
    }

    /// The rows of arrays.
    fn unnested(
        &mut self,
        factor: &mut TableFactor,
        called: Call,
        columns: Vec<SetColumn>,
        around: &Scope<'_>,
    ) -> Result<Source, Error> {
        let Call { name, mut arguments, alias, with_ordinality } = called;
        let is_lateral = self.arguments(&mut arguments, around)?;
        let (mut arrays, mut column_names) = (vec![], vec![]);
        if name == "unnest" {
            column_names.resize(arguments.len(), None);
            arrays = arguments;
        } else {
            for column in columns {
                arrays.push(call(&column.list, arguments.clone()));
                column_names.push(column.name);
            }
        }
        // Rows of several arrays are those of several functions, which an alias doesn't name.
        let is_several = name == "unnest" && arrays.len() > 1;
        let mut column_names: Vec<_> = column_names
            .into_iter()
            .map(|column| column.map(str::to_owned).or(is_several.then(|| name.clone())))
            .collect();
        if with_ordinality {
            arrays.push(call("ordinality list", arrays.clone()));
            column_names.push(Some("ordinality".to_owned()));
        }
        let is_scalar = column_names.len() == 1;
        let (mut source, alias) = self.named_columns(&name, column_names, alias, around)?;
        source.is_scalar = is_scalar;
        *factor = if is_lateral {
            lateral(arrays, alias)
        } else {
            TableFactor::UNNEST {
                alias: Some(alias),
                array_exprs: arrays,
                with_offset: false,
                with_offset_alias: None,
                with_ordinality: false,
            }
        };
        Ok(source)
    }

    /// A function that DataFusion calls a table function.
    fn table_function(
        &mut self,
        factor: &mut TableFactor,
        call: Call,
        around: &Scope<'_>,
    ) -> Result<Source, Error> {
        let Call { name, mut arguments, alias, with_ordinality } = call;
        let is_lateral = self.arguments(&mut arguments, around)?;
        let arguments: Vec<_> = arguments
            .into_iter()
            .map(|argument| FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)))
            .collect();
        if with_ordinality || is_lateral {
            let what = format!("{name} WITH ORDINALITY, or of columns beside it in FROM");
            return Err(Error::unsupported(what));
        }
        let schema = self.context.function_schema(&name, &arguments)?;
        let is_row = schema.fields().len() > 1;
        let names = schema.fields().iter().map(|field| is_row.then(|| field.name().clone()));
        let (source, alias) = self.named_columns(&name, names.collect(), alias, around)?;
        *factor = TableFactor::Table {
            name: ObjectName(vec![ObjectNamePart::Identifier(resolved(&name))]),
            alias: Some(alias),
            args: Some(TableFunctionArgs { args: arguments, settings: None }),
            with_hints: vec![],
            version: None,
            with_ordinality: false,
            partitions: vec![],
            json_path: None,
            sample: None,
            index_hints: vec![],
        };
        Ok(source)
    }

    /// Resolves the arguments; says whether they name columns of what stands before in FROM.
    fn arguments(&mut self, arguments: &mut [Expr], around: &Scope<'_>) -> Result<bool, Error> {
        let scope = Scope::empty(Some(around));
        for argument in arguments.iter_mut() {
            self.expression(argument, &scope, Place::FunctionInFrom)?;
        }
        let own: BTreeSet<_> = around.own_sources().map(|s| s.internal.as_str()).collect();
        Ok(arguments.iter().any(|argument| names_one_of(argument, &own)))
    }

    /// The columns of a function under its alias, and the alias as it is to be written. A column
    /// without a name has that of the alias.
    fn named_columns(
        &mut self,
        function: &str,
        columns: Vec<Option<String>>,
        alias: Option<TableAlias>,
        around: &Scope<'_>,
    ) -> Result<(Source, TableAlias), Error> {
        let given = alias.unwrap_or_else(|| internal_alias(function));
        let name = names::fold(&given.name);
        let columns = columns.into_iter().zip(1..).map(|(column, place)| OutputName {
            internal: format!("c{place}"),
            ..OutputName::new(column.unwrap_or_else(|| name.clone()))
        });
        let columns = self.renamed(columns.collect(), &given, &name)?;
        let internal = unlike(&name, around, &Item::default(), &self.avoided);
        let mut alias = internal_alias(&internal);
        let written = columns.iter().map(|column| resolved(&column.internal));
        alias.columns = written.map(|name| TableAliasColumnDef { name, data_type: None }).collect();
        let source =
            Source { alias: name, schema: None, internal, columns, key: vec![], is_scalar: false };
        Ok((source, alias))
    }
}

impl Call {
    fn new(factor: &mut TableFactor) -> Result<Self, Error> {
        let (name, arguments, alias, with_ordinality) = match factor {
            TableFactor::Table { name, args: Some(given), alias, with_ordinality, .. } => {
                if given.settings.is_some() {
                    return Err(Error::unsupported("SETTINGS"));
                }
                (names::function(name), std::mem::take(&mut given.args), alias, with_ordinality)
            }
            TableFactor::Function { name, args, alias, with_ordinality, .. } => {
                (names::function(name), std::mem::take(args), alias, with_ordinality)
            }
            TableFactor::UNNEST {
                alias, array_exprs, with_offset: false, with_ordinality, ..
            } => {
                return Ok(Self {
                    name: "unnest".to_owned(),
                    arguments: std::mem::take(array_exprs),
                    alias: alias.take(),
                    with_ordinality: *with_ordinality,
                });
            }
            other => return Err(Error::unsupported(format!("{other} in FROM"))),
        };
        let arguments = arguments.into_iter().map(|argument| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Ok(value),
            _ => Err(Error::unsupported("a named argument of a function in FROM")),
        });
        Ok(Self {
            name,
            arguments: arguments.collect::<Result<_, _>>()?,
            alias: alias.take(),
            with_ordinality: *with_ordinality,
        })
    }

    /// The columns of a set-returning function.
    fn columns(&self) -> Option<Vec<SetColumn>> {
        match self.name.as_str() {
            "unnest" => Some(vec![]),
            name => set_returning::columns(name),
        }
    }

    /// Whether it is a series of constant integers: those come row by row, and are never an array.
    fn is_plain_series(&self) -> bool {
        self.name == "generate_series"
            && !self.with_ordinality
            && self.arguments.iter().all(is_constant_integer)
    }
}

fn is_constant_integer(expr: &Expr) -> bool {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => digits.parse::<i64>().is_ok(),
            Value::Null => true,
            _ => false,
        },
        Expr::Nested(inner)
        | Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr: inner } => {
            is_constant_integer(inner)
        }
        Expr::Cast { expr, data_type, .. } => {
            use datafusion::sql::sqlparser::ast::DataType::{BigInt, Int, Int4, Int8, Integer};
            matches!(data_type, BigInt(_) | Int(_) | Int4(_) | Int8(_) | Integer(_))
                && is_constant_integer(expr)
        }
        Expr::BinaryOp { left, op, right } => {
            use BinaryOperator::{Minus, Multiply, Plus};
            matches!(op, Minus | Multiply | Plus)
                && is_constant_integer(left)
                && is_constant_integer(right)
        }
        _ => false,
    }
}

/// Whether a resolved expression names a column of one of these relations.
fn names_one_of(expr: &Expr, relations: &BTreeSet<&str>) -> bool {
    let found = visit_expressions(expr, |expr| match expr {
        Expr::CompoundIdentifier(parts)
            if parts.first().is_some_and(|first| relations.contains(first.value.as_str())) =>
        {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}

/// `LATERAL (SELECT unnest(...), ...) AS alias`.
fn lateral(arrays: Vec<Expr>, mut alias: TableAlias) -> TableFactor {
    let columns = std::mem::take(&mut alias.columns);
    let items = arrays.into_iter().zip(columns).map(|(array, column)| SelectItem::ExprWithAlias {
        expr: call("unnest", vec![array]),
        alias: column.name,
    });
    TableFactor::Derived {
        lateral: true,
        subquery: Box::new(whole_table::of_nothing(items.collect())),
        alias: Some(alias),
        sample: None,
    }
}
