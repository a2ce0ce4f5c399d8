//! CREATE, ALTER and DROP ROLE, with the other names they have.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::{Cursor, Utility};
use crate::Error;

/// A statement about roles.
#[derive(Clone, Debug)]
pub(crate) enum RoleStatement {
    Create { name: String, options: RoleOptions },
    Alter { name: String, options: RoleOptions },
    Drop { names: Vec<String>, if_exists: bool },
}

/// What is said of a role.
#[derive(Clone, Debug, Default)]
pub(crate) struct RoleOptions {
    pub(crate) superuser: Option<bool>,
    pub(crate) create_role: Option<bool>,
    pub(crate) login: Option<bool>,
    /// A password or a verifier of one; none takes it away.
    pub(crate) password: Option<Option<String>>,
}

impl RoleStatement {
    /// Its command tag.
    pub(crate) fn tag(&self) -> &'static str {
        match self {
            Self::Create { .. } => "CREATE ROLE",
            Self::Alter { .. } => "ALTER ROLE",
            Self::Drop { .. } => "DROP ROLE",
        }
    }
}

impl Cursor<'_> {
    /// What follows CREATE, ALTER or DROP, if it is about a role.
    pub(super) fn role(&mut self, command: &str) -> Result<Option<Utility>, Error> {
        let is_user = self.accept("user");
        // CREATE USER MAPPING is about something else.
        if !is_user && !self.accept("role") || is_user && self.accept("mapping") {
            return Ok(None);
        }
        let statement = match command {
            "drop" => {
                let if_exists = self.accept("if");
                if if_exists {
                    self.expect("exists")?;
                }
                let mut names = vec![self.name()?];
                while self.accept_token(&Token::Comma) {
                    names.push(self.name()?);
                }
                RoleStatement::Drop { names, if_exists }
            }
            "create" => {
                let name = self.name()?;
                let mut options = self.role_options()?;
                options.login.get_or_insert(is_user);
                RoleStatement::Create { name, options }
            }
            _ => RoleStatement::Alter { name: self.name()?, options: self.role_options()? },
        };
        self.end()?;
        Ok(Some(Utility::Role(statement)))
    }

    fn role_options(&mut self) -> Result<RoleOptions, Error> {
        self.accept("with");
        let mut options = RoleOptions::default();
        while let Some(word) = self.word() {
            self.place += 1;
            match word.as_str() {
                "superuser" => options.superuser = Some(true),
                "nosuperuser" => options.superuser = Some(false),
                "createrole" => options.create_role = Some(true),
                "nocreaterole" => options.create_role = Some(false),
                "login" => options.login = Some(true),
                "nologin" => options.login = Some(false),
                // There is nothing that these would allow or forbid.
                "inherit" | "noinherit" | "createdb" | "nocreatedb" | "replication"
                | "noreplication" | "bypassrls" | "nobypassrls" => {}
                "encrypted" => {
                    self.expect("password")?;
                    options.password = Some(Some(self.quoted()?));
                }
                "password" => {
                    let is_null = self.accept("null");
                    options.password = Some(if is_null { None } else { Some(self.quoted()?) });
                }
                "connection" => {
                    self.expect("limit")?;
                    self.value()?;
                    return Err(Error::unsupported("CONNECTION LIMIT"));
                }
                "valid" => return Err(Error::unsupported("VALID UNTIL")),
                "in" | "role" | "user" | "admin" => {
                    return Err(Error::unsupported("membership in roles"));
                }
                "set" | "reset" => return Err(Error::unsupported("settings of a role")),
                "rename" => return Err(Error::unsupported("ALTER ROLE ... RENAME")),
                _ => {
                    self.place -= 1;
                    return Err(self.unexpected());
                }
            }
        }
        Ok(options)
    }

    fn quoted(&mut self) -> Result<String, Error> {
        match self.tokens.get(self.place).map(|token| &token.token) {
            Some(Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text)) => {
                let text = text.clone();
                self.place += 1;
                Ok(text)
            }
            _ => Err(self.unexpected()),
        }
    }
}
