/** Settings of the server, from the environment. */
export interface Settings {
  readonly host: string;
  readonly port: number;
  /** The operator's API key. It never leaves the server. */
  readonly apiKey: string;
  readonly baseURL: string;
  /** Stripe's publishable key of the operator, pk_…. Browsers receive it. */
  readonly publishableKey: string;
  /** Address of Stripe.js. */
  readonly stripeJs: URL;
}

/** Reads the settings, or throws an error that says what is missing. */
export function readSettings(env: NodeJS.ProcessEnv): Settings {
  const required = (name: string): string => {
    const value = env[name];
    if (!value) throw new Error(`${name} must be set. The README lists the settings.`);
    return value;
  };
  const port = Number(env.PORT ?? "4000");
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new Error("PORT must be a number from 0 to 65535.");
  return {
    host: env.HOST ?? "127.0.0.1",
    port,
    apiKey: required("HOLDFAST_API_KEY"),
    baseURL: required("HOLDFAST_BASE_URL"),
    publishableKey: required("STRIPE_PUBLISHABLE_KEY"),
    stripeJs: new URL(env.STRIPE_JS ?? "https://js.stripe.com/v3/"),
  };
}
