//! Window functions: a partition node for each PARTITION BY, one on top of the other.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::common::DFSchema;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::{NullTreatment, WindowFunction as Call};
use datafusion::logical_expr::{
    Expr, Window, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition,
};
use stillframe_protocol::{
    Computation, Frame, FrameBound, FrameUnits, Literal, Plan, WindowCall, WindowFunction,
};

use super::operand::Columns;
use super::{build, plan, refused};
use crate::Error;
use crate::expression::literal;

/// Compiles a node of windows: the input's columns, then a column for each.
pub(super) fn window(window: &Window) -> Result<Arc<Plan>, Error> {
    let below = window.input.schema();
    let width = below.fields().len();
    let calls = window.window_expr.iter().map(call);
    let calls = calls.collect::<Result<Vec<_>, Error>>()?;
    let mut partitions: Vec<&[Expr]> = vec![];
    for call in &calls {
        if !partitions.contains(&call.params.partition_by.as_slice()) {
            partitions.push(&call.params.partition_by);
        }
    }
    let mut result = plan(&window.input)?;
    // Where each window's values are.
    let mut places = vec![0; calls.len()];
    for partition in partitions {
        let numbers = 0..calls.len();
        let own = numbers.filter(|number| calls[*number].params.partition_by == partition);
        let own: Vec<usize> = own.collect();
        let before = result.schema().fields().len();
        let mut columns = Columns::all(&result);
        let keys = partition.iter().map(|key| Ok(columns.value(key, below)?.0));
        let keys = keys.collect::<Result<BTreeSet<usize>, Error>>()?;
        let computed = own.iter().map(|number| windowed(calls[*number], below, &mut columns));
        let computed = computed.collect::<Result<Vec<_>, Error>>()?;
        let input = columns.over(result);
        build::keys(&input, keys.iter().copied(), "PARTITION BY")?;
        let passed = input.schema();
        let passed = passed.fields();
        let results = own.iter().map(|number| {
            let field = window.schema.field(width + number);
            Ok((field.name().as_str(), build::stored_type(field.data_type())?))
        });
        let results = results.collect::<Result<Vec<_>, Error>>()?;
        let fields = passed.iter().map(|field| (field.name().as_str(), field.data_type().clone()));
        let schema = build::schema(fields.chain(results));
        for (number, place) in own.iter().zip(passed.len()..) {
            places[*number] = before + place - passed.len();
        }
        // What was only computed for the windows goes again.
        let kept: Vec<usize> = (0..before).chain(passed.len()..passed.len() + own.len()).collect();
        let keys = keys.into_iter().collect();
        let computation = Computation::Windows(computed);
        let windows = Arc::new(Plan::Partition { input, keys, computation, schema });
        result = build::pick(windows, &kept);
    }
    let kept: Vec<usize> = (0..width).chain(places).collect();
    Ok(build::pick(result, &kept))
}

fn call(expr: &Expr) -> Result<&Call, Error> {
    let mut expr = expr;
    while let Expr::Alias(alias) = expr {
        expr = &alias.expr;
    }
    match expr {
        Expr::WindowFunction(call) => Ok(call),
        other => Err(refused(format!("the window {other}"))),
    }
}

fn windowed(call: &Call, below: &DFSchema, columns: &mut Columns) -> Result<WindowCall, Error> {
    let params = &call.params;
    let function = match &call.fun {
        WindowFunctionDefinition::AggregateUDF(function) => {
            WindowFunction::Aggregate(function.name().to_owned())
        }
        WindowFunctionDefinition::WindowUDF(function) => {
            WindowFunction::Window(function.name().to_owned())
        }
    };
    Ok(WindowCall {
        function,
        arguments: columns.operands(&params.args, below)?,
        distinct: params.distinct,
        filter: columns.filter(params.filter.as_deref(), below)?,
        order: columns.order(&params.order_by, below)?,
        frame: frame(&params.window_frame)?,
        ignore_nulls: params.null_treatment == Some(NullTreatment::IgnoreNulls),
    })
}

fn frame(frame: &WindowFrame) -> Result<Frame, Error> {
    let units = match frame.units {
        WindowFrameUnits::Rows => FrameUnits::Rows,
        WindowFrameUnits::Range => FrameUnits::Range,
        WindowFrameUnits::Groups => FrameUnits::Groups,
    };
    let bound = |bound: &WindowFrameBound| {
        Ok::<_, Error>(match bound {
            WindowFrameBound::Preceding(distance) => {
                FrameBound::Preceding(self::distance(distance)?)
            }
            WindowFrameBound::CurrentRow => FrameBound::CurrentRow,
            WindowFrameBound::Following(distance) => {
                FrameBound::Following(self::distance(distance)?)
            }
        })
    };
    Ok(Frame { units, start: bound(&frame.start_bound)?, end: bound(&frame.end_bound)? })
}

fn distance(distance: &ScalarValue) -> Result<Option<Literal>, Error> {
    if distance.is_null() {
        return Ok(None);
    }
    Ok(Some(literal(distance)?))
}
