// Each action of the operators' area, by mouse with scripts and by keyboard without scripts. The test of an action creates the required
// resources through the API, runs the action, and checks the text of the page.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { launch, setting } from './browser.mjs';
import { day, enter, Hand } from './hand.mjs';

const origin = setting('AUTH_URL');
const desks = JSON.parse(setting('DESKS')); // one tenant for each input method: email, slug, link, API key, keys of its payment gateway
const stripe = setting('STRIPE_URL');
const receivers = setting('RECEIVERS'); // the address at which webhooks can reach this machine
const all = process.env.SCALE === 'full';

let browser, receiver, answer;

before(async () => {
  browser = await launch();
  receiver = createServer((req, res) => {
    answer = new URL(req.url, 'http://app').searchParams; // the parameters of an authorization response
    req.resume().on('end', () => res.end('ok'));
  });
  await new Promise((done) => receiver.listen(0, receivers, done));
});

after(async () => {
  await browser?.close();
  receiver?.close();
});

const hook = () => `http://${receivers}:${receiver.address().port}/hook`;

/** A client of a tenant's API. */
class Desk {
  constructor(d) {
    Object.assign(this, d);
    this.days = 20;
  }

  /** Makes an API call and returns the object in the response. */
  async call(method, path, body) {
    const res = await fetch(`${origin}/api/v1${path}`, {
      method,
      headers: { Authorization: `Bearer ${this.key}`, 'Content-Type': 'application/json', 'Idempotency-Key': randomBytes(12).toString('hex') },
      body: body && JSON.stringify(body),
    });
    const text = await res.text();
    assert.ok(res.ok, `${method} ${path}: ${res.status} ${text}`);
    return text && JSON.parse(text);
  }

  make(path, body) {
    return this.call('POST', path, body);
  }

  /** Creates the resources that bookings require. */
  async begin() {
    this.service = (await this.call('GET', '/services')).data[0];
    this.unit = await this.make('/units', { name: 'Gull', service_ids: [this.service.id] });
    this.pkg = await this.make('/packages', { name: 'Evening tour', service_id: this.service.id, base_price: { amount: 8000, currency: 'EUR' } });
    this.customer = await this.person('ada');
  }

  person(name) {
    return this.make('/customers', { first_name: name, email: `${name}-${randomBytes(4).toString('hex')}@example.com` });
  }

  /** Creates a booking on an unused day. */
  booking(status = 'confirmed') {
    this.days++;
    return this.make('/bookings', { customer_id: this.customer.id, package_id: this.pkg.id, unit_id: this.unit.id, event_date: day(this.days), event_start_time: '10:00', status });
  }

  /** Creates a confirmed booking of yesterday, which can be completed. */
  started() {
    return this.make('/bookings', { customer_id: this.customer.id, package_id: this.pkg.id, event_date: day(-1), event_start_time: '10:00', status: 'confirmed' });
  }

  quote() {
    this.days++;
    return this.make('/quotes', { customer_id: this.customer.id, package_id: this.pkg.id, unit_id: this.unit.id, event_date: day(this.days), event_start_time: '10:00' });
  }

  lead() {
    return this.make('/leads', { first_name: 'Lea', email: `lea-${randomBytes(4).toString('hex')}@example.com`, source: 'web' });
  }

  async invoice(...actions) {
    const made = await this.make('/invoices', { customer_id: this.customer.id, line_items: [{ description: 'Tour', quantity: 1, unit_amount: { amount: 5000, currency: 'EUR' } }] });
    for (const a of actions) await this.make(`/invoices/${made.id}/${a}`, {});
    return made;
  }

  endpoint() {
    return this.make('/webhook-endpoints', { url: hook(), event_types: ['*'] });
  }

  /** Creates a card payment. If confirmed is set, it also pays like the payer's browser. */
  async payment(more, confirmed) {
    const made = await this.make('/payment-intents', { booking_id: (await this.booking()).id, amount_minor: 2000, ...more });
    if (confirmed) {
      const form = new URLSearchParams({ key: this.publishable, client_secret: made.client_secret, payment_method: 'pm_card_visa' });
      const gateway = made.client_secret.split('_secret')[0];
      const res = await fetch(`${stripe}/v1/payment_intents/${gateway}/confirm`, { method: 'POST', body: form });
      assert.ok(res.ok, await res.text());
      for (const end = Date.now() + 20_000; ; await new Promise((done) => setTimeout(done, 200))) {
        const now = await this.call('GET', `/payment-intents/${made.id}`);
        if (['succeeded', 'requires_capture'].includes(now.status)) break;
        assert.ok(Date.now() < end, `the payment is ${now.status}`);
      }
    }
    return made;
  }
}

const of = (resource, made) => `${resource}/${made.id}`;

/** Actions: name, start page, text of the link, form input, expected text of the final page, and text of the button. */
const actions = [
  ['confirm', async (d) => of('bookings', await d.booking('pending')), 'Confirm', {}, /Booking confirmed/],
  ['complete', async (d) => of('bookings', await d.started()), 'Mark as completed', {}, /Booking marked as completed/],
  ['no show', async (d) => of('bookings', await d.started()), 'Mark as no-show', {}, /Booking marked as no-show/],
  ['reprice', async (d) => of('bookings', await d.booking()), 'Reprice', {}, /Booking repriced/],
  ['invoice of a booking', async (d) => of('bookings', await d.booking()), 'New invoice', {}, /Saved[\s\S]*draft/, 'Save'],
  ['edit a booking', async (d) => of('bookings', await d.booking()), 'Edit', { notes: 'By the pier' }, /Saved[\s\S]*By the pier/, 'Save'],
  ['cancel a booking', async (d) => of('bookings', await d.booking()), 'Cancel', { reason: 'Storm' }, /Cancelled[\s\S]*Storm/],
  ['book for a customer', async (d) => of('customers', d.customer), 'New booking', { event_date: day(8), guest_count: '4' }, /Saved/, 'Save'],
  ['quote for a customer', async (d) => of('customers', d.customer), 'New quote', { package_id: 'Evening tour', event_date: day(8) }, /Saved[\s\S]*€80\.00/, 'Save'],
  ['erase a customer', async (d) => of('customers', await d.person('ben')), 'Erase', {}, /(Deleted|being erased)/],
  ['contacted', async (d) => of('leads', await d.lead()), 'Mark as contacted', {}, /marked as contacted/],
  ['qualified', async (d) => of('leads', await d.lead()), 'Mark as qualified', {}, /marked as qualified/],
  ['quote for a lead', async (d) => of('leads', await d.lead()), 'New quote', { package_id: 'Evening tour', event_date: day(9) }, /Saved/, 'Save'],
  ['convert a lead', async (d) => of('leads', await d.lead()), 'Convert to customer', {}, /Lead converted/],
  ['lose a lead', async (d) => of('leads', await d.lead()), 'Mark as lost', { lost_reason: 'Too far' }, /marked as lost[\s\S]*Too far/],
  ['send a quote', async (d) => of('quotes', await d.quote()), 'Send', {}, /Quote sent/],
  ['accept a quote', async (d) => d.make(`/quotes/${(await d.quote()).id}/send`, {}).then((q) => of('quotes', q)), 'Accept', {}, /Quote accepted/],
  ['decline a quote', async (d) => d.make(`/quotes/${(await d.quote()).id}/send`, {}).then((q) => of('quotes', q)), 'Mark as declined', { reason: 'Rain' }, /declined[\s\S]*Rain/],
  ['cancel a quote', async (d) => of('quotes', await d.quote()), 'Cancel', {}, /Cancelled/],
  ['issue an invoice', async (d) => of('invoices', await d.invoice()), 'Issue', {}, /Invoice issued/],
  ['record a payment', async (d) => of('invoices', await d.invoice('open')), 'Record payment', { method: 'cash' }, /Payment recorded/],
  ['reverse a payment', async (d) => paid(d), 'Reverse', {}, /Payment reversed/],
  ['uncollectible', async (d) => of('invoices', await d.invoice('open')), 'Mark as uncollectible', {}, /uncollectible/],
  ['void an invoice', async (d) => of('invoices', await d.invoice('open')), 'Void', {}, /Invoice voided/],
  ['capture a card payment', async (d) => of('payments', await d.payment({ capture_method: 'manual' }, true)), 'Capture', {}, /Payment captured/],
  ['refund a card payment', async (d) => of('payments', await d.payment({}, true)), 'Refund', { amount_minor: '5' }, /Saved[\s\S]*€5\.00/, 'Save'],
  ['cancel a card payment', async (d) => of('payments', await d.payment({})), 'Cancel', {}, /Cancelled/],
  ['edit a service', async (d) => of('services', d.service), 'Edit', { description: 'Two hours' }, /Saved[\s\S]*Two hours/, 'Save'],
  ['edit a unit', async (d) => of('units', d.unit), 'Edit', { capacity: '8' }, /Saved[\s\S]*8/, 'Save'],
  ['edit a package', async (d) => of('packages', d.pkg), 'Edit', { description: 'With tea' }, /Saved[\s\S]*With tea/, 'Save'],
  ['holiday rule', async () => 'holiday-rules', 'New holiday rule', { name: 'Summer', date_from: day(40), date_to: day(50), multiplier_bps: '125' }, /Saved[\s\S]*125%/, 'Save'],
  ['test event', async (d) => of('endpoints', await d.endpoint()), 'Send test event', {}, /The test event is on its way/],
  ['send events again', async (d) => of('endpoints', await d.endpoint()), 'Resend events', { from: `${day(-1)}T00:00` }, /The events are being resent/],
  ['disable an endpoint', async (d) => of('endpoints', await d.endpoint()), 'Disable', {}, /Endpoint disabled/],
  ['enable an endpoint', async (d) => disabled(d), 'Enable', {}, /Endpoint enabled/],
  ['signing secret', async (d) => of('endpoints', await d.endpoint()), 'Rotate signing secret', {}, /only once/],
  ['delete an endpoint', async (d) => of('endpoints', await d.endpoint()), 'Delete', {}, /Deleted/],
  ['calendar feed', async () => 'feeds', 'New calendar feed', { name: 'Crew' }, /only once/, 'Save'],
  ['delete a feed', async (d) => of('feeds', await d.make('/calendar-feeds', { name: 'Crew' })), 'Delete', {}, /Deleted/],
  ['API key', async () => 'keys', 'New API key', { name: 'Till', scopes: 'read:units' }, /only once[\s\S]*curl/, 'Save'],
  ['replace a key', (d, hand) => key(hand), 'Replace', { overlap_seconds: 'For one hour' }, /only once[\s\S]*curl/],
  ['revoke a key', (d, hand) => key(hand), 'Revoke', {}, /API key revoked/],
  ['OAuth app', async () => 'apps', 'New app', { name: 'Till', redirect_uris: 'https://app.example/callback', scopes: 'read:units' }, /Saved[\s\S]*app\.example/, 'Save'],
  ['edit an app', (d, hand) => app(hand), 'Edit', { browser_origins: 'https://app.example' }, /Saved[\s\S]*https:\/\/app\.example/, 'Save'],
  ['delete an app', (d, hand) => app(hand), 'Delete', {}, /Deleted/],
  ['end access of an app', (d, hand) => grant(hand), 'Revoke access', {}, /Access revoked|Deleted/],
  ['invite a member', async () => 'members', 'Invite member', () => ({ email: `kim-${randomBytes(4).toString('hex')}@example.com`, name: 'Kim', role: 'staff' }), /works once/, 'Save'],
  ['change a role', (d, hand) => member(hand), 'Change role', { role: 'viewer' }, /Role changed[\s\S]*viewer/],
  ['remove a member', (d, hand) => member(hand), 'Remove', {}, /Deleted|removed/],
  ['business', async () => 'business', null, { legal_name: 'Harbour Tours GmbH' }, /Saved/, 'Save'],
  ['try a policy', async () => 'policy', null, { max_advance_days: '10' }, /The latest day that can be booked/, 'Preview'],
  ['policy', async () => 'policy', null, { max_advance_days: '400' }, /Saved[\s\S]*The latest day that can be booked/, 'Save'],
  ['audit log', async () => 'audit', null, {}, /The chain is intact/, 'Verify chain'],
  ['save a view', async () => 'bookings?status=pending', null, { name: 'Open ones' }, /View saved[\s\S]*Open ones/, 'Save view'],
  ['delete a view', (d, hand) => view(hand), null, {}, /View deleted/, '×'],
  ['quick start', async () => 'quickstart', null, {}, /shown only once[\s\S]*export HOLDFAST_KEY=svc_test_\w{32}\n/, 'Create key and insert it'],
  ['clock, a day', async () => 'clock', null, {}, /Test clock set/, 'Advance one day'],
  ['clock, real time', (d, hand) => frozen(hand), null, {}, /follows real time/, 'Return to real time'],
  ['payment gateway', async () => 'gateway', null, (d) => ({ publishable_key: d.publishable, secret_key: d.secret }), /Payment gateway connected/, 'Connect'],
];

async function paid(d) {
  const made = await d.invoice('open');
  await d.make(`/invoices/${made.id}/record-payment`, { amount: { amount: 1000, currency: 'EUR' }, method: 'cash' });
  return of('invoices', made);
}

async function disabled(d) {
  const made = await d.endpoint();
  await d.call('PATCH', `/webhook-endpoints/${made.id}`, { status: 'disabled' });
  return of('endpoints', made);
}

/** Creates a key, an app, or a member in the browser, because the API has no call for this. */
async function fresh(hand, list, link, fields) {
  await hand.page.goto(hand.at(list));
  await hand.go(link);
  await hand.fill(fields);
  await hand.go('Save');
  const kept = hand.page.locator('main a').filter({ hasText: 'I have saved it' });
  if (await kept.count()) await hand.go('I have saved it');
  return hand.page.url().replace(/\?.*/, '').split('/test/')[1];
}

const key = (hand) => fresh(hand, 'keys', 'New API key', { name: 'Till', scopes: 'read:units' });
const member = (hand) => fresh(hand, 'members', 'Invite member', { email: `kim-${randomBytes(4).toString('hex')}@example.com`, name: 'Kim', role: 'staff' });
const app = (hand) => fresh(hand, 'apps', 'New app', { name: 'Till', redirect_uris: `http://127.0.0.1:1/callback`, scopes: 'read:units' });

async function view(hand) {
  await hand.page.goto(hand.at('bookings?status=expired'));
  await hand.fill({ name: 'Gone' });
  await hand.go('Save view');
  return 'bookings';
}

async function frozen(hand) {
  await hand.page.goto(hand.at('clock'));
  await hand.go('Advance one hour');
  return 'clock';
}

/** Grants an app access as an operator and returns the page of the grant. */
async function grant(hand) {
  const path = await fresh(hand, 'apps', 'New app', { name: 'Bridge', redirect_uris: `http://127.0.0.1:${receiver.address().port}/callback`, scopes: 'read:units' });
  const client = path.split('/')[1];
  const verifier = randomBytes(32).toString('base64url');
  const redirect = `http://127.0.0.1:${receiver.address().port}/callback`;
  const query = new URLSearchParams({
    response_type: 'code', client_id: client, redirect_uri: redirect, scope: 'read:units', state: 'abcdefgh12345678',
    code_challenge: createHash('sha256').update(verifier).digest('base64url'), code_challenge_method: 'S256',
  });
  await hand.page.goto(`${origin}/oauth/authorize?${query}`);
  await hand.page.locator('button[name=decision][value=allow], button[value=allow], button').first().click();
  await hand.page.waitForURL(/callback/);
  const code = new URL(hand.page.url()).searchParams.get('code');
  assert.ok(code, hand.page.url());
  const form = new URLSearchParams({ grant_type: 'authorization_code', code, client_id: client, redirect_uri: redirect, code_verifier: verifier });
  const res = await fetch(`${origin}/oauth/token`, { method: 'POST', body: form });
  assert.ok(res.ok, await res.text());
  await hand.page.goto(hand.at('grants'));
  await hand.go('Bridge');
  return hand.page.url().split('/test/')[1];
}

/** Runs an action and checks the text of the page. */
async function act(hand, desk, [name, where, link, fields, says, button]) {
  try {
    await hand.page.goto(hand.at(await where(desk, hand)));
    if (link) await hand.go(link);
    await hand.fill(typeof fields === 'function' ? fields(desk) : fields);
    await hand.go(button || link);
    assert.match(await hand.text(), says);
  } catch (e) {
    const said = await hand.text().catch(() => '');
    throw new Error(`${name}: ${e.message.split('\n')[0]} at ${hand.page.url()}, which shows: ${said.replace(/\s+/g, ' ').slice(0, 1500)}`);
  }
}

for (const [way, keyboard] of [['mouse', false], ['keyboard, without scripts', true]]) {
  test(`each action by ${way}`, { timeout: 480_000 }, async () => {
    const desk = new Desk(desks[keyboard ? 1 : 0]);
    await desk.begin();
    const tab = await enter(browser, desk, { viewport: { width: 1280, height: 900 }, locale: 'en-GB', name: way, javaScriptEnabled: !keyboard }, [`127.0.0.1:${receiver.address().port}`]);
    const hand = new Hand(tab, keyboard);
    hand.at = (path) => `${origin}/admin/${desk.slug}/test/${path}`;
    const faults = [];
    let done = 0;
    for (const [i, one] of actions.entries()) {
      if (!all && i % 4 !== (keyboard ? 2 : 0)) continue;
      await act(hand, desk, one).catch((e) => faults.push(e.message));
      done++;
    }
    if (!keyboard) await resize(hand, desk).catch((e) => faults.push(`resize: ${e.message}`));
    console.log(`${done} of ${actions.length} actions`);
    assert.equal([...faults, ...tab.faults].join('\n'), '');
    await tab.context.close();
  });
}

/** Drags the end of a booking in the calendar of a day. */
async function resize(hand, desk) {
  const made = await desk.make('/bookings', { customer_id: desk.customer.id, unit_id: desk.unit.id, service_id: desk.service.id, event_date: day(60), event_start_time: '10:00', event_end_time: '12:00' });
  await hand.page.goto(hand.at(`calendar?view=day&date=${day(60)}`));
  const moved = hand.page.waitForURL(/done=moved/);
  await hand.page.locator('[data-grip]').dragTo(hand.page.locator('[data-unit] [data-time="13:00"]').first(), { targetPosition: { x: 20, y: 10 } });
  await moved;
  const now = await desk.call('GET', `/bookings/${made.id}`);
  assert.match(now.event_end_time, /^13:(15|30)$/);
  assert.equal(now.event_start_time, '10:00');
}

/** Functions that create a resource with each status. */
const states = {
  bookings: {
    pending: (d) => d.booking('pending'),
    confirmed: (d) => d.booking(),
    completed: async (d) => d.call('PATCH', `/bookings/${(await d.started()).id}`, { status: 'completed' }),
    no_show: async (d) => d.call('PATCH', `/bookings/${(await d.started()).id}`, { status: 'no_show' }),
    cancelled: async (d) => d.make(`/bookings/${(await d.booking()).id}/cancel`, {}),
  },
  leads: {
    new: (d) => d.lead(),
    contacted: async (d) => d.call('PATCH', `/leads/${(await d.lead()).id}`, { status: 'contacted' }),
    qualified: async (d) => d.call('PATCH', `/leads/${(await d.lead()).id}`, { status: 'qualified' }),
    quoted: async (d) => {
      const lead = await d.lead();
      await d.make('/quotes', { customer_id: d.customer.id, lead_id: lead.id, package_id: d.pkg.id, event_date: day(15) });
      return lead;
    },
    converted: async (d) => d.make(`/leads/${(await d.lead()).id}/convert`, {}),
    lost: async (d) => d.call('PATCH', `/leads/${(await d.lead()).id}`, { status: 'lost', lost_reason: 'Rain' }),
  },
  quotes: {
    draft: (d) => d.quote(),
    sent: async (d) => d.make(`/quotes/${(await d.quote()).id}/send`, {}),
    accepted: async (d) => after2(d, 'send', 'accept'),
    declined: async (d) => after2(d, 'send', 'decline'),
    cancelled: async (d) => d.make(`/quotes/${(await d.quote()).id}/cancel`, {}),
  },
  invoices: {
    draft: (d) => d.invoice(),
    open: (d) => d.invoice('open'),
    partially_paid: async (d) => ({ id: (await paid(d)).split('/')[1] }),
    paid: async (d) => {
      const made = await d.invoice('open');
      return d.make(`/invoices/${made.id}/record-payment`, { amount: { amount: 5000, currency: 'EUR' }, method: 'cash' });
    },
    uncollectible: (d) => d.invoice('open', 'mark-uncollectible'),
    void: (d) => d.invoice('open', 'void'),
  },
  endpoints: {
    enabled: (d) => d.endpoint(),
    disabled: async (d) => ({ id: (await disabled(d)).split('/')[1] }),
  },
  payments: {
    requires_payment_method: (d) => d.payment({}),
    requires_capture: (d) => d.payment({ capture_method: 'manual' }, true),
    succeeded: (d) => d.payment({}, true),
  },
};

async function after2(d, first, second) {
  const { id } = await d.quote();
  await d.make(`/quotes/${id}/${first}`, {});
  await d.make(`/quotes/${id}/${second}`, {});
  return { id };
}

/** The API calls of a page's actions. */
const calls = {
  bookings: {
    confirm: ['PATCH', '', { status: 'confirmed' }], complete: ['PATCH', '', { status: 'completed' }], no_show: ['PATCH', '', { status: 'no_show' }],
    reprice: ['POST', '/reprice', {}], cancel: ['POST', '/cancel', {}], invoice: ['POST', '/invoices', (id) => ({ booking_id: id, kind: 'balance' })],
  },
  leads: {
    contacted: ['PATCH', '', { status: 'contacted' }], qualified: ['PATCH', '', { status: 'qualified' }], lose: ['PATCH', '', { status: 'lost', lost_reason: 'Rain' }], convert: ['POST', '/convert', {}],
    quote: ['POST', '/quotes', (id, d) => ({ customer_id: d.customer.id, lead_id: id, package_id: d.pkg.id, event_date: day(15) })],
  },
  quotes: { send: ['POST', '/send', {}], accept: ['POST', '/accept', {}], decline: ['POST', '/decline', {}], cancel: ['POST', '/cancel', {}] },
  invoices: {
    open: ['POST', '/open', {}], pay: ['POST', '/record-payment', (id, d, before) => ({ amount: before.amount_due.amount ? before.amount_due : { amount: 100, currency: 'EUR' }, method: 'cash' })],
    uncollectible: ['POST', '/mark-uncollectible', {}], void: ['POST', '/void', {}],
  },
  endpoints: { test: ['POST', '/test', {}], enable: ['PATCH', '', { status: 'enabled' }], disable: ['PATCH', '', { status: 'disabled' }] },
  payments: { capture: ['POST', '/capture', {}], cancel: ['POST', '/cancel', {}] },
};

const paths = { endpoints: 'webhook-endpoints', payments: 'payment-intents' };

/** Returns whether a service accepts a call and the call changes something. A refusal for a reason other than the status fails the test. */
async function changes(d, resource, made, [method, path, body]) {
  const own = `/${paths[resource] || resource}/${made.id}`;
  const elsewhere = path.startsWith('/invoices') || path.startsWith('/quotes') || path === '/test';
  const before = await d.call('GET', own);
  try {
    await d.call(method, elsewhere && path !== '/test' ? path : own + path, typeof body === 'function' ? body(made.id, d, before) : body);
  } catch (e) {
    assert.match(e.message, /"code":"invalid_status_transition"|The endpoint is disabled/);
    return false;
  }
  return elsewhere || path === '/reprice' || (await d.call('GET', own)).version !== before.version;
}

test('a page offers exactly the actions that the services accept in each status', { timeout: 480_000 }, async () => {
  const desk = new Desk(desks[2]);
  await desk.begin();
  const tab = await enter(browser, desk, { viewport: { width: 1280, height: 900 }, locale: 'en-GB', name: 'statuses' });
  const wrong = [];
  let seen = 0;
  for (const [resource, ways] of Object.entries(states)) {
    for (const [status, make] of Object.entries(ways)) {
      const first = await make(desk);
      await tab.page.goto(`${origin}/admin/${desk.slug}/test/${resource}/${first.id}`);
      const links = await tab.page.locator('main [data-action]').evaluateAll((list) => list.map((e) => [e.dataset.action, e.tagName === 'A']));
      for (const [name, offered] of links) {
        const call = calls[resource][name];
        if (!call) continue;
        seen++;
        const took = await changes(desk, resource, await make(desk), call).catch((e) => wrong.push(`${resource} ${status}: ${name}: ${e.message}`));
        if (typeof took === 'boolean' && took !== offered) wrong.push(`${resource} ${status}: ${name} is ${offered ? '' : 'not '}offered, but ${took ? '' : 'not '}accepted`);
      }
    }
  }
  assert.deepEqual(wrong, []);
  assert.ok(seen > 90, `only ${seen} pairs of status and action`);
  await tab.context.close();
});
