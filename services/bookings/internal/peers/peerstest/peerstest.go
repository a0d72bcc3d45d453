// Package peerstest contains fakes of the other services for tests. They store state and can be set to fail.
package peerstest

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/oapi-codegen/nullable"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/testclock"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/domain"
)

// Customers replaces the customers service.
type Customers struct {
	mu    sync.Mutex
	known map[ids.Customer]entry
	fail  error
	calls int

	expiries func(ctx context.Context) (more bool, err error)
}

type entry struct {
	tenant ids.Tenant
	mode   caller.Mode
	name   string

	metadata string
}

// Add creates a customer of the caller's tenant and mode.
func (f *Customers) Add(c caller.Caller, name string) ids.Customer {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known == nil {
		f.known = map[ids.Customer]entry{}
	}
	id := ids.New[ids.CustomerPrefix]()
	f.known[id] = entry{tenant: c.Tenant, mode: c.Mode, name: name, metadata: `{}`}
	return id
}

// SetMetadata sets the metadata of a customer.
func (f *Customers) SetMetadata(id ids.Customer, metadata string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.known[id]
	e.metadata = metadata
	f.known[id] = e
}

// Erase removes a customer.
func (f *Customers) Erase(id ids.Customer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.known, id)
}

// Fail makes each call return err until Fail(nil).
func (f *Customers) Fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = err
}

// Calls returns the number of calls so far.
func (f *Customers) Calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// Customer implements app.Directory.
func (f *Customers) Customer(ctx context.Context, id domain.CustomerID) (domain.Customer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	e, ok := f.of(ctx, id)
	if f.fail != nil {
		return domain.Customer{}, f.fail
	}
	if !ok {
		return domain.Customer{}, domain.ErrCustomerNotFound
	}
	return domain.Customer{ID: id, Name: e.name, Version: 1}, nil
}

// Expand implements api.Directory.
func (f *Customers) Expand(ctx context.Context, list []domain.CustomerID) (map[domain.CustomerID]api.Customer, []domain.CustomerID, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	if f.fail != nil {
		return nil, nil, f.fail
	}
	size, out := 0, map[domain.CustomerID]api.Customer{}
	for i, id := range list {
		if e, ok := f.of(ctx, id); ok {
			if size += len(e.metadata); size > page.MaxBytes && len(out) > 0 {
				return out, list[i:], nil
			}
			out[id] = api.Customer{
				Id: id.String(), Object: api.CustomerObjectCustomer, Name: e.name, FirstName: e.name, Email: nullable.NewNullableWithValue("ann@example.com"),
				LastName: api.Null[string](), Phone: nullable.NewNullNullable[string](), Company: nullable.NewNullNullable[string](),
				Metadata: json.RawMessage(e.metadata), Mode: api.Mode(e.mode), Version: 1, CreatedAt: time.Unix(0, 0).UTC(), UpdatedAt: time.Unix(0, 0).UTC(),
			}
		}
	}
	return out, nil, nil
}

// OnExpiry makes expire handle the requests to expire quotes. Without it, no quote is due.
func (f *Customers) OnExpiry(expire func(ctx context.Context) (more bool, err error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.expiries = expire
}

// ExpireQuotes implements app.QuoteExpirer.
func (f *Customers) ExpireQuotes(ctx context.Context) (more bool, err error) {
	f.mu.Lock()
	expire, fail := f.expiries, f.fail
	f.mu.Unlock()
	if fail != nil || expire == nil {
		return false, fail
	}
	return expire(ctx)
}

func (f *Customers) of(ctx context.Context, id domain.CustomerID) (entry, bool) {
	e, ok := f.known[id]
	c := caller.FromContext(ctx)
	return e, ok && e.tenant == c.Tenant && e.mode == c.Mode
}

// Tenants replaces identity. The zero value returns the default policy for every tenant, and no taxes.
type Tenants struct {
	mu     sync.Mutex
	policy domain.Policy
	taxes  map[ids.Tenant]domain.TaxDefaults
	fail   error
	clocks map[ids.Tenant]testclock.Clock
}

// Set sets the policy of every tenant.
func (f *Tenants) Set(p domain.Policy) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.policy = p
}

// SetTaxes sets the default taxes of a tenant.
func (f *Tenants) SetTaxes(tenant ids.Tenant, taxes domain.TaxDefaults) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.taxes == nil {
		f.taxes = map[ids.Tenant]domain.TaxDefaults{}
	}
	f.taxes[tenant] = taxes
}

// Fail makes each call return err until Fail(nil).
func (f *Tenants) Fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = err
}

// Tenant implements app.Tenants.
func (f *Tenants) Tenant(ctx context.Context) (domain.Tenant, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	taxes, ok := f.taxes[caller.FromContext(ctx).Tenant]
	if !ok {
		taxes.Behavior = money.TaxExclusive
	}
	return domain.Tenant{Policy: f.policy, Taxes: taxes}, f.fail
}

// Credentials replaces identity's responses about credentials. The zero value reports that all of them are valid.
type Credentials struct {
	mu    sync.Mutex
	ended map[domain.FeedHolder]string
	fail  error
	hang  bool
}

// End ends a credential, or replaces it with a successor.
func (f *Credentials) End(tenant ids.Tenant, id, successor string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended == nil {
		f.ended = map[domain.FeedHolder]string{}
	}
	f.ended[domain.FeedHolder{TenantID: tenant, ID: id}] = successor
}

// Fail makes each call return err until Fail(nil).
func (f *Credentials) Fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = err
}

// Hang makes each call wait for the end of its context.
func (f *Credentials) Hang(hang bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hang = hang
}

// Ended implements app.Credentials.
func (f *Credentials) Ended(ctx context.Context, holders []domain.FeedHolder) (out []domain.EndedHolder, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hang {
		<-ctx.Done()
		return nil, ctx.Err() //nolint:wrapcheck // as peer.Client
	}
	for _, h := range holders {
		if successor, ok := f.ended[h]; ok {
			out = append(out, domain.EndedHolder{FeedHolder: h, Successor: successor})
		}
	}
	return out, f.fail
}

// Payments replaces the payments service. Each tenant and mode has its own accounts; an account without money is all 0.
type Payments struct {
	mu       sync.Mutex
	accounts map[account]domain.AccountState
	fail     error
	calls    int
}

type account struct {
	tenant   ids.Tenant
	mode     caller.Mode
	booking  domain.BookingID
	currency string
}

// Set sets the account of a booking of the caller.
func (f *Payments) Set(c caller.Caller, booking domain.BookingID, currency string, s domain.AccountState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.accounts == nil {
		f.accounts = map[account]domain.AccountState{}
	}
	f.accounts[account{c.Tenant, c.Mode, booking, currency}] = s
}

// Fail makes each call return err until Fail(nil).
func (f *Payments) Fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = err
}

// Calls returns the number of calls so far.
func (f *Payments) Calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// Account implements app.Accounts.
func (f *Payments) Account(ctx context.Context, booking domain.BookingID, currency string) (domain.AccountState, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	c := caller.FromContext(ctx)
	return f.accounts[account{c.Tenant, c.Mode, booking, currency}], f.fail
}
