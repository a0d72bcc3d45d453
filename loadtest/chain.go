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

	"holdfast.dev/loadtest/internal/load"
)

// chain is what the figures of leads, quotes and invoices need.
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

var chainFigures = []string{"accept", "opens", "pdf", "leads", "quotes", "invoices"}

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
	if c.db, err = pgx.Connect(ctx, b.adminOf(c.app)); err != nil {
		return nil, err
	}
	c.customer, err = c.made(ctx, c.key, "/customers", `{"first_name":"Chain","email":"chain@example.com"}`)
	return c, err
}

// made creates a resource through the gateway and returns its id.
func (c *chain) made(ctx context.Context, key, path, body string) (string, error) {
	var made struct {
		ID string `json:"id"`
	}
	err := c.call(ctx, load.Request(http.MethodPost, "/api/v1"+path, c.headers(key, ""), body), http.StatusCreated, &made)
	return made.ID, err
}

// as returns the tenant of a key as it calls the customers service.
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
func (o *operator) request(method, path, key string) []byte {
	path = "/api/v1" + path
	signed, err := o.chain.signer.SignEncoded(o.who, caller.Call{Target: "customers", Method: method, Path: path, RequestID: "req_bench"}, time.Now())
	if err != nil {
		return nil // the service refuses it
	}
	headers := []string{caller.Header + ": " + signed}
	if key != "" {
		headers = append(headers, "Idempotency-Key: "+key)
	}
	return load.Request(method, path, headers, "")
}

// target is the customers service, with the n-th request.
func (c *chain) target(nth func(n int) []byte) load.Target {
	return load.Target{Addr: c.addr, Nth: nth, Status: http.StatusOK}
}

// perSecond is how many rows are prepared for each second in which they are used up, far above what two cores do.
const perSecond = 3000

// spare is how many rows are prepared for a figure of b.Seconds, its warm-up and the ends of its rounds.
func (b *bench) spare() int { return perSecond * (rounds*int(b.slice().Seconds()) + 2) }

// enough fails when more rows were used than were prepared: what follows would be no work.
func (b *bench) enough(s *served, warm int) error {
	if used := s.Requests + warm + (rounds+1)*connections; used > b.spare() {
		return fmt.Errorf("%s: %d rows were used of %d: raise perSecond", s.name, used, b.spare())
	}
	return nil
}
