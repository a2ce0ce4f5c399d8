//! TPC-H: the tables of its generator. Of twenty orders one comes later, like those of the first refresh
//! function, and one goes, like those of the second; and what a warehouse doesn't expect changes, too.

use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator,
    PartSuppGenerator, RegionGenerator, SupplierGenerator,
};

use super::{Table, Workload};

pub fn workload(scale: f64) -> Workload {
    let changes: [(&str, &str); 12] = [
        (
            "orders go",
            "begin; delete from lineitem where l_orderkey % 20 = 1; \
             delete from orders where o_orderkey % 20 = 1; commit",
        ),
        (
            "an order goes",
            "begin; delete from lineitem where l_orderkey = 3; \
             delete from orders where o_orderkey = 3; commit",
        ),
        (
            "items are others",
            "update lineitem set l_quantity = l_quantity + 1, l_discount = 0.10 - l_discount, \
             l_receiptdate = l_receiptdate - 20 where l_orderkey % 7 = 2",
        ),
        (
            "suppliers move",
            "update supplier set s_comment = 'Customer, some Complaints', \
             s_nationkey = (s_nationkey + 1) % 25 where s_suppkey % 5 = 2",
        ),
        (
            "parts become what is asked for",
            "update part set p_type = 'ECONOMY ANODIZED STEEL', p_size = 15, p_brand = 'Brand#23', \
             p_container = 'MED BOX', p_name = 'forest green' where p_partkey % 10 = 3",
        ),
        ("some supply goes", "delete from partsupp where ps_partkey % 10 = 4"),
        ("customers go", "delete from customer where c_custkey % 10 = 4"),
        (
            "orders move to later days",
            "update orders set o_orderdate = o_orderdate + 400, o_orderpriority = '1-URGENT' \
             where o_orderkey % 5 = 2",
        ),
        (
            "nations change their names",
            "update nation set n_name = case n_name \
             when 'FRANCE' then 'GERMANY' when 'GERMANY' then 'FRANCE' \
             when 'CANADA' then 'SAUDI ARABIA' when 'SAUDI ARABIA' then 'CANADA' else n_name end",
        ),
        ("no balance is negative", "update customer set c_acctbal = 0 where c_acctbal < 0"),
        ("all items go", "delete from lineitem"),
        (
            "all goes",
            "delete from orders; delete from customer; delete from part; delete from supplier",
        ),
    ];
    Workload {
        name: "tpch",
        tables: tables(scale),
        changes: changes.map(|(change, sql)| (change, sql.to_owned())).into(),
        indexes: "create index on lineitem (l_partkey, l_suppkey); create index on orders (o_custkey); \
                  create index on partsupp (ps_suppkey)",
    }
}

fn tables(scale: f64) -> Vec<Table> {
    let none = |_| false;
    let some = |key| key % 20 == 0;
    let row = |mut row: String| {
        assert_eq!(row.pop(), Some('|'), "each value has an end");
        row
    };
    macro_rules! table {
        ($name:literal, $generator:ident, $held_back:expr) => {{
            let rows = $generator::new(scale, 1, 1);
            let rows = rows.iter().map(|generated| row(generated.to_string()));
            Table::new($name, rows, $held_back)
        }};
    }
    vec![
        table!("region", RegionGenerator, none),
        table!("nation", NationGenerator, none),
        table!("part", PartGenerator, none),
        table!("supplier", SupplierGenerator, none),
        table!("partsupp", PartSuppGenerator, none),
        table!("customer", CustomerGenerator, none),
        table!("orders", OrderGenerator, some),
        table!("lineitem", LineItemGenerator, some),
    ]
}
