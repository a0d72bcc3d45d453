// From a lead to a paid deposit, many in parallel: each quote is accepted twice with the same key, and has one booking and one
// invoice.

import { sleep } from 'k6';
import exec from 'k6/execution';
import { Counter, Trend } from 'k6/metrics';
import { all, call, must, ok, read, type Call } from './lib/api.ts';
import { makeCatalogue, retire, slot, type Catalogue } from './lib/catalogue.ts';
import { seconds, whole } from './lib/env.ts';
import type { Booking, Invoice, Quote, Row } from './lib/types.ts';

const rate = whole('RATE', 5);
const duration = seconds('DURATION', '30s');
const days = 200;
const patience = 50; // polls, 0.2 s apart, until the payment confirms the booking

const completed = new Counter('completed');
const bookings = new Counter('not_one_booking'); // chains whose lead, quote, and invoice do not refer to the same booking
const invoices = new Counter('not_one_invoice'); // bookings without exactly one open or paid invoice
const unconfirmed = new Counter('left_unconfirmed');
const repeated = new Counter('repeat_differs'); // repeated accepts with a different response
const accepting = new Trend('accept_duration', true);

export const options = {
  scenarios: {
    sell: { executor: 'constant-arrival-rate', rate, timeUnit: '1s', duration: `${duration}s`, preAllocatedVUs: whole('VUS', 40) },
  },
  thresholds: {
    http_req_failed: ['rate==0'],
    dropped_iterations: ['count==0'],
    completed: [`count>=${Math.floor(0.99 * rate * duration)}`],
    not_one_booking: ['count==0'],
    not_one_invoice: ['count==0'],
    left_unconfirmed: ['count==0'],
    repeat_differs: ['count==0'],
    accept_duration: ['p(95)<1000'],
  },
};

export function setup(): Catalogue {
  return makeCatalogue(20);
}

// post sends a body to a resource or an action. The name in the metrics contains no id.
function post(path: string, name: string, idempotencyKey: string, body?: object): Call {
  return { method: 'POST', path, name: `POST ${name}`, body, idempotencyKey };
}

function offer(c: Catalogue, n: number, tag: string): { lead: string; quote: string } {
  const email = `${tag}@example.com`;
  const lead = must<Row>(post('/leads', '/leads', `${tag}-lead`, { first_name: 'Lea', email, source: 'chain' })).id;
  const customer = must<Row>(post('/customers', '/customers', `${tag}-customer`, { first_name: 'Lea', email })).id;
  const wish = slot(c, n, days);
  const body = {
    customer_id: customer,
    lead_id: lead,
    service_id: c.service,
    ...wish,
    line_items: [{ description: 'A day on the water', quantity: 1, unit_amount: c.price }],
    deposit_amount: { amount: c.price.amount / 5, currency: c.price.currency },
    metadata: { run: c.run },
  };
  const quote = must<Row>(post('/quotes', '/quotes', `${tag}-quote`, body)).id;
  must<Quote>(post(`/quotes/${quote}/send`, '/quotes/{id}/send', `${tag}-send`));
  return { lead, quote };
}

export default function (c: Catalogue): void {
  const n = exec.scenario.iterationInTest;
  const tag = `${c.run}-${n}`;
  const { lead, quote } = offer(c, n, tag);

  const accept = post(`/quotes/${quote}/accept`, '/quotes/{id}/accept', `${tag}-accept`);
  const first = call(accept);
  accepting.add(first.timings.duration);
  if (!ok(first)) {
    return;
  }
  if (call(accept).body !== first.body) {
    repeated.add(1);
  }
  const accepted = read<Quote>(first);
  const [invoice] = accepted.invoice_ids;
  if (accepted.status !== 'accepted' || !accepted.booking_id || !invoice) {
    bookings.add(1);
    return;
  }
  const due = must<Invoice>({ method: 'GET', path: `/invoices/${invoice}`, name: 'GET /invoices/{id}' }).amount_due;
  const payment = { amount: due, method: 'bank_transfer' };
  must<Invoice>(post(`/invoices/${invoice}/record-payment`, '/invoices/{id}/record-payment', `${tag}-pay`, payment));
  judge(lead, quote, accepted.booking_id, invoice);
}

function judge(lead: string, quote: string, id: string, invoice: string): void {
  const look = () => must<Booking>({ method: 'GET', path: `/bookings/${id}`, name: 'GET /bookings/{id}' });
  let booking = look();
  for (let left = patience; left > 0 && booking.status !== 'confirmed'; left--) {
    sleep(0.2);
    booking = look();
  }
  if (booking.status !== 'confirmed') {
    unconfirmed.add(1);
  }
  const found = all<Invoice>(`/invoices?booking_id=${id}`);
  const paid = found.filter((i) => i.id === invoice && i.status === 'paid' && i.quote_id === quote);
  if (found.length !== 1 || paid.length !== 1 || booking.invoice_ids.join() !== invoice) {
    invoices.add(1);
  }
  if (booking.quote_id !== quote || booking.lead_id !== lead) {
    bookings.add(1);
  }
  completed.add(1);
}

// Checks that every booking belongs to a quote.
export function teardown(c: Catalogue): void {
  const made = all<Booking>(`/bookings?service_id=${c.service}`);
  const quotes = all<Quote>(`/quotes?metadata[run]=${c.run}&status=accepted`);
  const named = new Set(quotes.map((q) => q.booking_id));
  bookings.add(made.filter((b) => !named.has(b.id)).length + Math.abs(named.size - quotes.length));
  retire(c);
}
