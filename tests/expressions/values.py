"""The values that expressions are made of: edge cases of every type, and what certain functions want."""

# Texts of values, by type. The first few of each are used where there are many combinations.
VALUES = {
    "int2": ["7", "-1", "0", "3", "32767", "-32768"],
    "int4": ["7", "-3", "0", "2", "1", "2147483647", "-2147483648"],
    "int8": ["7", "-3", "0", "2", "9223372036854775807", "-9223372036854775808"],
    "float4": ["1.5", "-2.25", "0", "-0", "3.4028235e38", "1e-45", "Infinity", "-Infinity", "NaN"],
    "float8": ["0.5", "-2.25", "0", "-0", "1e300", "5e-324", "Infinity", "-Infinity", "NaN", "1", "100000000000000000000"],
    "numeric": ["1.50", "-2.5", "0", "0.00", "12345678901234567890.123456789", "NaN", "Infinity", "-Infinity", "0.0001", "100"],
    "text": ["abc", "", "Größe ß", "a,b,c", " x ", "日本", "1", "A%_\\\\b"],
    "varchar(5)": ["abc", "", "a  ", "éé"],
    "varchar": ["abc", "", "x y "],
    "bpchar": ["abc", "", "a  "],
    "char(4)": ["ab", "", "abcd"],
    "bytea": ["\\xdeadbeef", "\\x", "\\x00ff", "\\x616263"],
    "bool": ["true", "false"],
    "date": ["2024-02-29", "2023-12-31", "0044-03-15 BC", "infinity", "-infinity", "1970-01-01", "5874897-12-31", "4713-01-01 BC"],
    "time": ["10:20:30.5", "00:00", "24:00", "23:59:59.999999"],
    "timetz": ["10:20:30.5+02", "00:00+00", "23:59:59.999999-08:30"],
    "timestamp": ["2024-02-29 13:14:15.678901", "2023-12-31 23:59:59.5", "0044-03-15 01:02:03 BC", "infinity", "-infinity", "1970-01-01", "294276-12-31 23:59:59.999999", "4713-01-01 BC"],
    "timestamptz": ["2024-02-29 13:14:15.678901+00", "2024-03-31 01:00+00", "0044-03-15 01:02:03+00 BC", "infinity", "-infinity", "294276-12-31 23:59:59+00"],
    "interval": ["1 day 02:03:04.5", "-1 mon 10 days", "0", "1 year 2 mons 3 days 04:05:06.789", "-100:00:00", "178000000 years", "35 days 27:00"],
    "uuid": ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "00000000-0000-0000-0000-000000000000"],
    "json": ['{"a": 1, "b":[1,null,"x"], "a":2}', "[1, 2.50, {}]", "null", '"é"', "{}"],
    "jsonb": ['{"a":1,"b":[1,null,"x"]}', "[1,2.50,{}]", "null", '"é"', "{}", "12", '{"a":{"b":null}}'],
    "int4[]": ["{1,2,3}", "{}", "{3,NULL,1}", "{2}"],
    "text[]": ["{a,b,c}", "{}", '{"x y",NULL,""}'],
}
# Other names of the same types, and those that polymorphic arguments take.
SAME = {"bpchar": ["bpchar", "char(4)"], "varchar": ["varchar(5)"]}
POLYMORPHIC = {
    "anyelement": ["int4", "text"],
    "anycompatible": ["int4", "text"],
    "anynonarray": ["int4", "text"],
    "anycompatiblenonarray": ["int4", "text"],
    "anyarray": ["int4[]", "text[]"],
    "anycompatiblearray": ["int4[]", "text[]"],
    "any": ["text", "int4"],
}

FIELDS = """microseconds milliseconds second minute hour day week month quarter year decade century
millennium isoyear dow isodow doy epoch julian timezone timezone_hour timezone_minute nonsense""".split()
MOMENT_PATTERNS = [
    "YYYY-MM-DD HH24:MI:SS.US", "HH12:MI:SS.MS AM Day DDD Month Q WW IW", "FMMonth FMDD, YYYY BC", "IYYY-IW-ID J CC",
    "SSSS SSSSS", "Dy DY dy D W", "MON mon RM rm", "DDth Ddth FMDDth", "Y,YYY YYY YY Y", "TZ tz OF TZH TZM",
    "a.m. P.M.", '"text" \\" FF1 FF3 FF6', "", "HH", "TMMonth", "YYYYTH",
]
NUMBER_PATTERNS = [
    "9999.99", "FM9,999.00", "0000", "99,999,999", "0.99", "RN", "FMRN", "S99", "99S", "99MI", "MI99", "99PL", "PL99",
    "SG99", "99PR", "99D9", "9G999", "$99", "L99", "99th", "99TH", "9.99EEEE", "9.9999EEEE", "FM999.999", "99V99", "V9",
    "999", "9", "", "FM90.0", "B99", "B9.99", "FM", '"x"99', "00.00", "99.", ".99", "999,999.000MI", "S0", "FM0000.99",
    "99%", "9 9", "FM$9G999D99", "FMS99", "PR99", "0S9", "999999999999999999999",
]
# What arguments of a name mean something: by function and number of the argument, from 0.
MEANT = {
    ("date_trunc", 0): [f for f in FIELDS if f not in ("dow", "isodow", "doy", "isoyear", "julian")] + ["dow"],
    ("date_part", 0): FIELDS,
    ("extract", 0): FIELDS,
    ("date_trunc", 2): ["Europe/Berlin", "UTC", "America/New_York"],
    ("encode", 1): ["hex", "base64", "escape", "none"],
    ("decode", 0): ["YWJj", "616263", "abc\\\\000", ""],
    ("decode", 1): ["hex", "base64", "escape", "none"],
    ("chr", 0): ["97", "0", "8364", "1114111", "-1", "55296"],
    ("timezone", 0): ["UTC", "Europe/Berlin", "+02", "nowhere", "1 day", "-03:30", "02:00"],
    ("to_number", 0): ["1,234.5", "-12", "12-", " 12 ", "<12>", "$12", "1.5e3", "abc", "", "12.345", "+7", "IV"],
    ("to_number", 1): ["9,999.9", "S99", "99MI", "999", "99PR", "L99", "9.99", "FM999.999", "99V99", "RN", "9G999D9"],
    ("to_date", 0): ["2024-02-29", "29 Feb 2024", "20240229", "2024 60", "abc", "0044-03-15 BC"],
    ("to_date", 1): ["YYYY-MM-DD", "DD Mon YYYY", "YYYYMMDD", "YYYY DDD", "YYYY-MM-DD BC"],
    ("to_timestamp", 0): ["2024-02-29 10:11:12.5", "29 Feb 2024 03 PM", "1700000000.5"],
    ("to_timestamp", 1): ["YYYY-MM-DD HH24:MI:SS.MS", "DD Mon YYYY HH12 AM"],
    ("split_part", 1): [",", "b", ""],
    ("split_part", 2): ["1", "2", "-1", "0", "9"],
    ("similar_to_escape", 0): ["a%", "a_(b|c)*", "a\\\\%"],
    ("normalize", 1): ["NFC", "NFD", "NFKC", "xx"],
    ("is_normalized", 1): ["NFC", "NFD"],
    ("format", 0): ["%s", "%I|%L", "%%", "%2$s %1$s", "%-5s|%5s|", "%s %s", "%x", "%", "%*s"],
    ("translate", 1): ["abc", ""],
    ("translate", 2): ["xy", ""],
    ("lpad", 1): ["5", "0", "2", "-1"],
    ("rpad", 1): ["5", "0", "2", "-1"],
    ("repeat", 1): ["3", "0", "-1"],
    ("factorial", 0): ["0", "1", "20", "25", "-1"],
    ("date_bin", 0): ["15 minutes", "1 day", "1 mon", "0"],
    ("make_date", 0): ["2024", "-44", "0"], ("make_date", 1): ["2", "13"], ("make_date", 2): ["29", "30"],
    ("make_time", 0): ["10", "24", "25"], ("make_time", 1): ["0", "59"], ("make_time", 2): ["5.5", "60", "61"],
    ("make_timestamp", 0): ["2024", "-44"], ("make_timestamp", 1): ["2", "12"], ("make_timestamp", 2): ["28"],
    ("make_timestamp", 3): ["10"], ("make_timestamp", 4): ["20"], ("make_timestamp", 5): ["30.25", "60"],
    ("make_timestamptz", 0): ["2024", "-44"], ("make_timestamptz", 1): ["3"], ("make_timestamptz", 2): ["31"],
    ("make_timestamptz", 3): ["2"], ("make_timestamptz", 4): ["30"], ("make_timestamptz", 5): ["0", "1.5"],
    ("make_timestamptz", 6): ["Europe/Berlin", "UTC"],
    ("make_interval", 0): ["1", "-1"], ("make_interval", 1): ["14"], ("make_interval", 2): ["1"], ("make_interval", 3): ["-40"],
    ("make_interval", 4): ["25"], ("make_interval", 5): ["61"], ("make_interval", 6): ["61.5", "-0.25"],
    ("width_bucket", 0): ["5.35", "0", "11"], ("width_bucket", 1): ["0.024", "10"], ("width_bucket", 2): ["10.06", "1"], ("width_bucket", 3): ["5", "0"],
    ("generate_series", 0): ["1"], ("generate_series", 1): ["3", "0"], ("generate_series", 2): ["1", "-1"],
    ("get_byte", 1): ["0", "3", "9"], ("set_byte", 1): ["0", "9"], ("set_byte", 2): ["65", "300"],
    ("get_bit", 1): ["0", "13", "99"], ("set_bit", 1): ["0", "13"], ("set_bit", 2): ["1", "0", "2"],
    ("overlay", 2): ["2", "0"], ("overlay", 3): ["1", "0"],
    ("substr", 1): ["2", "-1", "0"], ("substr", 2): ["2", "0", "-1"],
    ("substring", 1): ["2", "-1", "0", "b.", "(a)(b)", "x*"], ("substring", 2): ["2", "0", "-1", "#"],
    ("left", 1): ["2", "-1", "0"], ("right", 1): ["2", "-1", "0"],
    ("round", 1): ["2", "0", "-1"], ("trunc", 1): ["2", "0", "-1"],
    ("array_fill", 1): ["{3}", "{2,2}", "{}"], ("array_fill", 2): ["{1}", "{0}"],
    ("array_length", 1): ["1", "2", "0"], ("array_upper", 1): ["1", "2"], ("array_lower", 1): ["1", "2"],
    ("array_to_string", 1): [",", ""], ("array_to_string", 2): ["*"],
    ("string_to_array", 1): [",", "", None], ("string_to_array", 2): ["b", ""],
    ("trim_array", 1): ["1", "0", "9"],
    ("array_position", 2): ["2"], ("generate_subscripts", 1): ["1", "2"], ("generate_subscripts", 2): ["true"],
    ("jsonb_set", 1): ["{a}", "{b,0}", "{x,y}", "{}"], ("jsonb_set_lax", 1): ["{a}"], ("jsonb_insert", 1): ["{b,1}", "{z}"],
    ("jsonb_set_lax", 4): ["use_json_null", "delete_key", "return_target", "raise_exception", "xx"],
    ("unistr", 0): ["a\\\\0061", "\\\\+01F600", "\\\\x"], ("parse_ident", 0): ['"A b".c', "a.b.", "1x"],
    ("to_ascii", 0): ["abc"],
    ("power", 1): ["2", "0.5", "-1", "0"], ("pow", 1): ["2", "0.5", "-1"],
    ("like_escape", 0): ["a#%", "a\\\\b"], ("like_escape", 1): ["#", "", "xx"],
    ("similar_escape", 0): ["a#%"], ("similar_escape", 1): ["#"],
    ("json_object", 0): ["{a,1,b,2}", "{a}", "{}"], ("jsonb_object", 0): ["{a,1,b,2}", "{a}", "{}"],
    ("json_object", 1): ["{1}", "{1,2}"], ("jsonb_object", 1): ["{1}", "{1,2}"],
}
PATTERNS = ["b", "(a)(b)", "[a-z]+", "", "^x", "(", "\\\\s", "(?i)A"]
for name in """regexp_count regexp_instr regexp_like regexp_match regexp_matches regexp_replace regexp_split_to_array
regexp_split_to_table regexp_substr""".split():
    MEANT[name, 0] = ["abcabc", "", "a1b22", "Größe\nß"]
    MEANT[name, 1] = PATTERNS
MEANT["regexp_replace", 2] = ["x", "[\\\\1]", "\\\\&\\\\&", ""]
MEANT["regexp_replace", 3] = ["g", "i", "gi", "2", "x", "z"]
MEANT["regexp_replace", 4] = ["0", "2"]
MEANT["regexp_replace", 5] = ["i", ""]
for name in ("regexp_like", "regexp_match", "regexp_matches", "regexp_split_to_array", "regexp_split_to_table"):
    MEANT[name, 2] = ["i", "g", "n", "x", "z"]
for name in ("regexp_count", "regexp_instr", "regexp_substr"):
    MEANT[name, 2] = ["1", "3", "0"]
    MEANT[name, 3] = ["i", "g"] if name == "regexp_count" else ["1", "2"]
    MEANT[name, 4] = ["0", "1"] if name == "regexp_instr" else ["i"]
    MEANT[name, 5] = ["i"] if name == "regexp_instr" else ["1", "0"]
    MEANT[name, 6] = ["0", "1"]


def to_char_patterns(kind):
    return MOMENT_PATTERNS if kind in ("timestamp", "timestamptz", "interval") else NUMBER_PATTERNS
