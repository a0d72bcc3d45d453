import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { SignatureError, webhooks } from "@holdfast/sdk";

// The example of docs/guides/webhooks.md.
// cspell:disable-next-line
const secret = "whsec_iXmNLJ8dqnN2lW/1XFIxh4HDhjVXMYInsesT3lceA20=";
const body =
  '{"id":"evt_01m802zyvve7d8rbwcpw77hzzk","object":"event","type":"customer.updated","api_version":"v1","mode":"test","created_at":"2026-11-21T22:17:54.299Z","resource_version":2,"request":{"id":"req_01m802zyvve7e8hjq8d2wr9f3f","idempotency_key":"rename-4711"},"data":{"object":{"id":"cu_01m802zyvve7dtz6tprv4493bk","object":"customer","name":"Grace Hopper","first_name":"Grace","last_name":"Hopper","email":"grace@example.com","phone":null,"company":"Boats & More","metadata":{"crm":"4711"},"mode":"test","version":2,"created_at":"2026-11-21T19:17:53.061187Z","updated_at":"2026-11-21T22:17:54.295754Z"},"previous_attributes":{"company":null}}}';
const time = 1795299475;
const v1 = "78c7da3c93dc0cda287858e1d49bc56941f4b2c7cffaac0b3c90af8aba32bb27";
const signature = `t=${time},v1=${v1}`;
const now = new Date(time * 1000);
const wrong = `v1=${"0".repeat(64)}`;

const sign = (text: string | Buffer, at = time, key = secret) =>
  `t=${at},v1=${createHmac("sha256", key).update(`${at}.`).update(text).digest("hex")}`;

test("a delivery of the documentation is unwrapped", async () => {
  const event = await webhooks.unwrap(body, { "service-signature": signature }, secret, { now });
  assert.equal(event.type, "customer.updated");
  if (event.type === "customer.updated") {
    // The type of the object follows from the type of the event.
    const name: string = event.data.object.first_name;
    assert.equal(name, "Grace");
    assert.deepEqual(event.data.previous_attributes, { company: null });
  }
});

test("bodies and headers are accepted in all forms of servers", async () => {
  const bytes = new TextEncoder().encode(body);
  for (const raw of [body, bytes, bytes.buffer, Buffer.from(body)]) {
    for (const headers of [
      { "service-signature": signature },
      { "Service-Signature": signature },
      { "Service-Signature": [signature] },
      new Headers({ "Service-Signature": signature }),
    ]) {
      assert.equal((await webhooks.unwrap(raw, headers, secret, { now })).id, "evt_01m802zyvve7d8rbwcpw77hzzk");
    }
  }
});

test("the bytes are verified, not the text", async () => {
  const bytes = Buffer.from([0x7b, 0x22, 0x74, 0x79, 0x70, 0x65, 0x22, 0x3a, 0x22, 0xff, 0x22, 0x7d]);
  await webhooks.unwrap(bytes, { "service-signature": sign(bytes) }, secret, { now });
  await assert.rejects(webhooks.unwrap(bytes.toString(), { "service-signature": sign(bytes) }, secret, { now }), SignatureError);
});

test("one matching signature is enough while a secret is rotated", async () => {
  for (const header of [`t=${time},${wrong},v1=${v1}`, `t=${time},v1=${v1},${wrong}`, `t=${time},v0=x,v1=short,v1=${v1}`]) {
    await webhooks.unwrap(body, { "service-signature": header }, secret, { now });
  }
});

test("many signatures cost one HMAC", async (t) => {
  const computed = t.mock.method(crypto.subtle, "sign");
  const header = `t=${time},${Array(117).fill(wrong).join(",")},v1=${v1}`;
  await webhooks.unwrap(body, { "service-signature": header }, secret, { now });
  assert.equal(computed.mock.callCount(), 1);
});

test("a delivery with a wrong signature is rejected", async () => {
  const cases: [string, string, Record<string, string>, string][] = [
    ["no header", body, {}, secret],
    ["an empty header", body, { "service-signature": "" }, secret],
    ["no signature", body, { "service-signature": `t=${time}` }, secret],
    ["no time", body, { "service-signature": `v1=${v1}` }, secret],
    ["a time that is not a number", body, { "service-signature": `t=NaN,v1=${v1}` }, secret],
    ["another time", body, { "service-signature": `t=${time + 1},v1=${v1}` }, secret],
    ["another body", body.replace("Grace", "Trace"), { "service-signature": signature }, secret],
    ["a body with another format", JSON.stringify(JSON.parse(body), null, 1), { "service-signature": signature }, secret],
    ["another secret", body, { "service-signature": signature }, `${secret}x`],
    ["an empty secret", body, { "service-signature": signature }, ""],
    ["the first half of a signature", body, { "service-signature": `t=${time},v1=${v1.slice(0, 32)}` }, secret],
    ["another scheme", body, { "service-signature": `t=${time},v2=${v1}` }, secret],
    ["only wrong signatures", body, { "service-signature": `t=${time},${wrong},${wrong}` }, secret],
    ["the last digit changed", body, { "service-signature": signature.replace(/.$/, "8") }, secret],
    ["the first digit changed", body, { "service-signature": signature.replace("v1=7", "v1=8") }, secret],
  ];
  for (const [name, text, headers, key] of cases) {
    await assert.rejects(webhooks.unwrap(text, headers, key, { now }), SignatureError, name);
  }
});

test("a signature is valid for five minutes in both directions", async () => {
  const at = (seconds: number) => ({ now: new Date((time + seconds) * 1000 + 900) });
  for (const seconds of [-300, 0, 300]) await webhooks.unwrap(body, { "service-signature": signature }, secret, at(seconds));
  for (const seconds of [-301, 301]) {
    await assert.rejects(webhooks.unwrap(body, { "service-signature": signature }, secret, at(seconds)), /300 seconds/);
  }
  await webhooks.unwrap(body, { "service-signature": signature }, secret, { ...at(301), tolerance: 400 });
  await assert.rejects(webhooks.unwrap(body, { "service-signature": signature }, secret), /seconds from the current time/);
});

test("an event of an unknown type passes through", async () => {
  const text = JSON.stringify({
    id: "evt_1",
    object: "event",
    type: "booking.teleported",
    data: { object: { id: "bk_1", planet: "Mars" }, previous_attributes: {} },
  });
  const event = await webhooks.unwrap(text, { "service-signature": sign(text) }, secret, { now });
  switch (event.type) {
    case "booking.created":
      assert.fail("it is another type");
      break;
    default:
      assert.equal(event.type as string, "booking.teleported");
      assert.deepEqual(event.data.object, { id: "bk_1", planet: "Mars" });
  }
});

test("a signed body that is not an event is an error", async () => {
  for (const text of ["[]", "null", "{}", "no JSON"]) {
    await assert.rejects(webhooks.unwrap(text, { "service-signature": sign(text) }, secret, { now }));
  }
});
