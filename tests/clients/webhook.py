"""Sends an event three times, forged, and signed long ago, as a provider's library for Python signs it.

webhook.py stripe|standard URL SECRET BODY, prints the statuses as JSON.
"""

import json
import sys
import time
from datetime import datetime, timedelta, timezone

import requests
import standardwebhooks
import stripe

scheme, url, secret, body = sys.argv[1:]


def headers(ago):
    if scheme == "stripe":
        when = int(time.time()) - ago
        signature = stripe.WebhookSignature._compute_signature(f"{when}.{body}", secret)
        return {"stripe-signature": f"t={when},v1={signature}"}
    when = datetime.now(timezone.utc) - timedelta(seconds=ago)
    signature = standardwebhooks.Webhook(secret).sign("msg_python", when, body)
    return {
        "webhook-id": "msg_python",
        "webhook-timestamp": str(int(when.timestamp())),
        "webhook-signature": signature,
    }


def send(data, ago=0):
    return requests.post(url, data=data.encode(), headers=headers(ago), timeout=30).status_code


print(json.dumps([send(body), send(body), send(body), send(body + " "), send(body, ago=600)]))
