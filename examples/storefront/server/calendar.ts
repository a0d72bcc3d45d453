import type { Order } from "./shop.js";

/** Returns a calendar with the booking (RFC 5545). */
export function calendar(order: Order, business: string, now = new Date()): string {
  return [
    "BEGIN:VCALENDAR",
    "VERSION:2.0",
    "PRODID:-//Holdfast//storefront//EN",
    "BEGIN:VEVENT",
    `UID:${order.token.split(".")[0]}@storefront`,
    `DTSTAMP:${utc(now)}`,
    `DTSTART:${utc(new Date(order.starts_at ?? now))}`,
    `DTEND:${utc(new Date(order.ends_at ?? now))}`,
    `SUMMARY:${escapeText(`${order.name}, ${business}`)}`,
    `DESCRIPTION:${escapeText(order.number)}`,
    "END:VEVENT",
    "END:VCALENDAR",
  ]
    .map((line) => `${fold(line)}\r\n`)
    .join("");
}

/** 20270703T130000Z */
const utc = (time: Date) => time.toISOString().replace(/[-:]|\.\d+/g, "");

const escapeText = (text: string) => text.replace(/[\\;,]/g, "\\$&").replace(/\r?\n/g, "\\n");

/** Breaks a line after at most 75 bytes, and not inside a character. */
function fold(line: string): string {
  let out = "";
  let length = 0;
  for (const character of line) {
    const bytes = Buffer.byteLength(character);
    if (length + bytes > 75) {
      out += "\r\n ";
      length = 1;
    }
    out += character;
    length += bytes;
  }
  return out;
}
