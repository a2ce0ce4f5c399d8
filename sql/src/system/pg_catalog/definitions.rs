//! The columns of PostgreSQL 15's catalogs, as far as clients ask for them.

use crate::Type;

/// The columns of a catalog; none if there is no such catalog.
pub(super) fn columns(catalog: &str) -> Option<Vec<(&'static str, Type)>> {
    let (_, columns) = CATALOGS.iter().find(|(name, _)| *name == catalog)?;
    let column = |column: &'static str| {
        let (name, kind) = column.split_once(':').expect("a column is a name and a type");
        (name, kind_of(kind))
    };
    Some(columns.split_whitespace().map(column).collect())
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
        "int2[]" => Type::Array(Box::new(Type::SmallInt)),
        "oid[]" => Type::Array(Box::new(Type::Oid)),
        _ => Type::Text,
    }
}

static CATALOGS: &[(&str, &str)] = &[
    ("pg_namespace", "oid:oid nspname:name nspowner:oid nspacl:text[]"),
    (
        "pg_class",
        "oid:oid relname:name relnamespace:oid reltype:oid reloftype:oid relowner:oid relam:oid \
         relfilenode:oid reltablespace:oid relpages:int4 reltuples:float4 relallvisible:int4 \
         reltoastrelid:oid relhasindex:bool relisshared:bool relpersistence:char relkind:char \
         relnatts:int2 relchecks:int2 relhasrules:bool relhastriggers:bool relhassubclass:bool \
         relrowsecurity:bool relforcerowsecurity:bool relispopulated:bool relreplident:char \
         relispartition:bool relrewrite:oid relfrozenxid:xid relminmxid:xid relacl:text[] \
         reloptions:text[] relpartbound:node",
    ),
    (
        "pg_attribute",
        "attrelid:oid attname:name atttypid:oid attstattarget:int4 attlen:int2 attnum:int2 \
         attndims:int4 attcacheoff:int4 atttypmod:int4 attbyval:bool attalign:char \
         attstorage:char attcompression:char attnotnull:bool atthasdef:bool atthasmissing:bool \
         attidentity:char attgenerated:char attisdropped:bool attislocal:bool attinhcount:int4 \
         attcollation:oid attacl:text[] attoptions:text[] attfdwoptions:text[] \
         attmissingval:text[]",
    ),
    (
        "pg_type",
        "oid:oid typname:name typnamespace:oid typowner:oid typlen:int2 typbyval:bool \
         typtype:char typcategory:char typispreferred:bool typisdefined:bool typdelim:char \
         typrelid:oid typelem:oid typarray:oid typnotnull:bool typbasetype:oid typtypmod:int4 \
         typcollation:oid typdefault:text",
    ),
    (
        "pg_index",
        "indexrelid:oid indrelid:oid indnatts:int2 indnkeyatts:int2 indisunique:bool \
         indnullsnotdistinct:bool indisprimary:bool indisexclusion:bool indimmediate:bool \
         indisclustered:bool indisvalid:bool indcheckxmin:bool indisready:bool indislive:bool \
         indisreplident:bool indkey:int2vector indcollation:oidvector indclass:oidvector \
         indoption:int2vector indexprs:node indpred:node",
    ),
    (
        "pg_constraint",
        "oid:oid conname:name connamespace:oid contype:char condeferrable:bool condeferred:bool \
         convalidated:bool conrelid:oid contypid:oid conindid:oid conparentid:oid confrelid:oid \
         confupdtype:char confdeltype:char confmatchtype:char conislocal:bool coninhcount:int4 \
         connoinherit:bool conkey:int2[] confkey:int2[]",
    ),
    ("pg_am", "oid:oid amname:name amhandler:text amtype:char"),
    ("pg_attrdef", "oid:oid adrelid:oid adnum:int2 adbin:node"),
    (
        "pg_database",
        "oid:oid datname:name datdba:oid encoding:int4 datlocprovider:char datistemplate:bool \
         datallowconn:bool datconnlimit:int4 datfrozenxid:xid datminmxid:xid dattablespace:oid \
         datcollate:text datctype:text daticulocale:text datcollversion:text datacl:text[]",
    ),
    (
        "pg_roles",
        "oid:oid rolname:name rolsuper:bool rolinherit:bool rolcreaterole:bool rolcreatedb:bool \
         rolcanlogin:bool rolreplication:bool rolbypassrls:bool rolconnlimit:int4 \
         rolpassword:text rolvaliduntil:timestamptz",
    ),
    (
        "pg_authid",
        "oid:oid rolname:name rolsuper:bool rolinherit:bool rolcreaterole:bool rolcreatedb:bool \
         rolcanlogin:bool rolreplication:bool rolbypassrls:bool rolconnlimit:int4 \
         rolpassword:text rolvaliduntil:timestamptz",
    ),
    (
        "pg_user",
        "usename:name usesysid:oid usecreatedb:bool usesuper:bool userepl:bool usebypassrls:bool",
    ),
    ("pg_auth_members", "roleid:oid member:oid grantor:oid admin_option:bool"),
    (
        "pg_collation",
        "oid:oid collname:name collnamespace:oid collowner:oid collprovider:char \
         collisdeterministic:bool collencoding:int4",
    ),
    (
        "pg_tables",
        "schemaname:name tablename:name tableowner:name tablespace:name hasindexes:bool \
         hasrules:bool hastriggers:bool rowsecurity:bool",
    ),
    ("pg_views", "schemaname:name viewname:name viewowner:name definition:text"),
    (
        "pg_matviews",
        "schemaname:name matviewname:name matviewowner:name tablespace:name hasindexes:bool \
         ispopulated:bool definition:text",
    ),
    ("pg_description", "objoid:oid classoid:oid objsubid:int4 description:text"),
    ("pg_shdescription", "objoid:oid classoid:oid description:text"),
    ("pg_inherits", "inhrelid:oid inhparent:oid inhseqno:int4 inhdetachpending:bool"),
    (
        "pg_policy",
        "oid:oid polname:name polrelid:oid polcmd:char polpermissive:bool polroles:oid[] \
         polqual:node polwithcheck:node",
    ),
    (
        "pg_statistic_ext",
        "oid:oid stxrelid:oid stxname:name stxnamespace:oid stxowner:oid stxstattarget:int4 \
         stxkeys:int2vector stxkind:text[] stxexprs:node",
    ),
    (
        "pg_publication",
        "oid:oid pubname:name pubowner:oid puballtables:bool pubinsert:bool pubupdate:bool \
         pubdelete:bool pubtruncate:bool pubviaroot:bool",
    ),
    ("pg_publication_rel", "oid:oid prpubid:oid prrelid:oid prqual:node prattrs:int2vector"),
    ("pg_publication_namespace", "oid:oid pnpubid:oid pnnspid:oid"),
    (
        "pg_trigger",
        "oid:oid tgrelid:oid tgparentid:oid tgname:name tgfoid:oid tgtype:int2 tgenabled:char \
         tgisinternal:bool tgconstrrelid:oid tgconstrindid:oid tgconstraint:oid \
         tgdeferrable:bool tginitdeferred:bool",
    ),
    ("pg_rewrite", "oid:oid rulename:name ev_class:oid ev_type:char ev_enabled:char"),
    ("pg_foreign_table", "ftrelid:oid ftserver:oid ftoptions:text[]"),
    ("pg_foreign_server", "oid:oid srvname:name srvowner:oid srvfdw:oid"),
    ("pg_tablespace", "oid:oid spcname:name spcowner:oid spcacl:text[] spcoptions:text[]"),
    ("pg_depend", "classid:oid objid:oid objsubid:int4 refclassid:oid refobjid:oid deptype:char"),
    (
        "pg_proc",
        "oid:oid proname:name pronamespace:oid proowner:oid prolang:oid prokind:char \
         prorettype:oid proargtypes:oidvector proacl:text[]",
    ),
    ("pg_enum", "oid:oid enumtypid:oid enumsortorder:float4 enumlabel:name"),
    ("pg_range", "rngtypid:oid rngsubtype:oid"),
    ("pg_extension", "oid:oid extname:name extowner:oid extnamespace:oid extversion:text"),
    ("pg_sequence", "seqrelid:oid seqtypid:oid seqstart:int8 seqincrement:int8"),
    ("pg_settings", "name:text setting:text unit:text category:text short_desc:text"),
];
