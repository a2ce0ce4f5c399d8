//! The clauses of a MERGE.

use datafusion::sql::sqlparser::ast::{
    Expr, Merge, MergeAction, MergeClause, MergeClauseKind, MergeInsertExpr, MergeInsertKind,
};

use super::super::update;
use super::super::values::Cell;
use crate::parser::{DEFAULTS, NOTHING};
use crate::write::Target;
use crate::{Error, Generated, SqlState, names};

/// What is done to rows, and to which.
pub(super) struct Clause<'a> {
    /// Whether it is about rows of the source that match a row of the table.
    pub(super) is_matched: bool,
    pub(super) predicate: Option<&'a Expr>,
    pub(super) action: Action<'a>,
}

pub(super) enum Action<'a> {
    Nothing,
    Delete,
    /// By place in the definition, what columns are set to.
    Update(Vec<(usize, Expr)>),
    /// The same.
    Insert(Vec<(usize, &'a Expr)>),
}

impl Clause<'_> {
    /// By place in the definition, what columns are given.
    pub(super) fn cells(&self) -> Box<dyn Iterator<Item = (usize, Cell<'_>)> + Send + '_> {
        match &self.action {
            Action::Nothing | Action::Delete => Box::new(std::iter::empty()),
            Action::Update(cells) => {
                Box::new(cells.iter().map(|(place, expr)| (*place, Cell::new(expr))))
            }
            Action::Insert(cells) => {
                Box::new(cells.iter().map(|(place, expr)| (*place, Cell::new(expr))))
            }
        }
    }
}

/// The clauses, in their order.
pub(super) fn clauses<'a>(merge: &'a Merge, target: &Target) -> Result<Vec<Clause<'a>>, Error> {
    if merge.output.is_some() {
        return Err(Error::unsupported("OUTPUT in MERGE"));
    }
    // After a clause without a condition no other of its kind is ever chosen.
    let mut ended = [false; 2];
    let mut clauses = vec![];
    for clause in &merge.clauses {
        let is_matched = match clause.clause_kind {
            MergeClauseKind::Matched => true,
            MergeClauseKind::NotMatched => false,
            kind => return Err(Error::unsupported(format!("WHEN {kind} in MERGE"))),
        };
        let ended = &mut ended[usize::from(is_matched)];
        if *ended {
            let message = "unreachable WHEN clause specified after unconditional WHEN clause";
            return Err(Error::new(SqlState::SYNTAX_ERROR, message));
        }
        *ended |= clause.predicate.is_none();
        let action = action(clause, target)?;
        clauses.push(Clause { is_matched, predicate: clause.predicate.as_ref(), action });
    }
    Ok(clauses)
}

fn action<'a>(clause: &'a MergeClause, target: &Target) -> Result<Action<'a>, Error> {
    match &clause.action {
        MergeAction::Delete { .. } => Ok(Action::Delete),
        MergeAction::Insert(insert) => inserted(insert, target),
        MergeAction::Update(set) => {
            if set.update_predicate.is_some() || set.delete_predicate.is_some() {
                return Err(Error::unsupported("a WHERE of UPDATE in MERGE"));
            }
            let pairs = update::pairs(&set.assignments)?;
            if let [(name, _)] = pairs.as_slice()
                && names::unquoted(name) == NOTHING
            {
                return Ok(Action::Nothing);
            }
            update::assignments(&pairs, target)?;
            let cells = pairs.iter().map(|(name, value)| {
                let column = name.0.first().and_then(|part| part.as_ident());
                let column = column.ok_or_else(|| Error::unsupported(name))?;
                Ok((target.column(&names::fold(column))?, value.clone().into_owned()))
            });
            Ok(Action::Update(cells.collect::<Result<_, Error>>()?))
        }
    }
}

fn inserted<'a>(insert: &'a MergeInsertExpr, target: &Target) -> Result<Action<'a>, Error> {
    let listed = insert.columns.iter().map(names::unquoted).collect::<Vec<_>>();
    match listed.as_slice() {
        [name] if name == NOTHING => return Ok(Action::Nothing),
        [name] if name == DEFAULTS => return Ok(Action::Insert(vec![])),
        _ => {}
    }
    let MergeInsertKind::Values(values) = &insert.kind else {
        return Err(Error::unsupported("INSERT ROW in MERGE"));
    };
    let [row] = values.rows.as_slice() else {
        return Err(Error::new(SqlState::SYNTAX_ERROR, "MERGE inserts one row for each"));
    };
    let row = row.as_slice();
    let places = match listed.is_empty() {
        true => (0..target.relation().columns.len()).collect(),
        false => {
            let names = insert.columns.iter().map(|name| match name.0.as_slice() {
                [part] => part.as_ident().map(names::fold),
                _ => None,
            });
            let names = names.map(|name| name.ok_or_else(|| Error::unsupported("this column")));
            target.columns(&names.collect::<Result<Vec<_>, _>>()?)?
        }
    };
    if row.len() > places.len() {
        let message = "INSERT has more expressions than target columns";
        return Err(Error::new(SqlState::SYNTAX_ERROR, message));
    }
    if row.len() < places.len() && !listed.is_empty() {
        let message = "INSERT has more target columns than expressions";
        return Err(Error::new(SqlState::SYNTAX_ERROR, message));
    }
    for (place, expr) in places.iter().zip(row) {
        let column = &target.relation().columns[*place];
        let name = &column.name;
        let detail = match &column.generated {
            _ if matches!(Cell::new(expr), Cell::Default) => continue,
            Some(Generated::Stored { .. }) => format!("Column \"{name}\" is a generated column."),
            Some(Generated::Identity { always: true, .. }) => {
                format!("Column \"{name}\" is an identity column defined as GENERATED ALWAYS.")
            }
            _ => continue,
        };
        let message = format!("cannot insert a non-DEFAULT value into column \"{name}\"");
        return Err(Error::new(SqlState::GENERATED_ALWAYS, message).with_detail(detail));
    }
    Ok(Action::Insert(places.into_iter().zip(row).collect()))
}
