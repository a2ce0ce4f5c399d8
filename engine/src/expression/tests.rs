use arrow::array::{
    Array, ArrayRef, BooleanArray, Decimal128Array, Float32Array, Float64Array, Int16Array,
    Int32Array, Int64Array, StringArray,
};
use arrow::record_batch::RecordBatch;
use datafusion::common::{DataFusionError, Result as DataFusionResult};
use datafusion::logical_expr::{ColumnarValue, Volatility, create_udf};
use datafusion::prelude::SessionContext;
use stillframe_protocol::RowError;

use super::*;

fn functions() -> Functions {
    let context = SessionContext::new();
    let fail = |_: &[ColumnarValue]| -> DataFusionResult<ColumnarValue> {
        let error =
            RowError { sqlstate: "22023".to_owned(), message: "that is not allowed".to_owned() };
        Err(DataFusionError::External(Box::new(error)).context("while calling it"))
    };
    context.register_udf(create_udf(
        "forbid",
        vec![DataType::Int32],
        DataType::Int32,
        Volatility::Immutable,
        Arc::new(fail),
    ));
    Functions::new(Arc::new(context.state()))
}

/// Evaluates an expression over some columns.
fn evaluate(expression: &Expression, columns: Vec<ArrayRef>) -> Result<ArrayRef, RowError> {
    let field = |(place, column): (usize, &ArrayRef)| {
        Field::new(format!("c{place}"), column.data_type().clone(), true)
    };
    let fields: Vec<Field> = columns.iter().enumerate().map(field).collect();
    let schema = Arc::new(Schema::new(fields));
    let compiled = compile(expression, &schema, &functions()).unwrap();
    let batch = RecordBatch::try_new(schema, columns).unwrap();
    let value = compiled.evaluate(&batch).map_err(|error| row_error(&error))?;
    Ok(value.into_array(batch.num_rows()).unwrap())
}

fn binary(operator: BinaryOperator) -> Expression {
    let operand = |index| Box::new(Expression::Column(index));
    Expression::Binary { operator, left: operand(0), right: operand(1) }
}

fn cast(to: DataType) -> Expression {
    Expression::Cast { operand: Box::new(Expression::Column(0)), to, null_on_error: false }
}

fn array(values: impl Array + 'static) -> ArrayRef {
    Arc::new(values)
}

fn fails(expression: &Expression, columns: Vec<ArrayRef>, sqlstate: &str, message: &str) {
    let expected = RowError { sqlstate: sqlstate.to_owned(), message: message.to_owned() };
    assert_eq!(evaluate(expression, columns), Err(expected), "{expression:?}");
}

#[test]
fn integers_do_not_wrap() {
    use BinaryOperator::{Add, Divide, Modulo, Multiply, Subtract};
    let small =
        |a: i16, b: i16| vec![array(Int16Array::from(vec![a])), array(Int16Array::from(vec![b]))];
    let int =
        |a: i32, b: i32| vec![array(Int32Array::from(vec![a])), array(Int32Array::from(vec![b]))];
    let big =
        |a: i64, b: i64| vec![array(Int64Array::from(vec![a])), array(Int64Array::from(vec![b]))];
    fails(&binary(Add), small(i16::MAX, 1), "22003", "smallint out of range");
    fails(&binary(Add), int(i32::MAX, 1), "22003", "integer out of range");
    fails(&binary(Subtract), int(i32::MIN, 1), "22003", "integer out of range");
    fails(&binary(Multiply), big(i64::MAX, 2), "22003", "bigint out of range");
    fails(&binary(Divide), int(i32::MIN, -1), "22003", "integer out of range");
    fails(&binary(Divide), int(1, 0), "22012", "division by zero");
    fails(&binary(Modulo), big(1, 0), "22012", "division by zero");
    let negative = Expression::Unary {
        operator: UnaryOperator::Negative,
        operand: Box::new(Expression::Column(0)),
    };
    fails(&negative, int(i32::MIN, 0), "22003", "integer out of range");
    assert_eq!(evaluate(&negative, int(7, 0)), Ok(array(Int32Array::from(vec![-7]))));
    assert_eq!(evaluate(&binary(Divide), int(-7, 2)), Ok(array(Int32Array::from(vec![-3]))));
}

#[test]
fn a_null_operand_hides_the_other() {
    let columns =
        vec![array(Int32Array::from(vec![None, Some(6)])), array(Int32Array::from(vec![0, 3]))];
    let expected = array(Int32Array::from(vec![None, Some(2)]));
    assert_eq!(evaluate(&binary(BinaryOperator::Divide), columns), Ok(expected));
}

#[test]
fn floats_do_not_run_into_infinity() {
    use BinaryOperator::{Add, Divide, Multiply, Subtract};
    let double = |a: f64, b: f64| {
        vec![array(Float64Array::from(vec![a])), array(Float64Array::from(vec![b]))]
    };
    let single = |a: f32, b: f32| {
        vec![array(Float32Array::from(vec![a])), array(Float32Array::from(vec![b]))]
    };
    let overflow = "value out of range: overflow";
    fails(&binary(Multiply), double(1e300, 1e300), "22003", overflow);
    fails(&binary(Add), double(f64::MAX, f64::MAX), "22003", overflow);
    fails(&binary(Multiply), single(1e30, 1e30), "22003", overflow);
    fails(&binary(Multiply), double(1e-300, 1e-300), "22003", "value out of range: underflow");
    fails(&binary(Divide), double(1.0, 0.0), "22012", "division by zero");
    fails(&binary(Divide), single(0.0, -0.0), "22012", "division by zero");
    let infinite = f64::INFINITY;
    let sum = evaluate(&binary(Add), double(infinite, 1.0)).unwrap();
    assert_eq!(&sum, &array(Float64Array::from(vec![infinite])));
    let nothing = evaluate(&binary(Subtract), double(infinite, infinite)).unwrap();
    let nothing: &Float64Array = nothing.as_any().downcast_ref().unwrap();
    assert_eq!(nothing.value(0).to_bits(), f64::NAN.to_bits(), "there is one NaN");
    let product = evaluate(&binary(Multiply), single(0.1, 3.0)).unwrap();
    assert_eq!(&product, &array(Float32Array::from(vec![0.1f32 * 3.0])));
}

#[test]
fn decimals_fail_too() {
    let decimal = |value: i128, precision, scale| {
        let values = Decimal128Array::from(vec![value]);
        array(values.with_precision_and_scale(precision, scale).unwrap())
    };
    let zero = vec![decimal(100, 10, 2), decimal(0, 10, 2)];
    fails(&binary(BinaryOperator::Divide), zero, "22012", "division by zero");
    let huge = vec![decimal(10i128.pow(37), 38, 0), decimal(10i128.pow(37), 38, 0)];
    fails(&binary(BinaryOperator::Multiply), huge, "22003", "value overflows numeric format");
}

#[test]
fn casts_speak_as_postgres_does() {
    let text = |value: &str| vec![array(StringArray::from(vec![value]))];
    let integer = cast(DataType::Int32);
    fails(&integer, text("abc"), "22P02", "invalid input syntax for type integer: \"abc\"");
    fails(
        &integer,
        text("99999999999"),
        "22003",
        "value \"99999999999\" is out of range for type integer",
    );
    fails(
        &cast(DataType::Float64),
        text("1.2.3"),
        "22P02",
        "invalid input syntax for type double precision: \"1.2.3\"",
    );
    fails(
        &cast(DataType::Date32),
        text("2020-13-01"),
        "22007",
        "invalid input syntax for type date: \"2020-13-01\"",
    );
    fails(
        &cast(DataType::Timestamp(arrow::datatypes::TimeUnit::Microsecond, None)),
        text("yesterdayish"),
        "22007",
        "invalid input syntax for type timestamp: \"yesterdayish\"",
    );
    fails(
        &cast(DataType::Boolean),
        text("maybe"),
        "22P02",
        "invalid input syntax for type boolean: \"maybe\"",
    );
    let wide = vec![array(Int64Array::from(vec![70_000]))];
    fails(&cast(DataType::Int16), wide.clone(), "22003", "smallint out of range");
    fails(&cast(DataType::Decimal128(4, 2)), wide, "22003", "numeric field overflow");
}

#[test]
fn a_functions_own_error_is_passed_on() {
    let call = Expression::Call {
        function: "forbid".to_owned(),
        arguments: vec![Expression::Column(0)],
        returns: DataType::Int32,
    };
    let columns = || vec![array(Int32Array::from(vec![1]))];
    fails(&call, columns(), "22023", "that is not allowed");
    let wrapped = Expression::Binary {
        operator: BinaryOperator::Add,
        left: Box::new(call),
        right: Box::new(Expression::Column(0)),
    };
    fails(&wrapped, columns(), "22023", "that is not allowed");
}

#[test]
fn a_kernel_error_within_arrow_is_classified_at_its_root() {
    let arrow = arrow::error::ArrowError::DivideByZero;
    let inner = DataFusionError::ArrowError(Box::new(arrow), None);
    let outer = arrow::error::ArrowError::ExternalError(Box::new(inner));
    let error = DataFusionError::ArrowError(Box::new(outer), None).context("deep down");
    assert_eq!(row_error(&error).sqlstate, "22012");
}

#[test]
fn truth_tests_are_never_null() {
    let column = || array(BooleanArray::from(vec![Some(true), Some(false), None]));
    let expected = [
        (UnaryOperator::IsTrue, [true, false, false]),
        (UnaryOperator::IsNotTrue, [false, true, true]),
        (UnaryOperator::IsFalse, [false, true, false]),
        (UnaryOperator::IsNotFalse, [true, false, true]),
        (UnaryOperator::IsUnknown, [false, false, true]),
        (UnaryOperator::IsNotUnknown, [true, true, false]),
    ];
    for (operator, values) in expected {
        let expression = Expression::Unary { operator, operand: Box::new(Expression::Column(0)) };
        let value = evaluate(&expression, vec![column()]).unwrap();
        assert_eq!(&value, &array(BooleanArray::from(values.to_vec())), "{operator:?}");
    }
}

#[test]
fn like_knows_its_escape() {
    let like = |pattern: &str, escape| Expression::Like {
        operand: Box::new(Expression::Column(0)),
        pattern: Box::new(Expression::Literal(Literal::Utf8(pattern.to_owned()))),
        negated: false,
        case_insensitive: false,
        escape,
    };
    let matches = |text: &str, pattern: &str, escape| {
        let column = array(StringArray::from(vec![text]));
        let value = evaluate(&like(pattern, escape), vec![column]).unwrap();
        value == array(BooleanArray::from(vec![true]))
    };
    assert!(matches("100%", "100!%", Some('!')));
    assert!(!matches("1000", "100!%", Some('!')));
    assert!(matches("a!b", "a!!_", Some('!')));
    assert!(matches(r"a\b", r"a\b", Some('!')), "a backslash is a letter then");
    assert!(matches("a_b", r"a\_b", None));
    assert!(!matches("axb", r"a\_b", None));
}

#[test]
fn an_expression_that_makes_no_sense_is_refused() {
    let schema = Schema::new(vec![
        Field::new("a", DataType::Int32, true),
        Field::new("b", DataType::Utf8, true),
    ]);
    let unknown = Expression::Call {
        function: "no_such_function".to_owned(),
        arguments: vec![],
        returns: DataType::Int32,
    };
    for expression in [Expression::Column(2), binary(BinaryOperator::Add), unknown] {
        let compiled = compile(&expression, &schema, &functions());
        assert!(matches!(compiled, Err(EngineError::InvalidPlan(_))), "{expression:?}");
    }
}
