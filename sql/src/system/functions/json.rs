//! `json_build_object`.

use datafusion::common::ScalarValue;

use crate::{Error, SqlState};

/// An object of keys and values in turn.
pub(super) fn build_object(arguments: &[ScalarValue]) -> Result<Option<ScalarValue>, Error> {
    if !arguments.len().is_multiple_of(2) {
        let message = "argument list must have even number of elements";
        return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message).with_hint(
            "The arguments of json_build_object() must consist of alternating keys and values.",
        ));
    }
    let pairs = arguments.chunks_exact(2).zip(1..).map(|(pair, number)| {
        if pair[0].is_null() {
            let message = format!("argument {} cannot be null", 2 * number - 1);
            return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
                .with_hint("Object keys should be text."));
        }
        let key = match &pair[0] {
            ScalarValue::Utf8(Some(key)) => key.clone(),
            other => value(other)?,
        };
        Ok(format!("{} : {}", quoted(&key), value(&pair[1])?))
    });
    let pairs = pairs.collect::<Result<Vec<_>, Error>>()?;
    Ok(Some(ScalarValue::Utf8(Some(format!("{{{}}}", pairs.join(", "))))))
}

fn value(value: &ScalarValue) -> Result<String, Error> {
    Ok(match value {
        null if null.is_null() => "null".to_owned(),
        ScalarValue::Boolean(Some(value)) => value.to_string(),
        ScalarValue::Int16(Some(value)) => value.to_string(),
        ScalarValue::Int32(Some(value)) => value.to_string(),
        ScalarValue::Int64(Some(value)) => value.to_string(),
        ScalarValue::Utf8(Some(text)) => quoted(text),
        other => {
            let what = format!("json_build_object of {}", other.data_type());
            return Err(Error::unsupported(what));
        }
    })
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
