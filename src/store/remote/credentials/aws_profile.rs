//! A profile of AWS's configuration files: keys or how they are got, region and endpoint. AWS SDKs
//! and Tools Reference Guide, section "Shared config and credentials files".

use std::fmt;
use std::path::PathBuf;

use object_store::aws::AwsCredential;

use crate::store::remote::credentials::aws_ini::{AwsIni, Section};
use crate::store::remote::credentials::command::Program;
use crate::store::remote::credentials::command_words;
use crate::store::remote::credentials::credential_error::CredentialError;
use crate::store::remote::credentials::environment::Environment;
use crate::store::remote::credentials::small_file::{self, Author};
use crate::store::remote::credentials::static_credentials::aws_credential;

/// How a profile gives keys.
pub(crate) enum ProfileKeys {
    /// Keys in a file.
    Keys(AwsCredential),
    /// `credential_process`
    Program(Program),
    /// `web_identity_token_file` with `role_arn`
    WebIdentity(WebIdentity),
}

/// A token of another provider, which is exchanged for keys of a role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WebIdentity {
    /// The file of the token.
    pub(crate) token_file: String,
    /// The role.
    pub(crate) role_arn: String,
    /// The name of the session, for AWS's own logs.
    pub(crate) session_name: Option<String>,
}

impl fmt::Debug for ProfileKeys {
    /// Leaves keys and arguments out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ProfileKeys::Keys(_) => "Keys",
            ProfileKeys::Program(_) => "Program",
            ProfileKeys::WebIdentity(_) => "WebIdentity",
        })
    }
}

/// A profile, with what both files say of it.
#[derive(Debug)]
pub(crate) struct Profile {
    name: String,
    /// The sections of the profile, of which the first goes before the others.
    parts: Vec<Part>,
    /// The endpoint that its `services` section has for S3.
    s3_endpoint: Option<String>,
    /// The variables that its program gets.
    variables: Vec<(String, String)>,
}

/// A section of a profile.
#[derive(Debug)]
struct Part {
    path: PathBuf,
    author: Author,
    section: Section,
}

impl Profile {
    /// Reads the profile `explicit`, or the one that `AWS_PROFILE` names, or `default`. `None` when
    /// no profile was named, and there is no `default`.
    ///
    /// # Errors
    /// [`CredentialError`] when a file cannot be read, or a named profile is not there.
    pub(crate) fn load(
        explicit: Option<&str>,
        env: &Environment,
    ) -> Result<Option<Profile>, CredentialError> {
        let named = match explicit {
            Some(name) => Some(("--profile", name.to_owned())),
            None => env.first(&["AWS_PROFILE", "AWS_DEFAULT_PROFILE"]),
        };
        let name = named.as_ref().map_or("default", |(_, name)| name);
        let mut profile = Profile {
            name: name.to_owned(),
            parts: Vec::new(),
            s3_endpoint: None,
            variables: env.of_file(),
        };
        let credentials = path(env, "AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials");
        let config = path(env, "AWS_CONFIG_FILE", "~/.aws/config");
        profile.add(credentials.as_ref(), &[""])?;
        // `[profile default]` goes before `[default]`; other names need the word.
        let kinds: &[_] = if name == "default" {
            &["profile", ""]
        } else {
            &["profile"]
        };
        profile.add(config.as_ref(), kinds)?;
        if !profile.parts.is_empty() {
            return Ok(Some(profile));
        }
        let Some((option, _)) = named else {
            return Ok(None);
        };
        let shown = |path: Option<PathBuf>| path.map(|path| path.display().to_string());
        let files: Vec<_> = [config, credentials]
            .into_iter()
            .filter_map(shown)
            .collect();
        let problem = if files.is_empty() {
            format!("the profile {name:?} is not found, because HOME is not set")
        } else {
            format!("the profile {name:?} is not in {}", files.join(" or "))
        };
        Err(CredentialError::setting(option, problem))
    }

    /// Adds the section of the profile in a file, if it is there.
    fn add(&mut self, path: Option<&PathBuf>, kinds: &[&str]) -> Result<(), CredentialError> {
        let Some(path) = path else {
            return Ok(());
        };
        let Some(file) = small_file::read_if_present(path)? else {
            return Ok(());
        };
        let mut ini = AwsIni::parse(path, &file.text)?;
        let Some(section) = kinds.iter().find_map(|kind| ini.take(kind, &self.name)) else {
            return Ok(());
        };
        let services = section.get("services");
        let services = services.and_then(|services| ini.section("services", services));
        let s3_endpoint = services.and_then(|services| services.nested("s3", "endpoint_url"));
        if let Some(endpoint) = s3_endpoint {
            self.s3_endpoint = Some(endpoint.to_owned());
        }
        self.parts.push(Part {
            path: path.clone(),
            author: file.author,
            section,
        });
        Ok(())
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The region.
    pub(crate) fn region(&self) -> Option<&str> {
        self.get("region")
    }

    /// The URL of the server for S3, unless the profile says that it does not count.
    pub(crate) fn endpoint(&self) -> Option<&str> {
        let ignored = self.get("ignore_configured_endpoint_urls");
        if ignored.is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return None;
        }
        let s3_endpoint = self.s3_endpoint.as_deref();
        s3_endpoint.or_else(|| self.get("endpoint_url"))
    }

    /// `addressing_style` of S3: `path`, `virtual` or `auto`.
    pub(crate) fn addressing_style(&self) -> Option<&str> {
        let mut parts = self.parts.iter();
        parts.find_map(|part| part.section.nested("s3", "addressing_style"))
    }

    /// How the profile gives keys; `None` when it says nothing of them. A role goes before keys,
    /// and keys before a program, as in AWS's own command. Keys also go before a sign-in, which
    /// would be refused.
    ///
    /// # Errors
    /// [`CredentialError`] for keys without their secret, for a program that is not safe to run,
    /// and for roles and sign-ins, which only AWS's own command can use.
    pub(crate) fn keys(&self) -> Result<Option<ProfileKeys>, CredentialError> {
        if let Some(role_arn) = self.get("role_arn") {
            let token_file = self.get("web_identity_token_file");
            let token_file = token_file.ok_or_else(|| self.unsupported("a role (role_arn)"))?;
            return Ok(Some(ProfileKeys::WebIdentity(WebIdentity {
                token_file: token_file.to_owned(),
                role_arn: role_arn.to_owned(),
                session_name: self.get("role_session_name").map(str::to_owned),
            })));
        }
        for part in &self.parts {
            if let Some(keys) = self.keys_of(part)? {
                return Ok(Some(ProfileKeys::Keys(keys)));
            }
        }
        if let Some(program) = self.program()? {
            return Ok(Some(ProfileKeys::Program(program)));
        }
        if self
            .parts
            .iter()
            .any(|part| part.section.has_prefix("sso_"))
        {
            return Err(self.unsupported("a sign-in (SSO, IAM Identity Center)"));
        }
        for (property, what) in [
            ("login_session", "a sign-in (aws login)"),
            ("source_profile", "another profile (source_profile)"),
            (
                "web_identity_token_file",
                "a web identity without a role_arn",
            ),
        ] {
            if self.get(property).is_some() {
                return Err(self.unsupported(what));
            }
        }
        Ok(None)
    }

    /// The keys in one section. Parts of a key in two files do not belong together.
    fn keys_of(&self, part: &Part) -> Result<Option<AwsCredential>, CredentialError> {
        let get = |name: &str| part.section.get(name);
        let (id, secret) = (get("aws_access_key_id"), get("aws_secret_access_key"));
        let (id, secret) = match (id, secret) {
            (None, None) => return Ok(None),
            (Some(id), Some(secret)) => (id, secret),
            (Some(_), None) => return Err(self.problem("it has no aws_secret_access_key")),
            (None, Some(_)) => return Err(self.problem("it has no aws_access_key_id")),
        };
        let keys = aws_credential(id, secret, get("aws_session_token"));
        let problem = "its keys have characters that no key has";
        keys.ok_or_else(|| self.problem(problem)).map(Some)
    }

    fn program(&self) -> Result<Option<Program>, CredentialError> {
        let found = self.parts.iter().find_map(|part| {
            let command = part.section.get("credential_process")?;
            Some((part, command))
        });
        let Some((part, command)) = found else {
            return Ok(None);
        };
        if part.author == Author::Anybody {
            let problem = "its credential_process is not run, because other users can change this \
                           file; it must belong to the user who mounts, or to root, and others may \
                           not write to it";
            return Err(CredentialError::file(&part.path, problem));
        }
        let words = command_words::split(command);
        let program = words.and_then(|words| Program::new(words, self.variables.clone()));
        let problem = "its credential_process is no command: a quote is not closed, or it is empty";
        program.ok_or_else(|| self.problem(problem)).map(Some)
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.parts.iter().find_map(|part| part.section.get(name))
    }

    fn problem(&self, problem: impl Into<String>) -> CredentialError {
        CredentialError::setting(format!("profile {:?}", self.name), problem)
    }

    fn unsupported(&self, what: &str) -> CredentialError {
        let name = &self.name;
        self.problem(format!(
            "its credentials come from {what}, which only AWS's own command can use; make another \
             profile that has `credential_process = aws configure export-credentials --profile \
             {name} --format process`, and name it by --profile"
        ))
    }
}

/// The path that `variable` says, or `usual`; `None` without a home.
fn path(env: &Environment, variable: &str, usual: &str) -> Option<PathBuf> {
    let path = env.get(variable);
    env.in_home(path.as_deref().unwrap_or(usual))
}

#[cfg(test)]
mod tests;
