package domain_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/patch"
	"holdfast.dev/proto"

	"holdfast.dev/services/identity/internal/domain"
)

func tenant() domain.Tenant {
	return domain.Tenant{Slug: "demo", Name: "Demo", Timezone: "Europe/Berlin", Currency: "EUR", Policy: domain.DefaultPolicy(), Invoicing: domain.DefaultInvoicing()}
}

func TestTenantCheck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*domain.Tenant)
		field  string // "" means valid
	}{
		"as it is":            {func(*domain.Tenant) {}, ""},
		"one letter":          {func(t *domain.Tenant) { t.Slug = "a" }, ""},
		"63 letters":          {func(t *domain.Tenant) { t.Slug = strings.Repeat("a", 63) }, ""},
		"64 letters":          {func(t *domain.Tenant) { t.Slug = strings.Repeat("a", 64) }, "slug"},
		"no slug":             {func(t *domain.Tenant) { t.Slug = "" }, "slug"},
		"upper case":          {func(t *domain.Tenant) { t.Slug = "Demo" }, "slug"},
		"an id":               {func(t *domain.Tenant) { t.Slug = "tn_01" }, "slug"},
		"hyphen at the end":   {func(t *domain.Tenant) { t.Slug = "demo-" }, "slug"},
		"no name":             {func(t *domain.Tenant) { t.Name = "" }, "name"},
		"200 characters":      {func(t *domain.Tenant) { t.Name = strings.Repeat("ü", 200) }, ""},
		"201 characters":      {func(t *domain.Tenant) { t.Name = strings.Repeat("ü", 201) }, "name"},
		"NUL":                 {func(t *domain.Tenant) { t.Name = "a\x00" }, "name"},
		"no zone":             {func(t *domain.Tenant) { t.Timezone = "" }, "timezone"},
		"the machine's zone":  {func(t *domain.Tenant) { t.Timezone = "Local" }, "timezone"},
		"a path":              {func(t *domain.Tenant) { t.Timezone = "../etc/passwd" }, "timezone"},
		"no such zone":        {func(t *domain.Tenant) { t.Timezone = "Europe/Atlantis" }, "timezone"},
		"no currency":         {func(t *domain.Tenant) { t.Currency = "" }, "currency"},
		"no such currency":    {func(t *domain.Tenant) { t.Currency = "XXY" }, "currency"},
		"lower-case currency": {func(t *domain.Tenant) { *t = t.Apply(domain.TenantPatch{Currency: patch.Value("usd")}) }, ""},
		"country":             {func(t *domain.Tenant) { *t = t.Apply(domain.TenantPatch{Country: patch.Value("de")}) }, ""},
		"no such country":     {func(t *domain.Tenant) { t.Country = new("ZZ") }, "country"},
		"hold 0":              {func(t *domain.Tenant) { *t = t.Apply(domain.TenantPatch{HoldTTLMinutes: patch.Value(0)}) }, "hold_ttl_minutes"},
		"hold 30 days":        {func(t *domain.Tenant) { *t = t.Apply(domain.TenantPatch{HoldTTLMinutes: patch.Value(43200)}) }, ""},
		"hold over 30 days":   {func(t *domain.Tenant) { *t = t.Apply(domain.TenantPatch{HoldTTLMinutes: patch.Value(43201)}) }, "hold_ttl_minutes"},
		"notice 0":            {func(t *domain.Tenant) { *t = t.Apply(domain.TenantPatch{MinNoticeMinutes: patch.Value(0)}) }, ""},
		"notice below 0":      {func(t *domain.Tenant) { *t = t.Apply(domain.TenantPatch{MinNoticeMinutes: patch.Value(-1)}) }, "min_notice_minutes"},
		"advance over":        {func(t *domain.Tenant) { *t = t.Apply(domain.TenantPatch{MaxAdvanceDays: patch.Value(36501)}) }, "max_advance_days"},
		"prefix of 20":        {func(t *domain.Tenant) { t.InvoicePrefix = strings.Repeat("a", 17) + "9-/" }, ""},
		"no prefix":           {func(t *domain.Tenant) { t.InvoicePrefix = "" }, ""},
		"prefix of 21":        {func(t *domain.Tenant) { t.InvoicePrefix = strings.Repeat("a", 21) }, "invoice_prefix"},
		"prefix with a space": {func(t *domain.Tenant) { t.InvoicePrefix = "RE 1" }, "invoice_prefix"},
		"prefix with a line":  {func(t *domain.Tenant) { t.InvoicePrefix = "RE\n" }, "invoice_prefix"},
		"prefix with ü":       {func(t *domain.Tenant) { t.InvoicePrefix = "ü" }, "invoice_prefix"},
		"legal name of 200":   {func(t *domain.Tenant) { t.LegalName = strings.Repeat("ü", 200) }, ""},
		"legal name of 201":   {func(t *domain.Tenant) { t.LegalName = strings.Repeat("ü", 201) }, "legal_name"},
		"address of 500":      {func(t *domain.Tenant) { t.Address = strings.Repeat("ü", 499) + "\n" }, ""},
		"address of 501":      {func(t *domain.Tenant) { t.Address = strings.Repeat("ü", 501) }, "address"},
		"NUL in the address":  {func(t *domain.Tenant) { t.Address = "\x00" }, "address"},
		"tax id of 50":        {func(t *domain.Tenant) { t.TaxID = strings.Repeat("ü", 50) }, ""},
		"no behavior":         {func(t *domain.Tenant) { t.TaxBehavior = "" }, "tax_behavior"},
		"3 taxes":             {func(t *domain.Tenant) { t.DefaultTaxes = make3(strings.Repeat("ü", 50)) }, ""},
		"4 taxes":             {func(t *domain.Tenant) { t.DefaultTaxes = append(make3("A"), money.Tax{Name: "B"}) }, "default_taxes"},
		"a tax twice":         {func(t *domain.Tenant) { t.DefaultTaxes = append(make3("A")[:2], money.Tax{Name: "A"}) }, "default_taxes"},
		"a tax without name":  {func(t *domain.Tenant) { t.DefaultTaxes = make3("") }, "default_taxes"},
		"a tax name of 51":    {func(t *domain.Tenant) { t.DefaultTaxes = make3(strings.Repeat("ü", 51)) }, "default_taxes"},
		"tax id of 51":        {func(t *domain.Tenant) { t.TaxID = strings.Repeat("ü", 51) }, "tax_id"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one := tenant()
			c.change(&one)
			err := one.Check()
			if c.field == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var e *apperr.Error
			if !errors.As(err, &e) || len(e.Fields) != 1 || e.Fields[0].Field != c.field {
				t.Fatalf("got %v, want one error on %s", err, c.field)
			}
		})
	}
}

func TestApplyClears(t *testing.T) {
	t.Parallel()
	one := tenant()
	one.HoldTTLMinutes, one.Country = new(5), new("DE")
	unchanged := one.Apply(domain.TenantPatch{})
	if *unchanged.HoldTTLMinutes != 5 || *unchanged.Country != "DE" {
		t.Fatalf("an empty patch changed: %+v", unchanged)
	}
	cleared := one.Apply(domain.TenantPatch{HoldTTLMinutes: patch.Null[int](), Country: patch.Null[string]()})
	if cleared.HoldTTLMinutes != nil || cleared.Country != nil {
		t.Fatalf("not cleared: %+v", cleared)
	}
}

func TestParseScopes(t *testing.T) {
	t.Parallel()
	all, err := domain.ParseScopes("all", proto.Scopes)
	if err != nil || !slices.Equal(all, proto.Scopes) {
		t.Fatalf("all: %v %v", all, err)
	}
	got, err := domain.ParseScopes("write:bookings, read:bookings,write:bookings", proto.Scopes)
	if err != nil || !slices.Equal(got, []string{"read:bookings", "write:bookings"}) {
		t.Fatalf("list: %v %v", got, err)
	}
	for _, s := range []string{"", "read:bookings,", "read:nothing", "ALL", "all,read:bookings"} {
		_, err := domain.ParseScopes(s, proto.Scopes)
		if err == nil || !strings.Contains(err.Error(), "payments:write") {
			t.Errorf("%q: %v; want an error that names the scopes there are", s, err)
		}
	}
}

func TestErrorStatuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		status int
	}{
		{domain.ErrTenantNotFound, 404},
		{domain.ErrSlugTaken, 409},
		{domain.ErrKeyNotFound, 404},
		{domain.ErrCredentialNotFound, 404},
		{domain.ErrCredentialGone, 401},
	} {
		if got := httpx.StatusOf(apperr.As(c.err).Kind); got != c.status {
			t.Errorf("%v: %d, want %d", c.err, got, c.status)
		}
	}
}

func chain(t *testing.T, n int) (records []domain.Record, head domain.Head) {
	t.Helper()
	head = domain.NewHead(ids.New[ids.TenantPrefix]())
	for range n {
		r, next, err := head.Append(domain.Record{
			At: time.Now(), Actor: "cli", Action: domain.KeyCreated, Object: "key_1", Source: "cli:a@b",
			After: json.RawMessage(`{"name": "<a>", "version": 1, "mode": "test"}`),
		})
		if err != nil {
			t.Fatal(err)
		}
		records, head = append(records, r), next
	}
	return records, head
}

func follow(records []domain.Record) (head domain.Head, err error) {
	head = domain.NewHead(records[0].TenantID)
	for _, r := range records {
		if head, err = head.Follow(r); err != nil {
			return head, err
		}
	}
	return head, nil
}

// TestChainHoldsInAnyOrderOfKeys checks that the chain is valid even though jsonb returns keys in another order.
func TestChainHoldsInAnyOrderOfKeys(t *testing.T) {
	t.Parallel()
	records, _ := chain(t, 2)
	records[1].After = json.RawMessage(`{"mode":"test","name":"<a>","version":1}`)
	if _, err := follow(records); err != nil {
		t.Fatal(err)
	}
}

func TestChainFindsEveryAlteration(t *testing.T) {
	t.Parallel()
	for name, alter := range map[string]func(*domain.Record){
		"mode":   func(r *domain.Record) { r.Livemode = true },
		"time":   func(r *domain.Record) { r.At = r.At.Add(time.Microsecond) },
		"actor":  func(r *domain.Record) { r.Actor = "eve" },
		"action": func(r *domain.Record) { r.Action = "x" },
		"object": func(r *domain.Record) { r.Object = "x" },
		"before": func(r *domain.Record) { r.Before = json.RawMessage(`{}`) },
		"after":  func(r *domain.Record) { r.After = json.RawMessage(`{"version":2}`) },
		"source": func(r *domain.Record) { r.Source = "x" },
		"prev":   func(r *domain.Record) { r.PrevHash = make([]byte, 32) },
		"hash":   func(r *domain.Record) { r.Hash = make([]byte, 32) },
		"number": func(r *domain.Record) { r.Seq = 7 },
		"tenant": func(r *domain.Record) { r.TenantID = ids.New[ids.TenantPrefix]() },
	} {
		records, _ := chain(t, 3)
		alter(&records[1])
		if head, err := follow(records); err == nil || head.Seq != 1 {
			t.Errorf("%s altered: err %v behind record %d, want one behind 1", name, err, head.Seq)
		}
	}
}

// make3 returns three taxes with one name and different rates.
func make3(name string) []money.Tax {
	return []money.Tax{{Name: name}, {Name: name, Rate: 1}, {Name: name, Rate: 2}}
}
