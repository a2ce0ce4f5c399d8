//! The functions that other catalogs name, with PostgreSQL's OIDs.

use std::collections::HashMap;
use std::sync::LazyLock;

/// By name.
static PROCEDURES: &str = "\
     aclitemin:1031 aclitemout:1032 anyarray_in:2296 anyarray_out:2297 anyarray_recv:2502 \
     anyarray_send:2503 array_in:750 array_out:751 array_recv:2400 array_send:2401 \
     array_subscript_handler:6179 array_typanalyze:3816 boolin:1242 boolout:1243 boolrecv:2436 \
     boolsend:2437 bpcharin:1044 bpcharout:1045 bpcharrecv:2430 bpcharsend:2431 \
     bpchartypmodin:2913 bpchartypmodout:2914 bthandler:330 byteain:1244 byteaout:31 \
     bytearecv:2412 byteasend:2413 charin:1245 charout:33 charrecv:2434 charsend:2435 \
     date_in:1084 date_out:1085 date_recv:2468 date_send:2469 float4in:200 float4out:201 \
     float4recv:2424 float4send:2425 float8in:214 float8out:215 float8recv:2426 float8send:2427 \
     heap_tableam_handler:3 int2in:38 int2out:39 int2recv:2404 int2send:2405 int2vectorin:40 \
     int2vectorout:41 int2vectorrecv:2410 int2vectorsend:2411 int4in:42 int4out:43 \
     int4recv:2406 int4send:2407 int8in:460 int8out:461 int8recv:2408 int8send:2409 \
     interval_in:1160 interval_out:1161 interval_recv:2478 interval_send:2479 \
     intervaltypmodin:2903 intervaltypmodout:2904 json_in:321 json_out:322 json_recv:323 \
     json_send:324 jsonb_in:3806 jsonb_out:3804 jsonb_recv:3805 jsonb_send:3803 \
     jsonb_subscript_handler:6098 namein:34 nameout:35 namerecv:2422 namesend:2423 \
     numeric_in:1701 numeric_out:1702 numeric_recv:2460 numeric_send:2461 numerictypmodin:2917 \
     numerictypmodout:2918 oidin:1798 oidout:1799 oidrecv:2418 oidsend:2419 oidvectorin:54 \
     oidvectorout:55 oidvectorrecv:2420 oidvectorsend:2421 pg_node_tree_in:195 \
     pg_node_tree_out:196 pg_node_tree_recv:197 pg_node_tree_send:198 \
     raw_array_subscript_handler:6180 regclassin:2218 regclassout:2219 regclassrecv:2452 \
     regclasssend:2453 regnamespacein:4084 regnamespaceout:4085 regnamespacerecv:4087 \
     regnamespacesend:4088 regprocin:44 regprocout:45 regprocrecv:2444 regprocsend:2445 \
     regrolein:4098 regroleout:4092 regrolerecv:4094 regrolesend:4095 regtypein:2220 \
     regtypeout:2221 regtyperecv:2454 regtypesend:2455 textin:46 textout:47 textrecv:2414 \
     textsend:2415 time_in:1143 time_out:1144 time_recv:2470 time_send:2471 timestamp_in:1312 \
     timestamp_out:1313 timestamp_recv:2474 timestamp_send:2475 timestamptypmodin:2905 \
     timestamptypmodout:2906 timestamptz_in:1150 timestamptz_out:1151 timestamptz_recv:2476 \
     timestamptz_send:2477 timestamptztypmodin:2907 timestamptztypmodout:2908 timetypmodin:2909 \
     timetypmodout:2910 unknownin:109 unknownout:110 unknownrecv:2416 unknownsend:2417 \
     uuid_in:2952 uuid_out:2953 uuid_recv:2961 uuid_send:2962 varcharin:1046 varcharout:1047 \
     varcharrecv:2432 varcharsend:2433 varchartypmodin:2915 varchartypmodout:2916 void_in:2298 \
     void_out:2299 void_recv:3120 void_send:3121 xidin:50 xidout:51 xidrecv:2440 xidsend:2441";

fn all() -> &'static HashMap<&'static str, u32> {
    static ALL: LazyLock<HashMap<&str, u32>> = LazyLock::new(|| {
        let pairs = PROCEDURES.split_whitespace().filter_map(|pair| pair.split_once(':'));
        pairs.filter_map(|(name, oid)| Some((name, oid.parse().ok()?))).collect()
    });
    &ALL
}

/// The OID of a function; 0 without one.
pub(in crate::system) fn procedure_oid(name: &str) -> u32 {
    all().get(name).copied().unwrap_or(0)
}

/// The name of the function with an OID.
pub(in crate::system) fn procedure_name(oid: u32) -> Option<&'static str> {
    all().iter().find(|(_, known)| **known == oid).map(|(name, _)| *name)
}

/// What a type's functions of some kind (`in`, `out`, `recv`, `send`) has for an OID.
pub(super) fn of_type(type_name: &str, what: &str) -> u32 {
    let plain = procedure_oid(&format!("{type_name}{what}"));
    if plain != 0 { plain } else { procedure_oid(&format!("{type_name}_{what}")) }
}
