// Package seed fills a new platform with two tenants, their keys, a small catalogue, and some customers and bookings. Seeding
// again changes nothing.
package seed

import (
	"context"
	"encoding/json"
	"fmt"

	"holdfast.dev/services/local/internal/state"
)

// Tool runs the executable of a service with arguments and returns its output.
type Tool func(ctx context.Context, service string, args ...string) ([]byte, error)

// Seeder seeds one platform. All its fields are required.
type Seeder struct {
	Base  string // …/api/v1
	Tool  Tool
	State *state.State // stores the keys' secrets
}

// Result holds the ids and keys that a new user needs.
type Result struct {
	DemoID                     string // of the tenant demo
	TestKey, LiveKey, OtherKey string
	Booking                    *Suggestion // nil if the catalogue offers none
}

// The two tenants. Both start with the default booking policy.
var tenants = []tenant{
	{slug: "demo", name: "Demo Boats", timezone: "America/New_York", currency: "USD"},
	{slug: "other", name: "Other Boats", timezone: "Europe/Berlin", currency: "EUR"},
}

type tenant struct{ slug, name, timezone, currency string }

// Run seeds the missing data.
func (s *Seeder) Run(ctx context.Context) (Result, error) {
	ids, err := s.tenants(ctx)
	if err != nil {
		return Result{}, err
	}
	r := Result{DemoID: ids["demo"]}
	for _, k := range []struct {
		tenant, mode string
		secret       *string
	}{{"demo", "test", &r.TestKey}, {"demo", "live", &r.LiveKey}, {"other", "test", &r.OtherKey}} {
		if *k.secret, err = s.key(ctx, k.tenant, k.mode); err != nil {
			return Result{}, err
		}
	}
	if err := s.oauth(ctx); err != nil {
		return Result{}, err
	}
	demo := tenants[0]
	_, err = s.Tool(ctx, "bookings", "seed", "--tenant", ids[demo.slug], "--mode", "test",
		"--currency", demo.currency, "--timezone", demo.timezone)
	if err != nil {
		return Result{}, fmt.Errorf("seeding the catalogue: %w", err)
	}
	api := &client{base: s.Base, key: r.TestKey}
	if r.Booking, err = api.fill(ctx, demo); err != nil {
		return Result{}, err
	}
	return r, s.State.Save()
}

type tenantRow struct {
	ID   string `json:"id"`
	Slug string `json:"slug"`
}

// tenants creates the missing tenants, and returns all ids by slug.
func (s *Seeder) tenants(ctx context.Context) (map[string]string, error) {
	out, err := s.Tool(ctx, "identity", "tenant", "list", "--json")
	if err != nil {
		return nil, fmt.Errorf("listing tenants: %w", err)
	}
	var rows []tenantRow
	if err := json.Unmarshal(out, &rows); err != nil {
		return nil, fmt.Errorf("listing tenants: %w", err)
	}
	ids := map[string]string{}
	for _, row := range rows {
		ids[row.Slug] = row.ID
	}
	for _, t := range tenants {
		if ids[t.slug] != "" {
			continue
		}
		out, err := s.Tool(ctx, "identity", "tenant", "create", "--slug", t.slug, "--name", t.name,
			"--timezone", t.timezone, "--currency", t.currency, "--json")
		if err != nil {
			return nil, fmt.Errorf("creating tenant %s: %w", t.slug, err)
		}
		var row tenantRow
		if err := json.Unmarshal(out, &row); err != nil {
			return nil, fmt.Errorf("creating tenant %s: %w", t.slug, err)
		}
		ids[t.slug] = row.ID
	}
	return ids, nil
}

// manage runs a command of identity and reads the JSON that it prints.
func (s *Seeder) manage(ctx context.Context, to any, args ...string) error {
	out, err := s.Tool(ctx, "identity", args...)
	if err != nil {
		return err
	}
	return json.Unmarshal(out, to)
}

// key returns the secret of a seeded key. The key stays the same until its database is deleted.
func (s *Seeder) key(ctx context.Context, slug, mode string) (string, error) {
	name := "key." + slug + "." + mode
	if secret := s.State.Given(name); secret != "" {
		valid, err := (&client{base: s.Base, key: secret}).valid(ctx)
		if err != nil || valid {
			return secret, err
		}
	}
	out, err := s.Tool(ctx, "identity", "key", "create", "--tenant", slug, "--mode", mode,
		"--scopes", "all", "--name", "Seeded "+mode+" key", "--json")
	if err != nil {
		return "", fmt.Errorf("creating a %s key for %s: %w", mode, slug, err)
	}
	var created struct {
		Secret string `json:"secret"`
	}
	if err := json.Unmarshal(out, &created); err != nil {
		return "", fmt.Errorf("creating a %s key for %s: %w", mode, slug, err)
	}
	s.State.Give(name, created.Secret)
	return created.Secret, s.State.Save() // saved immediately, because a secret is shown only once
}
