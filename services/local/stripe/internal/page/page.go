// Package page serves the part of Stripe.js that pages need to take a payment with this stand-in. Stripe.js itself can only be loaded from
// Stripe, and only calls Stripe.
package page

import (
	_ "embed"
	"net/http"
)

//go:embed stripe.js
var script []byte

// Handler returns the script. A page loads it instead of https://js.stripe.com/v3/.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(script)
	})
}
