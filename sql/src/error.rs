//! What a statement fails with: always a SQLSTATE, a message in PostgreSQL's words, and where it
//! helps a detail, a hint and a position.

mod subject;

use std::fmt;

use stillframe_protocol::{CoordinatorError, HostError, RowError};
use thiserror::Error;

pub use subject::Subject;

/// A five-character SQLSTATE.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SqlState([u8; 5]);

macro_rules! states {
    ($($name:ident = $code:literal),* $(,)?) => {
        #[expect(missing_docs, reason = "each name is PostgreSQL's condition name")]
        impl SqlState {
            $(pub const $name: Self = Self(*$code);)*
        }
    };
}

states! {
    SUCCESSFUL_COMPLETION = b"00000",
    WARNING = b"01000",
    CONNECTION_EXCEPTION = b"08000",
    PROTOCOL_VIOLATION = b"08P01",
    TRANSACTION_RESOLUTION_UNKNOWN = b"08007",
    FEATURE_NOT_SUPPORTED = b"0A000",
    CARDINALITY_VIOLATION = b"21000",
    DATA_EXCEPTION = b"22000",
    STRING_DATA_RIGHT_TRUNCATION = b"22001",
    NUMERIC_VALUE_OUT_OF_RANGE = b"22003",
    INVALID_DATETIME_FORMAT = b"22007",
    DATETIME_FIELD_OVERFLOW = b"22008",
    DIVISION_BY_ZERO = b"22012",
    INVALID_PRECEDING_OR_FOLLOWING_SIZE = b"22013",
    INVALID_ESCAPE_SEQUENCE = b"22025",
    INVALID_REGULAR_EXPRESSION = b"2201B",
    INVALID_ROW_COUNT_IN_LIMIT = b"2201W",
    INVALID_ARGUMENT_FOR_NTH_VALUE = b"22016",
    INVALID_ROW_COUNT_IN_OFFSET = b"2201X",
    INVALID_PARAMETER_VALUE = b"22023",
    ARRAY_SUBSCRIPT_ERROR = b"2202E",
    SUBSTRING_ERROR = b"22011",
    NULL_VALUE_NOT_ALLOWED = b"22004",
    SEQUENCE_GENERATOR_LIMIT_EXCEEDED = b"2200H",
    CHARACTER_NOT_IN_REPERTOIRE = b"22021",
    INVALID_TEXT_REPRESENTATION = b"22P02",
    INVALID_BINARY_REPRESENTATION = b"22P03",
    BAD_COPY_FILE_FORMAT = b"22P04",
    UNTRANSLATABLE_CHARACTER = b"22P05",
    NOT_NULL_VIOLATION = b"23502",
    FOREIGN_KEY_VIOLATION = b"23503",
    UNIQUE_VIOLATION = b"23505",
    CHECK_VIOLATION = b"23514",
    INVALID_CURSOR_STATE = b"24000",
    ACTIVE_SQL_TRANSACTION = b"25001",
    NO_ACTIVE_SQL_TRANSACTION = b"25P01",
    READ_ONLY_SQL_TRANSACTION = b"25006",
    IN_FAILED_SQL_TRANSACTION = b"25P02",
    IDLE_IN_TRANSACTION_SESSION_TIMEOUT = b"25P03",
    INVALID_SQL_STATEMENT_NAME = b"26000",
    DEPENDENT_OBJECTS_STILL_EXIST = b"2BP01",
    INVALID_AUTHORIZATION_SPECIFICATION = b"28000",
    INVALID_PASSWORD = b"28P01",
    INVALID_CATALOG_NAME = b"3D000",
    INVALID_CURSOR_NAME = b"34000",
    INVALID_SCHEMA_NAME = b"3F000",
    INVALID_SAVEPOINT_SPECIFICATION = b"3B001",
    SERIALIZATION_FAILURE = b"40001",
    DEADLOCK_DETECTED = b"40P01",
    SYNTAX_ERROR = b"42601",
    INSUFFICIENT_PRIVILEGE = b"42501",
    CANNOT_COERCE = b"42846",
    GROUPING_ERROR = b"42803",
    WINDOWING_ERROR = b"42P20",
    INVALID_RECURSION = b"42P19",
    DATATYPE_MISMATCH = b"42804",
    GENERATED_ALWAYS = b"428C9",
    WRONG_OBJECT_TYPE = b"42809",
    UNDEFINED_COLUMN = b"42703",
    UNDEFINED_FUNCTION = b"42883",
    UNDEFINED_TABLE = b"42P01",
    UNDEFINED_PARAMETER = b"42P02",
    UNDEFINED_OBJECT = b"42704",
    DUPLICATE_COLUMN = b"42701",
    DUPLICATE_OBJECT = b"42710",
    INVALID_FOREIGN_KEY = b"42830",
    DUPLICATE_CURSOR = b"42P03",
    DUPLICATE_SCHEMA = b"42P06",
    RESERVED_NAME = b"42939",
    DUPLICATE_TABLE = b"42P07",
    DUPLICATE_PREPARED_STATEMENT = b"42P05",
    DUPLICATE_ALIAS = b"42712",
    AMBIGUOUS_COLUMN = b"42702",
    AMBIGUOUS_FUNCTION = b"42725",
    INVALID_TABLE_DEFINITION = b"42P16",
    INVALID_COLUMN_REFERENCE = b"42P10",
    INVALID_NAME = b"42602",
    INVALID_OBJECT_DEFINITION = b"42P17",
    NAME_TOO_LONG = b"42622",
    INDETERMINATE_DATATYPE = b"42P18",
    TOO_MANY_CONNECTIONS = b"53300",
    OUT_OF_MEMORY = b"53200",
    PROGRAM_LIMIT_EXCEEDED = b"54000",
    STATEMENT_TOO_COMPLEX = b"54001",
    TOO_MANY_COLUMNS = b"54011",
    OBJECT_NOT_IN_PREREQUISITE_STATE = b"55000",
    OBJECT_IN_USE = b"55006",
    CANT_CHANGE_RUNTIME_PARAM = b"55P02",
    LOCK_NOT_AVAILABLE = b"55P03",
    QUERY_CANCELED = b"57014",
    ADMIN_SHUTDOWN = b"57P01",
    CRASH_SHUTDOWN = b"57P02",
    CANNOT_CONNECT_NOW = b"57P03",
    IDLE_SESSION_TIMEOUT = b"57P05",
    IO_ERROR = b"58030",
    INTERNAL_ERROR = b"XX000",
}

impl SqlState {
    /// The state with this code; `XX000` if it isn't five ASCII letters and digits.
    pub fn from_code(code: &str) -> Self {
        match <[u8; 5]>::try_from(code.as_bytes()) {
            Ok(bytes) if bytes.iter().all(u8::is_ascii_alphanumeric) => Self(bytes),
            _ => Self::INTERNAL_ERROR,
        }
    }

    /// The five characters.
    pub fn code(&self) -> &str {
        std::str::from_utf8(&self.0).expect("made of ASCII only")
    }
}

impl fmt::Debug for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// Why a statement failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct Error {
    /// The SQLSTATE: what a program can act on.
    pub state: SqlState,
    /// One line, lower case, without a period.
    pub message: String,
    /// More about the case at hand: whole sentences.
    pub detail: Option<String>,
    /// What to do: whole sentences.
    pub hint: Option<String>,
    /// Where in the statement, in characters from 1.
    pub position: Option<u32>,
    /// What was being done, as in `COPY t, line 3`.
    pub context: Option<String>,
    /// What it is about, for programs.
    pub subject: Option<Box<Subject>>,
}

impl Error {
    /// An error with a state and a message.
    pub fn new(state: SqlState, message: impl Into<String>) -> Self {
        Self {
            state,
            message: message.into(),
            detail: None,
            hint: None,
            position: None,
            context: None,
            subject: None,
        }
    }

    /// A thing that isn't there (yet): 0A000.
    pub fn unsupported(what: impl fmt::Display) -> Self {
        Self::new(SqlState::FEATURE_NOT_SUPPORTED, format!("{what} is not supported"))
    }

    /// A mistake of ours: XX000.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(SqlState::INTERNAL_ERROR, message)
    }

    /// The same with a detail.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// The same with a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same with what was being done.
    #[must_use]
    pub fn with_context(mut self, context: impl Into<String>) -> Self {
        self.context = Some(context.into());
        self
    }

    /// The same with what it is about.
    #[must_use]
    pub(crate) fn about(mut self, subject: Subject) -> Self {
        self.subject = Some(Box::new(subject));
        self
    }

    /// The same with a position, in characters from 1.
    #[must_use]
    pub fn at(mut self, position: u32) -> Self {
        self.position = Some(position);
        self
    }
}

impl From<RowError> for Error {
    fn from(error: RowError) -> Self {
        Self::new(SqlState::from_code(&error.sqlstate), error.message)
    }
}

impl From<HostError> for Error {
    fn from(error: HostError) -> Self {
        let state = match &error {
            HostError::Row(row) => SqlState::from_code(&row.sqlstate),
            HostError::FrameGone(_) | HostError::WrongEpoch { .. } => {
                SqlState::SERIALIZATION_FAILURE
            }
            HostError::Unsupported(_) => SqlState::FEATURE_NOT_SUPPORTED,
            HostError::UnknownRelation(_) | HostError::Invalid(_) => SqlState::INTERNAL_ERROR,
            HostError::Failed(_) => SqlState::CRASH_SHUTDOWN,
            HostError::Unreachable(_) => SqlState::CANNOT_CONNECT_NOW,
        };
        Self::new(state, error.to_string())
    }
}

impl From<CoordinatorError> for Error {
    fn from(error: CoordinatorError) -> Self {
        let state = match &error {
            CoordinatorError::NotReady(_) => SqlState::CANNOT_CONNECT_NOW,
            CoordinatorError::Deadlock => SqlState::DEADLOCK_DETECTED,
            CoordinatorError::LockTimeout => SqlState::LOCK_NOT_AVAILABLE,
            CoordinatorError::CatalogChanged => SqlState::SERIALIZATION_FAILURE,
            CoordinatorError::UnknownTransaction => SqlState::INTERNAL_ERROR,
            CoordinatorError::Failed(_) => SqlState::CRASH_SHUTDOWN,
            CoordinatorError::Unknown(_) => SqlState::TRANSACTION_RESOLUTION_UNKNOWN,
        };
        Self::new(state, error.to_string())
    }
}
