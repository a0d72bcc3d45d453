package store_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"holdfast.dev/libs/ids"

	"holdfast.dev/services/gateway/internal/domain"
	"holdfast.dev/services/gateway/internal/store"
)

func openCounts(t *testing.T, path string) *store.Counts {
	t.Helper()
	c, err := store.OpenCounts(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// ledger adds what it receives once, as the consumer does.
type ledger struct {
	seen map[[16]byte]string
	sums map[domain.Counted]int64
}

func (l *ledger) add(t *testing.T, id [16]byte, list []domain.RequestCount) {
	t.Helper()
	if known, ok := l.seen[id]; ok {
		if text := fmt.Sprint(list); text != known {
			t.Fatalf("one id has %s and %s", known, text)
		}
		return
	}
	l.seen[id] = fmt.Sprint(list)
	for _, n := range list {
		l.sums[n.Counted] += n.Requests
	}
}

// A process that ends at any step leaves its counts to the next one: each is sent, and a count that was sent keeps its id. The steps are
// random. A process that ends keeps what it wrote to the mapped file, whether it is killed or closes the file.
func TestCountsRemain(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 36))
		path := filepath.Join(t.TempDir(), "counts")
		keys := []domain.Counted{
			{Tenant: ids.New[ids.TenantPrefix](), Live: true, Day: 20453, Class: domain.ClassRead},
			{Tenant: ids.New[ids.TenantPrefix](), Day: 20453, Class: domain.ClassRejected},
			{Tenant: ids.New[ids.TenantPrefix](), Day: 20454, Class: domain.ClassWrite},
		}
		keys = append(keys, domain.Counted{Tenant: keys[0].Tenant, Live: true, Day: 20453, Class: domain.ClassWrite})
		got, want := ledger{map[[16]byte]string{}, map[domain.Counted]int64{}}, map[domain.Counted]int64{}
		c := openCounts(t, path)
		all := int64(0)
		for range 300 {
			switch random.IntN(8) {
			case 0:
				_ = c.Close()
				c = openCounts(t, path)
			case 1: // sent, but not confirmed
				id, list := c.Frozen()
				got.add(t, id, list)
			case 2: // not sent
				c.Frozen()
			case 3:
				id, list := c.Frozen()
				got.add(t, id, list)
				c.Release()
			default:
				key := keys[random.IntN(len(keys))]
				if !c.Add(key) {
					t.Fatal("full")
				}
				want[key]++
				all++
			}
		}
		for range 2 {
			id, list := c.Frozen()
			got.add(t, id, list)
			c.Release()
		}
		if fmt.Sprint(got.sums) != fmt.Sprint(want) || c.Requests() != 0 || all == 0 {
			t.Fatalf("seed %d: %v, want %v; %d left", seed, got.sums, want, c.Requests())
		}
	}
}

// A file belongs to one process, and a file of something else is not changed.
func TestCountsFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "counts")
	c := openCounts(t, path)
	if _, err := store.OpenCounts(path); err == nil || !strings.Contains(err.Error(), path+": another process uses this file") {
		t.Error(err)
	}
	if !c.Add(domain.Counted{Class: domain.ClassRead}) || c.Requests() != 1 || !c.Durable() {
		t.Error("not counted")
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, list := c.Frozen(); c.Add(domain.Counted{Class: domain.ClassRead}) || c.Requests() != 0 || list != nil {
		t.Error("counted after Close")
	}
	c.Release()

	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, b []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for _, path := range []string{write("text", []byte("something else of someone")), write("short", whole[:1000]), write("long", append(whole, 0))} {
		before, _ := os.ReadFile(path)
		if _, err := store.OpenCounts(path); err == nil || !strings.Contains(err.Error(), "no file of request counts") {
			t.Error(path, err)
		}
		if after, _ := os.ReadFile(path); string(after) != string(before) {
			t.Errorf("%s has changed", path)
		}
	}
	// A process that is killed while it creates the file leaves zeros.
	if c := openCounts(t, write("started", make([]byte, 5000))); !c.Add(domain.Counted{Class: domain.ClassRead}) {
		t.Error("not counted")
	}
	if _, err := store.OpenCounts(filepath.Join(dir, "none", "counts")); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Error(err)
	}
	if memory := openCounts(t, ""); memory.Durable() {
		t.Error("kept in memory")
	}
}

// A table has a bound, which the next process continues to observe. While one table waits, the other one counts.
func TestCountsAreBounded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "counts")
	c := openCounts(t, path)
	fill := func() {
		t.Helper()
		for i := range int32(store.MaxCounted) {
			if !c.Add(domain.Counted{Day: i, Class: domain.ClassRead}) {
				t.Fatal(i)
			}
		}
		if c.Add(domain.Counted{Day: -1, Class: domain.ClassRead}) || !c.Add(domain.Counted{Day: 5, Class: domain.ClassRead}) {
			t.Fatal("not bounded")
		}
	}
	fill()
	_ = c.Close()
	c = openCounts(t, path)
	if c.Add(domain.Counted{Day: -1, Class: domain.ClassRead}) || !c.Add(domain.Counted{Day: 5, Class: domain.ClassRead}) {
		t.Error("not bounded in the next process")
	}
	if _, list := c.Frozen(); len(list) != store.MaxCounted || list[5].Requests != 3 {
		t.Errorf("%d numbers", len(list))
	}
	fill()
	if n := c.Requests(); n != 2*store.MaxCounted+3 {
		t.Errorf("%d requests", n)
	}
}

// TestCountsAreFreeAfterClose checks that the next user gets the file although a child process still has a copy of the descriptor, as between
// its fork and its program.
func TestCountsAreFreeAfterClose(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "counts")
	c := openCounts(t, path)
	copied := -1
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if target, err := os.Readlink("/proc/self/fd/" + entry.Name()); err == nil && target == path {
			fd, err := strconv.Atoi(entry.Name())
			if err != nil {
				t.Fatal(err)
			}
			if copied, err = syscall.Dup(fd); err != nil {
				t.Fatal(err)
			}
		}
	}
	if copied < 0 {
		t.Fatal("the file is not open")
	}
	defer func() { _ = syscall.Close(copied) }()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	openCounts(t, path)
}

func BenchmarkCounts(b *testing.B) {
	for _, path := range []string{"", filepath.Join(b.TempDir(), "counts")} {
		b.Run(fmt.Sprintf("file=%t", path != ""), func(b *testing.B) {
			c, err := store.OpenCounts(path)
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			key := domain.Counted{Tenant: ids.New[ids.TenantPrefix](), Class: domain.ClassRead}
			for b.Loop() {
				c.Add(key)
			}
		})
	}
}
