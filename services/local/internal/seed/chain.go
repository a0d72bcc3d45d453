package seed

import (
	"context"
	"net/http"
	"time"
)

type object = map[string]any

type resource struct {
	ID string `json:"id"`
}

// chain creates leads, quotes, and invoices in each of their states if there are no leads.
func (c *client) chain(ctx context.Context, customers []string, currency string, today time.Time) error {
	there, err := list[resource](ctx, c, "/leads?limit=1")
	if err != nil || len(there) > 0 {
		return err
	}
	if err := c.leads(ctx); err != nil {
		return err
	}
	s := chainSeed{client: c, currency: currency, day: today.AddDate(0, 2, 0).Format(time.DateOnly)}
	if err := s.quotes(ctx, customers); err != nil {
		return err
	}
	return s.invoices(ctx, customers, today)
}

func (c *client) leads(ctx context.Context) error {
	for _, l := range []struct {
		first, last, source string
		to                  object // nil: it stays new
	}{
		{"Farid", "Nazari", "website", nil},
		{"Greta", "Lind", "website", object{"status": "contacted"}},
		{"Hugo", "Silva", "fair", object{"status": "qualified"}},
		{"Ines", "Costa", "friend", object{"status": "quoted"}},
		{"Jonas", "Weber", "website", object{"status": "lost", "lost_reason": "Found an earlier date elsewhere."}},
	} {
		id, err := c.make(ctx, "/leads", object{
			"first_name": l.first, "last_name": l.last, "email": l.first + "@example.com", "source": l.source, "message": "Do you have a boat in summer?",
		})
		if err == nil && l.to != nil {
			err = c.call(ctx, http.MethodPatch, "/leads/"+id, l.to, nil)
		}
		if err != nil {
			return err
		}
	}
	id, err := c.make(ctx, "/leads", object{"first_name": "Kim", "last_name": "Park", "email": "kim@example.com", "source": "website"})
	if err != nil {
		return err
	}
	return c.call(ctx, http.MethodPost, "/leads/"+id+"/convert", object{}, nil)
}

func (c *client) make(ctx context.Context, path string, body object) (string, error) {
	var m resource
	err := c.call(ctx, http.MethodPost, path, body, &m)
	return m.ID, err
}

// chainSeed creates quotes and invoices.
type chainSeed struct {
	*client

	currency, day string
}

func (s chainSeed) money(amount int) object { return object{"amount": amount, "currency": s.currency} }

func (s chainSeed) lines(what string, amount int) []object {
	return []object{{"description": what, "quantity": 1, "unit_amount": s.money(amount), "taxes": []object{{"name": "Sales tax", "rate": "8.25"}}}}
}

// soon is the lifetime of the quote that must expire.
const soon = 3 * time.Second

func (s chainSeed) quotes(ctx context.Context, customers []string) error {
	for i, q := range []struct {
		status  string
		actions []string
	}{
		{"draft", nil},
		{"sent", []string{"send"}},
		{"accepted", []string{"send", "accept"}},
		{"declined", []string{"send", "decline"}},
		{"cancelled", []string{"cancel"}},
		{"expired", []string{"send"}},
	} {
		body := object{
			"customer_id": customers[i%len(customers)], "event_date": s.day, "line_items": s.lines("A day on the water", 90_000),
			"deposit_amount": s.money(20_000), "notes": "An example of a quote that is " + q.status + ".",
		}
		if q.status == "expired" {
			body["expires_at"] = time.Now().Add(soon).UTC().Format(time.RFC3339)
		}
		id, err := s.make(ctx, "/quotes", body)
		if err != nil {
			return err
		}
		for _, action := range q.actions {
			if err := s.call(ctx, http.MethodPost, "/quotes/"+id+"/"+action, object{}, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s chainSeed) invoices(ctx context.Context, customers []string, today time.Time) error {
	for i, v := range []struct {
		what   string
		due    int // days from today
		paid   int
		open   bool
		credit object // a credit note; nil: none
	}{
		{"draft", 30, 0, false, nil},
		{"open", 14, 0, true, nil},
		{"overdue", -7, 0, true, nil},
		{"paid", 14, 10_825, true, nil},
		{"partially paid", 14, 5000, true, nil},
		{"credited", 14, 0, true, object{"reason": "The event was canceled."}},
		{"paid and corrected", 14, 10_825, true, object{"amount": s.money(2165), "refund": "manual", "reason": "Fewer guests came."}},
	} {
		id, err := s.make(ctx, "/invoices", object{
			"customer_id": customers[i%len(customers)], "line_items": s.lines("Catering", 10_000), "due_at": today.AddDate(0, 0, v.due).Format(time.DateOnly),
			"notes": "An example of an invoice that is " + v.what + ".",
		})
		if err == nil && v.open {
			err = s.call(ctx, http.MethodPost, "/invoices/"+id+"/open", object{}, nil)
		}
		if err == nil && v.paid > 0 {
			err = s.call(ctx, http.MethodPost, "/invoices/"+id+"/record-payment", object{"amount": s.money(v.paid), "method": "cash"}, nil)
		}
		if err == nil && v.credit != nil {
			err = s.call(ctx, http.MethodPost, "/invoices/"+id+"/credit-notes", v.credit, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
