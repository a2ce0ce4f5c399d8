//! CREATE, ALTER and DROP ROLE.
//!
//! Roles say who may connect. What is there everybody may use who can: only roles themselves are
//! guarded, by SUPERUSER and CREATEROLE.

use super::Edit;
use crate::catalog::Role;
use crate::parser::{RoleOptions, RoleStatement};
use crate::query::QueryContext;
use crate::scram::Verifier;
use crate::session::Notice;
use crate::{Catalog, Error, SqlState, system};

/// Makes, changes or removes roles.
pub(super) fn run(context: &QueryContext, statement: &RoleStatement) -> Result<Edit, Error> {
    let mut catalog = (*context.catalog).clone();
    let user = context.settings.user();
    match statement {
        RoleStatement::Create { name, options } => {
            let allowed = may_make_roles(context)
                && (options.superuser != Some(true) || is_superuser(context));
            if !allowed {
                return Err(denied("permission denied to create role"));
            }
            check_name(name)?;
            if name == system::OWNER || catalog.roles.contains_key(name) {
                let message = format!("role \"{name}\" already exists");
                return Err(Error::new(SqlState::DUPLICATE_OBJECT, message));
            }
            let oid = catalog.allocate();
            let role =
                Role { oid, superuser: false, create_role: false, login: false, verifier: None };
            let notices = notices(options);
            catalog.roles.insert(name.clone(), changed(role, options));
            Ok(with_notices(catalog, notices))
        }
        RoleStatement::Alter { name, options } => {
            let name = match name.as_str() {
                "current_user" | "session_user" | "current_role" => user,
                name => name,
            };
            // The role that everything belongs to is there before anybody says anything of it.
            let found = catalog.roles.get(name).cloned();
            let found = found.or_else(|| (name == system::OWNER).then(owner));
            let role = found.ok_or_else(|| missing(name))?;
            let RoleOptions { superuser, create_role, login, .. } = options;
            let only_own_password =
                name == user && superuser.is_none() && create_role.is_none() && login.is_none();
            let touches_superuser = role.superuser || *superuser == Some(true);
            let allowed = is_superuser(context)
                || only_own_password
                || may_make_roles(context) && !touches_superuser;
            if !allowed {
                return Err(denied("permission denied"));
            }
            if name == system::OWNER && (*superuser == Some(false) || *login == Some(false)) {
                let message = format!("role \"{name}\" owns everything: it stays what it is");
                return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
            let notices = notices(options);
            catalog.roles.insert(name.to_owned(), changed(role, options));
            Ok(with_notices(catalog, notices))
        }
        RoleStatement::Drop { names, if_exists } => {
            if !may_make_roles(context) {
                return Err(denied("permission denied to drop role"));
            }
            let mut notices = vec![];
            for name in names {
                if name == user {
                    let message = "current user cannot be dropped";
                    return Err(Error::new(SqlState::OBJECT_IN_USE, message));
                }
                if name == system::OWNER {
                    let message = format!("role \"{name}\" cannot be dropped because it is needed");
                    return Err(Error::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message));
                }
                match catalog.roles.get(name) {
                    Some(role) if role.superuser && !is_superuser(context) => {
                        return Err(denied("must be superuser to drop superusers"));
                    }
                    Some(_) => drop(catalog.roles.remove(name)),
                    None if *if_exists => {
                        let message = format!("role \"{name}\" does not exist, skipping");
                        notices
                            .push(Notice::of(Error::new(SqlState::SUCCESSFUL_COMPLETION, message)));
                    }
                    None => return Err(missing(name)),
                }
            }
            Ok(with_notices(catalog, notices))
        }
    }
}

fn with_notices(catalog: Catalog, notices: Vec<Notice>) -> Edit {
    Edit::Changed { catalog, locked: vec![], notices, rewrites: vec![], checks: vec![] }
}

fn notices(options: &RoleOptions) -> Vec<Notice> {
    let is_empty = options.password == Some(Some(String::new()));
    let notice = is_empty.then(|| {
        let message = "empty string is not a valid password, clearing password";
        Notice::of(Error::new(SqlState::SUCCESSFUL_COMPLETION, message))
    });
    notice.into_iter().collect()
}

fn changed(role: Role, options: &RoleOptions) -> Role {
    let RoleOptions { superuser, create_role, login, password } = options;
    let verifier = match password {
        None => role.verifier,
        Some(None) => None,
        Some(Some(text)) if text.is_empty() => None,
        Some(Some(text)) => {
            let verifier = Verifier::parse(text).unwrap_or_else(|| Verifier::of_password(text));
            Some(verifier.to_string())
        }
    };
    Role {
        oid: role.oid,
        superuser: superuser.unwrap_or(role.superuser),
        create_role: create_role.unwrap_or(role.create_role),
        login: login.unwrap_or(role.login),
        verifier,
    }
}

/// The role that everything belongs to.
fn owner() -> Role {
    let oid = system::OWNER_OID;
    Role { oid, superuser: true, create_role: true, login: true, verifier: None }
}

/// Whether the user may do everything with roles. Who is no role is what it was when it came in: where
/// nobody is asked who it is, everybody may call itself what it likes.
pub(crate) fn is_superuser(context: &QueryContext) -> bool {
    let role = context.catalog.roles.get(context.settings.user());
    role.map_or_else(|| context.settings.is_on("is_superuser"), |role| role.superuser)
}

fn may_make_roles(context: &QueryContext) -> bool {
    let role = context.catalog.roles.get(context.settings.user());
    is_superuser(context) || role.is_some_and(|role| role.create_role)
}

fn check_name(name: &str) -> Result<(), Error> {
    if matches!(name, "public" | "none") || name.starts_with("pg_") {
        let message = format!("role name \"{name}\" is reserved");
        return Err(Error::new(SqlState::RESERVED_NAME, message));
    }
    Ok(())
}

fn missing(name: &str) -> Error {
    Error::new(SqlState::UNDEFINED_OBJECT, format!("role \"{name}\" does not exist"))
}

fn denied(message: &str) -> Error {
    Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
}
