//! Construction of stores by kind, from the environment and from options.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::{ClientConfigKey, ObjectStore, RetryConfig};

use crate::error::{Error, Result};
use crate::settings::Setting;

use super::address::Address;
use super::counted::{Counting, Counts};
use super::local::Kind;

/// Names of Windrow's own options.
const MAX_RETRIES: &str = "max_retries";
const RETRY_TIMEOUT: &str = "retry_timeout";

/// The most common options, for messages.
const SOME: &str = "endpoint, region, access_key_id, secret_access_key, session_token, skip_signature, allow_http, \
                    service_account_key, account_name, account_key, timeout, max_retries, retry_timeout";

/// Refuses options unknown to all stores, and malformed values of Windrow's own options.
pub(super) fn check(options: &[(String, String)]) -> Result<()> {
    for (key, value) in options {
        let name = key.to_ascii_lowercase();
        let known = name.parse::<AmazonS3ConfigKey>().is_ok()
            || name.parse::<GoogleConfigKey>().is_ok()
            || name.parse::<AzureConfigKey>().is_ok()
            || name.parse::<ClientConfigKey>().is_ok();
        let what = match &*name {
            _ if known => continue,
            MAX_RETRIES if value.parse::<usize>().is_err() => "takes a number",
            RETRY_TIMEOUT if seconds(value).is_none() => "takes seconds, as 30 or 30s",
            MAX_RETRIES | RETRY_TIMEOUT => continue,
            _ => {
                return Err(Error::usage(format!(
                    "{}: no store has an option {key:?}; there are {SOME}, and what AWS_*, GOOGLE_* and AZURE_* \
                     variables are called",
                    Setting::StoreOption
                )));
            }
        };
        return Err(Error::usage(format!("{} {key}={value}: {what}", Setting::StoreOption)));
    }
    Ok(())
}

fn seconds(value: &str) -> Option<Duration> {
    value.strip_suffix('s').unwrap_or(value).parse().ok().map(Duration::from_secs)
}

/// Returns the limits on repetitions of a request, in number and time.
fn retries(options: &[(String, String)]) -> RetryConfig {
    let mut retries = RetryConfig::default();
    for (key, value) in options {
        match &*key.to_ascii_lowercase() {
            MAX_RETRIES => retries.max_retries = value.parse().unwrap_or(retries.max_retries),
            RETRY_TIMEOUT => {
                retries.retry_timeout = seconds(value).unwrap_or(retries.retry_timeout)
            }
            _ => {}
        }
    }
    retries
}

/// Makes the store of `address`.
///
/// # Errors
/// `Usage` for options in conflict.
pub(super) fn store(
    address: &Address,
    options: &[(String, String)],
    counts: &Arc<Counts>,
) -> Result<Arc<dyn ObjectStore>> {
    // Options for other kinds of stores are ignored: other addresses may need the options.
    macro_rules! built {
        ($builder:expr) => {{
            let mut builder = $builder
                .with_url(address.root.clone())
                .with_http_connector(Counting(Arc::clone(counts)))
                .with_retry(retries(options));
            for (key, value) in options {
                if let Ok(key) = key.to_ascii_lowercase().parse() {
                    builder = builder.with_config(key, value.clone());
                }
            }
            builder.build().map(|store| Arc::new(store) as Arc<dyn ObjectStore>)
        }};
    }
    let store = match address.kind {
        Kind::S3 => built!(AmazonS3Builder::from_env()),
        Kind::Google => built!(GoogleCloudStorageBuilder::from_env()),
        Kind::Azure => built!(MicrosoftAzureBuilder::from_env()),
        Kind::Http => {
            // The scheme http:// is explicit permission.
            let plain = address.root.starts_with("http://");
            built!(HttpBuilder::new().with_config(ClientConfigKey::AllowHttp, plain.to_string()))
        }
    };
    store.map_err(|cause| Error::usage(format!("{}: {}", address.root, super::fault::told(&cause))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_known_or_refused() {
        let checked = |key: &str, value: &str| check(&[(key.to_owned(), value.to_owned())]);
        for known in [
            "region",
            "aws_region",
            "AWS_REGION",
            "google_service_account_key",
            "azure_storage_account_name",
            "skip_signature",
            "timeout",
            "allow_http",
        ] {
            assert!(checked(known, "1").is_ok(), "{known}");
        }
        assert!(checked("max_retries", "3").is_ok() && checked("retry_timeout", "10s").is_ok());
        for (key, value) in [("regoin", "x"), ("max_retries", "-1"), ("retry_timeout", "soon")] {
            assert!(checked(key, value).is_err(), "{key}");
        }
        let options = [("MAX_RETRIES".to_owned(), "2".to_owned())];
        assert_eq!(retries(&options).max_retries, 2);
    }
}
