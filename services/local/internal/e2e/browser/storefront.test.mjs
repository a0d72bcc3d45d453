// Customers on the page of examples/storefront, in a real browser: each look books, pays and downloads the calendar entry. Then what goes wrong.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { launch, looks, setting, Tab } from './browser.mjs';

const address = setting('STOREFRONT');
const hosts = [new URL(address).host, new URL(setting('STRIPE_URL')).host];
const name = `Sunrise tour ${randomUUID().slice(0, 8)}`;
// A day to which no holiday rule of the seed applies: its price is the package's.
const ordinary = (date) => !/-(12-3[01]|01-0[12]|06-(1[5-9]|[23]\d)|0[78]-\d\d|09-01)$/.test(date);
const day = [30, 40, 110].map((n) => new Date(Date.now() + n * 86_400_000).toISOString().slice(0, 10)).find(ordinary);
const good = '4242 4242 4242 4242';
const declined = '4000 0000 0000 0002';

let browser, unit;
const sent = []; // the bodies that browsers received from the storefront

/** Calls the API with the operator's key. */
async function api(method, path, body) {
  const headers = { Authorization: `Bearer ${setting('API_KEY')}`, 'Content-Type': 'application/json' };
  const response = await fetch(setting('BASE_URL') + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  const text = await response.text();
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
  return text && JSON.parse(text);
}

/** Returns the bookings of the test's unit. */
const bookings = async () => (await api('GET', `/bookings?unit_id=${unit}&limit=100`)).data;

/** Returns the bookings of a customer's email address. */
async function bookingsOf(email) {
  const customers = (await api('GET', `/customers?email=${encodeURIComponent(email)}`)).data.map((c) => c.id);
  return (await bookings()).filter((b) => customers.includes(b.customer_id));
}

before(async () => {
  const service = (await api('POST', '/services', { name, duration_minutes: 60 })).id;
  const opening_hours = Object.fromEntries(['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'].map((d) => [d, [['09:00', '21:00']]]));
  unit = (await api('POST', '/units', { name, service_ids: [service], opening_hours })).id;
  const base_price = { amount: 8000, currency: 'USD' };
  await api('POST', '/packages', { name, service_id: service, base_price, deposit_type: 'percentage', deposit_value: 2500 });
  browser = await launch();
});

after(async () => {
  await browser?.close();
  assert.ok(sent.length > 0 && sent.every((text) => !text.includes(setting('STOREFRONT_KEY'))), 'a browser received the API key');
});

/** A customer with an email address of their own, who has opened the page. */
async function visit(look = looks[0]) {
  const tab = await Tab.open(browser, look, hosts);
  tab.email = `${randomUUID()}@example.com`;
  tab.page.on('response', async (r) => r.url().startsWith(address) && sent.push(await r.text().catch(() => '')));
  await tab.page.goto(address);
  await tab.page.locator('#choose').waitFor();
  return tab;
}

/** Fills in the form, up to the button. Returns the value of the chosen time. */
async function choose({ page, email }, time = 0) {
  const offer = await page.locator('#package option', { hasText: name }).getAttribute('value');
  await page.locator('#package').selectOption(offer);
  await page.locator('#day').fill(day);
  const slot = typeof time === 'number' ? page.locator('#times input').nth(time) : page.locator(`#times input[value="${time}"]`);
  await slot.check();
  await page.locator('#first_name').fill('Ada Lovelace');
  await page.locator('#email').fill(email);
  return slot.inputValue();
}

/** Fills in the payment form and submits it. */
async function pay({ page }, card) {
  await page.locator('#stand-in-number').fill(card);
  await page.locator('#stand-in-expiry').fill('12/34');
  await page.locator('#stand-in-cvc').fill('123');
  await page.locator('#pay button').click();
}

const message = ({ page }) => page.locator('#message:not([hidden])').innerText();
const number = ({ page }) => page.locator('#summary dd').first().innerText();

/** Goes to the payment form. */
async function book(tab, time) {
  await choose(tab, time);
  await tab.page.locator('#choose button').click();
  await tab.page.locator('#pay').waitFor();
}

const words = {
  'en-US': { declined: /Your card was declined\. Your time stays reserved/, confirmed: 'Your booking is confirmed. Thank you!', amount: 'Pay $20.00' },
  'de-DE': { declined: /Zahlung ist fehlgeschlagen/, confirmed: 'Ihre Buchung ist bestätigt. Vielen Dank!', amount: /20,00.\$ bezahlen/ },
};

for (const look of looks) {
  test(`a customer books with a double click, reloads, and pays with the second card: ${look.name}`, async () => {
    const tab = await visit(look);
    const { page } = tab;
    await tab.check('storefront');
    await choose(tab);
    await tab.check('storefront-chosen');
    await page.locator('#choose button').dblclick();
    await page.locator('#pay').waitFor();
    assert.match(await page.locator('#pay button').innerText(), RegExp(words[look.locale].amount.source ?? words[look.locale].amount.replace('$', '\\$')));
    await tab.check('storefront-pay');
    const booked = await number(tab);
    await page.reload();
    await page.locator('#pay').waitFor();
    assert.equal(await number(tab), booked, 'after a reload');

    await page.locator('#pay button').click();
    assert.ok(await message(tab), 'an incomplete card has no message');
    await pay(tab, declined);
    await page.locator('#message', { hasText: words[look.locale].declined }).waitFor();
    await tab.check('storefront-declined');
    await pay(tab, good);
    await page.locator('#done').waitFor();
    assert.equal(await page.locator('#done-text').innerText(), words[look.locale].confirmed);
    await tab.check('storefront-done');

    const [download] = await Promise.all([page.waitForEvent('download'), page.locator('#calendar').click()]);
    const entry = await readFile(await download.path(), 'utf8');
    const all = await bookingsOf(tab.email);
    assert.equal(all.length, 1);
    const [booking] = all;
    const stamp = (time) => time.replace(/[-:]|\.\d+/g, '');
    assert.equal(download.suggestedFilename(), `${booking.number}.ics`);
    assert.ok(entry.includes(`\r\nDTSTART:${stamp(booking.starts_at)}\r\nDTEND:${stamp(booking.ends_at)}\r\nSUMMARY:${name}\\, Demo Boats\r\n`), entry);
    assert.deepEqual([booking.number, booking.status, booking.payment_status, booking.amount_paid.amount], [booked, 'confirmed', 'deposit_paid', 2000]);

    await page.reload();
    await page.locator('#done').waitFor();
    assert.equal((await bookingsOf(tab.email)).length, 1);
    await tab.context.close();
  });
}

test('a customer books by keyboard', async () => {
  const tab = await visit();
  const { page } = tab;
  await choose(tab);
  await page.locator('#package').focus();
  await tab.type('#first_name', 'Grace Hopper');
  await tab.type('#email', tab.email);
  await tab.tabTo('#choose button');
  await page.keyboard.press('Enter');
  await page.locator('#pay').waitFor();
  await tab.type('#stand-in-number', good);
  await tab.type('#stand-in-expiry', '12/34');
  await tab.type('#stand-in-cvc', '123');
  await tab.tabTo('#pay button');
  await page.keyboard.press('Enter');
  await page.locator('#done').waitFor();
  await tab.context.close();
});

test('the same order books once, however often it arrives at the same time', async () => {
  const tab = await visit();
  const [starts_at, unit_id] = (await choose(tab)).split(' ');
  const package_id = await tab.page.locator('#package').inputValue();
  const order = { order: randomUUID(), package_id, unit_id, starts_at, first_name: 'Ada', email: tab.email };
  const got = await tab.page.evaluate(async (body) => {
    const send = () => fetch('/orders', { method: 'POST', body, headers: { 'Content-Type': 'application/json' } }).then((r) => r.json());
    return Promise.all(Array.from({ length: 5 }, send));
  }, JSON.stringify(order));
  assert.equal(new Set(got.map((r) => r.order?.number)).size, 1, JSON.stringify(got));
  assert.equal(new Set(got.map((r) => r.client_secret)).size, 1);
  assert.equal((await bookingsOf(tab.email)).length, 1);
  await tab.context.close();
});

test('a lost response: the customer sends the order again and books once', async () => {
  const tab = await visit();
  const { page } = tab;
  await choose(tab);
  await page.route('**/orders', async (route) => {
    await route.fetch();
    await route.abort();
  }, { times: 1 });
  await page.locator('#choose button').click();
  assert.match(await message(tab), /cannot be reached/);
  tab.faults.length = 0; // the browser reports the lost response
  await page.locator('#choose button').click();
  await page.locator('#pay').waitFor();
  assert.equal((await bookingsOf(tab.email)).length, 1);
  await tab.context.close();
});

test('the payment form cannot be loaded: a reload continues the same order', async () => {
  const tab = await visit();
  const { page } = tab;
  await choose(tab);
  await page.route('**/v3/', (route) => route.abort(), { times: 1 });
  await page.locator('#choose button').click();
  assert.match(await message(tab), /payment form cannot be loaded/);
  tab.faults.length = 0; // the browser reports the lost script
  await page.reload();
  await page.locator('#pay').waitFor();
  assert.equal((await bookingsOf(tab.email)).length, 1);
  await tab.context.close();
});

test('two customers choose the same time: the second one chooses another', async () => {
  const [first, second] = [await visit(), await visit(looks[1])];
  const time = await choose(second);
  await book(first, time);
  await second.page.locator('#choose button').click();
  assert.match(await message(second), /hat gerade jemand anders gebucht/);
  await second.check('storefront-taken');
  assert.equal(await second.page.locator(`#times input[value="${time}"]`).count(), 0, 'the lost time is still offered');
  await book(second);
  await pay(second, good);
  await second.page.locator('#done').waitFor();
  assert.equal((await bookingsOf(second.email)).length, 1);
  await first.context.close();
  await second.context.close();
});

test('a reservation expires: the customer is not charged', async () => {
  const tab = await visit();
  await book(tab);
  try {
    await api('POST', '/test-clock', { now: new Date(Date.now() + 20 * 60 * 1000).toISOString() });
    const [{ id }] = await bookingsOf(tab.email);
    for (let n = 0; (await api('GET', `/bookings/${id}`)).status === 'pending'; n++) {
      assert.ok(n < 200, 'the booking does not expire');
      await new Promise((done) => setTimeout(done, 100));
    }
    await pay(tab, good);
    await tab.page.locator('#message', { hasText: 'The reservation has expired' }).waitFor();
    await tab.check('storefront-expired');
    const { data } = await api('GET', `/payment-intents?booking_id=${id}`);
    assert.deepEqual(data.map((p) => p.amount_received), [0]);
    assert.ok(await tab.page.locator('#times input').first().isVisible());
  } finally {
    await api('DELETE', '/test-clock');
  }
  await tab.context.close();
});

test('a day without free times, and wrong requests', async () => {
  const tab = await visit();
  const { page } = tab;
  const offer = await page.locator('#package option', { hasText: name }).getAttribute('value');
  await page.locator('#package').selectOption(offer);
  await page.locator('#day').fill('2020-01-01');
  await page.locator('#times-status', { hasText: 'No free times' }).waitFor();
  const status = async (path, init) => (await fetch(address + path, init)).status;
  assert.equal(await status('/order?token=bk_1.x'), 404);
  const [{ id }] = await bookings();
  assert.equal(await status(`/order?token=${id}.${Buffer.alloc(32).toString('base64url')}`), 404);
  assert.equal(await status('/orders', { method: 'POST', body: '{}' }), 415);
  const headers = { 'Content-Type': 'application/json' };
  assert.equal(await status('/orders', { method: 'POST', headers, body: '{}' }), 422);
  assert.equal(await status('/orders', { method: 'POST', headers, body: JSON.stringify('x'.repeat(20_000)) }), 413);
  assert.equal(await status('/package.json'), 404);
  await tab.context.close();
});
