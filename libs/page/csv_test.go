package page

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/ids"
)

type row struct {
	ID string `json:"id"`
}

// rowsUntil reads rows with numbers from 1 to most. Each page calls work first.
func rowsUntil(most int, work func()) func(context.Context, Request) (Rows[int], error) {
	return func(_ context.Context, r Request) (rows Rows[int], err error) {
		work()
		next := 1
		if r.After != nil {
			next = int(binary.BigEndian.Uint64(r.After.ID[8:])) + 1
		}
		for ; next <= most && len(rows.Items) < r.Limit; next++ {
			rows.Items = append(rows.Items, next)
		}
		rows.More = next <= most
		return rows, nil
	}
}

func placeOf(n int) (p SortKey) {
	binary.BigEndian.PutUint64(p.ID[8:], uint64(n))
	return p
}

func shapeOf(n int) row { return row{ID: fmt.Sprint(n)} }

// sendRows sends rows in pages of size as the tenant.
func sendRows(t *testing.T, w io.Writer, tenant ids.Tenant, size int, read func(context.Context, Request) (Rows[int], error), shape func(int) row) {
	t.Helper()
	ctx := caller.With(t.Context(), caller.Service("test", tenant, caller.Test))
	if err := sendAll(ctx, w, newTable([]contract.Column{{Name: "id"}}, nil, time.UTC), Request{}, size, read, placeOf, shape); err != nil {
		t.Error(err)
	}
}

func TestAllRowsAreSentOnce(t *testing.T) {
	t.Parallel()
	large := func(int) row { return row{ID: strings.Repeat("x", MaxBytes/3)} }
	for name, tc := range map[string]struct {
		rows, size int
		shape      func(int) row
		reads      int
	}{
		"none":                {0, 3, shapeOf, 1},
		"a part of a page":    {2, 3, shapeOf, 1},
		"a page":              {3, 3, shapeOf, 1},
		"pages":               {7, 3, shapeOf, 3},
		"fewer by their size": {7, 5, large, 4},
	} {
		var out bytes.Buffer
		reads := 0
		sendRows(t, &out, ids.New[ids.TenantPrefix](), tc.size, rowsUntil(tc.rows, func() { reads++ }), tc.shape)
		want := "id\r\n"
		for n := range tc.rows {
			want += tc.shape(n+1).ID + "\r\n"
		}
		if out.String() != want || reads != tc.reads {
			t.Errorf("%s: %d reads, %d bytes, want %d and %d", name, reads, out.Len(), tc.reads, len(want))
		}
	}
}

// Two downloads of a tenant alternate page by page. After each page, except the last, the tenant rests for twice as long as it
// took. A slow client does not block other downloads, and another tenant has its own slots.
func TestDownloadsOfATenantAlternate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		busy, other := ids.New[ids.TenantPrefix](), ids.New[ids.TenantPrefix]()
		working, most := 0, 0
		work := func() {
			working++
			most = max(most, working)
			time.Sleep(time.Second)
			working--
		}
		start := time.Now()
		slow, client := io.Pipe()
		ends := make(chan time.Duration, 2)
		go func() {
			sendRows(t, client, busy, 1, rowsUntil(3, work), shapeOf)
			_ = client.Close()
		}()
		synctest.Wait()
		go func() {
			sendRows(t, io.Discard, busy, 1, rowsUntil(3, work), shapeOf)
			ends <- time.Since(start)
		}()
		sendRows(t, io.Discard, other, 1, rowsUntil(3, func() { time.Sleep(time.Second) }), shapeOf)
		if took := time.Since(start); took != 7*time.Second {
			t.Errorf("three pages of a second of another tenant took %v", took)
		}
		// The first download rendered one page, which nothing reads; the three of the second follow, the last without a rest.
		if took := <-ends; took != 10*time.Second || most != 1 {
			t.Errorf("the second download took %v, and %d pages were rendered at a time", took, most)
		}
		if _, err := io.Copy(io.Discard, slow); err != nil {
			t.Error(err)
		}
	})
}

// A download that waits for a slot ends with its request.
func TestWaitForASlotEndsWithTheRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(caller.With(t.Context(), caller.Service("test", ids.New[ids.TenantPrefix](), caller.Test)))
		ended := make(chan error, 2)
		go func() {
			ended <- csvSlots.Take(ctx, func() (bool, error) { time.Sleep(time.Second); return true, nil })
		}()
		synctest.Wait()
		go func() {
			ended <- csvSlots.Take(ctx, func() (bool, error) { t.Error("it got a slot"); return false, nil })
		}()
		time.Sleep(1500 * time.Millisecond)
		cancel()
		for range 2 {
			if err := <-ended; err != context.Canceled { //nolint:errorlint // returned as it is
				t.Error(err)
			}
		}
	})
}

// A row is rendered in the buffers of its table. The garbage of each row was most of the memory of a download.
func TestRowsAreRenderedWithoutGarbage(t *testing.T) { //nolint:paralleltest // counts the allocations of the process
	tab := newTable([]contract.Column{{Name: "id"}, {Name: "price", Properties: []contract.Column{{Name: "amount"}}}, {Name: "notes"}, {Name: "tags"}}, nil, time.UTC)
	body := []byte(`{"id":"a","price":{"amount":5},"notes":"say \"x\"\n` + strings.Repeat("n", 500) + `","tags":["a","b"],"unknown":{"id":1}}`)
	out := make([]byte, 0, 4096)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := tab.appendRow(out, body); err != nil {
			t.Error(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations for a row", n)
	}
}
