const en = {
  title: "Book at {business}",
  choose: "Choose a time",
  package: "Offer",
  day: "Day",
  time: "Time",
  name: "Your name",
  email: "Email address",
  book: "Book and go to payment",
  loading: "Loading times…",
  no_day: "Choose a day to see the free times.",
  no_times: "No free times on this day. Choose another day.",
  count: "Free times: {count}",
  count_zone: "Free times: {count}, in the time zone {zone}",
  summary: "Your booking",
  number: "Number",
  offer: "Offer",
  when: "Time",
  total: "Price",
  deposit: "Deposit",
  held: "This time is reserved for you until {time}. Pay the deposit to confirm it.",
  pay: "Pay {amount}",
  paying: "Your payment is being confirmed…",
  confirmed: "Your booking is confirmed. Thank you!",
  received: "Your booking has been received. {business} will confirm it.",
  slow: "Your payment was accepted. The confirmation takes longer than usual. Reload this page in a minute.",
  calendar: "Add to calendar (.ics)",
  again: "Make another booking",
  slot_taken: "Someone else has just booked this time. Choose another time. You have not been charged.",
  expired: "The reservation has expired, and you have not been charged. Choose a time again.",
  paid_late: "Your payment arrived after the reservation had ended. Contact {business} with the number {number} about your money.",
  cancelled: "The booking was cancelled. Choose a time again.",
  invalid: "The booking was not accepted. Check your entries, the day and the time.",
  invalid_email: "Enter a valid email address.",
  payment_unavailable: "The payment cannot be started now. Your time stays reserved. Try again in a minute.",
  unavailable: "The server cannot be reached. Nothing was booked twice. Try again.",
  not_found: "The booking cannot be found. Choose a time again.",
  stripe: "The payment form cannot be loaded. Reload this page.",
  declined: "The payment failed: {reason} Your time stays reserved. Try another card.",
};

export type Texts = typeof en;

const de: Texts = {
  title: "Buchen bei {business}",
  choose: "Termin wählen",
  package: "Angebot",
  day: "Tag",
  time: "Uhrzeit",
  name: "Ihr Name",
  email: "E-Mail-Adresse",
  book: "Buchen und zur Zahlung",
  loading: "Zeiten werden geladen …",
  no_day: "Wählen Sie einen Tag, um die freien Zeiten zu sehen.",
  no_times: "An diesem Tag ist nichts frei. Wählen Sie einen anderen Tag.",
  count: "Freie Zeiten: {count}",
  count_zone: "Freie Zeiten: {count}, in der Zeitzone {zone}",
  summary: "Ihre Buchung",
  number: "Nummer",
  offer: "Angebot",
  when: "Zeit",
  total: "Preis",
  deposit: "Anzahlung",
  held: "Diese Zeit ist bis {time} für Sie reserviert. Leisten Sie die Anzahlung, um sie zu bestätigen.",
  pay: "{amount} bezahlen",
  paying: "Ihre Zahlung wird bestätigt …",
  confirmed: "Ihre Buchung ist bestätigt. Vielen Dank!",
  received: "Ihre Buchung ist eingegangen. {business} wird sie bestätigen.",
  slow: "Ihre Zahlung wurde angenommen. Die Bestätigung dauert länger als üblich. Laden Sie diese Seite in einer Minute neu.",
  calendar: "Zum Kalender hinzufügen (.ics)",
  again: "Weitere Buchung",
  slot_taken: "Diese Zeit hat gerade jemand anders gebucht. Wählen Sie eine andere. Ihnen wurde nichts berechnet.",
  expired: "Die Reservierung ist abgelaufen. Ihnen wurde nichts berechnet. Wählen Sie erneut eine Zeit.",
  paid_late:
    "Ihre Zahlung kam nach dem Ende der Reservierung an. Wenden Sie sich wegen Ihres Geldes mit der Nummer {number} an {business}.",
  cancelled: "Die Buchung wurde storniert. Wählen Sie erneut eine Zeit.",
  invalid: "Die Buchung wurde nicht angenommen. Prüfen Sie Ihre Angaben, den Tag und die Uhrzeit.",
  invalid_email: "Geben Sie eine gültige E-Mail-Adresse ein.",
  payment_unavailable: "Die Zahlung kann gerade nicht beginnen. Ihre Zeit bleibt reserviert. Versuchen Sie es in einer Minute erneut.",
  unavailable: "Der Server ist nicht erreichbar. Nichts wurde doppelt gebucht. Versuchen Sie es erneut.",
  not_found: "Die Buchung wurde nicht gefunden. Wählen Sie erneut eine Zeit.",
  stripe: "Das Zahlungsformular kann nicht geladen werden. Laden Sie diese Seite neu.",
  declined: "Die Zahlung ist fehlgeschlagen: {reason} Ihre Zeit bleibt reserviert. Versuchen Sie es mit einer anderen Karte.",
};

/** The language of the page: German if the browser prefers it, otherwise English. */
export const language = navigator.language.startsWith("de") ? "de" : "en";

const texts = language === "de" ? de : en;

/** Returns a text, with values in place of their {names}. */
export function text(name: keyof Texts, values: Record<string, string> = {}): string {
  return texts[name].replace(/\{(\w+)\}/g, (_, key: string) => values[key] ?? "");
}

/** Whether a code of the server is the name of a text. */
export const isText = (code: string): code is keyof Texts => code in texts;
