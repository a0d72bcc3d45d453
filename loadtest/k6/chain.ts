// From a lead to a paid deposit, many in parallel: each quote is accepted twice with the same key, and has one booking
// and one invoice.

import exec from 'k6/execution';
import { Counter, Trend } from 'k6/metrics';
import type { Booking, Invoice, Quote } from '../../sdks/typescript/src/types.gen.ts';
import { all, call, get, must, ok, post, read, until } from './lib/api.ts';
import { makeCatalogue, retire, slot, type Catalogue } from './lib/catalogue.ts';
import { arrivals, calm, nearly, none, seconds, whole } from './lib/env.ts';

const rate = whole('RATE', 5);
const duration = seconds('DURATION', '30s');

const completed = new Counter('completed');
const bookings = new Counter('not_one_booking'); // chains whose lead, quote, and invoice have different bookings
const invoices = new Counter('not_one_invoice'); // bookings without exactly one paid invoice
const unconfirmed = new Counter('left_unconfirmed');
const repeated = new Counter('repeat_differs'); // repeated accepts with a different response
const accepting = new Trend('accept_duration', true);

export const options = {
  scenarios: { sell: arrivals(rate, duration, whole('VUS', 40)) },
  thresholds: {
    ...calm,
    ...none('not_one_booking', 'not_one_invoice', 'left_unconfirmed', 'repeat_differs'),
    completed: nearly(rate, duration),
    accept_duration: ['p(95)<1000'],
  },
};

export const setup = () => makeCatalogue(20);

export default function (c: Catalogue): void {
  const n = exec.scenario.iterationInTest;
  const tag = `${c.run}-${n}`;
  const create = <T extends { id: string }>(path: string, body?: object) => must<T>(post(path, body, tag + path));
  const person = { first_name: 'Lea', email: `${tag}@example.com` };
  const lead = create('/leads', { ...person, source: 'chain' }).id;
  const quote = create('/quotes', {
    customer_id: create('/customers', person).id,
    lead_id: lead,
    service_id: c.service,
    ...slot(c, n, 200),
    line_items: [{ description: 'A day on the water', quantity: 1, unit_amount: c.price }],
    deposit_amount: { amount: c.price.amount / 5, currency: c.price.currency },
    metadata: { run: c.run },
  }).id;
  create(`/quotes/${quote}/send`);

  const accept = post(`/quotes/${quote}/accept`, undefined, `${tag}-accept`);
  const first = call(accept);
  accepting.add(first.timings.duration);
  if (!ok(first)) {
    return;
  }
  repeated.add(call(accept).body === first.body ? 0 : 1);
  const accepted = read<Quote>(first);
  const [invoice] = accepted.invoice_ids;
  if (accepted.status !== 'accepted' || !accepted.booking_id || !invoice) {
    bookings.add(1);
    return;
  }
  const due = get<Invoice>(`/invoices/${invoice}`).amount_due;
  create(`/invoices/${invoice}/record-payment`, { amount: due, method: 'bank_transfer' });
  judge(lead, quote, accepted.booking_id, invoice);
}

function judge(lead: string, quote: string, id: string, invoice: string): void {
  const booking = until(() => get<Booking>(`/bookings/${id}`), (b) => b.status === 'confirmed');
  unconfirmed.add(booking.status === 'confirmed' ? 0 : 1);
  const found = all<Invoice>(`/invoices?booking_id=${id}`);
  const paid = found.filter((i) => i.id === invoice && i.status === 'paid' && i.quote_id === quote);
  invoices.add(found.length === 1 && paid.length === 1 && booking.invoice_ids.join() === invoice ? 0 : 1);
  bookings.add(booking.quote_id === quote && booking.lead_id === lead ? 0 : 1);
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
