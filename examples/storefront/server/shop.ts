import { createHmac, timingSafeEqual } from "node:crypto";
import type { Booking, Money } from "@holdfast/sdk";
import { APIError, BookingNotPayable, type Holdfast, SlotUnavailable, ValidationError } from "@holdfast/sdk";

/** How long a booking holds its time while the customer pays, in minutes. */
const HOLD_MINUTES = 15;

/** How many packages the page offers. */
const MOST_PACKAGES = 100;

/** An error that the page explains. `code` is the name of its text. */
export class ShopError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly field?: string,
  ) {
    super(code);
  }
}

/** What the page sends to book. `order` is a UUID that the browser generates once per order. */
export interface OrderInput {
  order: string;
  package_id: string;
  starts_at: string;
  unit_id: string;
  first_name: string;
  email: string;
}

/** An order as the page shows it. `token` gives access to it. */
export interface Order {
  token: string;
  number: string;
  status: string;
  paid: boolean;
  name: string;
  starts_at: string | null;
  ends_at: string | null;
  total: Money;
  deposit: Money;
  hold_expires_at: string | null;
}

/** The calls of the API that the page needs. */
export class Shop {
  readonly #client: Holdfast;
  readonly #secret: string;

  /** `secret` signs the tokens of orders. */
  constructor(client: Holdfast, secret: string) {
    this.#client = client;
    this.#secret = secret;
  }

  /** Returns the business and what it offers. */
  async catalogue(): Promise<{ business: string; timezone: string; packages: { id: string; name: string; price: Money }[] }> {
    const tenant = await this.#client.tenant.get();
    const packages = [];
    for await (const p of this.#client.packages.list({ active: true, limit: MOST_PACKAGES })) {
      if (p.visible) packages.push({ id: p.id, name: p.name, price: p.base_price });
      if (packages.length === MOST_PACKAGES) break;
    }
    return { business: tenant.name, timezone: tenant.timezone, packages };
  }

  /** Returns the free times of a day, each with one of the units that are free then. */
  async times(day: string, packageId: string): Promise<{ starts_at: string; unit_id: string }[]> {
    const list = await this.#client.availability.list({ from: day, to: day, package_id: packageId }).catch((error: unknown) => {
      if (error instanceof ValidationError) throw new ShopError(422, "invalid", error.param === "from" ? "day" : "package");
      throw error;
    });
    const units = new Map<string, string>();
    for (const unit of list.data.flatMap((d) => d.units)) {
      for (const slot of unit.slots) {
        const future = new Date(slot.starts_at).getTime() > Date.now(); // without a minimum notice, the API offers the whole day
        if (future && slot.status === "available" && !units.has(slot.starts_at)) units.set(slot.starts_at, unit.unit_id);
      }
    }
    return [...units].map(([starts_at, unit_id]) => ({ starts_at, unit_id })).sort((a, b) => a.starts_at.localeCompare(b.starts_at));
  }

  /**
   * Books, and prepares the payment of the deposit. All keys derive from the order, so the same order books once, however often it is
   * sent: the API returns the first response again for 24 hours, also the client secret.
   */
  async book(input: OrderInput): Promise<{ order: Order; client_secret: string | null }> {
    const key = (name: string) => ({ idempotencyKey: `storefront-${input.order}-${name}` });
    try {
      const customer = await this.#client.customers.create({ first_name: input.first_name, email: input.email }, key("customer"));
      const { id, deposit_amount } = await this.#client.bookings.create(
        {
          customer_id: customer.id,
          package_id: input.package_id,
          unit_id: input.unit_id,
          starts_at: input.starts_at,
          hold_minutes: HOLD_MINUTES,
        },
        key("booking"),
      );
      const order = await this.#read(id); // the response can be the stored one
      if (order.status !== "pending" || order.paid || deposit_amount.amount === 0) return { order, client_secret: null };
      const intent = await this.#client.paymentIntents.create(
        { booking_id: id, amount_minor: deposit_amount.amount, receipt_email: input.email },
        key("payment"),
      );
      return { order, client_secret: intent.client_secret };
    } catch (error) {
      if (error instanceof SlotUnavailable) throw new ShopError(409, "slot_taken");
      if (error instanceof BookingNotPayable) throw new ShopError(409, "expired");
      if (error instanceof ValidationError) throw new ShopError(422, "invalid", error.param);
      if (error instanceof APIError && error.code === "payment_intent_failed") throw new ShopError(503, "payment_unavailable");
      throw error;
    }
  }

  /** Returns the order of a token, or throws a ShopError if the token is not valid. */
  async order(token: string): Promise<Order> {
    const [id = "", signature = ""] = token.split(".");
    const given = Buffer.from(signature, "base64url");
    const wanted = this.#sign(id);
    if (given.length !== wanted.length || !timingSafeEqual(given, wanted)) throw new ShopError(404, "not_found");
    return this.#read(id);
  }

  #sign(id: string): Buffer {
    return createHmac("sha256", this.#secret).update(`storefront order ${id}`).digest();
  }

  async #read(id: string): Promise<Order> {
    const booking: Booking = await this.#client.bookings.get(id);
    return {
      token: `${id}.${this.#sign(id).toString("base64url")}`,
      number: booking.number,
      status: booking.status,
      paid: booking.amount_paid.amount > 0,
      name: booking.package_snapshot?.name ?? booking.number,
      starts_at: booking.starts_at,
      ends_at: booking.ends_at,
      total: booking.gross_amount,
      deposit: booking.deposit_amount,
      hold_expires_at: booking.hold_expires_at,
    };
  }
}
