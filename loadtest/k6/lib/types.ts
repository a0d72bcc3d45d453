// The fields of the API's responses that the scenarios read. The contract is proto/openapi.yaml.

export interface Money {
  amount: number;
  currency: string;
}

export interface Row {
  id: string;
  created_at: string;
}

export interface Page<T> {
  data: T[];
  has_more: boolean;
  next_cursor: string | null;
}

export interface Tenant {
  currency: string;
}

export interface Customer extends Row {
  first_name: string;
}

export interface Booking extends Row {
  status: string;
  version: number;
  unit_id: string | null;
  event_date: string;
  starts_at: string | null;
  total_amount: Money;
  deposit_amount: Money;
  amount_paid: Money;
  amount_refunded: Money;
  payment_status: string;
  lead_id: string | null;
  quote_id: string | null;
  invoice_ids: string[];
}

export interface Quote extends Row {
  status: string;
  booking_id: string | null;
  invoice_ids: string[];
}

export interface Invoice extends Row {
  status: string;
  quote_id: string | null;
  amount_due: Money;
}

export interface Intent extends Row {
  client_secret: string | null;
  booking_id: string;
  amount_received: number;
  amount_refunded: number;
}

export interface Refund extends Row {
  status: string;
}

export interface Slot {
  starts_at: string;
  ends_at: string;
  status: 'available' | 'held' | 'booked' | 'blocked';
}

export interface Day {
  date: string;
  status: 'available' | 'limited' | 'sold_out' | 'closed';
  price_from: Money | null;
  units: { unit_id: string; slots: Slot[] }[];
}

export interface Explanation {
  available: boolean;
  reason: string | null;
}

export interface Event extends Row {
  type: string;
  data: { object: Row };
}

export interface Delivery extends Row {
  event_id: string;
  status: 'pending' | 'delivering' | 'succeeded' | 'failed';
  attempts: { number: number; at: string; status_code: number | null }[];
}

export interface Refusal {
  error: { code: string; request_id: string };
}
