package e2e

import (
	"encoding/json"
	"testing"
)

// TestDocumentsInABrowser checks the work of operators with taxes, shared departures and closed days in a real browser.
func TestDocumentsInABrowser(t *testing.T) {
	owner := func(timezone, currency string) map[string]any {
		slug := unique("office")
		email := slug + "@example.com"
		shared.identity(t, nil, "tenant", "create", "--slug", slug, "--name", "Harbour Tours", "--timezone", timezone, "--currency", currency, "--json")
		var invited struct{ Link string }
		shared.identity(t, &invited, "operator", "invite", email, "--tenant", slug, "--name", "Dana", "--role", "owner", "--json")
		return map[string]any{"email": email, "slug": slug, "link": invited.Link}
	}
	line := func(description, quantity, price, taxes string) map[string]string {
		return map[string]string{"description": description, "quantity": quantity, "unit_amount": price, "taxes": taxes}
	}
	var operators []map[string]any
	for _, o := range []struct {
		place, timezone, currency, behavior, deposit, balance string
		quote                                                 []string
		lines                                                 []map[string]string
	}{
		{
			"New York", "America/New_York", "USD", "Added to prices", "5.00", "41.76",
			[]string{"1.77", "46.76"},
			[]map[string]string{line("Map", "1", "19.99", "Sales tax 8.875"), line("Gift card", "1", "25.00", "0")},
		},
		{
			"Québec", "America/Toronto", "CAD", "Added to prices", "33.33", "81.65",
			[]string{"14.98", "114.98"},
			[]map[string]string{line("Tour", "2", "50.00", "TPS 5; TVQ 9.975")},
		},
		{
			"Munich", "Europe/Berlin", "EUR", "Included in prices", "50.01", "122.49",
			[]string{"22.50", "172.50"},
			[]map[string]string{line("Fahrt", "1", "119.00", "USt 19"), line("Brotzeit", "5", "10.70", "USt 7")},
		},
	} {
		m := owner(o.timezone, o.currency)
		m["place"], m["behavior"], m["deposit"], m["balance"], m["quote"], m["lines"] = o.place, o.behavior, o.deposit, o.balance, o.quote, o.lines
		operators = append(operators, m)
	}
	text, err := json.Marshal(operators)
	if err != nil {
		t.Fatal(err)
	}
	guide, err := json.Marshal(owner("Europe/Berlin", "EUR"))
	if err != nil {
		t.Fatal(err)
	}
	inABrowser(t, "documents.test.mjs", "OPERATORS="+string(text), "GUIDE="+string(guide))
}
