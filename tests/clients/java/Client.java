// pgjdbc: prepared statements over the server-prepare threshold (text first, then binary), rows in
// portions, batches, generated keys, errors, metadata, COPY.
//
// Environment: PGHOST, PGPORT.

import java.io.StringReader;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.sql.*;
import java.time.*;
import java.util.*;
import org.postgresql.PGConnection;
import org.postgresql.copy.CopyManager;

public class Client {
    static String url() {
        return "jdbc:postgresql://" + System.getenv("PGHOST") + ":" + System.getenv("PGPORT") + "/stillframe?user=stillframe";
    }

    static void check(Object got, Object want, String what) {
        if (!Objects.equals(got, want)) throw new AssertionError(what + ": " + got + " instead of " + want);
    }

    static void run(Connection c, String sql) throws SQLException {
        try (Statement s = c.createStatement()) {
            s.execute(sql);
        }
    }

    static Object one(Connection c, String sql) throws SQLException {
        try (Statement s = c.createStatement(); ResultSet r = s.executeQuery(sql)) {
            if (!r.next()) throw new AssertionError("no row: " + sql);
            return r.getObject(1);
        }
    }

    static void refused(Connection c, String sql, String state) throws SQLException {
        try {
            run(c, sql);
        } catch (SQLException e) {
            check(e.getSQLState(), state, sql);
            return;
        }
        throw new AssertionError("no error: " + sql);
    }

    /** Every type, ten times by one statement: from the fifth on it is prepared, and then binary. */
    static void types(Connection c) throws Exception {
        run(c, "create table jd (id integer primary key, b boolean, s smallint, l bigint, r real, d double precision,"
            + " n numeric(20,5), u numeric, t text, v varchar(9), y bytea, da date, ti time, ts timestamp,"
            + " tz timestamptz, i interval, g uuid, j jsonb, a integer[], x text[])");
        UUID uuid = UUID.fromString("c0ffee00-1234-5678-9abc-def012345678");
        OffsetDateTime moment = OffsetDateTime.of(2024, 2, 29, 12, 30, 0, 5000, ZoneOffset.UTC);
        LocalDateTime local = LocalDateTime.of(1999, 12, 31, 23, 59, 59, 999999000);
        try (PreparedStatement p = c.prepareStatement("insert into jd values (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?::interval,?,?::jsonb,?,?)")) {
            for (int n = 0; n < 10; n++) {
                boolean isNull = n == 3 || n == 8;
                p.setInt(1, n);
                p.setObject(2, isNull ? null : n % 2 == 0, Types.BOOLEAN);
                p.setObject(3, isNull ? null : (short) -n, Types.SMALLINT);
                p.setObject(4, isNull ? null : Long.MAX_VALUE - n, Types.BIGINT);
                p.setObject(5, isNull ? null : n + 0.5f, Types.REAL);
                p.setObject(6, isNull ? null : n * 1e100, Types.DOUBLE);
                p.setBigDecimal(7, isNull ? null : new BigDecimal("-12345.67890").add(new BigDecimal(n)));
                p.setBigDecimal(8, isNull ? null : new BigDecimal("1e30").add(new BigDecimal("0.0000001")));
                p.setString(9, isNull ? null : "añ🎉" + n);
                p.setString(10, isNull ? null : "v" + n);
                p.setBytes(11, isNull ? null : new byte[] {0, (byte) n, (byte) 0xff});
                p.setObject(12, isNull ? null : LocalDate.of(2024, 2, 29));
                p.setObject(13, isNull ? null : LocalTime.of(23, 59, 59, 1000));
                p.setObject(14, isNull ? null : local);
                p.setObject(15, isNull ? null : moment);
                p.setString(16, isNull ? null : "1 mon 2 days 03:04:05.000006");
                p.setObject(17, isNull ? null : uuid);
                p.setString(18, isNull ? null : "{\"a\": [1, null]}");
                p.setArray(19, isNull ? null : c.createArrayOf("int4", new Integer[] {n, null, -1}));
                p.setArray(20, isNull ? null : c.createArrayOf("text", new String[] {"q\"\\{},", null, ""}));
                check(p.executeUpdate(), 1, "rows inserted");
            }
        }
        try (PreparedStatement p = c.prepareStatement("select * from jd where id = ?")) {
            for (int n = 0; n < 10; n++) {
                p.setInt(1, n);
                try (ResultSet r = p.executeQuery()) {
                    check(r.next(), true, "a row of " + n);
                    if (n == 3 || n == 8) {
                        for (int k = 2; k <= 20; k++) check(r.getObject(k), null, "column " + k);
                        continue;
                    }
                    check(r.getBoolean(2), n % 2 == 0, "boolean");
                    check(r.getShort(3), (short) -n, "smallint");
                    check(r.getLong(4), Long.MAX_VALUE - n, "bigint");
                    check(r.getFloat(5), n + 0.5f, "real");
                    check(r.getDouble(6), n * 1e100, "double precision");
                    check(r.getBigDecimal(7), new BigDecimal("-12345.67890").add(new BigDecimal(n)), "numeric(20,5)");
                    check(r.getBigDecimal(8), new BigDecimal("1e30").add(new BigDecimal("0.0000001")), "numeric");
                    check(r.getString(9), "añ🎉" + n, "text");
                    check(r.getString(10), "v" + n, "varchar");
                    check(Arrays.toString(r.getBytes(11)), Arrays.toString(new byte[] {0, (byte) n, (byte) 0xff}), "bytea");
                    check(r.getObject(12, LocalDate.class), LocalDate.of(2024, 2, 29), "date");
                    check(r.getObject(13, LocalTime.class), LocalTime.of(23, 59, 59, 1000), "time");
                    check(r.getObject(14, LocalDateTime.class), local, "timestamp");
                    check(r.getObject(15, OffsetDateTime.class).toInstant(), moment.toInstant(), "timestamptz");
                    org.postgresql.util.PGInterval i = (org.postgresql.util.PGInterval) r.getObject(16);
                    check(List.of(i.getMonths(), i.getDays(), i.getHours(), i.getMicroSeconds()), List.of(1, 2, 3, 6), "interval");
                    check(r.getObject(17), uuid, "uuid");
                    check(r.getString(18), "{\"a\": [1, null]}", "jsonb");
                    check(Arrays.asList((Object[]) r.getArray(19).getArray()), Arrays.asList(n, null, -1), "integer[]");
                    check(Arrays.asList((Object[]) r.getArray(20).getArray()), Arrays.asList("q\"\\{},", null, ""), "text[]");
                }
            }
        }
        check(((Number) one(c, "select count(*) from pg_prepared_statements")).intValue() >= 2, true, "statements are prepared on the server");
        run(c, "drop table jd");
    }

    /** Ten executions of one statement whose parameters change, in a mix with others. */
    static void executions(Connection c) throws SQLException {
        run(c, "create table ex (k integer primary key, n bigint)");
        try (PreparedStatement put = c.prepareStatement("insert into ex values (?, ?)");
             PreparedStatement sum = c.prepareStatement("select sum(n), max(k), count(*) from ex where k >= ?")) {
            long total = 0;
            for (int n = 0; n < 10; n++) {
                put.setInt(1, n);
                put.setLong(2, n * 10L);
                put.executeUpdate();
                total += n * 10L;
                sum.setInt(1, 0);
                try (ResultSet r = sum.executeQuery()) {
                    r.next();
                    check(r.getLong(1), total, "a sum");
                    check(r.getInt(2), n, "a maximum");
                    check(r.getInt(3), n + 1, "a count");
                }
            }
        }
        try (PreparedStatement batch = c.prepareStatement("insert into ex values (?, ?)")) {
            for (int n = 100; n < 600; n++) {
                batch.setInt(1, n);
                batch.setLong(2, n);
                batch.addBatch();
            }
            check(Arrays.stream(batch.executeBatch()).allMatch(n -> n == 1 || n == Statement.SUCCESS_NO_INFO), true, "a batch");
        }
        check(one(c, "select count(*) from ex"), 510L, "rows");
        try (PreparedStatement batch = c.prepareStatement("insert into ex values (?, 1)")) {
            for (int n : new int[] {1000, 1001, 1, 1002}) {
                batch.setInt(1, n);
                batch.addBatch();
            }
            batch.executeBatch();
            throw new AssertionError("a key twice");
        } catch (BatchUpdateException e) {
            check(e.getSQLState(), "23505", "a key twice");
        }
        try (PreparedStatement p = c.prepareStatement("insert into ex values (?, ?)", Statement.RETURN_GENERATED_KEYS)) {
            p.setInt(1, 5000);
            p.setNull(2, Types.BIGINT);
            p.executeUpdate();
            ResultSet keys = p.getGeneratedKeys();
            keys.next();
            check(keys.getInt("k"), 5000, "a key that was made");
        }
        run(c, "drop table ex");
    }

    /** Rows in portions, in a transaction; other statements between them; a write does not disturb them. */
    static void portions(Connection c) throws SQLException {
        run(c, "create table po (id integer primary key, t text)");
        run(c, "insert into po select g, 'row ' || g from generate_series(1, 10000) g");
        c.setAutoCommit(false);
        try (PreparedStatement p = c.prepareStatement("select id, t from po where id > ? order by id")) {
            for (int round = 0; round < 7; round++) {
                p.setFetchSize(100 + round);
                p.setInt(1, 0);
                try (ResultSet r = p.executeQuery()) {
                    int n = 0;
                    while (r.next()) {
                        n++;
                        check(r.getInt(1), n, "a row's number");
                        if (n == 5000) {
                            run(c, "update po set t = 'changed' where id = 9999");
                            check(one(c, "select t from po where id = 9999"), "changed", "a write of the same transaction");
                        }
                        if (n == 9999) check(r.getString(2), "row 9999", "a row as it was when the query began");
                    }
                    check(n, 10000, "rows");
                }
                c.rollback();
            }
            p.setMaxRows(5);
            p.setInt(1, 10);
            try (ResultSet r = p.executeQuery()) {
                int n = 0;
                while (r.next()) n++;
                check(n, 5, "rows, of five at most");
            }
        }
        c.commit();
        c.setAutoCommit(true);
        run(c, "drop table po");
    }

    static void transactions(Connection c) throws SQLException {
        run(c, "create table tr (id integer primary key, n integer not null)");
        refused(c, "insert into tr values (1, null)", "23502");
        refused(c, "select 1/0", "22012");
        refused(c, "select * from nobody", "42P01");
        refused(c, "selec", "42601");
        c.setAutoCommit(false);
        run(c, "insert into tr values (1, 1)");
        Savepoint here = c.setSavepoint("here");
        run(c, "insert into tr values (2, 2)");
        refused(c, "insert into tr values (2, 2)", "23505");
        refused(c, "select 1", "25P02");
        c.rollback(here);
        check(one(c, "select count(*) from tr"), 1L, "rows after going back");
        c.commit();
        c.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
        check(one(c, "show transaction_isolation"), "repeatable read", "the level");
        c.rollback();
        c.setReadOnly(true);
        refused(c, "delete from tr", "25006");
        c.rollback();
        c.setReadOnly(false);
        c.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
        c.setAutoCommit(true);
        try (Statement s = c.createStatement()) {
            s.setQueryTimeout(1);
            s.executeQuery("select count(*) from generate_series(1, 9000000) a, generate_series(1, 9000000) b");
            throw new AssertionError("an endless query ends");
        } catch (SQLException e) {
            check(e.getSQLState(), "57014", "a statement that is cancelled");
        }
        run(c, "drop table tr");
    }

    static List<String> column(ResultSet r, String... names) throws SQLException {
        List<String> rows = new ArrayList<>();
        while (r.next()) {
            StringJoiner row = new StringJoiner(" ");
            for (String name : names) row.add(String.valueOf(r.getString(name)));
            rows.add(row.toString());
        }
        return rows;
    }

    static void metadata(Connection c) throws SQLException {
        run(c, "create table mp (id integer primary key, name varchar(30) not null unique, price numeric(8,2) default 1)");
        run(c, "create table mc (a integer, b bigint, mp integer references mp on delete cascade, primary key (b, a))");
        run(c, "create index mc_mp on mc (mp)");
        run(c, "create view mv as select id from mp");
        run(c, "create materialized view mm as select name, price from mp");
        run(c, "comment on table mp is 'about mp'");
        DatabaseMetaData m = c.getMetaData();
        check(m.getDatabaseProductName(), "PostgreSQL", "the product");
        check(m.getDatabaseMajorVersion(), 15, "the version");
        check(column(m.getTables(null, "public", "m_", null), "TABLE_NAME", "TABLE_TYPE", "REMARKS").stream().sorted().toList(),
            List.of("mc TABLE null", "mm MATERIALIZED VIEW null", "mp TABLE about mp", "mv VIEW null"), "tables");
        check(column(m.getTables(null, null, "mp", new String[] {"TABLE"}), "TABLE_SCHEM"), List.of("public"), "schemas of tables");
        check(column(m.getColumns(null, "public", "mp", null), "COLUMN_NAME", "TYPE_NAME", "COLUMN_SIZE", "DECIMAL_DIGITS", "IS_NULLABLE", "COLUMN_DEF", "ORDINAL_POSITION"),
            List.of("id int4 10 0 NO null 1", "name varchar 30 0 NO null 2", "price numeric 8 2 YES 1 3"), "columns");
        check(column(m.getPrimaryKeys(null, "public", "mc"), "COLUMN_NAME", "KEY_SEQ", "PK_NAME"), List.of("b 1 mc_pkey", "a 2 mc_pkey"), "a primary key");
        check(column(m.getImportedKeys(null, "public", "mc"), "PKTABLE_NAME", "PKCOLUMN_NAME", "FKCOLUMN_NAME", "DELETE_RULE"), List.of("mp id mp 0"), "keys to others");
        check(column(m.getExportedKeys(null, "public", "mp"), "FKTABLE_NAME", "FK_NAME"), List.of("mc mc_mp_fkey"), "keys of others");
        check(column(m.getCrossReference(null, "public", "mp", null, "public", "mc"), "FKTABLE_NAME"), List.of("mc"), "keys between");
        check(column(m.getIndexInfo(null, "public", "mp", false, true), "INDEX_NAME", "NON_UNIQUE", "COLUMN_NAME"),
            List.of("mp_name_key f name", "mp_pkey f id"), "indexes");
        check(column(m.getSchemas(), "TABLE_SCHEM").containsAll(List.of("public", "pg_catalog", "information_schema")), true, "schemas");
        check(column(m.getCatalogs(), "TABLE_CAT").contains("stillframe"), true, "databases");
        check(column(m.getTableTypes(), "TABLE_TYPE").contains("MATERIALIZED VIEW"), true, "kinds of tables");
        check(column(m.getTypeInfo(), "TYPE_NAME").containsAll(List.of("int4", "text", "numeric", "jsonb")), true, "types");
        check(column(m.getBestRowIdentifier(null, "public", "mp", DatabaseMetaData.bestRowSession, false), "COLUMN_NAME"), List.of("id"), "what tells rows apart");
        check(column(m.getColumnPrivileges(null, "public", "mp", "id"), "COLUMN_NAME").isEmpty(), false, "what may be done with columns");
        check(column(m.getTablePrivileges(null, "public", "mp"), "PRIVILEGE").contains("SELECT"), true, "what may be done with tables");
        m.getVersionColumns(null, "public", "mp").close();
        m.getProcedures(null, null, null).close();
        m.getProcedureColumns(null, null, null, null).close();
        m.getFunctions(null, "public", "%").close();
        m.getFunctionColumns(null, "public", "%", null).close();
        m.getUDTs(null, "public", "%", null).close();
        m.getClientInfoProperties().close();
        m.getSQLKeywords();
        try (PreparedStatement p = c.prepareStatement("select p.id, p.name, p.price * 2 as twice from mp p where p.id = ? and p.price > ?")) {
            ResultSetMetaData r = p.getMetaData();
            check(r.getColumnCount(), 3, "columns of a statement");
            check(r.getColumnTypeName(2) + " " + r.getPrecision(2) + " " + r.getTableName(2) + " " + r.getColumnLabel(3), "varchar 30 mp twice", "a column of a statement");
            check(r.isNullable(1), ResultSetMetaData.columnNoNulls, "whether a column may be null");
            check(p.getParameterMetaData().getParameterTypeName(1) + " " + p.getParameterMetaData().getParameterTypeName(2), "int4 numeric", "parameters");
        }
        run(c, "drop table mc; drop view mv; drop table mp cascade");
    }

    static void updates(Connection c) throws SQLException {
        run(c, "create table up (id integer primary key, t text)");
        run(c, "insert into up values (1, 'a'), (2, 'b')");
        try (Statement s = c.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE);
             ResultSet r = s.executeQuery("select id, t from up order by id")) {
            r.last();
            check(r.getString(2), "b", "the last row");
            r.updateString(2, "changed");
            r.updateRow();
            r.moveToInsertRow();
            r.updateInt(1, 3);
            r.updateString(2, "new");
            r.insertRow();
            r.first();
            r.deleteRow();
        }
        check(one(c, "select string_agg(id || t, ',' order by id) from up"), "2changed,3new", "rows that were changed through a result");
        run(c, "drop table up");
    }

    static void copies(Connection c) throws Exception {
        run(c, "create table co (id integer primary key, t text)");
        CopyManager copy = c.unwrap(PGConnection.class).getCopyAPI();
        StringBuilder data = new StringBuilder();
        for (int n = 0; n < 5000; n++) data.append(n).append(",\"a \"\"b\"\"\n").append(n).append("\"\n");
        check(copy.copyIn("copy co from stdin (format csv)", new StringReader(data.toString())), 5000L, "rows copied in");
        StringWriter out = new StringWriter();
        check(copy.copyOut("copy (select * from co order by id) to stdout (format csv)", out), 5000L, "rows copied out");
        check(out.toString(), data.toString(), "what comes back");
        try {
            copy.copyIn("copy co from stdin", new StringReader("1\tx\n"));
            throw new AssertionError("a key twice");
        } catch (SQLException e) {
            check(e.getSQLState(), "23505", "a key twice in a COPY");
        }
        run(c, "drop table co");
    }

    public static void main(String[] arguments) throws Exception {
        for (String options : new String[] {"", "&prepareThreshold=1", "&binaryTransfer=false", "&preferQueryMode=simple", "&prepareThreshold=0", "&reWriteBatchedInserts=true", "&autosave=always"}) {
            try (Connection c = DriverManager.getConnection(url() + options)) {
                check(c.isValid(5), true, "the connection");
                if (!options.contains("simple") && !options.contains("prepareThreshold=0")) {
                    types(c);
                }
                executions(c);
                if (options.isEmpty()) {
                    portions(c);
                    metadata(c);
                    updates(c);
                    copies(c);
                }
                if (!options.contains("autosave")) {
                    transactions(c);
                }
            } catch (Throwable failure) {
                System.err.println("with " + url() + options);
                throw failure;
            }
        }
    }
}
