// The part of Stripe.js that a page with the Payment Element uses, for the stand-in that serves this file:
//
//   const stripe = Stripe(publishableKey);
//   const elements = stripe.elements({ clientSecret });
//   elements.create("payment").mount("#payment");
//   const { error, paymentIntent } = await stripe.confirmPayment({ elements, confirmParams: { return_url }, redirect: "if_required" });
//
// The element is a form with labels in the page, not a frame. It takes the card numbers of Stripe's documentation. If a card needs
// authentication, the browser asks whether it succeeds.
(() => {
  "use strict";
  const base = new URL(document.currentScript.src).origin;

  const texts = {
    de: { note: "Stripe-Nachbildung: Es wird kein Geld bewegt.", number: "Kartennummer", expiry: "Ablaufdatum (MM/JJ)", cvc: "Prüfziffer", incomplete: "Die Kartendaten sind unvollständig.", authenticate: "Soll die Bestätigung der Zahlung gelingen?", network: "Die Verbindung zum Zahlungsdienst ist unterbrochen." },
    en: { note: "Stripe stand-in: no money is moved.", number: "Card number", expiry: "Expiry date (MM/YY)", cvc: "Security code", incomplete: "Your card details are incomplete.", authenticate: "Should the authentication of the payment succeed?", network: "The connection to the payment service failed." },
  };

  /** Returns a labelled field. */
  function field(label, name, autocomplete) {
    const input = document.createElement("input");
    Object.assign(input, { id: `stand-in-${name}`, name, autocomplete, inputMode: "numeric", type: "text" });
    const text = document.createElement("label");
    Object.assign(text, { htmlFor: input.id, textContent: label });
    const row = document.createElement("p");
    row.append(text, input);
    return { row, input };
  }

  class PaymentElement {
    constructor(text) {
      this.text = text;
    }

    mount(target) {
      const note = document.createElement("p");
      note.textContent = this.text.note;
      this.number = field(this.text.number, "number", "cc-number");
      this.expiry = field(this.text.expiry, "expiry", "cc-exp");
      this.cvc = field(this.text.cvc, "cvc", "cc-csc");
      const place = typeof target === "string" ? document.querySelector(target) : target;
      place.replaceChildren(note, this.number.row, this.expiry.row, this.cvc.row);
    }

    /** Returns the parameters of the card, or undefined if a field is incomplete. */
    card() {
      const number = this.number.input.value.replace(/[\s-]/g, "");
      const expiry = /^\s*(\d{1,2})\s*\/?\s*(\d{2})\s*$/.exec(this.expiry.input.value);
      if (!/^\d{12,19}$/.test(number) || !expiry || !/^\d{3,4}$/.test(this.cvc.input.value.trim())) return undefined;
      return {
        "payment_method_data[type]": "card",
        "payment_method_data[card][number]": number,
        "payment_method_data[card][exp_month]": Number(expiry[1]),
        "payment_method_data[card][exp_year]": 2000 + Number(expiry[2]),
      };
    }
  }

  async function post(path, parameters) {
    const response = await fetch(`${base}${path}`, { method: "POST", body: new URLSearchParams(parameters) });
    return response.json();
  }

  window.Stripe = (key) => ({
    elements({ clientSecret, locale }) {
      const text = texts[(locale ?? navigator.language).slice(0, 2)] ?? texts.en;
      const elements = {
        clientSecret,
        text,
        element: undefined,
        create(type) {
          if (type !== "payment") throw new Error(`The stand-in has the element payment, not ${type}.`);
          elements.element = new PaymentElement(text);
          return elements.element;
        },
      };
      return elements;
    },

    async confirmPayment({ elements, confirmParams }) {
      const { text, clientSecret: client_secret } = elements;
      const card = elements.element.card();
      if (!card) return { error: { type: "validation_error", code: "incomplete_card", message: text.incomplete } };
      const path = `/v1/payment_intents/${client_secret.split("_secret_")[0]}/confirm`;
      try {
        let answer = await post(path, { key, client_secret, return_url: confirmParams.return_url, ...card });
        if (answer.status === "requires_action") {
          const authentication_outcome = window.confirm(text.authenticate) ? "succeeded" : "failed";
          answer = await post(path, { key, client_secret, authentication_outcome });
        }
        return answer.error ? { error: answer.error } : { paymentIntent: answer };
      } catch {
        return { error: { type: "api_connection_error", message: text.network } };
      }
    },
  });
})();
