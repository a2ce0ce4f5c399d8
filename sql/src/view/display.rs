//! A maintained plan as text: one line for each operator, its inputs indented below it.

use std::fmt::Write;

use stillframe_protocol::numeric::Numeric;
use stillframe_protocol::{
    AggregateFunction, BinaryOperator, Computation, Expression, JoinKey, Literal, Moment,
    MomentUnit, Plan, SortKey, UnaryOperator, WindowFunction,
};

/// The operators of a plan.
pub(crate) fn operators(plan: &Plan) -> Vec<String> {
    let mut lines = vec![];
    write_plan(plan, 0, &mut lines);
    lines
}

fn write_plan(plan: &Plan, depth: usize, lines: &mut Vec<String>) {
    lines.push(format!("{:width$}{}", "", operator(plan), width = depth * 2));
    for input in plan.inputs() {
        write_plan(input, depth + 1, lines);
    }
}

fn operator(plan: &Plan) -> String {
    match plan {
        Plan::Reference(place) => format!("Reference {place}"),
        Plan::Relation { id, .. } => format!("Relation {id}"),
        Plan::Values { rows, .. } => {
            let rows = rows.iter().map(|row| format!("({})", list(row.iter().map(literal))));
            format!("Values {}", list(rows))
        }
        Plan::Filter { predicate, .. } => format!("Filter {}", expression(predicate)),
        Plan::Project { expressions, schema, .. } => {
            let columns = expressions.iter().zip(schema.fields());
            let columns = columns.map(|(e, field)| {
                let data_type = field.data_type();
                format!("{}: {data_type}", expression(e))
            });
            format!("Project {}", list(columns))
        }
        Plan::Join { on, residual, .. } => {
            let mut line = format!("Join {}", list(on.iter().map(key))).trim_end().to_owned();
            if let Some(residual) = residual {
                let _ = write!(line, " where {}", expression(residual));
            }
            line
        }
        Plan::Semijoin { on, negated, .. } => {
            let name = if *negated { "Antijoin" } else { "Semijoin" };
            format!("{name} {}", list(on.iter().map(key))).trim_end().to_owned()
        }
        Plan::Unnest { lists, .. } => {
            format!("Unnest {}", list(lists.iter().map(|(list, _)| expression(list))))
        }
        Plan::Aggregate { groups, aggregates, .. } => {
            let groups = list(groups.iter().map(|group| format!("#{group}")));
            let aggregates = aggregates.iter().map(|aggregate| {
                let function = match aggregate.function {
                    AggregateFunction::Count => "count",
                    AggregateFunction::Sum => "sum",
                    AggregateFunction::Avg => "avg",
                    AggregateFunction::Min => "min",
                    AggregateFunction::Max => "max",
                };
                match aggregate.argument {
                    Some(argument) => format!("{function}(#{argument})"),
                    None => format!("{function}(*)"),
                }
            });
            format!("Aggregate by [{groups}] {}", list(aggregates))
        }
        Plan::Partition { keys, computation, .. } => partition(keys, computation),
        Plan::Distinct { .. } => "Distinct".to_owned(),
        Plan::UnionAll { .. } => "UnionAll".to_owned(),
        Plan::Temporal { from, until, .. } => {
            let moments = |moments: &[Moment]| {
                list(moments.iter().map(|moment| {
                    let unit = if moment.unit == MomentUnit::Day { " days" } else { "" };
                    format!("{}{unit} {:+}us", expression(&moment.expression), moment.offset_us)
                }))
            };
            format!("Temporal filter from [{}] until [{}]", moments(from), moments(until))
        }
        Plan::Recursion { distinct: true, .. } => "Recursion UNION".to_owned(),
        Plan::Recursion { distinct: false, .. } => "Recursion UNION ALL".to_owned(),
        Plan::Given { place: 0, .. } => "Last iteration".to_owned(),
        Plan::Given { place, .. } => format!("Given {place}"),
    }
}

fn key(key: &JoinKey) -> String {
    let equals = if key.null_equal { "IS NOT DISTINCT FROM" } else { "=" };
    format!("left #{} {equals} right #{}", key.left, key.right)
}

fn partition(keys: &[usize], computation: &Computation) -> String {
    let keys = list(keys.iter().map(|key| format!("#{key}")));
    match computation {
        Computation::Aggregates(calls) => {
            let calls = calls.iter().map(|call| {
                let arguments = list(call.arguments.iter().map(expression));
                format!("{}({arguments})", call.function)
            });
            format!("Aggregate by [{keys}] {}", list(calls))
        }
        Computation::Windows(calls) => {
            let calls = calls.iter().map(|call| {
                let arguments = list(call.arguments.iter().map(expression));
                let (WindowFunction::Aggregate(name) | WindowFunction::Window(name)) =
                    &call.function;
                format!("{name}({arguments}) order by [{}]", order(&call.order))
            });
            format!("Window by [{keys}] {}", list(calls))
        }
        Computation::Limit(limit) => {
            let count = limit.count.map_or("all".to_owned(), |count| count.to_string());
            let order = order(&limit.order);
            format!("Limit by [{keys}] {count} from {} order by [{order}]", limit.offset)
        }
    }
}

fn order(keys: &[SortKey]) -> String {
    list(keys.iter().map(|key| {
        let direction = if key.descending { " desc" } else { "" };
        let nulls = if key.nulls_first { " nulls first" } else { "" };
        format!("#{}{direction}{nulls}", key.column)
    }))
}

fn list(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}

fn expression(e: &Expression) -> String {
    match e {
        Expression::Column(place) => format!("#{place}"),
        Expression::Literal(value) => literal(value),
        Expression::Unary { operator, operand } => {
            let operand = expression(operand);
            let after = match operator {
                UnaryOperator::Not => return format!("NOT ({operand})"),
                UnaryOperator::Negative => return format!("-({operand})"),
                UnaryOperator::IsNull => "NULL",
                UnaryOperator::IsNotNull => "NOT NULL",
                UnaryOperator::IsTrue => "TRUE",
                UnaryOperator::IsNotTrue => "NOT TRUE",
                UnaryOperator::IsFalse => "FALSE",
                UnaryOperator::IsNotFalse => "NOT FALSE",
                UnaryOperator::IsUnknown => "UNKNOWN",
                UnaryOperator::IsNotUnknown => "NOT UNKNOWN",
            };
            format!("{operand} IS {after}")
        }
        Expression::Binary { operator, left, right } => {
            format!("({} {} {})", expression(left), symbol(*operator), expression(right))
        }
        Expression::Cast { operand, to, null_on_error } => {
            let cast = if *null_on_error { "TRY_CAST" } else { "CAST" };
            format!("{cast}({} AS {to})", expression(operand))
        }
        Expression::Case { operand, branches, otherwise } => {
            let mut text = "CASE".to_owned();
            if let Some(operand) = operand {
                let _ = write!(text, " {}", expression(operand));
            }
            for (when, then) in branches {
                let _ = write!(text, " WHEN {} THEN {}", expression(when), expression(then));
            }
            if let Some(otherwise) = otherwise {
                let _ = write!(text, " ELSE {}", expression(otherwise));
            }
            text + " END"
        }
        Expression::Like { operand, pattern, negated, case_insensitive, .. } => {
            let not = if *negated { "NOT " } else { "" };
            let like = if *case_insensitive { "ILIKE" } else { "LIKE" };
            format!("{} {not}{like} {}", expression(operand), expression(pattern))
        }
        Expression::InList { operand, list: items, negated } => {
            let not = if *negated { "NOT " } else { "" };
            format!("{} {not}IN ({})", expression(operand), list(items.iter().map(expression)))
        }
        Expression::Call { function, arguments, .. } => {
            format!("{function}({})", list(arguments.iter().map(expression)))
        }
    }
}

fn symbol(operator: BinaryOperator) -> &'static str {
    match operator {
        BinaryOperator::Equal => "=",
        BinaryOperator::NotEqual => "<>",
        BinaryOperator::Less => "<",
        BinaryOperator::LessOrEqual => "<=",
        BinaryOperator::Greater => ">",
        BinaryOperator::GreaterOrEqual => ">=",
        BinaryOperator::IsDistinctFrom => "IS DISTINCT FROM",
        BinaryOperator::IsNotDistinctFrom => "IS NOT DISTINCT FROM",
        BinaryOperator::And => "AND",
        BinaryOperator::Or => "OR",
        BinaryOperator::Add => "+",
        BinaryOperator::Subtract => "-",
        BinaryOperator::Multiply => "*",
        BinaryOperator::Divide => "/",
        BinaryOperator::Modulo => "%",
        BinaryOperator::BitwiseAnd => "&",
        BinaryOperator::BitwiseOr => "|",
        BinaryOperator::BitwiseXor => "#",
        BinaryOperator::ShiftLeft => "<<",
        BinaryOperator::ShiftRight => ">>",
        BinaryOperator::Concat => "||",
        BinaryOperator::RegexMatch => "~",
        BinaryOperator::RegexIMatch => "~*",
        BinaryOperator::RegexNotMatch => "!~",
        BinaryOperator::RegexNotIMatch => "!~*",
    }
}

fn literal(value: &Literal) -> String {
    match value {
        Literal::Null(_) => "NULL".to_owned(),
        Literal::Boolean(value) => value.to_string(),
        Literal::Int16(value) => value.to_string(),
        Literal::Int32(value) => value.to_string(),
        Literal::Int64(value) => value.to_string(),
        Literal::Float32(bits) => f32::from_bits(*bits).to_string(),
        Literal::Float64(bits) => f64::from_bits(*bits).to_string(),
        Literal::Decimal128(value, _, scale) => format!("{value}e{}", -i32::from(*scale)),
        Literal::Numeric(bytes) => match Numeric::decode(bytes) {
            Some(value) => value.to_string(),
            None => format!("{} bytes", bytes.len()),
        },
        Literal::Utf8(value) => format!("'{}'", value.replace('\'', "''")),
        Literal::Binary(value) => format!("{} bytes", value.len()),
        Literal::Date32(days) => format!("day {days}"),
        Literal::Time64Microsecond(time) => format!("time {time}us"),
        Literal::TimestampMicrosecond(time, _) => format!("timestamp {time}us"),
        Literal::IntervalMonthDayNano(months, days, nanoseconds) => {
            format!("interval {months}mon {days}d {nanoseconds}ns")
        }
        Literal::List(_, values) => format!("ARRAY[{}]", list(values.iter().map(literal))),
    }
}
