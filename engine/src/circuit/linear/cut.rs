//! New rows out of the fields of old ones.

use std::ops::Range;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};

use super::Chunk;
use crate::EngineError;
use crate::row::{Codec, FieldOffsets, Row};

/// Cuts stored fields out of a chunk's rows, encodes computed registers, and puts both together.
pub(crate) struct Cutter {
    stored: Arc<Codec>,
    /// How many stored fields must be found.
    walked: usize,
    computed: Option<Computed>,
    /// By list of registers, the parts that make a row of it.
    lists: Vec<Vec<Part>>,
}

struct Computed {
    registers: Vec<usize>,
    codec: Codec,
}

/// Some neighbouring fields.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Stored(Range<usize>),
    Computed(Range<usize>),
}

impl Cutter {
    /// A cutter for rows that consist of each of some lists of registers; `types` are those of all
    /// registers, the stored fields first.
    pub(crate) fn new(
        stored: &Arc<Codec>,
        types: &[DataType],
        lists: &[&[usize]],
    ) -> Result<Self, EngineError> {
        let fields = stored.schema().fields().len();
        let mut registers: Vec<usize> =
            lists.iter().flat_map(|list| list.iter()).copied().filter(|r| *r >= fields).collect();
        registers.sort_unstable();
        registers.dedup();
        let part = |register: usize| {
            if register < fields {
                Part::Stored(register..register + 1)
            } else {
                let place = registers.binary_search(&register).expect("all were collected");
                Part::Computed(place..place + 1)
            }
        };
        let lists: Vec<Vec<Part>> = lists
            .iter()
            .map(|list| {
                let mut parts = vec![];
                list.iter().for_each(|register| push(&mut parts, part(*register)));
                parts
            })
            .collect();
        let stored_end = |part: &Part| match part {
            Part::Stored(fields) => fields.end,
            Part::Computed(_) => 0,
        };
        let walked = lists.iter().flatten().map(stored_end).max().unwrap_or(0);
        let computed = if registers.is_empty() {
            None
        } else {
            let field = |register: &usize| {
                Field::new(format!("r{register}"), types[*register].clone(), true)
            };
            let schema = Schema::new(registers.iter().map(field).collect::<Vec<_>>());
            Some(Computed { codec: Codec::new(Arc::new(schema))?, registers })
        };
        Ok(Self { stored: Arc::clone(stored), walked, computed, lists })
    }

    /// Calls `visit` with the fields of each row of the chunk and its number.
    pub(crate) fn for_each(&self, chunk: &Chunk<'_>, mut visit: impl FnMut(usize, &Fields<'_>)) {
        let encoded = self.computed.as_ref().map(|computed| {
            let columns: Vec<_> = computed
                .registers
                .iter()
                .map(|register| Arc::clone(chunk.computed(*register)))
                .collect();
            let rows = computed.codec.encode_contiguous(&columns);
            (computed, rows.expect("computed values have the types of their registers"))
        });
        let mut offsets = FieldOffsets::default();
        let mut computed_offsets = FieldOffsets::default();
        for (number, row) in chunk.rows().iter().enumerate() {
            self.stored.walk_to(row, self.walked, &mut offsets);
            let encoded_row = encoded.as_ref().map(|(computed, rows)| {
                let encoded = rows.row(number).data();
                computed.codec.walk(encoded, &mut computed_offsets);
                encoded
            });
            let fields = Fields {
                lists: &self.lists,
                stored: row,
                stored_offsets: &offsets,
                computed: encoded_row.unwrap_or_default(),
                computed_offsets: &computed_offsets,
            };
            visit(number, &fields);
        }
    }
}

/// Adds a part, as one with the last if they are neighbours.
fn push(parts: &mut Vec<Part>, part: Part) {
    match (parts.last_mut(), &part) {
        (Some(Part::Stored(last)), Part::Stored(next))
        | (Some(Part::Computed(last)), Part::Computed(next))
            if last.end == next.start =>
        {
            last.end = next.end;
        }
        _ => parts.push(part),
    }
}

/// The fields of one row.
pub(crate) struct Fields<'a> {
    lists: &'a [Vec<Part>],
    stored: &'a [u8],
    stored_offsets: &'a FieldOffsets,
    computed: &'a [u8],
    computed_offsets: &'a FieldOffsets,
}

impl Fields<'_> {
    /// The row that a list of registers makes.
    #[inline]
    pub(crate) fn row(&self, list: usize) -> Row {
        match &self.lists[list][..] {
            [part] => Row::new(self.part(part)),
            parts => Row::concatenate(parts.iter().map(|part| self.part(part))),
        }
    }

    /// The encoded field of a list that has one register.
    #[inline]
    pub(crate) fn field(&self, list: usize) -> &[u8] {
        self.part(&self.lists[list][0])
    }

    #[inline]
    fn part(&self, part: &Part) -> &[u8] {
        match part {
            Part::Stored(fields) => self.stored_offsets.fields(self.stored, fields),
            Part::Computed(fields) => self.computed_offsets.fields(self.computed, fields),
        }
    }
}
