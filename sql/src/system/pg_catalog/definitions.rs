//! The columns of PostgreSQL 15's catalogs, as far as clients ask for them.

use std::sync::LazyLock;

use crate::Type;

/// A catalog.
pub(super) struct CatalogTable {
    pub(super) name: &'static str,
    /// PostgreSQL's.
    pub(super) oid: u32,
    pub(super) columns: Vec<(&'static str, Type)>,
}

/// PostgreSQL's views have OIDs from here on.
const FIRST_VIEW_OID: u32 = 12_000;

impl CatalogTable {
    pub(super) fn is_view(&self) -> bool {
        self.oid >= FIRST_VIEW_OID
    }
}

/// All catalogs.
pub(super) fn all() -> &'static [CatalogTable] {
    static ALL: LazyLock<Vec<CatalogTable>> = LazyLock::new(|| {
        let column = |column: &'static str| {
            let (name, kind) = column.split_once(':').expect("a column is a name and a type");
            (name, kind_of(kind))
        };
        let catalogs = CATALOGS.iter();
        let catalogs = catalogs.map(|(name, oid, columns)| CatalogTable {
            name,
            oid: *oid,
            columns: columns.split_whitespace().map(column).collect(),
        });
        catalogs.collect()
    });
    &ALL
}

/// The catalog with this name.
pub(super) fn find(name: &str) -> Option<&'static CatalogTable> {
    all().iter().find(|catalog| catalog.name == name)
}

fn kind_of(name: &str) -> Type {
    match name {
        "bool" => Type::Boolean,
        "char" => Type::InternalChar,
        "name" => Type::Name,
        "int2" => Type::SmallInt,
        "int4" => Type::Integer,
        "int8" => Type::BigInt,
        "float4" => Type::Real,
        "oid" => Type::Oid,
        "xid" => Type::Xid,
        "int2vector" => Type::Int2Vector,
        "oidvector" => Type::OidVector,
        "node" => Type::NodeTree,
        "timestamptz" => Type::Timestamptz,
        "text[]" => Type::Array(Box::new(Type::Text)),
        "char[]" => Type::Array(Box::new(Type::InternalChar)),
        "acl[]" => Type::Array(Box::new(Type::AclItem)),
        "regproc" => Type::Regproc,
        "int2[]" => Type::Array(Box::new(Type::SmallInt)),
        "oid[]" => Type::Array(Box::new(Type::Oid)),
        _ => Type::Text,
    }
}

static CATALOGS: &[(&str, u32, &str)] = &[
    ("pg_namespace", 2615, "oid:oid nspname:name nspowner:oid nspacl:acl[]"),
    (
        "pg_class",
        1259,
        "oid:oid relname:name relnamespace:oid reltype:oid reloftype:oid relowner:oid relam:oid \
         relfilenode:oid reltablespace:oid relpages:int4 reltuples:float4 relallvisible:int4 \
         reltoastrelid:oid relhasindex:bool relisshared:bool relpersistence:char relkind:char \
         relnatts:int2 relchecks:int2 relhasrules:bool relhastriggers:bool relhassubclass:bool \
         relrowsecurity:bool relforcerowsecurity:bool relispopulated:bool relreplident:char \
         relispartition:bool relrewrite:oid relfrozenxid:xid relminmxid:xid relacl:acl[] \
         reloptions:text[] relpartbound:node",
    ),
    (
        "pg_attribute",
        1249,
        "attrelid:oid attname:name atttypid:oid attstattarget:int4 attlen:int2 attnum:int2 \
         attndims:int4 attcacheoff:int4 atttypmod:int4 attbyval:bool attalign:char \
         attstorage:char attcompression:char attnotnull:bool atthasdef:bool atthasmissing:bool \
         attidentity:char attgenerated:char attisdropped:bool attislocal:bool attinhcount:int4 \
         attcollation:oid attacl:acl[] attoptions:text[] attfdwoptions:text[] \
         attmissingval:text[]",
    ),
    (
        "pg_type",
        1247,
        "oid:oid typname:name typnamespace:oid typowner:oid typlen:int2 typbyval:bool \
         typtype:char typcategory:char typispreferred:bool typisdefined:bool typdelim:char \
         typrelid:oid typelem:oid typarray:oid typnotnull:bool typbasetype:oid typtypmod:int4 \
         typndims:int4 typcollation:oid typdefault:text",
    ),
    (
        "pg_index",
        2610,
        "indexrelid:oid indrelid:oid indnatts:int2 indnkeyatts:int2 indisunique:bool \
         indnullsnotdistinct:bool indisprimary:bool indisexclusion:bool indimmediate:bool \
         indisclustered:bool indisvalid:bool indcheckxmin:bool indisready:bool indislive:bool \
         indisreplident:bool indkey:int2vector indcollation:oidvector indclass:oidvector \
         indoption:int2vector indexprs:node indpred:node",
    ),
    (
        "pg_constraint",
        2606,
        "oid:oid conname:name connamespace:oid contype:char condeferrable:bool condeferred:bool \
         convalidated:bool conrelid:oid contypid:oid conindid:oid conparentid:oid confrelid:oid \
         confupdtype:char confdeltype:char confmatchtype:char conislocal:bool coninhcount:int4 \
         connoinherit:bool conkey:int2[] confkey:int2[]",
    ),
    ("pg_am", 2601, "oid:oid amname:name amhandler:text amtype:char"),
    ("pg_attrdef", 2604, "oid:oid adrelid:oid adnum:int2 adbin:node"),
    (
        "pg_database",
        1262,
        "oid:oid datname:name datdba:oid encoding:int4 datlocprovider:char datistemplate:bool \
         datallowconn:bool datconnlimit:int4 datfrozenxid:xid datminmxid:xid dattablespace:oid \
         datcollate:text datctype:text daticulocale:text datcollversion:text datacl:acl[]",
    ),
    (
        "pg_roles",
        12000,
        "oid:oid rolname:name rolsuper:bool rolinherit:bool rolcreaterole:bool rolcreatedb:bool \
         rolcanlogin:bool rolreplication:bool rolbypassrls:bool rolconnlimit:int4 \
         rolpassword:text rolvaliduntil:timestamptz",
    ),
    (
        "pg_authid",
        1260,
        "oid:oid rolname:name rolsuper:bool rolinherit:bool rolcreaterole:bool rolcreatedb:bool \
         rolcanlogin:bool rolreplication:bool rolbypassrls:bool rolconnlimit:int4 \
         rolpassword:text rolvaliduntil:timestamptz",
    ),
    (
        "pg_user",
        12014,
        "usename:name usesysid:oid usecreatedb:bool usesuper:bool userepl:bool usebypassrls:bool",
    ),
    ("pg_auth_members", 1261, "roleid:oid member:oid grantor:oid admin_option:bool"),
    (
        "pg_collation",
        3456,
        "oid:oid collname:name collnamespace:oid collowner:oid collprovider:char \
         collisdeterministic:bool collencoding:int4",
    ),
    (
        "pg_tables",
        12033,
        "schemaname:name tablename:name tableowner:name tablespace:name hasindexes:bool \
         hasrules:bool hastriggers:bool rowsecurity:bool",
    ),
    ("pg_views", 12028, "schemaname:name viewname:name viewowner:name definition:text"),
    (
        "pg_matviews",
        12038,
        "schemaname:name matviewname:name matviewowner:name tablespace:name hasindexes:bool \
         ispopulated:bool definition:text",
    ),
    ("pg_description", 2609, "objoid:oid classoid:oid objsubid:int4 description:text"),
    ("pg_shdescription", 2396, "objoid:oid classoid:oid description:text"),
    ("pg_inherits", 2611, "inhrelid:oid inhparent:oid inhseqno:int4 inhdetachpending:bool"),
    (
        "pg_policy",
        3256,
        "oid:oid polname:name polrelid:oid polcmd:char polpermissive:bool polroles:oid[] \
         polqual:node polwithcheck:node",
    ),
    (
        "pg_statistic_ext",
        3381,
        "oid:oid stxrelid:oid stxname:name stxnamespace:oid stxowner:oid stxstattarget:int4 \
         stxkeys:int2vector stxkind:char[] stxexprs:node",
    ),
    (
        "pg_publication",
        6104,
        "oid:oid pubname:name pubowner:oid puballtables:bool pubinsert:bool pubupdate:bool \
         pubdelete:bool pubtruncate:bool pubviaroot:bool",
    ),
    ("pg_publication_rel", 6106, "oid:oid prpubid:oid prrelid:oid prqual:node prattrs:int2vector"),
    ("pg_publication_namespace", 6237, "oid:oid pnpubid:oid pnnspid:oid"),
    (
        "pg_trigger",
        2620,
        "oid:oid tgrelid:oid tgparentid:oid tgname:name tgfoid:oid tgtype:int2 tgenabled:char \
         tgisinternal:bool tgconstrrelid:oid tgconstrindid:oid tgconstraint:oid \
         tgdeferrable:bool tginitdeferred:bool",
    ),
    ("pg_rewrite", 2618, "oid:oid rulename:name ev_class:oid ev_type:char ev_enabled:char"),
    ("pg_foreign_table", 3118, "ftrelid:oid ftserver:oid ftoptions:text[]"),
    ("pg_foreign_server", 1417, "oid:oid srvname:name srvowner:oid srvfdw:oid"),
    ("pg_tablespace", 1213, "oid:oid spcname:name spcowner:oid spcacl:acl[] spcoptions:text[]"),
    (
        "pg_depend",
        2608,
        "classid:oid objid:oid objsubid:int4 refclassid:oid refobjid:oid refobjsubid:int4 deptype:char",
    ),
    (
        "pg_proc",
        1255,
        "oid:oid proname:name pronamespace:oid proowner:oid prolang:oid prokind:char \
         prorettype:oid proargtypes:oidvector proacl:acl[]",
    ),
    ("pg_enum", 3501, "oid:oid enumtypid:oid enumsortorder:float4 enumlabel:name"),
    ("pg_range", 3541, "rngtypid:oid rngsubtype:oid"),
    ("pg_extension", 3079, "oid:oid extname:name extowner:oid extnamespace:oid extversion:text"),
    ("pg_sequence", 2224, "seqrelid:oid seqtypid:oid seqstart:int8 seqincrement:int8"),
    ("pg_settings", 12104, "name:text setting:text unit:text category:text short_desc:text"),
];
