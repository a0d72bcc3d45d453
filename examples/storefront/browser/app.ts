import { isText, language, type Texts, text } from "./texts.js";

interface Money {
  amount: number;
  currency: string;
}

interface Shop {
  business: string;
  timezone: string;
  packages: { id: string; name: string; price: Money }[];
  stripe_js: string;
  publishable_key: string;
}

interface Order {
  token: string;
  number: string;
  status: string;
  paid: boolean;
  name: string;
  starts_at: string | null;
  total: Money;
  deposit: Money;
  hold_expires_at: string | null;
}

/** The order of this tab. It is kept until it is complete, so that a reload sends the same order again. */
interface Input {
  order: string;
  package_id: string;
  unit_id: string;
  starts_at: string;
  first_name: string;
  email: string;
}

/** The part of Stripe.js that this page uses. */
interface Stripe {
  elements(options: { clientSecret: string; locale: string }): StripeElements;
  confirmPayment(options: {
    elements: StripeElements;
    confirmParams: { return_url: string };
    redirect: "if_required";
  }): Promise<{ error?: { message?: string } }>;
}
interface StripeElements {
  create(type: "payment"): { mount(target: string): void };
}

/** An error of the server. Its code is the name of a text. */
class ServerError extends Error {
  constructor(
    readonly code: string,
    readonly field?: string,
  ) {
    super(code);
  }
}

const element = <T extends HTMLElement>(selector: string): T => {
  const found = document.querySelector<T>(selector);
  if (!found) throw new Error(`the page has no ${selector}`);
  return found;
};

const chooseForm = element<HTMLFormElement>("#choose");
const payForm = element<HTMLFormElement>("#pay");
const packageField = element<HTMLSelectElement>("#package");
const dayField = element<HTMLInputElement>("#day");

const STORED = "order";
/** The errors after which the order can have been booked. */
const TEMPORARY = ["unavailable", "payment_unavailable", "stripe"];
/** How often the page asks whether the payment has arrived, and for how long, in milliseconds. */
const POLL = 500;
const POLL_LIMIT = 60_000;

let shop: Shop;
let expiry: ReturnType<typeof setTimeout> | undefined;

async function request<T>(path: string, body?: unknown): Promise<T> {
  const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
  const response = await fetch(path, init).catch(() => {
    throw new ServerError("unavailable");
  });
  const result = await response.json().catch(() => ({}));
  if (!response.ok) throw new ServerError(result.code ?? "unavailable", result.field);
  return result;
}

const readOrder = (token: string) => request<Order>(`order?token=${encodeURIComponent(token)}`);

function money({ amount, currency }: Money): string {
  const format = new Intl.NumberFormat(language, { style: "currency", currency });
  return format.format(amount / 10 ** (format.resolvedOptions().maximumFractionDigits ?? 2));
}

/** Returns a time in a time zone, by default that of the business. */
const clock = (time: string, style: Intl.DateTimeFormatOptions, timeZone = shop.timezone) =>
  new Intl.DateTimeFormat(language, { ...style, timeZone }).format(new Date(time));

/** The time zone of the customer. */
const ownZone = new Intl.DateTimeFormat().resolvedOptions().timeZone;

function show(...parts: string[]): void {
  for (const id of ["choose", "summary", "pay", "done"]) element(`#${id}`).hidden = !parts.includes(id);
  if (!parts.includes("pay")) clearTimeout(expiry);
}

function showMessage(message: string): void {
  const place = element("#message");
  place.textContent = message;
  place.hidden = false;
  place.focus();
}

const clearMessage = () => {
  element("#message").hidden = true;
};

/** Shows an error in plain words. */
function explain(error: unknown): void {
  if (!(error instanceof ServerError)) console.error(error);
  const { code, field } = error instanceof ServerError ? error : { code: "unavailable", field: undefined };
  if (code === "invalid" && field === "email") {
    showMessage(text("invalid_email"));
    element("#email").focus();
    return;
  }
  showMessage(text(isText(code) ? code : "unavailable"));
}

/** Returns to the choice of a time, with a reason. The order is over. */
function startAgain(reason?: keyof Texts): void {
  sessionStorage.removeItem(STORED);
  show("choose");
  void showTimes();
  if (reason) showMessage(text(reason));
}

/** Shows the free times of the day. Only the newest request counts. */
let newest = 0;
async function showTimes(): Promise<void> {
  const turn = ++newest;
  const status = element("#times-status");
  element("#times").replaceChildren();
  if (!dayField.value || !packageField.value) {
    status.textContent = text("no_day");
    return;
  }
  status.textContent = text("loading");
  try {
    const query = new URLSearchParams({ day: dayField.value, package: packageField.value });
    const times = await request<{ starts_at: string; unit_id: string }[]>(`times?${query}`);
    if (turn !== newest) return;
    const found = { count: String(times.length), zone: shop.timezone };
    status.textContent = times.length ? text(shop.timezone === ownZone ? "count" : "count_zone", found) : text("no_times");
    element("#times").replaceChildren(
      ...times.map(({ starts_at, unit_id }) => {
        const input = document.createElement("input");
        Object.assign(input, { type: "radio", name: "time", required: true, value: `${starts_at} ${unit_id}` });
        const label = document.createElement("label");
        label.append(input, clock(starts_at, { timeStyle: "short" }));
        return label;
      }),
    );
  } catch (error) {
    if (turn !== newest) return;
    status.textContent = "";
    explain(error);
  }
}

/** Books, or continues the order that was already sent. */
async function send(input: Input): Promise<void> {
  sessionStorage.setItem(STORED, JSON.stringify(input));
  try {
    const { order, client_secret } = await request<{ order: Order; client_secret: string | null }>("orders", input);
    if (client_secret && order.status === "pending" && !order.paid) {
      await showPayment(order, client_secret);
    } else {
      showResult(order);
    }
  } catch (error) {
    if (!(error instanceof ServerError) || TEMPORARY.includes(error.code)) {
      explain(error); // the order is kept: sending it again continues it
    } else {
      sessionStorage.removeItem(STORED);
      show("choose");
      await showTimes();
      explain(error);
    }
  }
}

function showSummary(order: Order): void {
  const rows: [keyof Texts, string][] = [
    ["number", order.number],
    ["offer", order.name],
    ["when", order.starts_at ? clock(order.starts_at, { dateStyle: "full", timeStyle: "short" }) : ""],
    ["total", money(order.total)],
    ["deposit", money(order.deposit)],
  ];
  element("#summary dl").replaceChildren(
    ...rows.flatMap(([name, value]) => {
      const term = document.createElement("dt");
      const detail = document.createElement("dd");
      [term.textContent, detail.textContent] = [text(name), value];
      return [term, detail];
    }),
  );
}

/** Shows what became of an order. */
function showResult(order: Order): void {
  if (order.status === "cancelled" || order.status === "expired") {
    startAgain(order.paid ? undefined : order.status);
    if (order.paid) showMessage(text("paid_late", { business: shop.business, number: order.number }));
    return;
  }
  showSummary(order);
  show("summary", "done");
  const confirmed = order.status !== "pending";
  element("#done-text").textContent = confirmed ? text("confirmed") : text("received", { business: shop.business });
  const link = element<HTMLAnchorElement>("#calendar");
  link.hidden = !confirmed;
  link.href = `booking.ics?token=${encodeURIComponent(order.token)}`;
  element("#summary-title").focus();
}

/** Loads Stripe.js once. */
let loading: Promise<Stripe> | undefined;
function loadStripe(): Promise<Stripe> {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = shop.stripe_js;
    script.onload = () => resolve((window as unknown as { Stripe: (key: string) => Stripe }).Stripe(shop.publishable_key));
    script.onerror = () => {
      loading = undefined;
      script.remove();
      reject(new ServerError("stripe"));
    };
    document.head.append(script);
  });
  return loading;
}

/** Shows the payment form until the reservation expires. */
async function showPayment(order: Order, clientSecret: string): Promise<void> {
  const stripe = await loadStripe();
  const elements = stripe.elements({ clientSecret, locale: language });
  showSummary(order);
  show("summary", "pay");
  const until = order.hold_expires_at;
  element("#held").textContent = until ? text("held", { time: clock(until, { timeStyle: "short" }, ownZone) }) : "";
  const button = element<HTMLButtonElement>("#pay button");
  button.textContent = text("pay", { amount: money(order.deposit) });
  button.disabled = false;
  elements.create("payment").mount("#payment");
  element("#summary-title").focus();
  if (until) {
    clearTimeout(expiry);
    const left = new Date(until).getTime() - Date.now();
    expiry = setTimeout(() => void checkExpiry(order.token), Math.min(Math.max(left, 0) + 1_000, 2 ** 31 - 1));
  }
  payForm.onsubmit = (event) => {
    event.preventDefault();
    void pay(stripe, elements, order.token, button);
  };
}

/** Ends the order if its reservation has expired. */
async function checkExpiry(token: string): Promise<void> {
  const order = await readOrder(token).catch(() => undefined);
  if (order && order.status !== "pending") showResult(order);
}

async function pay(stripe: Stripe, elements: StripeElements, token: string, button: HTMLButtonElement): Promise<void> {
  if (button.disabled) return;
  button.disabled = true;
  clearMessage();
  try {
    const before = await readOrder(token); // never pay for a reservation that has ended
    if (before.status !== "pending" || before.paid) {
      showResult(before);
      return;
    }
    const { error } = await stripe.confirmPayment({ elements, confirmParams: { return_url: location.href }, redirect: "if_required" });
    if (error) {
      showMessage(text("declined", { reason: error.message ?? "" }));
      return;
    }
    await awaitPayment(token);
  } catch (error) {
    explain(error);
  } finally {
    button.disabled = false;
  }
}

/** Waits until the platform knows the payment. The result in the browser is no proof. */
async function awaitPayment(token: string): Promise<void> {
  clearTimeout(expiry);
  element("#held").textContent = text("paying");
  for (const end = Date.now() + POLL_LIMIT; Date.now() < end; ) {
    const order = await readOrder(token).catch(() => undefined);
    if (order && (order.status !== "pending" || order.paid)) {
      showResult(order);
      return;
    }
    await new Promise((done) => setTimeout(done, POLL));
  }
  showMessage(text("slow"));
}

async function start(): Promise<void> {
  document.documentElement.lang = language;
  for (const place of document.querySelectorAll<HTMLElement>("[data-text]")) place.textContent = text(place.dataset.text as keyof Texts);
  try {
    shop = await request<Shop>("shop");
  } catch (error) {
    explain(error);
    return;
  }
  document.title = text("title", { business: shop.business });
  element("#business").textContent = document.title;
  packageField.replaceChildren(...shop.packages.map(({ id, name, price }) => new Option(`${name}, ${money(price)}`, id)));
  dayField.min = new Intl.DateTimeFormat("sv", { timeZone: shop.timezone }).format(); // YYYY-MM-DD

  packageField.onchange = dayField.onchange = () => {
    clearMessage();
    void showTimes();
  };
  element("#again").onclick = () => {
    clearMessage();
    startAgain();
    packageField.focus();
  };
  chooseForm.onsubmit = async (event) => {
    event.preventDefault();
    const button = element<HTMLButtonElement>("#choose button");
    if (button.disabled) return;
    button.disabled = true;
    clearMessage();
    const given = new FormData(chooseForm);
    const value = (name: string) => String(given.get(name) ?? "");
    const [starts_at = "", unit_id = ""] = value("time").split(" ");
    const wanted = { package_id: value("package"), unit_id, starts_at, first_name: value("first_name"), email: value("email") };
    await send({ ...wanted, order: unfinished(wanted) ?? crypto.randomUUID() });
    button.disabled = false;
  };

  const stored = sessionStorage.getItem(STORED);
  if (stored) {
    await send(JSON.parse(stored) as Input);
    if (!element("#pay").hidden || !element("#done").hidden) return;
  }
  show("choose");
  if (!element("#times").hasChildNodes()) await showTimes();
}

/** Returns the order that was sent with the same entries and got no response. It may have been booked. */
function unfinished(wanted: Omit<Input, "order">): string | undefined {
  const stored = JSON.parse(sessionStorage.getItem(STORED) ?? "{}") as Partial<Input>;
  return Object.entries(wanted).every(([name, value]) => stored[name as keyof Input] === value) ? stored.order : undefined;
}

await start();
