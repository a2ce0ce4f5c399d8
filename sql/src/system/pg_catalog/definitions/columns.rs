//! The columns of PostgreSQL 15's catalogs: name, OID, and the columns with their types.

pub(super) static CATALOGS: &[(&str, u32, &str)] = &[
    ("pg_namespace", 2615, "oid:oid nspname:name nspowner:oid nspacl:acl[]"),
    (
        "pg_class",
        1259,
        "oid:oid relname:name relnamespace:oid reltype:oid reloftype:oid relowner:oid \
         relam:oid relfilenode:oid reltablespace:oid relpages:int4 reltuples:float4 \
         relallvisible:int4 reltoastrelid:oid relhasindex:bool relisshared:bool \
         relpersistence:char relkind:char relnatts:int2 relchecks:int2 relhasrules:bool \
         relhastriggers:bool relhassubclass:bool relrowsecurity:bool relforcerowsecurity:bool \
         relispopulated:bool relreplident:char relispartition:bool relrewrite:oid \
         relfrozenxid:xid relminmxid:xid relacl:acl[] reloptions:text[] relpartbound:node",
    ),
    (
        "pg_attribute",
        1249,
        "attrelid:oid attname:name atttypid:oid attstattarget:int4 attlen:int2 attnum:int2 \
         attndims:int4 attcacheoff:int4 atttypmod:int4 attbyval:bool attalign:char \
         attstorage:char attcompression:char attnotnull:bool atthasdef:bool \
         atthasmissing:bool attidentity:char attgenerated:char attisdropped:bool \
         attislocal:bool attinhcount:int4 attcollation:oid attacl:acl[] attoptions:text[] \
         attfdwoptions:text[] attmissingval:anyarray",
    ),
    (
        "pg_type",
        1247,
        "oid:oid typname:name typnamespace:oid typowner:oid typlen:int2 typbyval:bool \
         typtype:char typcategory:char typispreferred:bool typisdefined:bool typdelim:char \
         typrelid:oid typsubscript:regproc typelem:oid typarray:oid typinput:regproc \
         typoutput:regproc typreceive:regproc typsend:regproc typmodin:regproc \
         typmodout:regproc typanalyze:regproc typalign:char typstorage:char typnotnull:bool \
         typbasetype:oid typtypmod:int4 typndims:int4 typcollation:oid typdefaultbin:node \
         typdefault:text typacl:acl[]",
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
        "oid:oid conname:name connamespace:oid contype:char condeferrable:bool \
         condeferred:bool convalidated:bool conrelid:oid contypid:oid conindid:oid \
         conparentid:oid confrelid:oid confupdtype:char confdeltype:char confmatchtype:char \
         conislocal:bool coninhcount:int4 connoinherit:bool conkey:int2[] confkey:int2[] \
         conpfeqop:oid[] conppeqop:oid[] conffeqop:oid[] confdelsetcols:int2[] \
         conexclop:oid[] conbin:node",
    ),
    ("pg_am", 2601, "oid:oid amname:name amhandler:regproc amtype:char"),
    ("pg_attrdef", 2604, "oid:oid adrelid:oid adnum:int2 adbin:node"),
    (
        "pg_database",
        1262,
        "oid:oid datname:name datdba:oid encoding:int4 datlocprovider:char datistemplate:bool \
         datallowconn:bool datconnlimit:int4 datfrozenxid:xid datminmxid:xid \
         dattablespace:oid datcollate:text datctype:text daticulocale:text \
         datcollversion:text datacl:acl[]",
    ),
    (
        "pg_roles",
        12000,
        "rolname:name rolsuper:bool rolinherit:bool rolcreaterole:bool rolcreatedb:bool \
         rolcanlogin:bool rolreplication:bool rolconnlimit:int4 rolpassword:text \
         rolvaliduntil:timestamptz rolbypassrls:bool rolconfig:text[] oid:oid",
    ),
    (
        "pg_authid",
        1260,
        "oid:oid rolname:name rolsuper:bool rolinherit:bool rolcreaterole:bool \
         rolcreatedb:bool rolcanlogin:bool rolreplication:bool rolbypassrls:bool \
         rolconnlimit:int4 rolpassword:text rolvaliduntil:timestamptz",
    ),
    (
        "pg_user",
        12014,
        "usename:name usesysid:oid usecreatedb:bool usesuper:bool userepl:bool \
         usebypassrls:bool passwd:text valuntil:timestamptz useconfig:text[]",
    ),
    ("pg_auth_members", 1261, "roleid:oid member:oid grantor:oid admin_option:bool"),
    (
        "pg_collation",
        3456,
        "oid:oid collname:name collnamespace:oid collowner:oid collprovider:char \
         collisdeterministic:bool collencoding:int4 collcollate:text collctype:text \
         colliculocale:text collversion:text",
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
    (
        "pg_indexes",
        12043,
        "schemaname:name tablename:name indexname:name tablespace:name indexdef:text",
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
         tgdeferrable:bool tginitdeferred:bool tgnargs:int2 tgattr:int2vector tgargs:bytea \
         tgqual:node tgoldtable:name tgnewtable:name",
    ),
    (
        "pg_rewrite",
        2618,
        "oid:oid rulename:name ev_class:oid ev_type:char ev_enabled:char is_instead:bool \
         ev_qual:node ev_action:node",
    ),
    ("pg_foreign_table", 3118, "ftrelid:oid ftserver:oid ftoptions:text[]"),
    (
        "pg_foreign_server",
        1417,
        "oid:oid srvname:name srvowner:oid srvfdw:oid srvtype:text srvversion:text \
         srvacl:acl[] srvoptions:text[]",
    ),
    (
        "pg_foreign_data_wrapper",
        2328,
        "oid:oid fdwname:name fdwowner:oid fdwhandler:oid fdwvalidator:oid fdwacl:acl[] \
         fdwoptions:text[]",
    ),
    ("pg_tablespace", 1213, "oid:oid spcname:name spcowner:oid spcacl:acl[] spcoptions:text[]"),
    (
        "pg_depend",
        2608,
        "classid:oid objid:oid objsubid:int4 refclassid:oid refobjid:oid refobjsubid:int4 \
         deptype:char",
    ),
    (
        "pg_proc",
        1255,
        "oid:oid proname:name pronamespace:oid proowner:oid prolang:oid procost:float4 \
         prorows:float4 provariadic:oid prosupport:regproc prokind:char prosecdef:bool \
         proleakproof:bool proisstrict:bool proretset:bool provolatile:char proparallel:char \
         pronargs:int2 pronargdefaults:int2 prorettype:oid proargtypes:oidvector \
         proallargtypes:oid[] proargmodes:char[] proargnames:text[] proargdefaults:node \
         protrftypes:oid[] prosrc:text probin:text prosqlbody:node proconfig:text[] \
         proacl:acl[]",
    ),
    ("pg_enum", 3501, "oid:oid enumtypid:oid enumsortorder:float4 enumlabel:name"),
    (
        "pg_range",
        3541,
        "rngtypid:oid rngsubtype:oid rngmultitypid:oid rngcollation:oid rngsubopc:oid \
         rngcanonical:regproc rngsubdiff:regproc",
    ),
    (
        "pg_extension",
        3079,
        "oid:oid extname:name extowner:oid extnamespace:oid extrelocatable:bool \
         extversion:text extconfig:oid[] extcondition:text[]",
    ),
    (
        "pg_sequence",
        2224,
        "seqrelid:oid seqtypid:oid seqstart:int8 seqincrement:int8 seqmax:int8 seqmin:int8 \
         seqcache:int8 seqcycle:bool",
    ),
    (
        "pg_sequences",
        12048,
        "schemaname:name sequencename:name sequenceowner:name data_type:regtype \
         start_value:int8 min_value:int8 max_value:int8 increment_by:int8 cycle:bool \
         cache_size:int8 last_value:int8",
    ),
    (
        "pg_settings",
        12104,
        "name:text setting:text unit:text category:text short_desc:text extra_desc:text \
         context:text vartype:text source:text min_val:text max_val:text enumvals:text[] \
         boot_val:text reset_val:text sourcefile:text sourceline:int4 pending_restart:bool",
    ),
    (
        "pg_conversion",
        2607,
        "oid:oid conname:name connamespace:oid conowner:oid conforencoding:int4 \
         contoencoding:int4 conproc:regproc condefault:bool",
    ),
    (
        "pg_language",
        2612,
        "oid:oid lanname:name lanowner:oid lanispl:bool lanpltrusted:bool lanplcallfoid:oid \
         laninline:oid lanvalidator:oid lanacl:acl[]",
    ),
    (
        "pg_event_trigger",
        3466,
        "oid:oid evtname:name evtevent:name evtowner:oid evtfoid:oid evtenabled:char \
         evttags:text[]",
    ),
    (
        "pg_stat_user_tables",
        12161,
        "relid:oid schemaname:name relname:name seq_scan:int8 seq_tup_read:int8 idx_scan:int8 \
         idx_tup_fetch:int8 n_tup_ins:int8 n_tup_upd:int8 n_tup_del:int8 n_tup_hot_upd:int8 \
         n_live_tup:int8 n_dead_tup:int8 n_mod_since_analyze:int8 n_ins_since_vacuum:int8 \
         last_vacuum:timestamptz last_autovacuum:timestamptz last_analyze:timestamptz \
         last_autoanalyze:timestamptz vacuum_count:int8 autovacuum_count:int8 \
         analyze_count:int8 autoanalyze_count:int8",
    ),
    (
        "pg_partitioned_table",
        3350,
        "partrelid:oid partstrat:char partnatts:int2 partdefid:oid partattrs:int2vector \
         partclass:oidvector partcollation:oidvector partexprs:node",
    ),
    (
        "pg_shdepend",
        1214,
        "dbid:oid classid:oid objid:oid objsubid:int4 refclassid:oid refobjid:oid \
         deptype:char",
    ),
    (
        "pg_default_acl",
        826,
        "oid:oid defaclrole:oid defaclnamespace:oid defaclobjtype:char defaclacl:acl[]",
    ),
    ("pg_db_role_setting", 2964, "setdatabase:oid setrole:oid setconfig:text[]"),
    ("pg_seclabel", 3596, "objoid:oid classoid:oid objsubid:int4 provider:text label:text"),
];
