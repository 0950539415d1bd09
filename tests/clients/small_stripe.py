"""A Stripe in miniature, which sends its webhooks to URL while a client of Stripe's own library makes two customers.

small_stripe.py URL SECRET, until its standard input ends.
"""

import asyncio
import sys

import requests
import stripe
from aiohttp import web
from localstripe.server import app

url, secret = sys.argv[1:]


def make_customers(base):
    requests.post(f"{base}/_config/webhooks/test", json={"url": url, "secret": secret}, timeout=30).raise_for_status()
    client = stripe.StripeClient("sk_test_12345", base_addresses={"api": base})
    for name in ["one", "two"]:
        client.v1.customers.create(params={"email": f"{name}@example.org"})


async def main():
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = site._server.sockets[0].getsockname()[1]
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(None, make_customers, f"http://127.0.0.1:{port}")
    print("made", flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


asyncio.run(main())
