"""What an object storage refuses, as errors of the system whose words a person can act on.

Nothing of what the storage or the libraries say is repeated but short codes: their texts hold
addresses, keys and tokens.
"""

import errno
import re
from typing import Any

_DENIED = "access is denied by the object storage; check your credentials and the bucket's policy"
# Codes that storages answer with, numbers of the system that say the same, and words for them.
_CODES = {
    "NoSuchKey": (errno.ENOENT, "no such object"),
    "404": (errno.ENOENT, "no such object"),
    # Not "no such file": of a bucket that a wrong endpoint does not have, nothing is gone.
    "NoSuchBucket": (errno.ENODEV, "there is no such bucket at this endpoint"),
    "InvalidBucketName": (errno.ENODEV, "no bucket can have this name"),
    "AccessDenied": (errno.EACCES, _DENIED),
    "AllAccessDisabled": (errno.EACCES, _DENIED),
    "403": (errno.EACCES, _DENIED),
    "InvalidAccessKeyId": (errno.EACCES, "the object storage does not know this access key"),
    "SignatureDoesNotMatch": (errno.EACCES, "the secret key does not fit the access key"),
    "ExpiredToken": (errno.EACCES, "the credentials have expired; get new ones"),
    "ExpiredTokenException": (errno.EACCES, "the credentials have expired; get new ones"),
    "InvalidToken": (errno.EACCES, "the session token is not valid; get a new one"),
    "RequestTimeTooSkewed": (
        errno.EACCES,
        "the clock of this machine differs too much from that of the object storage; set it",
    ),
    "PreconditionFailed": (errno.ESTALE, "changed while it was being read"),
    "412": (errno.ESTALE, "changed while it was being read"),
    "ConditionalRequestConflict": (errno.ESTALE, "is being written by somebody else"),
    "SlowDown": (errno.EAGAIN, "the object storage is overloaded (it says: slow down)"),
    "503": (errno.EAGAIN, "the object storage is overloaded (it says: slow down)"),
    "ServiceUnavailable": (errno.EAGAIN, "the object storage is not available"),
    "InternalError": (errno.EIO, "the object storage is out of order"),
    "500": (errno.EIO, "the object storage is out of order"),
    "InvalidRange": (errno.EINVAL, "is shorter than it was"),
}
_NONE = (
    "no credentials for the object storage were found; set AWS_PROFILE, or AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY"
)
# By names, as the library is loaded only where something is read.
_LOCAL = {
    "NoCredentialsError": (errno.EACCES, _NONE),
    "PartialCredentialsError": (errno.EACCES, _NONE),
    "CredentialRetrievalError": (errno.EACCES, _NONE),
    "TokenRetrievalError": (errno.EACCES, "the sign-on has expired; sign on again"),
    "SSOTokenLoadError": (errno.EACCES, "the sign-on has expired; sign on again"),
    "UnauthorizedSSOTokenError": (errno.EACCES, "the sign-on has expired; sign on again"),
    "ProfileNotFound": (errno.EACCES, "~/.aws has no profile of the name in AWS_PROFILE"),
    "ConfigParseError": (errno.EACCES, "the files in ~/.aws cannot be read"),
    "ParamValidationError": (errno.EINVAL, "no bucket or object can have this name"),
    "InvalidRegionError": (errno.EINVAL, "the region is none"),
    "SSLError": (errno.EPROTO, "the certificate of the object storage is not trusted"),
    "ReadTimeoutError": (errno.ETIMEDOUT, "the object storage did not answer in time"),
    "ConnectTimeoutError": (errno.ETIMEDOUT, "the object storage cannot be reached"),
    "EndpointConnectionError": (errno.ECONNREFUSED, "the object storage cannot be reached"),
    "ProxyConnectionError": (errno.ECONNREFUSED, "the proxy cannot be reached"),
    "InvalidProxiesConfigError": (errno.EINVAL, "the settings of the proxy are wrong"),
}
_CUT = (errno.ECONNRESET, "the object storage breaks connections off")
_TIMED_OUT = (errno.ETIMEDOUT, "the object storage did not answer in time")


def refusal(error: Exception, place: str = "") -> OSError:
    """What a call to an object storage failed of.

    Args:
        error: what the library raised.
        place: address of what was asked for, without credentials.
    """
    response: Any = getattr(error, "response", None)
    if isinstance(response, dict):
        code = str(response.get("Error", {}).get("Code", ""))
        status = str(response.get("ResponseMetadata", {}).get("HTTPStatusCode", ""))
        number, words = _CODES.get(code) or _CODES.get(status) or _other(code or status)
    else:
        known = (_LOCAL.get(kind.__name__) for kind in type(error).__mro__)
        number, words = next(filter(None, known), _CUT)
    return OSError(number, words, place) if place else OSError(number, words)


def reason_in(text: str) -> str | None:
    """What Lance's account of a failed request means; None if it is of none.

    Examples:
        >>> reason_in("Generic S3 error: ... 403 Forbidden: <Error><Code>ExpiredToken</Code> ...")
        'the credentials have expired; get new ones'
    """
    for code in re.findall(r"<Code>(\w{1,60})</Code>", text):
        return (_CODES.get(code) or _other(code))[1]
    if not re.search(r"\b(S3|GCS|Azure\w*) error|Error performing|object.store", text):
        return None
    for status in re.findall(r"\b(?:status code:?|status) (\d{3})\b|\b([45]\d\d) [A-Z]", text):
        return (_CODES.get("".join(status)) or _other("".join(status)))[1]
    if "timed out" in text or "timeout" in text.partition("HTTP error")[2]:
        return _TIMED_OUT[1]
    if "error sending request" in text or "connect" in text.lower():
        return _LOCAL["EndpointConnectionError"][1]
    return _CUT[1] if "body" in text else "the object storage failed"


def _other(code: str) -> tuple[int, str]:
    safe = code if re.fullmatch(r"[A-Za-z0-9]{1,60}", code) else "no code"
    return errno.EIO, f"the object storage refused it ({safe})"
