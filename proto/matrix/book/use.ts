import createClient from "openapi-fetch";
import type { components, paths } from "./contract.js";

const client = createClient<paths>({ baseUrl: "http://127.0.0.1:8080/api/v1" });
export async function book(): Promise<components["schemas"]["Booking"] | undefined> {
  const { data, error } = await client.POST("/bookings", { body: { event_date: "2030-01-01" } });
  if (error) throw new Error(error.error.code);
  return data;
}
