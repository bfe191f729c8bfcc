//! The environment variables that the program and its libraries read, for the man page.

/// Names of variables, with commas between them, and the meaning of the variables.
pub(super) const VARIABLES: [(&str, &str); 38] = [
    ("NO_COLOR", "if it is not empty, nothing is coloured"),
    (
        "TERM",
        "the terminal; nothing is coloured if it is absent or dumb",
    ),
    (
        "CLICOLOR, CLICOLOR_FORCE",
        "whether --help and progress bars are coloured",
    ),
    (
        "COLUMNS",
        "the width of --help, if the terminal does not report its own",
    ),
    (
        "PATH",
        "where fusermount3, az and the programs of credential_process are looked for",
    ),
    ("FUSERMOUNT_PATH", "another program than fusermount3"),
    (
        "HOME",
        "where the configuration files of clouds are: ~/.aws, ~/.config/gcloud",
    ),
    (
        "NOTIFY_SOCKET",
        "set by systemd, which is notified when the mount answers",
    ),
    (
        "HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY",
        "the proxies of remote stores, and the hosts that are reached without one; in lower case, too",
    ),
    (
        "SSL_CERT_FILE, SSL_CERT_DIR",
        "the certificates that are trusted, in place of the system's; --ca-file adds some",
    ),
    (
        "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN",
        "keys for S3",
    ),
    (
        "AWS_PROFILE, AWS_DEFAULT_PROFILE",
        "the profile, as --profile",
    ),
    (
        "AWS_CONFIG_FILE, AWS_SHARED_CREDENTIALS_FILE",
        "the files of profiles, in place of ~/.aws/config and ~/.aws/credentials",
    ),
    (
        "AWS_REGION, AWS_DEFAULT_REGION",
        "the region of the bucket, as --region",
    ),
    (
        "AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, AWS_ENDPOINT",
        "the server of s3://, as --endpoint",
    ),
    (
        "AWS_ENDPOINT_URL_STS",
        "the server that gives keys for a web identity",
    ),
    (
        "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
        "true: the server is not taken from the variables and files above",
    ),
    (
        "AWS_VIRTUAL_HOSTED_STYLE_REQUEST",
        "whether the bucket is in the name of the host (true) or in the path (false)",
    ),
    (
        "AWS_REQUEST_PAYER",
        "requester: pay for requests, as --requester-pays",
    ),
    (
        "AWS_NO_SIGN_REQUEST, AWS_SKIP_SIGNATURE, GOOGLE_SKIP_SIGNATURE, AZURE_SKIP_SIGNATURE",
        "true: requests without credentials, as --anonymous",
    ),
    (
        "AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_ARN, AWS_ROLE_SESSION_NAME",
        "a web identity, as Kubernetes gives it to a pod",
    ),
    (
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI, AWS_CONTAINER_CREDENTIALS_FULL_URI, \
         AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
        "the keys of a container",
    ),
    (
        "AWS_METADATA_ENDPOINT, AWS_EC2_METADATA_SERVICE_ENDPOINT, AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE, \
         AWS_EC2_METADATA_DISABLED",
        "where the keys of the machine are, and whether to look for them",
    ),
    (
        "GOOGLE_APPLICATION_CREDENTIALS",
        "a file with credentials for gs://",
    ),
    (
        "GOOGLE_SERVICE_ACCOUNT, GOOGLE_SERVICE_ACCOUNT_PATH, SERVICE_ACCOUNT",
        "a file with the key of a service account",
    ),
    (
        "GOOGLE_SERVICE_ACCOUNT_KEY, GOOGLE_BEARER_TOKEN",
        "the key of a service account, or a token, as the value itself",
    ),
    (
        "GOOGLE_BASE_URL, STORAGE_EMULATOR_HOST",
        "the server of gs://, as --endpoint",
    ),
    ("CLOUDSDK_CONFIG", "the directory of gcloud's configuration"),
    (
        "GCE_METADATA_HOST, GCE_METADATA_ROOT, NO_GCE_CHECK, K_SERVICE, CLOUD_RUN_JOB",
        "where the credentials of the machine are, and whether to look for them",
    ),
    (
        "AZURE_STORAGE_ACCOUNT_NAME, AZURE_STORAGE_ACCOUNT",
        "the account of az://",
    ),
    (
        "AZURE_STORAGE_ACCOUNT_KEY, AZURE_STORAGE_ACCESS_KEY, AZURE_STORAGE_MASTER_KEY, AZURE_STORAGE_KEY, \
         AZURE_STORAGE_CONNECTION_STRING",
        "the key of the account of az://",
    ),
    (
        "AZURE_STORAGE_TOKEN, AZURE_STORAGE_SAS_TOKEN, AZURE_STORAGE_SAS_KEY",
        "a token, or a shared access signature",
    ),
    (
        "AZURE_CLIENT_ID, AZURE_CLIENT_SECRET, AZURE_TENANT_ID, AZURE_AUTHORITY_ID, AZURE_AUTHORITY_HOST, \
         AZURE_STORAGE_CLIENT_ID, AZURE_STORAGE_CLIENT_SECRET, AZURE_STORAGE_TENANT_ID, AZURE_STORAGE_AUTHORITY_ID, \
         AZURE_STORAGE_AUTHORITY_HOST",
        "a service principal",
    ),
    (
        "AZURE_FEDERATED_TOKEN_FILE",
        "a workload identity, as Kubernetes gives it to a pod",
    ),
    (
        "IDENTITY_ENDPOINT, IDENTITY_HEADER, AZURE_MSI_ENDPOINT, AZURE_IDENTITY_ENDPOINT, AZURE_OBJECT_ID, \
         AZURE_MSI_RESOURCE_ID",
        "a managed identity",
    ),
    ("AZURE_USE_AZURE_CLI", "true: the user of az login"),
    (
        "AZURE_STORAGE_ENDPOINT, AZURE_ENDPOINT, AZURE_USE_FABRIC_ENDPOINT",
        "the server of az://, as --endpoint; true: the server of Microsoft Fabric",
    ),
    (
        "AZURE_STORAGE_USE_EMULATOR, AZURITE_BLOB_STORAGE_URL",
        "true: the server is an emulator of the storage; the address of the emulator",
    ),
];
