"""Writes signatures.json: requests that the senders' official libraries have signed.

    python3 -m venv /tmp/signatures && /tmp/signatures/bin/pip install stripe==16.1.0 standardwebhooks==1.1.0
    /tmp/signatures/bin/python tests/data/signatures.py > tests/data/signatures.json
"""

import base64
import datetime
import hashlib
import hmac
import json

import standardwebhooks
import stripe

AT = 1_700_000_000
STRIPE = "whsec_test_secret"
STANDARD = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BODIES = [
    b"",
    b"{}",
    b'{"id":"evt_1","type":"charge.succeeded","amount":1.0}',
    b'{ "type" : "x" ,\r\n\t"id":\n"evt_2", "a":[1.0,2e3] }\n',
    '{"id":"evt_3","name":"Zoë 🦀"}'.encode(),
]


def b64(data):
    return base64.b64encode(data).decode()


def vectors():
    for body in BODIES:
        payload = f"{AT}.{body.decode()}"
        v1 = stripe.WebhookSignature._compute_signature(payload, STRIPE)
        old = stripe.WebhookSignature._compute_signature(payload, "whsec_old")
        for header in [f"t={AT},v1={v1}", f"t={AT},v1={old},v1={v1},v0=00", f"v1={v1},t={AT}"]:
            stripe.WebhookSignature.verify_header(body.decode(), header, STRIPE, None)
            yield {"scheme": "stripe", "secret": STRIPE, "at": AT, "body": b64(body), "headers": {"stripe-signature": header}}
        at = datetime.datetime.fromtimestamp(AT, datetime.timezone.utc)
        signed = standardwebhooks.Webhook(STANDARD).sign("msg_1", at, body.decode())
        other = standardwebhooks.Webhook("whsec_" + b64(b"another secret")).sign("msg_1", at, body.decode())
        for header in [signed, f"{other} v1a,AAAA {signed}"]:
            headers = {"webhook-id": "msg_1", "webhook-timestamp": str(AT), "webhook-signature": header}
            yield {"scheme": "standard", "secret": STANDARD, "at": AT, "body": b64(body), "headers": headers}
    # GitHub's own example, and bytes that are no UTF-8.
    secret, body = "It's a Secret to Everybody", b"Hello, World!"
    digest = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    yield {"scheme": "hmac", "secret": secret, "at": AT, "body": b64(body), "headers": {"x-hub-signature-256": f"sha256={digest}"}}
    body = bytes(range(256))
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    yield {"scheme": "hmac", "secret": secret, "at": AT, "body": b64(body), "headers": {"x-hub-signature-256": digest}}


print(json.dumps(list(vectors()), indent=1))
