//! What SQS's errors mean, and how long it may take to answer.

use std::error::Error as StdError;
use std::time::Duration;

use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use tokio::time::timeout;

use super::super::AdapterError;

/// How long a request may take, the client's own retries included. A connection that died without a word would hang.
pub(super) const ANSWER: Duration = Duration::from_secs(10);

/// Sends a request, and waits for the answer no longer than that. `what` did not happen, in words.
pub(super) async fn answered<T, E>(
    what: &str,
    patience: Duration,
    request: impl Future<Output = Result<T, SdkError<E>>>,
) -> Result<T, AdapterError>
where
    E: ProvideErrorMetadata + StdError + Send + Sync + 'static,
{
    // The client's futures are so large that a few of them, one in the other, are too much for a stack.
    match timeout(patience, Box::pin(request)).await {
        Ok(answer) => answer.map_err(|error| of(what, error)),
        Err(_) => Err(AdapterError::unreachable(format!("{what}: no answer within {} seconds", patience.as_secs()))),
    }
}

fn of<E>(what: &str, error: SdkError<E>) -> AdapterError
where
    E: ProvideErrorMetadata + StdError + Send + Sync + 'static,
{
    match &error {
        SdkError::ServiceError(answer) => coded(what, answer.err().code(), answer.err().message()),
        SdkError::ConstructionFailure(_) => {
            AdapterError::refused(format!("{what}: the client cannot make the request")).because(error)
        }
        SdkError::DispatchFailure(failure) if failure.is_user() => {
            AdapterError::refused(format!("{what}: the client is not set up for it")).because(error)
        }
        _ => AdapterError::unreachable(format!("{what}: SQS did not answer")).because(error),
    }
}

/// What a code of SQS's means, as the answer to a request or to one entry of it. Codes have two spellings, of the old
/// protocol and of the new one.
pub(super) fn coded(what: &str, code: Option<&str>, message: Option<&str>) -> AdapterError {
    let (code, message) = (code.unwrap_or("no code"), message.unwrap_or("without a word"));
    let name = name(code);
    let error = match name {
        "NonExistentQueue" | "QueueDoesNotExist" => AdapterError::refused(format!(
            "{what}: there is no such queue in this region and account, or the credentials may not see it"
        )),
        _ if is_denied(code) => AdapterError::refused(format!("{what}: the credentials lack the permission")),
        "InvalidClientTokenId"
        | "UnrecognizedClient"
        | "InvalidAccessKeyId"
        | "SignatureDoesNotMatch"
        | "InvalidSignature"
        | "IncompleteSignature"
        | "MissingAuthenticationToken"
        | "InvalidSecurity" => AdapterError::refused(format!("{what}: SQS does not take the credentials")),
        // The handle is in the message, which is long and says nothing.
        "ReceiptHandleIsInvalid" | "MessageNotInflight" => return taken_back(code),
        "InvalidParameterValue" if ["ReceiptHandle", "VisibilityTimeout"].iter().any(|it| message.contains(it)) => {
            return taken_back(code);
        }
        "InvalidParameterValue" | "InvalidMessageContents" | "UnsupportedOperation" | "InvalidAddress" => {
            AdapterError::refused(format!("{what}: SQS does not take the request"))
        }
        _ if name.starts_with("Kms") && name != "KmsThrottled" => {
            AdapterError::refused(format!("{what}: the queue's encryption key cannot be used"))
        }
        _ => AdapterError::unreachable(format!("{what}: SQS did not do as it was asked")),
    };
    error.because(format!("{code}: {message}"))
}

pub(super) fn is_denied(code: &str) -> bool {
    matches!(name(code), "AccessDenied" | "NotAuthorized" | "OptInRequired")
}

fn name(code: &str) -> &str {
    let name = code.rsplit(['.', '#']).next().unwrap_or(code);
    name.strip_suffix("Exception").unwrap_or(name)
}

fn taken_back(code: &str) -> AdapterError {
    AdapterError::stale("the visibility timeout ended, or 12 hours have passed: SQS gives the message out again")
        .because(code.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::super::AdapterFault;
    use super::*;

    #[test]
    fn codes_of_both_protocols_mean_the_same() {
        let fault = |code: &str, message: &str| coded("it", Some(code), Some(message)).fault;
        for code in
            ["AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist", "com.amazonaws.sqs#QueueDoesNotExist"]
        {
            assert_eq!(fault(code, ""), AdapterFault::Refused, "{code}");
        }
        for code in ["AccessDenied", "AccessDeniedException", "UnrecognizedClientException", "KmsDisabled"] {
            assert_eq!(fault(code, ""), AdapterFault::Refused, "{code}");
        }
        let expired = "Value AQEB for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired.";
        let beyond = "Total VisibilityTimeout for the message is beyond the limit [43200 seconds].";
        assert_eq!(fault("InvalidParameterValue", expired), AdapterFault::Stale);
        assert_eq!(fault("InvalidParameterValueException", beyond), AdapterFault::Stale);
        assert_eq!(fault("ReceiptHandleIsInvalid", ""), AdapterFault::Stale);
        assert_eq!(fault("InvalidParameterValue", "Message must be shorter"), AdapterFault::Refused);
        for code in ["RequestThrottled", "KmsThrottled", "OverLimit", "InternalFailure", "ExpiredToken"] {
            assert_eq!(fault(code, ""), AdapterFault::Unreachable, "{code}");
        }
    }
}
