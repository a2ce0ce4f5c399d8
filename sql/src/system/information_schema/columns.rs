//! The columns of PostgreSQL 15's views, with the types that its domains are made of.

use crate::Type;

/// The columns of a view.
pub(super) fn find(name: &str) -> Option<Vec<(&'static str, Type)>> {
    let (_, columns) = VIEWS.iter().find(|(view, _)| *view == name)?;
    let columns = columns.split_whitespace().filter_map(|column| column.split_once(':'));
    let kind = |name| match name {
        "int4" => Type::Integer,
        "varchar" => Type::Varchar(None),
        "varchar(3)" => Type::Varchar(Some(3)),
        "timestamptz" => Type::Timestamptz,
        _ => Type::Name,
    };
    Some(columns.map(|(name, of)| (name, kind(of))).collect())
}

static VIEWS: &[(&str, &str)] = &[
    (
        "check_constraints",
        "constraint_catalog:name constraint_schema:name constraint_name:name \
         check_clause:varchar",
    ),
    (
        "columns",
        "table_catalog:name table_schema:name table_name:name column_name:name \
         ordinal_position:int4 column_default:varchar is_nullable:varchar(3) \
         data_type:varchar character_maximum_length:int4 character_octet_length:int4 \
         numeric_precision:int4 numeric_precision_radix:int4 numeric_scale:int4 \
         datetime_precision:int4 interval_type:varchar interval_precision:int4 \
         character_set_catalog:name character_set_schema:name character_set_name:name \
         collation_catalog:name collation_schema:name collation_name:name domain_catalog:name \
         domain_schema:name domain_name:name udt_catalog:name udt_schema:name udt_name:name \
         scope_catalog:name scope_schema:name scope_name:name maximum_cardinality:int4 \
         dtd_identifier:name is_self_referencing:varchar(3) is_identity:varchar(3) \
         identity_generation:varchar identity_start:varchar identity_increment:varchar \
         identity_maximum:varchar identity_minimum:varchar identity_cycle:varchar(3) \
         is_generated:varchar generation_expression:varchar is_updatable:varchar(3)",
    ),
    (
        "constraint_column_usage",
        "table_catalog:name table_schema:name table_name:name column_name:name \
         constraint_catalog:name constraint_schema:name constraint_name:name",
    ),
    (
        "key_column_usage",
        "constraint_catalog:name constraint_schema:name constraint_name:name \
         table_catalog:name table_schema:name table_name:name column_name:name \
         ordinal_position:int4 position_in_unique_constraint:int4",
    ),
    (
        "parameters",
        "specific_catalog:name specific_schema:name specific_name:name ordinal_position:int4 \
         parameter_mode:varchar is_result:varchar(3) as_locator:varchar(3) \
         parameter_name:name data_type:varchar character_maximum_length:int4 \
         character_octet_length:int4 character_set_catalog:name character_set_schema:name \
         character_set_name:name collation_catalog:name collation_schema:name \
         collation_name:name numeric_precision:int4 numeric_precision_radix:int4 \
         numeric_scale:int4 datetime_precision:int4 interval_type:varchar \
         interval_precision:int4 udt_catalog:name udt_schema:name udt_name:name \
         scope_catalog:name scope_schema:name scope_name:name maximum_cardinality:int4 \
         dtd_identifier:name parameter_default:varchar",
    ),
    (
        "referential_constraints",
        "constraint_catalog:name constraint_schema:name constraint_name:name \
         unique_constraint_catalog:name unique_constraint_schema:name \
         unique_constraint_name:name match_option:varchar update_rule:varchar \
         delete_rule:varchar",
    ),
    (
        "routines",
        "specific_catalog:name specific_schema:name specific_name:name routine_catalog:name \
         routine_schema:name routine_name:name routine_type:varchar module_catalog:name \
         module_schema:name module_name:name udt_catalog:name udt_schema:name udt_name:name \
         data_type:varchar character_maximum_length:int4 character_octet_length:int4 \
         character_set_catalog:name character_set_schema:name character_set_name:name \
         collation_catalog:name collation_schema:name collation_name:name \
         numeric_precision:int4 numeric_precision_radix:int4 numeric_scale:int4 \
         datetime_precision:int4 interval_type:varchar interval_precision:int4 \
         type_udt_catalog:name type_udt_schema:name type_udt_name:name scope_catalog:name \
         scope_schema:name scope_name:name maximum_cardinality:int4 dtd_identifier:name \
         routine_body:varchar routine_definition:varchar external_name:varchar \
         external_language:varchar parameter_style:varchar is_deterministic:varchar(3) \
         sql_data_access:varchar is_null_call:varchar(3) sql_path:varchar \
         schema_level_routine:varchar(3) max_dynamic_result_sets:int4 \
         is_user_defined_cast:varchar(3) is_implicitly_invocable:varchar(3) \
         security_type:varchar to_sql_specific_catalog:name to_sql_specific_schema:name \
         to_sql_specific_name:name as_locator:varchar(3) created:timestamptz \
         last_altered:timestamptz new_savepoint_level:varchar(3) is_udt_dependent:varchar(3) \
         result_cast_from_data_type:varchar result_cast_as_locator:varchar(3) \
         result_cast_char_max_length:int4 result_cast_char_octet_length:int4 \
         result_cast_char_set_catalog:name result_cast_char_set_schema:name \
         result_cast_char_set_name:name result_cast_collation_catalog:name \
         result_cast_collation_schema:name result_cast_collation_name:name \
         result_cast_numeric_precision:int4 result_cast_numeric_precision_radix:int4 \
         result_cast_numeric_scale:int4 result_cast_datetime_precision:int4 \
         result_cast_interval_type:varchar result_cast_interval_precision:int4 \
         result_cast_type_udt_catalog:name result_cast_type_udt_schema:name \
         result_cast_type_udt_name:name result_cast_scope_catalog:name \
         result_cast_scope_schema:name result_cast_scope_name:name \
         result_cast_maximum_cardinality:int4 result_cast_dtd_identifier:name",
    ),
    (
        "schemata",
        "catalog_name:name schema_name:name schema_owner:name \
         default_character_set_catalog:name default_character_set_schema:name \
         default_character_set_name:name sql_path:varchar",
    ),
    (
        "sequences",
        "sequence_catalog:name sequence_schema:name sequence_name:name data_type:varchar \
         numeric_precision:int4 numeric_precision_radix:int4 numeric_scale:int4 \
         start_value:varchar minimum_value:varchar maximum_value:varchar increment:varchar \
         cycle_option:varchar(3)",
    ),
    (
        "table_constraints",
        "constraint_catalog:name constraint_schema:name constraint_name:name \
         table_catalog:name table_schema:name table_name:name constraint_type:varchar \
         is_deferrable:varchar(3) initially_deferred:varchar(3) enforced:varchar(3) \
         nulls_distinct:varchar(3)",
    ),
    (
        "tables",
        "table_catalog:name table_schema:name table_name:name table_type:varchar \
         self_referencing_column_name:name reference_generation:varchar \
         user_defined_type_catalog:name user_defined_type_schema:name \
         user_defined_type_name:name is_insertable_into:varchar(3) is_typed:varchar(3) \
         commit_action:varchar",
    ),
    (
        "triggers",
        "trigger_catalog:name trigger_schema:name trigger_name:name \
         event_manipulation:varchar event_object_catalog:name event_object_schema:name \
         event_object_table:name action_order:int4 action_condition:varchar \
         action_statement:varchar action_orientation:varchar action_timing:varchar \
         action_reference_old_table:name action_reference_new_table:name \
         action_reference_old_row:name action_reference_new_row:name created:timestamptz",
    ),
    (
        "views",
        "table_catalog:name table_schema:name table_name:name view_definition:varchar \
         check_option:varchar is_updatable:varchar(3) is_insertable_into:varchar(3) \
         is_trigger_updatable:varchar(3) is_trigger_deletable:varchar(3) \
         is_trigger_insertable_into:varchar(3)",
    ),
];
