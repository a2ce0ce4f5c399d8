//! `pg_roles` and what else shows roles.

use crate::ddl::is_superuser;
use crate::query::QueryContext;
use crate::system::table::Cell;
use crate::system::{OWNER, OWNER_OID};
use crate::{Catalog, Role};

/// All roles by name, the owner of everything first.
fn all(catalog: &Catalog) -> Vec<(&str, Role)> {
    let owner =
        Role { oid: OWNER_OID, superuser: true, create_role: true, login: true, verifier: None };
    let others = catalog.roles.iter().filter(|(name, _)| *name != OWNER);
    let others = others.map(|(name, role)| (name.as_str(), role.clone()));
    let owner = catalog.roles.get(OWNER).cloned().unwrap_or(owner);
    std::iter::once((OWNER, owner)).chain(others).collect()
}

/// The OID of a role.
pub(in crate::system) fn oid(catalog: &Catalog, name: &str) -> Option<u32> {
    let mut roles = all(catalog).into_iter();
    roles.find(|(known, _)| *known == name).map(|(_, role)| role.oid)
}

/// The name of a role.
pub(in crate::system) fn name(catalog: &Catalog, oid: u32) -> Option<String> {
    let mut roles = all(catalog).into_iter();
    roles.find(|(_, role)| role.oid == oid).map(|(name, _)| name.to_owned())
}

/// The rows of one of the catalogs.
pub(super) fn rows(context: &QueryContext, catalog: &str) -> Vec<Vec<Cell>> {
    let shows_verifiers = is_superuser(context);
    let roles = all(&context.catalog).into_iter();
    let row = |(name, role): (&str, Role)| {
        let Role { oid, superuser, create_role, login, verifier } = role;
        let verifier = verifier.filter(|_| shows_verifiers);
        match catalog {
            "pg_roles" => vec![
                name.into(),
                superuser.into(),
                true.into(), // rolinherit
                (superuser || create_role).into(),
                superuser.into(), // rolcreatedb
                login.into(),
                superuser.into(), // rolreplication
                (-1).into(),      // rolconnlimit
                "********".into(),
                Cell::Null,       // rolvaliduntil
                superuser.into(), // rolbypassrls
                Cell::Null,
                oid.into(),
            ],
            "pg_authid" => vec![
                oid.into(),
                name.into(),
                superuser.into(),
                true.into(), // rolinherit
                (superuser || create_role).into(),
                superuser.into(), // rolcreatedb
                login.into(),
                superuser.into(), // rolreplication
                superuser.into(), // rolbypassrls
                (-1).into(),
                verifier.into(),
                Cell::Null,
            ],
            _ => {
                let password: Cell =
                    if catalog == "pg_user" { "********".into() } else { verifier.into() };
                vec![
                    name.into(),
                    oid.into(),
                    superuser.into(), // usecreatedb
                    superuser.into(),
                    superuser.into(), // userepl
                    superuser.into(), // usebypassrls
                    password,
                ]
            }
        }
    };
    let may_log_in = |role: &Role| !matches!(catalog, "pg_user" | "pg_shadow") || role.login;
    roles.filter(|(_, role)| may_log_in(role)).map(row).collect()
}
