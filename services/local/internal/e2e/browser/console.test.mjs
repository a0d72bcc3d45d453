// The operators' area in a real browser. A new operator sets up a catalogue, creates a booking by phone, moves it, records a deposit, sends
// a quote, and finds and resends a failed webhook: by mouse with scripts, and by keyboard without scripts. Every linked page must pass the
// checks of all pages.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { launch, looks, setting, Tab } from './browser.mjs';
import { day, enter, Hand, password } from './hand.mjs';

const origin = setting('AUTH_URL');
const host = new URL(origin).host;
const operators = JSON.parse(setting('OPERATORS')); // the owner of an empty tenant for each input method: email, slug, link
const all = process.env.SCALE === 'full';
const receivers = setting('RECEIVERS'); // the address at which webhooks can reach this machine

let browser, receiver, failing;

before(async () => {
  browser = await launch();
  receiver = createServer((req, res) => {
    req.resume().on('end', () => {
      res.writeHead(failing ? 500 : 200).end(failing ? 'the till is <b>closed</b>' : 'ok');
    });
  });
  await new Promise((done) => receiver.listen(0, receivers, done));
});

after(async () => {
  await browser?.close();
  receiver?.close();
});

/** Sets up a catalogue with only the guidance of the pages. */
async function catalogue(hand) {
  await hand.go('Create a service to describe what you offer');
  await hand.fill({ name: 'Harbour tour', duration_minutes: '120' });
  await hand.go('Save');
  for (const name of ['Gull', 'Heron']) {
    await hand.open('Units');
    await hand.go('New unit', 'main');
    await hand.fill({ name, service_ids: 'Harbour tour' });
    await hand.fill(Object.fromEntries(['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'].map((d) => [`opening_hours.${d}`, '09:00-19:00'])));
    await hand.go('Save');
    assert.match(await hand.text(), /09:00-19:00/);
  }
  await hand.open('Packages');
  await hand.go('New package');
  await hand.fill({ name: 'Evening tour', service_id: 'Harbour tour', base_price: '80', deposit_type: 'percentage', deposit_value: '25' });
  await hand.go('Save');
  assert.match(await hand.text(), /€80\.00[\s\S]*25%/);
}

/** Creates a booking by phone for a new customer. */
async function bookByPhone(hand) {
  await hand.open('Customers');
  await hand.go('New customer');
  await hand.fill({ first_name: 'Ada', last_name: 'Harbour', email: 'ada@example.com', phone: '+49 40 1234' });
  await hand.go('Save');
  await hand.go('New booking');
  await hand.fill({ package_id: 'Evening tour', unit_id: 'Gull', event_date: day(9), event_start_time: '10:00' });
  await hand.go('Save');
  assert.match(await hand.text(), /Saved\.[\s\S]*pending[\s\S]*Ada Harbour[\s\S]*Gull[\s\S]*€20\.00/);
  return hand.page.url().replace(/\?.*/, '');
}

/** Creates a booking of several days, extends it, and shortens it to a day. */
async function bookDays(hand) {
  await hand.open('Units');
  await hand.go('New unit');
  await hand.fill({ name: 'Barge', service_ids: 'Harbour tour', 'opening_hours.always': 'Always open' });
  await hand.go('Save');
  const shows = async (last, end) => assert.match(await hand.text(), new RegExp(`Saved\\.[\\s\\S]*10:00\\s*Last day\\s*${last}\\s*End\\s*${end}`));
  await hand.open('Bookings');
  await hand.go('New booking');
  await hand.fill({ customer_id: 'ada@example.com', unit_id: 'Barge', event_date: day(9), event_start_time: '10:00', event_local_end_date: day(11), event_end_time: '09:00' });
  await hand.go('Save');
  await shows('\\d+ \\w+ \\d+', '09:00');
  await hand.go('Edit');
  assert.equal(await hand.page.inputValue('[name=event_local_end_date]'), day(11));
  await hand.fill({ event_local_end_date: day(12) });
  await hand.go('Save');
  await hand.go('Edit');
  assert.equal(await hand.page.inputValue('[name=event_local_end_date]'), day(12));
  await hand.fill({ event_local_end_date: '', event_end_time: '12:00' });
  await hand.go('Save');
  await shows('–', '12:00');
}

/** Sends a quote for another day, accepts it, and records the deposit of its invoice. */
async function quoteAndDeposit(hand) {
  await hand.open('Quotes');
  await hand.go('New quote');
  await hand.fill({ customer_id: 'ada@example.com', package_id: 'Evening tour', unit_id: 'Heron', event_date: day(12), event_start_time: '14:00' });
  await hand.go('Save');
  await hand.go('Send');
  await hand.go('Send');
  assert.match(await hand.text(), /Quote sent/);
  await hand.go('Accept');
  assert.match(await hand.text(), /A booking is created/);
  await hand.go('Accept');
  await hand.open('Invoices');
  await hand.go('INV-000001');
  await hand.go('Record payment');
  assert.equal(await hand.page.inputValue('[name=amount]'), '20.00');
  await hand.fill({ method: 'cash', reference: 'Till 1' });
  await hand.go('Record payment');
  assert.match(await hand.text(), /Payment recorded[\s\S]*paid[\s\S]*Till 1/);
}

test('a new operator, by mouse', { timeout: 480_000 }, async () => {
  const tab = await enter(browser, operators[0], { viewport: { width: 1280, height: 900 }, locale: 'en-GB', name: 'story' });
  const hand = new Hand(tab, false);
  await catalogue(hand);
  const booking = await bookByPhone(hand);

  // The booking is dragged to another unit. A calendar that is open in another tab shows the change automatically.
  const other = await tab.context.newPage();
  await other.goto(`${origin}/admin/${operators[0].slug}/test/calendar?view=week&date=${day(9)}`);
  await tab.page.goto(`${origin}/admin/${operators[0].slug}/test/calendar?view=week&date=${day(9)}`);
  const column = await tab.page.locator(`th[data-day="${day(9)}"]`).evaluate((th) => th.cellIndex - 1);
  const moved = tab.page.waitForURL(/done=moved/);
  await tab.page.locator('[data-booking]').dragTo(tab.page.locator('tbody tr').filter({ hasText: 'Heron' }).locator('td').nth(column));
  await moved;
  await other.locator('tbody tr').filter({ hasText: 'Heron' }).locator('[data-booking]').waitFor({ timeout: 20_000 });
  await other.close();
  await tab.page.goto(booking);
  assert.match(await hand.text(), /Heron/);

  await quoteAndDeposit(hand);
  await failedWebhook(hand);
  await everyPage(tab, operators[0].slug, 0);
  await tab.context.close();
});

test('a new operator, by keyboard without scripts', { timeout: 480_000 }, async () => {
  const tab = await enter(browser, operators[1], { viewport: { width: 1280, height: 900 }, locale: 'en-GB', name: 'keyboard', javaScriptEnabled: false });
  const hand = new Hand(tab, true);
  await catalogue(hand);
  const booking = await bookByPhone(hand);
  await hand.go('Edit');
  await hand.fill({ unit_id: 'Heron' });
  await hand.go('Save');
  assert.match(await hand.text(), /Saved\.[\s\S]*Heron/);
  await bookDays(hand);

  // A second booking finds the slot taken, and the page shows whose it is.
  await hand.open('Bookings');
  await hand.go('New booking');
  await hand.fill({ customer_id: 'ada@example.com', package_id: 'Evening tour', unit_id: 'Heron', event_date: day(9), event_start_time: '11:00' });
  await hand.go('Save');
  assert.match(await hand.text(), /The unit is not available at that time\.[\s\S]*B-000001 10:00–12:00 \(Ada Harbour\)/);
  assert.equal(await hand.page.inputValue('[name=event_start_time]'), '11:00');
  await tab.page.goto(booking);
  await quoteAndDeposit(hand);
  await failedWebhook(hand);
  await tab.context.close();
});

/** Finds a webhook that its receiver refused, and resends it. */
async function failedWebhook(hand) {
  failing = true;
  await hand.open('Webhooks');
  await hand.go('New webhook endpoint');
  await hand.fill({ url: `http://${receivers}:${receiver.address().port}/hook`, event_types: 'All event types, including future ones' });
  await hand.go('Save');
  assert.match(await hand.page.inputValue('#secret'), /^whsec_/);
  await hand.go('I have saved it');
  await hand.open('Customers');
  await hand.go('New customer');
  await hand.fill({ first_name: 'Ben', email: 'ben@example.com' });
  await hand.go('Save');
  await eventually(hand, 'Today', /Failing webhooks[\s\S]*\/hook[\s\S]*Failed deliveries[\s\S]*customer\.created[\s\S]*HTTP 500/);
  if (hand.keyboard) { // through the page of the endpoint
    await hand.go(`http://${receivers}:${receiver.address().port}/hook`);
    assert.match(await hand.text(), /customer\.created[\s\S]*HTTP 500/);
  }
  await hand.go('customer\\.created');
  await hand.page.locator('summary').filter({ hasText: 'Request headers' }).click();
  assert.match(await hand.text(), /HTTP 500[\s\S]*Service-Delivery-Attempt: 1[\s\S]*the till is <b>closed<\/b>[\s\S]*"email": "ben@example\.com"/);
  failing = false;
  await hand.go('Resend');
  assert.match(await hand.text(), /The event is being resent/);
  await eventually(hand, null, /succeeded[\s\S]*HTTP 200/);
}

/** Loads a page of the navigation, or reloads the current page, until its text matches. */
async function eventually(hand, page, pattern) {
  for (const end = Date.now() + 30_000; ; await new Promise((done) => setTimeout(done, 250))) {
    if (page) await hand.open(page);
    else await hand.page.reload();
    const text = await hand.text();
    if (pattern.test(text)) return;
    assert.ok(Date.now() < end, `${pattern} does not appear: ${text}`);
  }
}

/** Follows the links of the operators' area once for each kind of page. It checks all pages, or every fourth one, starting at first. */
async function everyPage(tab, slug, first) {
  let n = 0;
  const kind = (path) => path.replace(/\?.*/, '').replace(/\/[a-z]+_[0-9a-zA-Z]+/g, '/:id');
  const waiting = [`/admin/${slug}/test/today`];
  const seen = new Set(waiting.map(kind));
  while (waiting.length > 0) {
    const path = waiting.shift();
    const answer = await tab.page.goto(origin + path);
    assert.equal(answer.status(), 200, path);
    assert.ok((await answer.body()).length < 150_000, `${path} is too large`);
    if (all || n++ % 4 === first) await tab.check(kind(path).slice(slug.length + 8).replaceAll('/', '-'));
    for (const href of await tab.page.locator('a[href^="/admin/"]').evaluateAll((links) => links.map((a) => a.getAttribute('href')))) {
      if (href.startsWith(`/admin/${slug}/test/`) && !/\.csv|\/pdf$/.test(href) && !seen.has(kind(href))) {
        seen.add(kind(href));
        waiting.push(href);
      }
    }
  }
  assert.ok(seen.size > 50, `only ${seen.size} kinds of pages: ${[...seen].join(' ')}`);
}

test('each page on a small screen, dark and in German', { timeout: 480_000 }, async () => {
  const tab = await Tab.open(browser, { ...looks[1], viewport: { width: 360, height: 800 } }, [host]);
  await tab.page.goto(`${origin}/admin`);
  await tab.page.fill('#email', operators[0].email);
  await tab.page.fill('#password', password);
  await tab.page.press('#password', 'Enter');
  await tab.page.waitForURL('**/today');
  await everyPage(tab, operators[0].slug, 2);
  await tab.context.close();
});
