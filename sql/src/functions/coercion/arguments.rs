//! The arguments of functions that are settled by SQL types.

use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, ExprSchemable};

use super::is_untyped;
use super::operands::Operands;
use crate::functions::typed::{Typed, TypedFunction, Wanted, kind_of};
use crate::functions::{cast, json};
use crate::{Error, Type};

impl Operands<'_> {
    /// The SQL type of an expression; `Unknown` while nothing has settled it.
    pub(super) fn kind(&self, expr: &Expr) -> Result<Type> {
        if is_untyped(expr) {
            return Ok(Type::Unknown);
        }
        Ok(kind_of(&expr.to_field(self.schema)?.1))
    }

    /// The arguments as the function wants them.
    pub(super) fn typed_arguments(
        &self,
        function: &TypedFunction,
        args: Vec<Expr>,
    ) -> Result<Vec<Expr>> {
        let kinds = args.iter().map(|arg| self.kind(arg)).collect::<Result<Vec<_>>>()?;
        let mut wanted = function.settle(&kinds)?.arguments.into_iter();
        let mut settled = vec![];
        for (arg, kind) in args.into_iter().zip(kinds) {
            settled.push(match wanted.next() {
                None => return Err(Error::internal("an argument that nobody wants").into()),
                Some(Wanted::As(to)) => {
                    let is_so = kind == to && arg.get_type(self.schema)? == to.arrow();
                    if is_so { arg } else { self.casts().to(arg, &to)? }
                }
                Some(Wanted::Shown) => self.shown(arg, &kind)?,
                Some(Wanted::Jsonb) => self.json(arg, kind, Type::Jsonb)?,
                Some(Wanted::Json) => self.json(arg, kind, Type::Json)?,
                Some(Wanted::Zone) => arg,
            });
        }
        if let Some(Wanted::Zone) = wanted.next() {
            let zone = self.format.time_zone.to_string();
            settled.push(text(zone));
        }
        Ok(settled)
    }

    /// What is padded with blanks, as text that has them.
    pub(super) fn all_shown(&self, args: Vec<Expr>) -> Result<Vec<Expr>> {
        let shown = args.into_iter().map(|arg| match self.kind(&arg)? {
            kind @ Type::Char(_) => self.shown(arg, &kind),
            _ => Ok(arg),
        });
        shown.collect()
    }

    /// The text that a client is shown.
    pub(super) fn shown(&self, arg: Expr, kind: &Type) -> Result<Expr> {
        let Type::Char(Some(characters)) = kind else {
            return self.casts().to(arg, &Type::Text);
        };
        let length = i32::try_from(*characters).unwrap_or(i32::MAX);
        let length = Expr::Literal(ScalarValue::Int32(Some(length)), None);
        Ok(call(&super::super::string::PADDED, vec![arg, length]))
    }

    /// The value as JSON.
    fn json(&self, arg: Expr, kind: Type, to: Type) -> Result<Expr> {
        match kind {
            kind if kind == to => Ok(arg),
            Type::Json | Type::Jsonb => self.casts().to(arg, &to),
            Type::Unknown => {
                let text = self.casts().to(arg, &Type::Text)?;
                self.json(text, Type::Text, to)
            }
            kind => {
                let function = if to == Type::Json { &json::MADE_JSON } else { &json::MADE_JSONB };
                let zone = self.format.time_zone.to_string();
                Ok(call(function, vec![arg, text(kind.to_string()), text(zone)]))
            }
        }
    }
}

/// A constant that is text.
fn text(text: String) -> Expr {
    cast::settled(ScalarValue::Utf8(Some(text)), &Type::Text)
}

/// A call whose arguments are as they must be.
fn call(function: &'static Typed, args: Vec<Expr>) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(function.udf(), args))
}
