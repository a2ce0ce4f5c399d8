//! The table that a statement writes, as the catalog of one frame has it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, UInt64Array, new_null_array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Float32Type, Float64Type, SchemaRef};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use stillframe_protocol::RelationId;

use super::KeyEncoder;
use super::violation::not_null_violation;
use crate::functions::moments_rounded;
use crate::{Catalog, Column, Error, Relation, RelationKind, SqlState};

/// A table that is written. Its rows are batches of [`Target::schema`]: in the order in which
/// they are stored, the primary key first.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    catalog: Arc<Catalog>,
    oid: RelationId,
    id: RelationId,
    schema: SchemaRef,
    /// By place as stored, the place in the definition.
    order: Vec<usize>,
    key_columns: usize,
    /// One value of each column that has another than NULL where a row gives none, by place in the
    /// definition.
    defaults: BTreeMap<usize, ArrayRef>,
    /// The columns that get values of their own later, by place in the definition.
    later: BTreeSet<usize>,
}

impl Target {
    /// The target that a relation is, if it is a table.
    pub(crate) fn new(catalog: &Arc<Catalog>, relation: &Relation) -> Option<Self> {
        let RelationKind::Table { key } = &relation.kind else { return None };
        Some(Self {
            catalog: Arc::clone(catalog),
            oid: relation.id,
            id: relation.stored_id(),
            schema: relation.stored_schema(),
            order: relation.stored_order(),
            key_columns: key.len(),
            defaults: BTreeMap::new(),
            later: BTreeSet::new(),
        })
    }

    /// The target, of whose columns some have values where a row gives none.
    pub(crate) fn with_defaults(self, defaults: BTreeMap<usize, ArrayRef>) -> Self {
        Self { defaults, ..self }
    }

    /// The one value that a column has where a row gives none; `None` for NULL.
    pub(crate) fn default_of(&self, place: usize) -> Option<&ArrayRef> {
        self.defaults.get(&place)
    }

    /// The target, of whose columns some may be NULL for now.
    pub(crate) fn with_later(self, later: BTreeSet<usize>) -> Self {
        Self { later, ..self }
    }

    /// Whether a column has a value where a row gives none.
    pub(crate) fn has_value(&self, place: usize) -> bool {
        self.defaults.contains_key(&place) || self.later.contains(&place)
    }

    /// The number under which the engine has its rows.
    pub(crate) fn id(&self) -> RelationId {
        self.id
    }

    /// The catalog that it is part of.
    pub(crate) fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// The places as stored of columns, by their places in the definition.
    pub(crate) fn stored_places(&self, columns: &[usize]) -> Vec<usize> {
        let place = |column: &usize| self.order.iter().position(|place| place == column);
        columns.iter().filter_map(place).collect()
    }

    /// Its entry in the catalog.
    pub(crate) fn relation(&self) -> &Relation {
        &self.catalog.relations[&self.oid]
    }

    /// Its columns as stored.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// How many of its stored columns are the primary key; 0 for a bag.
    pub(crate) fn key_columns(&self) -> usize {
        self.key_columns
    }

    /// Whether it has a primary key.
    pub(crate) fn is_keyed(&self) -> bool {
        self.key_columns > 0
    }

    /// By place as stored, the place in the definition.
    pub(crate) fn order(&self) -> &[usize] {
        &self.order
    }

    /// Its columns in the order in which they are stored.
    pub(crate) fn stored_columns(&self) -> impl Iterator<Item = &Column> {
        let columns = &self.relation().columns;
        self.order.iter().map(move |place| &columns[*place])
    }

    /// The places in the definition of columns that are listed.
    ///
    /// # Errors
    ///
    /// 42703 if one doesn't exist, 42701 if one is listed twice.
    pub(crate) fn columns(&self, names: &[String]) -> Result<Vec<usize>, Error> {
        let mut places = vec![];
        for name in names {
            let place = self.column(name)?;
            if places.contains(&place) {
                let message = format!("column \"{name}\" specified more than once");
                return Err(Error::new(SqlState::DUPLICATE_COLUMN, message));
            }
            places.push(place);
        }
        Ok(places)
    }

    /// The place in the definition of a column.
    ///
    /// # Errors
    ///
    /// 42703 if it doesn't exist.
    pub(crate) fn column(&self, name: &str) -> Result<usize, Error> {
        let relation = self.relation();
        relation.columns.iter().position(|column| column.name == name).ok_or_else(|| {
            let message =
                format!("column \"{name}\" of relation \"{}\" does not exist", relation.name);
            Error::new(SqlState::UNDEFINED_COLUMN, message)
        })
    }

    /// Encodes what stands for a row when it is reserved: its primary key, or all of it.
    pub(crate) fn key_encoder(&self) -> Result<KeyEncoder, Error> {
        let columns = if self.is_keyed() { self.key_columns } else { self.order.len() };
        KeyEncoder::new(&self.schema, columns)
    }

    /// Values by place in the definition, which have the columns' types: a column without values
    /// has its default.
    pub(crate) fn filled(
        &self,
        values: Vec<Option<ArrayRef>>,
        rows: usize,
    ) -> Result<Vec<ArrayRef>, Error> {
        let columns = &self.relation().columns;
        let values = values.into_iter().zip(columns).enumerate();
        let values = values.map(|(place, (array, column))| match (array, self.default_of(place)) {
            (Some(array), _) => normalize(array, column),
            (None, Some(default)) => {
                let repeated = take(default, &UInt64Array::from(vec![0; rows]), None);
                let repeated = repeated.map_err(|error| Error::internal(error.to_string()))?;
                normalize(repeated, column)
            }
            (None, None) => Ok(new_null_array(&column.kind.arrow(), rows)),
        });
        values.collect()
    }

    /// Makes rows of values by place in the definition.
    ///
    /// # Errors
    ///
    /// 23502 for the first row with a NULL where none may be.
    pub(crate) fn checked(&self, values: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch, Error> {
        let columns = values.into_iter().zip(&self.relation().columns);
        let values = columns.map(|(array, column)| normalize(array, column));
        let values = values.collect::<Result<Vec<_>, _>>()?;
        self.check_not_null(&values)?;
        self.batch(self.order.iter().map(|place| Arc::clone(&values[*place])).collect(), rows)
    }

    /// Both.
    pub(crate) fn rows(
        &self,
        values: Vec<Option<ArrayRef>>,
        rows: usize,
    ) -> Result<RecordBatch, Error> {
        self.checked(self.filled(values, rows)?, rows)
    }

    /// A batch of columns as stored.
    pub(crate) fn batch(&self, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch, Error> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
            .map_err(|error| Error::internal(format!("rows do not fit their table: {error}")))
    }

    /// The first columns of the primary key.
    pub(super) fn keys_schema(&self, columns: usize) -> SchemaRef {
        let fields = self.schema.fields().iter().take(columns);
        let fields = fields.map(|field| field.as_ref().clone().with_nullable(true));
        Arc::new(arrow::datatypes::Schema::new(fields.collect::<Vec<_>>()))
    }

    /// The columns of rows as stored, in the order of the definition.
    pub(crate) fn in_definition(&self, rows: &RecordBatch) -> Vec<ArrayRef> {
        let mut columns: Vec<_> = self.order.iter().zip(rows.columns()).collect();
        columns.sort_unstable_by_key(|(place, _)| **place);
        columns.into_iter().map(|(_, column)| Arc::clone(column)).collect()
    }

    /// Only the key's columns of rows.
    pub(crate) fn keys_of(&self, rows: &RecordBatch) -> Result<RecordBatch, Error> {
        let key: Vec<_> = (0..self.key_columns).collect();
        rows.project(&key).map_err(|error| Error::internal(error.to_string()))
    }

    fn check_not_null(&self, values: &[ArrayRef]) -> Result<(), Error> {
        let columns = &self.relation().columns;
        let first_null = |array: &ArrayRef| {
            array.logical_nulls().and_then(|nulls| (0..nulls.len()).find(|row| nulls.is_null(*row)))
        };
        let nulls = columns.iter().zip(values).enumerate();
        let nulls = nulls.filter(|(place, _)| !self.later.contains(place)).map(|(_, pair)| pair);
        let nulls = nulls.filter(|(column, _)| column.not_null);
        let nulls = nulls.filter_map(|(column, array)| Some((first_null(array)?, column)));
        // Of the first row the first column.
        match nulls.min_by_key(|(row, _)| *row) {
            None => Ok(()),
            Some((row, column)) => {
                let row: Vec<_> = values.iter().map(|array| array.slice(row, 1)).collect();
                Err(not_null_violation(self, column, &row))
            }
        }
    }
}

/// The values as the column keeps them: equal ones are the same bytes (-0 becomes 0, and there is one
/// NaN), and moments have as many digits as it says.
fn normalize(array: ArrayRef, column: &Column) -> Result<ArrayRef, Error> {
    if let Some(digits) = column.second_digits {
        return moments_rounded(&array, digits);
    }
    Ok(match array.data_type() {
        DataType::Float32 => {
            Arc::new(array.as_primitive::<Float32Type>().unary::<_, Float32Type>(|value| {
                if value.is_nan() { f32::NAN } else { value + 0.0 }
            }))
        }
        DataType::Float64 => {
            Arc::new(array.as_primitive::<Float64Type>().unary::<_, Float64Type>(|value| {
                if value.is_nan() { f64::NAN } else { value + 0.0 }
            }))
        }
        _ => array,
    })
}
