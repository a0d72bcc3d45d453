package contract_test

import (
	"slices"
	"testing"
	"time"

	"holdfast.dev/libs/contract"
)

func TestParseQuery(t *testing.T) {
	t.Parallel()
	op := load(t).Operation("listOrders")
	const allowed = "Unknown parameter. Allowed: tag, limit, status, open, since, day, metadata[key], sort, kinds, kind."
	for _, tc := range []struct{ raw, want string }{
		{"", ""},
		{"limit=1", ""},
		{"limit=100&&tag=a", ""},
		{"limit=0", "limit: Must be at least 1."},
		{"limit=101", "limit: Must be at most 100."},
		{"limit=10.0", "limit: Must be a whole number."},
		{"limit=1e1", "limit: Must be a whole number."},
		{"limit=010", "limit: Must be a whole number."},
		{"limit=+5", "limit: Must be a whole number."},
		{"limit=", "limit: Must be a whole number."},
		{"limit", "limit: Must be a whole number."},
		{"limit=99999999999999999999999999999999999999999999999999", "limit: Must be at most 100."},
		{"limit=1&limit=1", "limit: Must be sent only once."},
		{"limit=1&limit=1&limit=1", "limit: Must be sent only once."},
		{"Limit=1", "Limit: " + allowed},
		{"X-Other=1", "X-Other: " + allowed},
		{"nope=1&nope=2", "nope: " + allowed},
		{"limit[a]=1", "limit[a]: " + allowed},
		{"open=true", ""},
		{"open=1", "open: Must be true or false."},
		{"status=open,closed", ""},
		{"status=open%2Cclosed", ""},
		{"status=open,shut", "status: Must be one of: open, closed."},
		{"status=", "status: Must be one of: open, closed."},
		{"status=open,open,open,open", "status: Must have at most 3 items."},
		{"status=open&status=closed", ""},
		{"status=open,closed&tag=a&status=open", ""},
		{"status=open&status=open&status=open&status=open", "status: Must have at most 3 items."},
		{"status=open&status=shut", "status: Must be one of: open, closed."},
		{"status=open&status=", "status: Must be one of: open, closed."},
		{"status[]=open", "status[]: " + allowed},
		{"since=2026-05-10T15:04:05Z&since=2026-05-10T15:04:05Z", "since: Must be sent only once."},
		{"open=true&open=true", "open: Must be sent only once."},
		{"sort=name", "sort: Must be one of: created_at, updated_at."},
		{"since=2026-05-10T15:04:05Z", ""},
		{"since=2026-05-10T15:04:05%2B02:00", ""},
		{"since=2026-05-10T15:04:05+02:00", ""},
		{"since=2026-05-10", "since: Must be an RFC 3339 date and time with an offset, such as 2026-05-10T15:04:05Z."},
		{"since=2300-01-01T00:00:00Z", "since: Must be a date from 1900-01-01 to 2199-12-31."},
		{"day=2026-05-10", ""},
		{"metadata[a]=1&metadata[b]=2", ""},
		{"metadata%5Ba%5D=1", ""},
		{"metadata[a]=1&metadata[a]=2", "metadata.a: Must be sent only once."},
		{"metadata[a]=123456", "metadata.a: Must be at most 5 characters."},
		{"metadata[a]=&metadata[b]=&metadata[c]=", "metadata: Must have at most 2 keys."},
		{"metadata=x", "metadata: Must have the form metadata[key]=value."},
		{"metadata[]=x", "metadata.: Must have the form metadata[key]=value."},
		{"metadata[a=x", "metadata[a: " + allowed},
		{"tag=%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9", ""},
		{"tag=%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9x", "tag: Must be at most 5 characters."},
		{"tag=%00", "tag: Must not contain the NUL character."},
		{"tag=%ff", "tag: Must be percent-encoded UTF-8."},
		{"tag=%zz", "tag: Must be percent-encoded UTF-8."},
		{"%00=1", "\x00: The name must not contain the NUL character."},
		{"a;b=1", "a;b: " + allowed},
		{"nope=1&sort=x&limit=0", "limit: Must be at least 1.\nsort: Must be one of: created_at, updated_at.\nnope: " + allowed},
	} {
		_, err := op.ParseQuery(tc.raw)
		if got := messages(err); got != tc.want {
			t.Errorf("%s\n got %q\nwant %q", tc.raw, got, tc.want)
		}
	}
	c := load(t)
	if got := messages(second(c.Operation("getLatestOrder").ParseQuery("a=1"))); got != "a: Unknown parameter. This operation has no parameters." {
		t.Error(got)
	}
	if got := messages(second(c.Operation("getOrder").ParseQuery(""))); got != "view: Is required." {
		t.Error(got)
	}
}

func second(_ contract.Query, err error) error { return err }

func TestQueryValues(t *testing.T) {
	t.Parallel()
	op := load(t).Operation("listOrders")
	q, err := op.ParseQuery("tag=a+b&status=open,closed&since=2026-05-10T15:04:05.5%2B02:00&metadata[k]=v&limit=7&day=2026-05-10")
	if err != nil {
		t.Fatal(err)
	}
	at, ok := q.Time("since")
	if !ok || !at.Equal(time.Date(2026, 5, 10, 13, 4, 5, 500_000_000, time.UTC)) || at.Location() != time.UTC {
		t.Errorf("since is %v", at)
	}
	if _, ok := q.Time("day"); ok {
		t.Error("a bare date came back as an instant")
	}
	if q.String("tag") != "a b" || q.Int("limit", 1) != 7 || !slices.Equal(q.List("status"), []string{"open", "closed"}) || q.Map("metadata")["k"] != "v" {
		t.Errorf("%+v", q)
	}
	if !q.Has("tag") || q.Has("sort") || q.String("sort") != "created_at" || q.String("none") != "" {
		t.Error("presence or default is wrong")
	}
	empty, err := op.ParseQuery("")
	if err != nil {
		t.Fatal(err)
	}
	if empty.Int("limit", 1) != 25 || empty.Int("tag", 3) != 3 || empty.List("status") != nil || empty.Map("metadata") != nil {
		t.Error("defaults are wrong")
	}
	if got := (contract.Query{}).String("limit"); got != "" {
		t.Error(got)
	}
}

func TestQueryCanonical(t *testing.T) {
	t.Parallel()
	op := load(t).Operation("listOrders")
	canonical := func(raw string) string {
		q, err := op.ParseQuery(raw)
		if err != nil {
			t.Fatal(err)
		}
		return q.Canonical("limit")
	}
	a, b := canonical("tag=x&metadata[b]=2&metadata[a]=1&limit=5"), canonical("limit=9&metadata%5Ba%5D=1&tag=%78&metadata[b]=2")
	if a != b || a == "" {
		t.Errorf("%q differs from %q", a, b)
	}
	if a == canonical("tag=y&metadata[b]=2&metadata[a]=1") {
		t.Error("different filters are equal")
	}
	if a, b := canonical("kind=gray&kinds=red,gray"), canonical("kind=grey&kinds=red,grey"); a != b || a == "" {
		t.Errorf("%q differs from %q", a, b)
	}
}
