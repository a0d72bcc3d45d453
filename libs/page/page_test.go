package page_test

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/secret"
)

const (
	keyA = "a:" + "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
	keyB = "b:" + "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100"
)

func codec(t testing.TB, keys string) *page.Codec {
	t.Helper()
	c, err := page.NewCodec(keys)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func customers(t testing.TB) *contract.Operation {
	t.Helper()
	c, err := contract.Public()
	if err != nil {
		t.Fatal(err)
	}
	return c.Operation("listCustomers")
}

func parse(t testing.TB, op *contract.Operation, c *page.Codec, ctx context.Context, query, operation string) (page.Request, error) {
	t.Helper()
	q, err := op.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	return c.Parse(ctx, q, operation)
}

func tenant(id ids.Tenant, mode caller.Mode) context.Context {
	return caller.With(context.Background(), caller.Caller{Tenant: id, Mode: mode, Credential: "key_1"})
}

func TestCursorIsBoundToItsList(t *testing.T) {
	t.Parallel()
	op, c := customers(t), codec(t, keyA)
	id := ids.New[ids.TenantPrefix]()
	mine := tenant(id, caller.Test)
	first, err := parse(t, op, c, mine, "phone=1&limit=2", "listCustomers")
	if err != nil {
		t.Fatal(err)
	}
	want := page.Position{At: time.Date(2026, 7, 1, 12, 0, 0, 123456000, time.UTC), ID: id.UUID()}
	cursor := c.Next(first, want)
	for name, tc := range map[string]struct {
		ctx              context.Context
		query, operation string
		codec            *page.Codec
		ok               bool
	}{
		"the same list":     {mine, "phone=1", "listCustomers", c, true},
		"another limit":     {mine, "phone=1&limit=50", "listCustomers", c, true},
		"a rotated key":     {mine, "phone=1", "listCustomers", codec(t, keyB+","+keyA), true},
		"a key not held":    {mine, "phone=1", "listCustomers", codec(t, keyB), false},
		"another filter":    {mine, "phone=2", "listCustomers", c, false},
		"a filter less":     {mine, "", "listCustomers", c, false},
		"another sort":      {mine, "phone=1&sort=updated_at", "listCustomers", c, false},
		"another operation": {mine, "phone=1", "listBookings", c, false},
		"another tenant":    {tenant(ids.New[ids.TenantPrefix](), caller.Test), "phone=1", "listCustomers", c, false},
		"the other mode":    {tenant(id, caller.Live), "phone=1", "listCustomers", c, false},
	} {
		query := strings.TrimPrefix(tc.query+"&cursor="+cursor, "&")
		got, err := parse(t, op, tc.codec, tc.ctx, query, tc.operation)
		if tc.ok && (err != nil || *got.After != want) {
			t.Errorf("%s: %v, %v", name, got.After, err)
		}
		if !tc.ok && !errors.Is(err, apperr.ErrCursor) {
			t.Errorf("%s: error %v, want invalid_cursor", name, err)
		}
	}
}

// TestEmptyCursorIsTheFirstPage checks that an empty cursor is equal to none.
func TestEmptyCursorIsTheFirstPage(t *testing.T) {
	t.Parallel()
	op, c := customers(t), codec(t, keyA)
	r, err := parse(t, op, c, tenant(ids.New[ids.TenantPrefix](), caller.Test), "cursor=&limit=2", "listCustomers")
	if err != nil || r.After != nil || r.Limit != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestEveryFlippedBitIsNoticed(t *testing.T) {
	t.Parallel()
	op, c := customers(t), codec(t, keyA)
	ctx := tenant(ids.New[ids.TenantPrefix](), caller.Test)
	first, err := parse(t, op, c, ctx, "", "listCustomers")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := base64.RawURLEncoding.DecodeString(c.Next(first, page.Position{At: time.Now()}))
	if err != nil {
		t.Fatal(err)
	}
	for i := range len(raw) * 8 {
		bent := append([]byte{}, raw...)
		bent[i/8] ^= 1 << (i % 8)
		_, err := parse(t, op, c, ctx, "cursor="+base64.RawURLEncoding.EncodeToString(bent), "listCustomers")
		if !errors.Is(err, apperr.ErrCursor) {
			t.Fatalf("bit %d flipped: error %v", i, err)
		}
	}
}

func FuzzCursor(f *testing.F) {
	op, c := customers(f), codec(f, keyA)
	ctx := tenant(ids.New[ids.TenantPrefix](), caller.Test)
	for _, seed := range []string{"AQ", "AQFh", "!!!!", strings.Repeat("A", 60), "AQFhAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		q, err := op.ParseQuery("cursor=" + base64.RawURLEncoding.EncodeToString([]byte(cursor)))
		if err != nil || cursor == "" {
			return // over the contract's length, or the first page
		}
		if _, err := c.Parse(ctx, q, "listCustomers"); !errors.Is(err, apperr.ErrCursor) {
			t.Fatalf("cursor %q: error %v", cursor, err)
		}
	})
}

// A list of keys is rejected with an error that does not contain a key. The codec follows the keys of a file.
func TestKeys(t *testing.T) {
	t.Parallel()
	secretA := strings.TrimPrefix(keyA, "a:")
	for _, bad := range []string{"", secretA, "a:" + secretA[:62], "morethan8:" + secretA, keyA + "," + secretA} {
		if _, err := page.NewCodec(bad); err == nil || strings.Contains(err.Error(), secretA[:62]) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte(keyB+","+keyA), 0o600); err != nil {
		t.Fatal(err)
	}
	s := secret.New(keyA)
	s.InFile("CURSOR_KEYS", file)
	c, err := page.FollowKeys(s)
	if err != nil {
		t.Fatal(err)
	}
	op, ctx := customers(t), tenant(ids.New[ids.TenantPrefix](), caller.Test)
	first, err := parse(t, op, c, ctx, "limit=2", "listCustomers")
	if err != nil {
		t.Fatal(err)
	}
	before := c.Next(first, page.Position{At: time.Now()})
	if switched, err := s.Reload(); !switched || err != nil {
		t.Fatal(switched, err)
	}
	after := c.Next(first, page.Position{At: time.Now()})
	for name, cursor := range map[string]string{"of the old key": before, "of the new key": after} {
		if _, err := parse(t, op, c, ctx, "limit=2&cursor="+cursor, "listCustomers"); err != nil {
			t.Errorf("a cursor %s: %v", name, err)
		}
	}
	if _, err := parse(t, op, codec(t, keyA), ctx, "limit=2&cursor="+after, "listCustomers"); !errors.Is(err, apperr.ErrCursor) {
		t.Errorf("the new key does not sign: %v", err)
	}
}
