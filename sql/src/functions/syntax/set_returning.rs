//! Set-returning functions, as functions that return arrays: `unnest` makes the rows.

/// A column that such a function returns.
pub(crate) struct SetColumn {
    /// Its name; without one it is that of the alias.
    pub(crate) name: Option<&'static str>,
    /// The function that returns its values as an array.
    pub(crate) list: String,
}

/// The columns of a function that returns rows; `None` for any other.
pub(crate) fn columns(function: &str) -> Option<Vec<SetColumn>> {
    let of_list = |name| vec![SetColumn { name, list: format!("{function} list") }];
    let of_array = |list: &str| vec![SetColumn { name: None, list: list.to_owned() }];
    Some(match function {
        "generate_series"
        | "json_object_keys"
        | "jsonb_object_keys"
        | "regexp_matches"
        | "regexp_split_to_table" => of_list(None),
        "json_array_elements"
        | "json_array_elements_text"
        | "jsonb_array_elements"
        | "jsonb_array_elements_text" => of_list(Some("value")),
        "json_each" | "json_each_text" | "jsonb_each" | "jsonb_each_text" => {
            let keys = format!("{} list", function.trim_end_matches("_text"));
            let values = format!("{function} values");
            let column = |name, list| SetColumn { name: Some(name), list };
            vec![column("key", keys), column("value", values)]
        }
        "generate_subscripts" => of_array("generate_subscripts"),
        "string_to_table" => of_array("string_to_array"),
        _ => return None,
    })
}
