use std::collections::BTreeMap;

use super::*;

fn number(text: &str) -> Numeric {
    Numeric::parse(text).unwrap()
}

fn shown(result: Result<Numeric, RowError>) -> String {
    match result {
        Ok(value) => value.to_string(),
        Err(error) => error.sqlstate,
    }
}

#[test]
fn numbers_are_written_as_they_are_read() {
    for text in [
        "0",
        "0.00",
        "1",
        "-1.50",
        "1000000000",
        "0.000000001",
        "123456789012345678901234567890.5",
        "NaN",
        "Infinity",
        "-Infinity",
        "99999999999999999999999999999999999999",
    ] {
        let value = number(text);
        assert_eq!(value.to_string(), text);
        let decoded = Numeric::decode(&value.to_bytes()).unwrap();
        assert_eq!(decoded.to_string(), text);
    }
    assert_eq!(number(" -0.0 ").to_string(), "0.0");
    assert_eq!(number("1.5e3").to_string(), "1500");
    assert_eq!(number("1.5e-3").to_string(), "0.0015");
    assert_eq!(number("+.5").to_string(), "0.5");
    assert_eq!(number("-inf").to_string(), "-Infinity");
    for bad in ["", ".", "1e", "1 2", "0x1", "-nan", "1.2.3", "abc"] {
        assert_eq!(shown(Numeric::parse(bad)), "22P02", "{bad}");
    }
    for large in ["1e131072", "1e-16384", "1e99999999999"] {
        assert_eq!(shown(Numeric::parse(large)), "22003", "{large}");
    }
    assert_eq!(number("1e131071").to_string().len(), 131_072);
}

#[test]
fn bytes_compare_as_numbers() {
    let ordered = [
        "-Infinity",
        "-1e200",
        "-1e127",
        "-1e126",
        "-100",
        "-99.5",
        "-10",
        "-9.99",
        "-9.9",
        "-1.05",
        "-1",
        "-0.5",
        "-0.05",
        "-1e-126",
        "-1e-127",
        "-1e-200",
        "0",
        "1e-200",
        "1e-127",
        "1e-126",
        "0.001",
        "0.05",
        "0.5",
        "1",
        "1.05",
        "1.5",
        "9",
        "9.9",
        "9.99",
        "10",
        "99.5",
        "100",
        "101",
        "1e126",
        "1e127",
        "1e200",
        "Infinity",
        "NaN",
    ];
    for (a, left) in ordered.iter().enumerate() {
        for (b, right) in ordered.iter().enumerate() {
            let (left, right) = (number(left), number(right));
            assert_eq!(left.cmp(&right), a.cmp(&b), "{left} {right}");
            let (x, y) = (left.to_bytes(), right.to_bytes());
            assert_eq!(key(&x).cmp(key(&y)), a.cmp(&b), "{left} {right}");
        }
    }
    for (left, right) in [("1.0", "1.00"), ("0", "0.000"), ("100", "1e2"), ("-5.50", "-5.5")] {
        assert_eq!(key(&number(left).to_bytes()), key(&number(right).to_bytes()));
    }
}

#[test]
fn quotients_have_postgresql_s_digits() {
    let quotient = |left, right| shown(number(left).divide(&number(right)));
    assert_eq!(quotient("1.0", "3"), "0.33333333333333333333");
    assert_eq!(quotient("1", "3"), "0.33333333333333333333");
    assert_eq!(quotient("10", "3"), "3.3333333333333333");
    assert_eq!(quotient("5", "3"), "1.6666666666666667");
    assert_eq!(quotient("0.51", "3"), "0.17000000000000000000");
    assert_eq!(quotient("9223372036854775808", "2"), "4611686018427387904");
    assert_eq!(quotient("-1", "2"), "-0.50000000000000000000");
    assert_eq!(quotient("0", "7"), "0.00000000000000000000");
    assert_eq!(quotient("1", "0"), "22012");
}

#[test]
fn functions_have_postgresql_s_digits() {
    assert_eq!(shown(number("2").sqrt()), "1.414213562373095");
    assert_eq!(shown(number("1.0").exp()), "2.7182818284590452");
    assert_eq!(shown(number("2.0").ln()), "0.6931471805599453");
    assert_eq!(shown(number("100.0").log10()), "2.0000000000000000");
    assert_eq!(shown(number("64.0").log(&number("2.0"))), "6.0000000000000000");
    assert_eq!(shown(number("2.5").power(&number("3"))), "15.6250000000000000");
    assert_eq!(shown(number("2").power(&number("0.5"))), "1.4142135623730950");
    assert_eq!(shown(number("-8").power(&number("3"))), "-512.0000000000000000");
    assert_eq!(shown(number("-5.5").round(0)), "-6");
    assert_eq!(shown(number("1250").round(-2)), "1300");
    assert_eq!(shown(number("-7.5").modulo(&number("2"))), "-1.5");
    assert_eq!(shown(number("-0.5").ceil()), "0");
    assert_eq!(shown(number("-0.5").floor()), "-1");
}

#[test]
fn sums_forget_what_is_gone() {
    let mut sum: BTreeMap<Position, i128> = BTreeMap::new();
    let mut change = |text: &str, times: i128| {
        DigitSum::parts(&number(text), |position, value| {
            *sum.entry(position).or_default() += value * times;
        });
        shown(DigitSum::read(sum.iter().map(|(k, v)| (*k, *v)).filter(|(_, v)| *v != 0)))
    };
    assert_eq!(change("1.5", 1), "1.5");
    assert_eq!(change("-2.25", 1), "-0.75");
    assert_eq!(change("1e20", 3), "299999999999999999999.25");
    assert_eq!(change("1e20", -3), "-0.75");
    assert_eq!(change("0.000", 1), "-0.750");
    assert_eq!(change("NaN", 1), "NaN");
    assert_eq!(change("NaN", -1), "-0.750");
    assert_eq!(change("0.000", -1), "-0.75");
    assert_eq!(change("-2.25", -1), "1.5");
    assert_eq!(change("-1000000000.5", 2), "-1999999999.5");
    assert_eq!(change("1.5", -1), "-2000000001.0");
}
