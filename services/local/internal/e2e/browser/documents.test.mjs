// The work of operators with taxes, shared departures and closed days, in a real browser. The documents of a booking add up, from the
// quote to the credit note. A tour of ten seats sells out exactly. A closed day cannot be booked.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch, setting } from './browser.mjs';
import { day, enter, Hand } from './hand.mjs';

const origin = setting('AUTH_URL');
const operators = JSON.parse(setting('OPERATORS')); // in New York, Québec and Munich: email, slug, link, and the documents of a quote
const guide = JSON.parse(setting('GUIDE')); // an operator who sells seats: email, slug, link

let browser;

before(async () => {
  browser = await launch();
});

after(() => browser?.close());

/** Signs in, and returns the hand of the operator. */
async function sign(operator) {
  return new Hand(await enter(browser, operator, { viewport: { width: 1280, height: 900 }, locale: 'en-GB', name: operator.slug }), false);
}

/** Creates a customer that has only a phone number, and returns its ID. */
async function customer(hand) {
  await hand.open('Customers');
  await hand.go('New customer');
  await hand.fill({ first_name: 'Ada', last_name: 'Harbour', phone: '+49 89 1234' });
  await hand.go('Save');
  assert.match(await hand.text(), /Ada Harbour/);
  return idIn(hand, 'cu');
}

const idIn = (hand, prefix) => hand.page.url().match(new RegExp(`${prefix}_\\w+`))[0];

/** Checks that the page shows amounts in this order. */
async function shows(hand, amounts) {
  assert.match(await hand.text(), new RegExp(amounts.map((a) => `\\D${a.replace('.', '\\.')}(?!\\d)`).join('[\\s\\S]*')));
}

/** Records a payment of everything that is due on the invoice of the page. */
async function pay(hand) {
  await hand.go('Record payment');
  await hand.fill({ method: 'cash' });
  await hand.go('Record payment');
  assert.match(await hand.text(), /Payment recorded/);
}

for (const o of operators) {
  test(`documents add up in ${o.place}`, { timeout: 240_000 }, async () => {
    const hand = await sign(o);
    const ada = await customer(hand);
    await hand.open('Quotes');
    await hand.go('New quote');
    await hand.fill({ customer_id: ada, event_date: day(20), tax_behavior: o.behavior, deposit_amount: o.deposit });
    for (const [i, line] of o.lines.entries()) {
      await hand.fill(Object.fromEntries(Object.entries(line).map(([name, value]) => [`line_items.${i}.${name}`, value])));
    }
    await hand.go('Save');
    await shows(hand, o.quote);
    for (const action of ['Send', 'Accept']) {
      await hand.go(action);
      await hand.go(action);
    }
    await hand.open('Invoices');
    await hand.go('INV-000001');
    await shows(hand, [o.deposit]);
    await pay(hand);
    await hand.open('Bookings');
    await hand.go('B-000001');
    await hand.go('New invoice');
    await hand.go('Save');
    await hand.go('Issue');
    await hand.go('Issue');
    await shows(hand, [o.balance]);
    await pay(hand);
    await hand.go('Correct');
    await hand.fill({ amount: o.balance, reason: 'It rained', refund: 'manual' });
    await hand.go('Correct');
    assert.match(await hand.text(), /Credit note created/);
    await hand.open('Credit notes');
    await hand.go('CN-000001');
    await shows(hand, [o.balance]);
    await hand.tab.context.close();
  });
}

test('a tour sells out, and a closed day cannot be booked', { timeout: 240_000 }, async () => {
  const hand = await sign(guide);
  await hand.open('Services');
  await hand.go('New service');
  await hand.fill({ name: 'Harbour tour', duration_minutes: '120' });
  await hand.go('Save');
  await hand.open('Units');
  await hand.go('New unit');
  await hand.fill({ name: 'Walk', service_ids: 'Harbour tour', booking_mode: 'shared seats', capacity: '10' });
  await hand.fill(Object.fromEntries(['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'].map((d) => [`opening_hours.${d}`, '09:00-19:00'])));
  await hand.go('Save');
  await hand.open('Packages');
  await hand.go('New package');
  await hand.fill({ name: 'Seat', service_id: 'Harbour tour', base_price: '20', pricing: 'each guest' });
  await hand.go('Save');
  const ada = await customer(hand);
  const book = async (date, guests) => {
    await hand.open('Bookings');
    await hand.go('New booking');
    await hand.fill({ customer_id: ada, package_id: 'Seat', unit_id: 'Walk', event_date: date, event_start_time: '09:00', guest_count: guests });
    await hand.go('Save');
    return hand.text();
  };
  assert.match(await book(day(9), '7'), /Saved\.[\s\S]*€140\.00/);
  assert.match(await book(day(9), '4'), /Only 3 seats are left/);
  await hand.fill({ guest_count: '3' });
  await hand.go('Save');
  assert.match(await hand.text(), /Saved\.[\s\S]*€60\.00/);
  assert.match(await book(day(9), '1'), /No seats are left/);
  await hand.page.goto(`${origin}/admin/${guide.slug}/test/calendar?view=day&date=${day(9)}`);
  await hand.page.locator('main a[href*="/departure?"]').first().click();
  await hand.page.waitForURL(/departure/);
  assert.match(await hand.text(), /10 of 10 seats taken[\s\S]*Ada Harbour\s*3[\s\S]*Ada Harbour\s*7/);

  await hand.page.goto(`${origin}/admin/${guide.slug}/test/calendar?view=week&date=${day(10)}`);
  await hand.page.locator(`main a[href*="date_from=${day(10)}"]`).click();
  await hand.page.waitForURL(/closures\/new/);
  await hand.fill({ name: 'Storm' });
  await hand.go('Save');
  assert.match(await hand.text(), /Storm/);
  assert.match(await book(day(10), '1'), /not available[\s\S]*Storm/);
  assert.match(await book(day(11), '1'), /Saved\./);
  await hand.tab.context.close();
});
