package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"

	"holdfast.dev/loadtest/internal/bulk"
	"holdfast.dev/loadtest/internal/load"
	"holdfast.dev/loadtest/internal/report"
)

// chain holds the data for the figures of leads, quotes, and invoices.
type chain struct {
	shop                    // the tenant demo, through the gateway
	db       *pgx.Conn      // in the customers database, not subject to row-level security
	app      string         // URL of that database with the service's own role
	addr     string         // of the customers service
	signer   *caller.Signer // signs as the gateway does
	customer string
}

// operator calls the customers service directly, as the gateway does for one of a tenant's keys in test mode.
type operator struct {
	chain  *chain
	tenant ids.Tenant
	who    caller.Encoded
}

var chainFigures = []string{"accept", "opens", "taxes", "pdf", "leads", "quotes", "invoices"}

// sales measures leads, quotes and invoices.
func (b *bench) sales(ctx context.Context) error {
	c, err := b.openChain(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.db.Close(context.WithoutCancel(ctx)) }()
	for _, figure := range chainFigures {
		if !b.wants(figure) {
			continue
		}
		b.try(ctx, figure, figure, func() error {
			switch figure {
			case "accept":
				return b.accept(ctx, c)
			case "opens":
				return b.opens(ctx, c)
			case "taxes":
				return b.taxes(ctx, c)
			case "pdf":
				return b.pdf(ctx, c)
			default:
				return b.resource(ctx, c, figure)
			}
		})
	}
	return nil
}

func (b *bench) openChain(ctx context.Context) (*chain, error) {
	env := b.platform.Env
	base, _, _ := strings.Cut(strings.TrimPrefix(env["BASE_URL"], "http://"), "/")
	settings, err := b.platform.Settings("customers")
	if err != nil {
		return nil, err
	}
	gateway, err := b.platform.Settings("gateway")
	if err != nil {
		return nil, err
	}
	keys, err := caller.ParseKeys(gateway["CALLER_SIGN_KEYS"])
	if err != nil {
		return nil, err
	}
	c := &chain{
		shop: shop{addr: base, key: env["DEMO_TEST_KEY"], live: env["DEMO_LIVE_KEY"]}, app: settings["DATABASE_URL"], addr: settings["HTTP_ADDR"],
		signer: &caller.Signer{From: "gateway", Keys: keys},
	}
	if c.db, err = b.platform.Admin(ctx, c.app); err != nil {
		return nil, err
	}
	c.customer, err = c.create(ctx, c.key, "/customers", `{"first_name":"Chain","email":"chain@example.com"}`)
	return c, err
}

// create creates a resource through the gateway and returns its id.
func (c *chain) create(ctx context.Context, key, path, body string) (string, error) {
	var created struct {
		ID string `json:"id"`
	}
	err := c.call(ctx, load.Request(http.MethodPost, "/api/v1"+path, c.headers(key, ""), body), http.StatusCreated, &created)
	return created.ID, err
}

// as returns the operator with which the tenant of a key calls the customers service.
func (c *chain) as(ctx context.Context, key string) (*operator, error) {
	var me struct {
		Tenant ids.Tenant `json:"tenant_id"`
	}
	get := load.Request(http.MethodGet, "/api/v1/me", c.headers(key, ""), "")
	if err := c.call(ctx, get, http.StatusOK, &me); err != nil {
		return nil, err
	}
	who, err := caller.Encode(caller.Caller{
		Tenant: me.Tenant, Timezone: "UTC", Currency: "USD", Mode: caller.Test, Credential: "key_bench", Kind: "api_key",
		Scopes: []string{"read:quotes", "write:quotes", "read:invoices", "write:invoices"},
	})
	return &operator{chain: c, tenant: me.Tenant, who: who}, err
}

// request returns a signed request with an Idempotency-Key, if any.
func (o *operator) request(method, path, key string) []byte { return o.send(method, path, key, "") }

// send is request with a body.
func (o *operator) send(method, path, key, body string) []byte {
	path = "/api/v1" + path
	signed, err := o.chain.signer.SignEncoded(o.who, caller.Call{Target: "customers", Method: method, Path: path, RequestID: "req_bench"}, time.Now())
	if err != nil {
		return nil // the service refuses it
	}
	headers := []string{caller.Header + ": " + signed}
	if key != "" {
		headers = append(headers, "Idempotency-Key: "+key)
	}
	return load.Request(method, path, headers, body)
}

// target returns the customers service as a target, with the n-th request.
func (c *chain) target(nth func(n int) []byte) load.Target {
	return load.Target{Addr: c.addr, Nth: nth, Status: http.StatusOK}
}

// manyTenants is how many tenants open invoices at the same time, in the comparison with one tenant.
const manyTenants = 16

// invoiceLine is one line of an invoice or a quote.
const invoiceLine = `{"description":"A day on the water, with skipper","quantity":1,"unit_amount":{"amount":100000,"currency":"USD"},"tax_rate_bps":1900}`

// invoice returns the body of POST /invoices with that many lines.
func invoice(customer string, lines int) string {
	return fmt.Sprintf(`{"customer_id":%q,"line_items":[%s]}`, customer, strings.TrimSuffix(strings.Repeat(invoiceLine+",", lines), ","))
}

// rowOf returns the id of the n-th copy of a kind.
func rowOf[P ids.Prefix](n int) string { return ids.FromUUID[P](rowUUID(n)).String() }

// copied returns the columns that differ in the n-th copy of a resource.
func copied(more map[string]string) map[string]string {
	own := map[string]string{"id": listed["id"]}
	for column, sql := range more {
		own[column] = sql
	}
	return own
}

// opens compares the invoices that one tenant opens, whose numbers have no gap, with those of several tenants.
func (b *bench) opens(ctx context.Context, c *chain) error {
	var tenants []*operator
	for n := range 1 + manyTenants {
		o, err := b.drafts(ctx, c, fmt.Sprintf("opens-%d", n))
		if err != nil {
			return err
		}
		tenants = append(tenants, o)
	}
	open := func(o *operator, row int) []byte {
		return o.request(http.MethodPost, "/invoices/"+rowOf[ids.InvoicePrefix](row)+"/open", fmt.Sprintf("open-%d", row))
	}
	one := &served{name: "POST /invoices/{id}/open, one tenant", target: c.target(func(n int) []byte { return open(tenants[0], n+1) })}
	many := &served{name: "POST /invoices/{id}/open, 16 tenants", target: c.target(func(n int) []byte {
		return open(tenants[1+n%manyTenants], n/manyTenants+1)
	})}
	if err := runRounds(b.serve(ctx, one), b.serve(ctx, many)); err != nil {
		return err
	}
	if err := b.enough(one.name, one.next); err != nil {
		return err
	}
	b.table.Add(report.Row{
		Figure: "`POST /invoices/{id}/open` with Idempotency-Key, one tenant, at the service: each number waits for the previous commit",
		Value:  report.PerSecond(one.Rate()), Baseline: fmt.Sprintf("%d tenants: %.0f/s", manyTenants, many.Rate()),
		Ratio: report.Ratio(one.Rate(), many.Rate()), Show: "opens",
	})
	b.table.Note("%s, CPU µs per request: %s", one.name, one.used.per(float64(one.Requests)))
	b.table.Note("%s, CPU µs per request: %s", many.name, many.used.per(float64(many.Requests)))
	return nil
}

// drafts creates a tenant with invoices that are not open.
func (b *bench) drafts(ctx context.Context, c *chain, slug string) (*operator, error) {
	key, err := b.tenant(ctx, slug)
	if err != nil {
		return nil, err
	}
	customer, err := c.create(ctx, key, "/customers", `{"first_name":"Bench","email":"bench@example.com"}`)
	if err != nil {
		return nil, err
	}
	draft, err := c.create(ctx, key, "/invoices", invoice(customer, 1))
	if err != nil {
		return nil, err
	}
	id, err := ids.Parse[ids.InvoicePrefix](draft)
	if err != nil {
		return nil, err
	}
	if err := bulk.Copy(ctx, c.db, bulk.Template{Table: "invoices", ID: id.UUID()}, 1, b.spare(), copied(nil)); err != nil {
		return nil, err
	}
	if err := bulk.VacuumAndCheckpoint(ctx, c.db, "invoices"); err != nil {
		return nil, err
	}
	return c.as(ctx, key)
}

// taxedLine is a line with three taxes.
const taxedLine = `{"description":"A day on the water, with skipper","quantity":1,"unit_amount":{"amount":100000,"currency":"USD"},"taxes":[` +
	`{"name":"GST","rate":"5"},{"name":"QST","rate":"9.975"},{"name":"City tax","rate":"3.5"}]}`

// taxes compares the largest invoices: with three taxes on each line, and with one rate.
func (b *bench) taxes(ctx context.Context, c *chain) error {
	o, err := c.as(ctx, c.key)
	if err != nil {
		return err
	}
	customer, err := c.create(ctx, c.key, "/customers", `{"first_name":"Bench","email":"bench@example.com"}`)
	if err != nil {
		return err
	}
	body := invoice(customer, 100)
	create := func(name, body string) *served {
		target := c.target(func(int) []byte { return o.send(http.MethodPost, "/invoices", "", body) })
		target.Status = http.StatusCreated
		return &served{name: "POST /invoices, 100 lines with " + name, target: target}
	}
	one, three := create("one rate", body), create("three taxes", strings.ReplaceAll(body, invoiceLine, taxedLine))
	if err := runRounds(b.serve(ctx, one), b.serve(ctx, three)); err != nil {
		return err
	}
	b.table.Add(report.Row{
		Figure: "`POST /invoices`, 100 lines with three taxes each, at the service", Value: report.PerSecond(three.Rate()),
		Baseline: fmt.Sprintf("with one `tax_rate_bps`: %.0f/s", one.Rate()), Ratio: report.Ratio(three.Rate(), one.Rate()), Show: "taxes",
	})
	b.table.Note("%s, CPU µs per request: %s", one.name, one.used.per(float64(one.Requests)))
	b.table.Note("%s, CPU µs per request: %s", three.name, three.used.per(float64(three.Requests)))
	return nil
}

// printers is the number of clients of one tenant that request PDFs at the same time. Of more than 16, the service rejects some, and
// those of the previous round can still be waiting.
const printers = 8

// pdf measures the PDFs of a typical invoice and of a long one.
func (b *bench) pdf(ctx context.Context, c *chain) error {
	o, err := c.as(ctx, c.key)
	if err != nil {
		return err
	}
	for _, p := range []struct {
		lines int
		aim   time.Duration
	}{{5, 0}, {150, 200 * time.Millisecond}} {
		id, err := c.openInvoice(ctx, p.lines)
		if err != nil {
			return err
		}
		path := "/invoices/" + id + "/pdf"
		target := c.target(func(int) []byte { return o.request(http.MethodGet, path, "") })
		if _, err := load.Closed(ctx, target, 1, warmUp); err != nil {
			return err
		}
		alone, err := load.Closed(ctx, target, 1, b.slice())
		if err != nil {
			return err
		}
		all := &served{name: fmt.Sprintf("PDF of %d lines", p.lines), target: target}
		if err := runRounds(b.serveWith(ctx, all, printers)); err != nil {
			return err
		}
		row := report.Row{
			Figure: fmt.Sprintf("`GET /invoices/{id}/pdf`, %d lines, one client at the service: p50", p.lines), Value: report.Milliseconds(alone.Percentile(50)),
			Baseline: fmt.Sprintf("%d clients: %.0f/s", printers, all.Rate()), Show: "pdf",
		}
		if p.aim > 0 {
			row.Aim = report.Aim{Text: "< " + report.Millis(p.aim), Value: float64(alone.Percentile(50)), AtMost: float64(p.aim)}
		}
		b.table.Add(row)
		b.table.Note("%s, CPU µs per request: %s", all.name, all.used.per(float64(all.Requests)))
	}
	return nil
}

// openInvoice creates an open invoice with that many lines, which can be more than the contract allows.
func (c *chain) openInvoice(ctx context.Context, lines int) (string, error) {
	id, err := c.create(ctx, c.key, "/invoices", invoice(c.customer, 1))
	if err != nil {
		return "", err
	}
	invoiceID, err := ids.Parse[ids.InvoicePrefix](id)
	if err != nil {
		return "", err
	}
	_, err = c.db.Exec(ctx, `update invoices v set lines = array_to_json(array_fill(v.lines -> 0, array[$2::int])),
		subtotal = $2 * subtotal, discount = $2 * discount, tax = $2 * tax, total = $2 * total where id = $1`, invoiceID.UUID(), lines)
	if err != nil {
		return "", err
	}
	open := load.Request(http.MethodPost, "/api/v1/invoices/"+id+"/open", c.headers(c.key, ""), "")
	return id, c.call(ctx, open, http.StatusOK, &struct{}{})
}
