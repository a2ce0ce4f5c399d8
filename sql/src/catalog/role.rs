//! Who may connect.

use serde::{Deserialize, Serialize};

/// A role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Role {
    /// Its OID.
    pub oid: u32,
    /// Whether it may do everything with roles.
    pub superuser: bool,
    /// Whether it may make roles and change those that aren't superusers.
    pub create_role: bool,
    /// Whether it may connect.
    pub login: bool,
    /// The verifier of its password, as it is shown; never the password.
    #[serde(default)]
    pub verifier: Option<String>,
}
