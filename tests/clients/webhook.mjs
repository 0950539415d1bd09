// Sends an event three times, forged, and signed long ago, as a provider's library for Node.js signs it.
//
// node webhook.mjs MODULES stripe|standard URL SECRET BODY, prints the statuses as JSON.

import { createRequire } from "node:module";

const [modules, scheme, url, secret, body] = process.argv.slice(2);
const require = createRequire(`${modules}/`);

function headers(ago) {
  const timestamp = Math.floor(Date.now() / 1000) - ago;
  if (scheme === "stripe") {
    const stripe = new (require("stripe"))("sk_test_none");
    return { "stripe-signature": stripe.webhooks.generateTestHeaderString({ payload: body, secret, timestamp }) };
  }
  const { Webhook } = require("standardwebhooks");
  return {
    "webhook-id": "msg_node",
    "webhook-timestamp": String(timestamp),
    "webhook-signature": new Webhook(secret).sign("msg_node", new Date(timestamp * 1000), body),
  };
}

async function send(data, ago = 0) {
  return (await fetch(url, { method: "POST", headers: headers(ago), body: data })).status;
}

const statuses = [];
for (const [data, ago] of [[body], [body], [body], [`${body} `], [body, 600]]) statuses.push(await send(data, ago));
console.log(JSON.stringify(statuses));
