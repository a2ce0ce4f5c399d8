//! Tables as plain lists of rows, and random changes of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::ScalarValue;
use stillframe_protocol::{RelationId, Table};

use super::cluster::Bag;
use super::plans::schema;
use super::reference::{Record, batch};
use crate::Codec;

/// A generator of numbers, the same in every run (xorshift64*; Vigna, 2016).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % limit
    }

    fn one_in(&mut self, chance: u64) -> bool {
        self.below(chance) == 0
    }
}

/// A table whose primary key is `id`: (id, cust, amount, price, cost, status).
pub(super) const ORDERS: RelationId = RelationId(10);
/// A bag: (cust, name, region).
pub(super) const CUSTOMERS: RelationId = RelationId(11);
/// A table whose primary key is (name, region): (name, region, factor).
pub(super) const RATES: RelationId = RelationId(12);

pub(super) fn orders() -> SchemaRef {
    schema(&[
        DataType::Int64,
        DataType::Int32,
        DataType::Int32,
        DataType::Float64,
        DataType::Decimal128(10, 2),
        DataType::Utf8,
    ])
}

pub(super) fn customers() -> SchemaRef {
    schema(&[DataType::Int32, DataType::Utf8, DataType::Int16])
}

pub(super) fn rates() -> SchemaRef {
    schema(&[DataType::Utf8, DataType::Int16, DataType::Decimal128(30, 4)])
}

pub(super) fn tables() -> Vec<Table> {
    vec![
        Table { id: ORDERS, schema: orders(), key_columns: 1 },
        Table { id: CUSTOMERS, schema: customers(), key_columns: 0 },
        Table { id: RATES, schema: rates(), key_columns: 2 },
    ]
}

/// The rows of all tables.
pub(super) struct Tables {
    orders: BTreeMap<i64, Record>,
    customers: Vec<Record>,
    rates: BTreeMap<(String, i16), Record>,
    /// What has changed since the last [`Tables::take_changes`].
    changes: Vec<(RelationId, Record, i64)>,
}

impl Tables {
    pub(super) fn new() -> Self {
        Self { orders: BTreeMap::new(), customers: vec![], rates: BTreeMap::new(), changes: vec![] }
    }

    pub(super) fn rows(&self, table: RelationId) -> Vec<Record> {
        match table {
            ORDERS => self.orders.values().cloned().collect(),
            CUSTOMERS => self.customers.clone(),
            RATES => self.rates.values().cloned().collect(),
            other => panic!("no table {other}"),
        }
    }

    /// Inserts, updates and deletes some rows.
    pub(super) fn change(&mut self, random: &mut Random) {
        for _ in 0..random.below(30) {
            let id = random.below(60) as i64;
            let old = if random.one_in(3) {
                self.orders.remove(&id)
            } else {
                let row = random_order(id, random);
                self.changes.push((ORDERS, row.clone(), 1));
                self.orders.insert(id, row)
            };
            self.changes.extend(old.map(|row| (ORDERS, row, -1)));
        }
        for _ in 0..random.below(8) {
            if random.one_in(3) && !self.customers.is_empty() {
                let place = random.below(self.customers.len() as u64) as usize;
                let row = self.customers.swap_remove(place);
                self.changes.push((CUSTOMERS, row, -1));
            } else {
                let row = random_customer(random);
                self.changes.push((CUSTOMERS, row.clone(), 1));
                self.customers.push(row);
            }
        }
        for _ in 0..random.below(4) {
            let key = (format!("name {}", random.below(3)), random.below(3) as i16);
            let old = if random.one_in(3) {
                self.rates.remove(&key)
            } else {
                let factor = random.below(1_000_000_000) as i128 * 10i128.pow(20);
                let row = vec![
                    ScalarValue::Utf8(Some(key.0.clone())),
                    ScalarValue::Int16(Some(key.1)),
                    ScalarValue::Decimal128(Some(factor - 10i128.pow(28)), 30, 4),
                ];
                self.changes.push((RATES, row.clone(), 1));
                self.rates.insert(key, row)
            };
            self.changes.extend(old.map(|row| (RATES, row, -1)));
        }
    }

    pub(super) fn insert(&mut self, table: RelationId, row: Record) {
        self.changes.push((table, row.clone(), 1));
        match table {
            ORDERS => {
                let ScalarValue::Int64(Some(id)) = row[0] else { panic!("an order has an id") };
                assert!(self.orders.insert(id, row).is_none());
            }
            CUSTOMERS => self.customers.push(row),
            other => panic!("no rows for {other}"),
        }
    }

    /// Deletes a row of a customer.
    pub(super) fn delete_customer(&mut self, number: i32) {
        let is_it = |row: &Record| row[0] == ScalarValue::Int32(Some(number));
        let place = self.customers.iter().position(is_it).expect("the customer is there");
        let row = self.customers.swap_remove(place);
        self.changes.push((CUSTOMERS, row, -1));
    }

    pub(super) fn delete_order(&mut self, id: i64) {
        let row = self.orders.remove(&id).expect("the order is there");
        self.changes.push((ORDERS, row, -1));
    }

    /// Deletes all rows of all tables.
    pub(super) fn clear(&mut self) {
        for table in [ORDERS, CUSTOMERS, RATES] {
            self.changes.extend(self.rows(table).into_iter().map(|row| (table, row, -1)));
        }
        self.orders.clear();
        self.customers.clear();
        self.rates.clear();
    }

    pub(super) fn take_changes(&mut self) -> Vec<(RelationId, Bag)> {
        encode(std::mem::take(&mut self.changes))
    }
}

fn encode(changes: Vec<(RelationId, Record, i64)>) -> Vec<(RelationId, Bag)> {
    let mut encoded = vec![];
    for table in tables() {
        let codec = Codec::new(Arc::clone(&table.schema)).unwrap();
        let mut bag = Bag::new();
        for (_, row, weight) in changes.iter().filter(|(id, ..)| *id == table.id) {
            let rows = codec.encode_batch(&batch(&table.schema, std::slice::from_ref(row)));
            *bag.entry(rows.unwrap().remove(0)).or_default() += weight;
        }
        bag.retain(|_, weight| *weight != 0);
        encoded.push((table.id, bag));
    }
    encoded
}

pub(super) fn order(
    id: i64,
    customer: Option<i32>,
    amount: Option<i32>,
    price: Option<f64>,
    status: Option<&str>,
) -> Record {
    vec![
        ScalarValue::Int64(Some(id)),
        ScalarValue::Int32(customer),
        ScalarValue::Int32(amount),
        ScalarValue::Float64(price),
        ScalarValue::Decimal128(None, 10, 2),
        ScalarValue::Utf8(status.map(str::to_owned)),
    ]
}

pub(super) fn customer(customer: Option<i32>, name: &str, region: i16) -> Record {
    vec![
        ScalarValue::Int32(customer),
        ScalarValue::Utf8(Some(name.to_owned())),
        ScalarValue::Int16(Some(region)),
    ]
}

fn random_order(id: i64, random: &mut Random) -> Record {
    let statuses =
        ["open", "closed", "", "a status that is far longer than the inline part of any row"];
    let float = match random.below(20) {
        0 => f64::NAN,
        1 => f64::INFINITY,
        2 => -0.0,
        // Multiples of an eighth add up without rounding.
        _ => random.below(10_000) as f64 / 8.0 - 300.0,
    };
    let optional = |random: &mut Random, value| if random.one_in(8) { None } else { Some(value) };
    let customer = random.below(12) as i32;
    let amount = random.below(200) as i32 - 100;
    let cost = i128::from(random.below(100_000)) - 20_000;
    let status = statuses[random.below(4) as usize].to_owned();
    vec![
        ScalarValue::Int64(Some(id)),
        ScalarValue::Int32(optional(random, 0).map(|_| customer)),
        ScalarValue::Int32(optional(random, 0).map(|_| amount)),
        ScalarValue::Float64(optional(random, 0).map(|_| float)),
        ScalarValue::Decimal128(optional(random, 0).map(|_| cost), 10, 2),
        ScalarValue::Utf8(optional(random, 0).map(|_| status)),
    ]
}

fn random_customer(random: &mut Random) -> Record {
    let number = random.below(12) as i32;
    let known = if random.one_in(10) { None } else { Some(number) };
    customer(known, &format!("name {}", random.below(3)), (number % 4) as i16)
}
