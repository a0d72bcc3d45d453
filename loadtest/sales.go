package main

import (
	"fmt"
	"time"

	"holdfast.dev/loadtest/internal/load"
	"holdfast.dev/loadtest/internal/report"
)

// invoiceLine is one line of an invoice or a quote.
const invoiceLine = `{"description":"A day on the water, with skipper","quantity":1,` +
	`"unit_amount":{"amount":100000,"currency":"USD"},"tax_rate_bps":1900}`

// accept measures POST /quotes/{id}/accept. All quotes belong to one tenant, and each has its own slot.
func (f *figure) accept() {
	s := f.open()
	const prefix = "fd000000-0001-7000-8000-" // of the units
	f.execute("bookings", `insert into units (tenant_id, livemode, id, name)
		select $1, false, `+rowSQL(prefix, "n")+`, 'Accept ' || n from generate_series(0, $2::int) n`, s.id, units-1)
	quote := f.create(s.test, "/quotes", fmt.Sprintf(
		`{"customer_id":%q,"unit_id":%q,"event_date":%q,"event_start_time":"10:00","event_end_time":"14:00",`+
			`"line_items":[%s],"deposit_amount":{"amount":20000,"currency":"USD"}}`,
		s.customer, publicID("un", rowUUID(prefix, 0)), recordedDay.Format(time.DateOnly), invoiceLine))
	f.copies("customers", "quotes", f.template(s.test, "/quotes/"+quote+"/send", ""), 1, f.spare(), map[string]string{
		"id": rowSQL(rowPrefix, "n"), "number": "'A-' || n", "unit_id": rowSQL(prefix, fmt.Sprintf("n %% %d", units)),
		"event_day": fmt.Sprintf("date '%s' + n / %d", firstDay.Format(time.DateOnly), units),
	})
	ours := &side{name: "`POST /quotes/{id}/accept`", target: s.test.post(func(n int) (path, key, body string) {
		return "/quotes/" + publicID("qt", rowUUID(rowPrefix, n+1)) + "/accept", fmt.Sprintf("accept-%d", n), ""
	})}
	f.alternate(ours)
	f.add(report.Row{Figure: ours.name + " with Idempotency-Key", Value: report.PerSecond(ours.Rate())})
	f.addCPU(ours.name, ours, 8)
}

// opens measures POST /invoices/{id}/open of one tenant, whose numbers have no gap: each number waits for the previous
// commit.
func (f *figure) opens() {
	s := f.open()
	draft := f.template(s.test, "/invoices", invoice(s.customer))
	f.copies("customers", "invoices", draft, 1, f.spare(), map[string]string{"id": rowSQL(rowPrefix, "n")})
	ours := &side{name: "`POST /invoices/{id}/open`, one tenant"}
	ours.target = s.test.post(func(n int) (path, key, body string) {
		return "/invoices/" + publicID("inv", rowUUID(rowPrefix, n+1)) + "/open", fmt.Sprintf("open-%d", n), ""
	})
	f.alternate(ours)
	f.add(report.Row{
		Figure: ours.name + ", with Idempotency-Key: each number waits for the previous commit",
		Value:  report.PerSecond(ours.Rate()),
	})
	f.addCPU(ours.name, ours, 0)
}

func invoice(customer string) string {
	return fmt.Sprintf(`{"customer_id":%q,"line_items":[%s]}`, customer, invoiceLine)
}

// pdf measures the PDFs of a typical invoice and of one that is longer than the contract allows.
func (f *figure) pdf() {
	s := f.open()
	for i, lines := range []int{5, 150} {
		id := f.create(s.test, "/invoices", invoice(s.customer))
		row, err := uuidOf(id)
		f.check(err)
		f.execute("customers", `update invoices v set lines = array_to_json(array_fill(v.lines -> 0, array[$2::int])),
			subtotal = $2 * subtotal, discount = $2 * discount, tax = $2 * tax, total = $2 * total where id = $1`, row, lines)
		f.create(s.test, "/invoices/"+id+"/open", "")
		target := s.test.target(same("/invoices/" + id + "/pdf"))
		alone := &side{
			name: fmt.Sprintf("PDF of %d lines, one client", lines), target: target, pace: load.Pace{Conns: 1}, timed: true,
		}
		// Of more than 16 clients of one tenant, the service rejects some, and those of the previous round can still be
		// waiting.
		all := &side{name: fmt.Sprintf("PDF of %d lines", lines), target: target, pace: load.Pace{Conns: 8}}
		f.alternate(alone, all)
		f.add(report.Row{
			Figure:   fmt.Sprintf("`GET /invoices/{id}/pdf`, %d lines, one client: p50", lines),
			Value:    report.Milliseconds(alone.Percentile(50)),
			Baseline: fmt.Sprintf("8 clients: %.0f/s", all.Rate()), Target: report.Target{Most: []float64{0, 200}[i]},
		})
		f.addCPU(all.name, all, 0)
	}
}
