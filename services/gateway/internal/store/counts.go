package store

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"holdfast.dev/libs/ids"

	"holdfast.dev/services/gateway/internal/domain"
)

// Counts are numbers of requests that wait until Kafka has them. They are in a file that is mapped into memory, so that a process that is
// killed loses none: the next process with the same file continues. A failure of the whole machine can lose the newest.
//
// There are two tables. Add writes to the active one. Frozen freezes it: what it contains is then sent, with the id of the table, until
// Release empties it. A table that was frozen does not change, so that it can be sent again.
type Counts struct {
	file *os.File // nil: the counts are only in memory

	mu     sync.Mutex
	mapped []byte                     // the memory of the file
	tables *countTables               // guarded by mu: nil after Close
	active int                        // guarded by mu: the table for new requests
	known  map[domain.Counted]*number // guarded by mu: the numbers of the active table
}

// MaxCounted is the maximum number of numbers in a table. Requests beyond it are not counted.
const MaxCounted = 100_000

// countTables is the content of the file, about 8 MB. Values have the byte order of the machine. Only the process that holds the lock of
// the file writes it, and a process that is killed leaves what it wrote: a number exists from the moment at which used includes it.
type countTables struct {
	format [16]byte
	tables [2]countTable
}

type countTable struct {
	id      [16]byte // of what the table contains; a table without numbers has any id
	frozen  atomic.Uint32
	used    atomic.Uint32 // how many numbers it contains
	numbers [MaxCounted]number
}

type number struct {
	tenant   [16]byte
	class    [8]byte // the text, filled up with NUL
	requests int64
	day      int32
	live     bool
}

// countFormat changes with countTables.
var countFormat = [16]byte([]byte("holdfast counts1"))

var errCounts = errors.New("it is no file of request counts of this version: delete it, or use another path")

// OpenCounts opens the counts in a file, or creates the file. Without a path, the counts are only in memory.
func OpenCounts(path string) (*Counts, error) {
	if path == "" {
		c := &Counts{tables: &countTables{}}
		c.use(0)
		return c, nil
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open request counts: %w", err)
	}
	c := &Counts{file: file}
	if err := c.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("request counts in %s: %w", path, err), c.Close())
	}
	return c, nil
}

const countsSize = int(unsafe.Sizeof(countTables{}))

func (c *Counts) open() error {
	fd := int(c.file.Fd())
	if err := syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("another process uses this file: %w", err)
	}
	if err := c.create(); err != nil {
		return err
	}
	var err error
	if c.mapped, err = syscall.Mmap(fd, 0, countsSize, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED); err != nil {
		return fmt.Errorf("map: %w", err)
	}
	c.tables = (*countTables)(unsafe.Pointer(unsafe.SliceData(c.mapped))) //nolint:gosec // a page is aligned for every type
	return c.load()
}

// create fills a new file. It writes all of it, because a process ends when it writes to a mapped page for which the disk has no room.
// The format is last: a file without it, whose process was killed meanwhile, is filled again.
func (c *Counts) create() error {
	var format [len(countFormat)]byte
	if _, err := c.file.ReadAt(format[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read: %w", err)
	}
	info, err := c.file.Stat()
	switch {
	case err != nil:
		return fmt.Errorf("read: %w", err)
	case format == countFormat && info.Size() == int64(countsSize):
		return nil
	case format != [len(format)]byte{}:
		return errCounts
	}
	_, err = c.file.WriteAt(make([]byte, countsSize), 0)
	if err == nil {
		_, err = c.file.WriteAt(countFormat[:], 0)
	}
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	return nil
}

// load continues with the tables of the process before.
func (c *Counts) load() error {
	for i := range c.tables.tables {
		t := &c.tables.tables[i]
		if t.used.Load() > MaxCounted {
			return errCounts
		}
		if t.used.Load() == 0 {
			t.frozen.Store(0)
		}
	}
	first, second := &c.tables.tables[0], &c.tables.tables[1]
	if first.frozen.Load() != 0 || second.frozen.Load() == 0 && second.used.Load() > 0 {
		c.use(1)
	} else {
		c.use(0)
	}
	return nil
}

// use makes a table the active one.
func (c *Counts) use(i int) {
	t := &c.tables.tables[i]
	if t.used.Load() == 0 {
		_, _ = rand.Read(t.id[:]) // it never fails
	}
	c.active, c.known = i, make(map[domain.Counted]*number, t.used.Load())
	for j := range t.numbers[:t.used.Load()] {
		n := &t.numbers[j]
		c.known[n.counted()] = n
	}
}

func (n *number) counted() domain.Counted {
	class, _, _ := bytes.Cut(n.class[:], []byte{0})
	return domain.Counted{Tenant: ids.FromUUID[ids.TenantPrefix](n.tenant), Live: n.live, Day: n.day, Class: string(class)}
}

// Add counts a request. It reports whether there was room for it.
func (c *Counts) Add(key domain.Counted) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n, ok := c.known[key]; ok {
		n.requests++
		return true
	}
	if c.tables == nil {
		return false
	}
	t := &c.tables.tables[c.active]
	used := t.used.Load()
	if used == MaxCounted {
		return false
	}
	n := &t.numbers[used]
	*n = number{tenant: key.Tenant.UUID(), requests: 1, day: key.Day, live: key.Live}
	copy(n.class[:], key.Class)
	t.used.Store(used + 1)
	c.known[key] = n
	return true
}

// Frozen returns the numbers of the frozen table and the id of the table. If no table is frozen, it freezes the active one. Until Release
// it returns the same, also in the next process.
func (c *Counts) Frozen() (id [16]byte, list []domain.RequestCount) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tables == nil {
		return id, nil
	}
	other := 1 - c.active
	if t := &c.tables.tables[other]; t.frozen.Load() == 0 {
		if c.tables.tables[c.active].used.Load() == 0 {
			return id, nil
		}
		c.tables.tables[c.active].frozen.Store(1)
		c.use(other)
		other = 1 - other
	}
	t := &c.tables.tables[other]
	list = make([]domain.RequestCount, t.used.Load())
	for i := range list {
		list[i] = domain.RequestCount{Counted: t.numbers[i].counted(), Requests: t.numbers[i].requests}
	}
	return t.id, list
}

// Release empties the frozen table.
func (c *Counts) Release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tables == nil {
		return
	}
	t := &c.tables.tables[1-c.active]
	t.used.Store(0) // first: a table that is not frozen but has numbers would be sent with another id
	t.frozen.Store(0)
}

// Requests returns the number of all requests in the tables.
func (c *Counts) Requests() (all int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tables == nil {
		return 0
	}
	for i := range c.tables.tables {
		t := &c.tables.tables[i]
		for j := range t.numbers[:t.used.Load()] {
			all += t.numbers[j].requests
		}
	}
	return all
}

// Durable reports whether the counts remain when the process ends.
func (c *Counts) Durable() bool { return c.file != nil }

// Close ends the use of the file. Requests are then not counted anymore.
func (c *Counts) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tables, c.known = nil, nil
	if c.file == nil {
		return nil
	}
	var err error
	if c.mapped != nil {
		err = syscall.Munmap(c.mapped)
		c.mapped = nil
	}
	// A child process has a copy of the file from its fork until it runs its program. Close alone would leave the lock to it.
	return errors.Join(err, syscall.Flock(int(c.file.Fd()), syscall.LOCK_UN), c.file.Close())
}
