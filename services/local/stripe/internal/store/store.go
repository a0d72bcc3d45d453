// Package store stores all data in one bbolt file. A single goroutine writes: it combines waiting changes into one transaction. A
// change returns when its transaction is in the file, so it survives the end of the process. The file is synced to the disk once a
// second, so a machine failure loses at most the last second.
package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
)

// The buckets. Objects have one bucket per kind.
const (
	accountBucket  = "accounts"
	indexBucket    = "index"
	idempotent     = "idempotency"
	deliveryBucket = "deliveries"
	taskBucket     = "tasks"
)

// Kind is a kind of objects.
type Kind string

// The kinds, named after the prefixes of their ids.
const (
	Intents   Kind = "pi"
	Charges   Kind = "ch"
	Refunds   Kind = "re"
	Disputes  Kind = "dp"
	Movements Kind = "txn"
	Methods   Kind = "pm"
	Events    Kind = "evt"
	Endpoints Kind = "we"
)

// Kinds are all kinds.
var Kinds = []Kind{Intents, Charges, Refunds, Disputes, Movements, Methods, Events, Endpoints}

// ErrClosed is the error for a change after Close.
var ErrClosed = errors.New("the store is closed")

const (
	batchSize = 256
	syncEvery = time.Second
)

// DB is the database file.
type DB struct {
	bolt  *bbolt.DB
	jobs  chan *job
	stop  chan struct{}
	done  sync.WaitGroup
	last  int64 // the microsecond of the last created id; used only by the writer
	dirty atomic.Bool
}

// job is one change.
type job struct {
	change func(*Tx) error
	after  []func()
	err    error
	done   chan struct{}
}

// Open opens or creates the file stripe.db in the folder.
func Open(folder string) (*DB, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	file, err := bbolt.Open(filepath.Join(folder, "stripe.db"), 0o600, &bbolt.Options{
		Timeout: 5 * time.Second, NoSync: true, NoGrowSync: true, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType,
	})
	if err != nil {
		return nil, fmt.Errorf("opening %s/stripe.db: %w", folder, err)
	}
	d := &DB{bolt: file, jobs: make(chan *job, batchSize), stop: make(chan struct{})}
	if err := file.Update(prepare); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	d.done.Go(d.write)
	d.done.Go(d.sync)
	return d, nil
}

func prepare(tx *bbolt.Tx) error {
	names := []string{accountBucket, indexBucket, idempotent, deliveryBucket, taskBucket}
	for _, kind := range Kinds {
		names = append(names, string(kind))
	}
	for _, name := range names {
		if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
			return err
		}
	}
	return nil
}

// Close waits for pending changes, then syncs and closes the file.
func (d *DB) Close() error {
	close(d.stop)
	d.done.Wait()
	return errors.Join(d.bolt.Sync(), d.bolt.Close())
}

// View runs a read. The data does not change during the read.
func (d *DB) View(read func(*Tx) error) error {
	return d.bolt.View(func(tx *bbolt.Tx) error { return read(&Tx{bolt: tx, db: d, now: time.Now()}) })
}

// Update makes a change and returns when it is in the file. It can run the change more than once. A change that returns an error
// is rolled back.
func (d *DB) Update(change func(*Tx) error) error {
	j := &job{change: change, done: make(chan struct{})}
	select {
	case d.jobs <- j:
	case <-d.stop:
		return ErrClosed
	}
	select {
	case <-j.done:
		return j.err
	case <-d.stop:
	}
	d.done.Wait()
	select {
	case <-j.done:
		return j.err
	default:
		return ErrClosed
	}
}

// write is the body of the writer goroutine.
func (d *DB) write() {
	for {
		select {
		case first := <-d.jobs:
			d.commit(d.waiting(first))
		case <-d.stop:
			for len(d.jobs) > 0 {
				d.commit(d.waiting(<-d.jobs))
			}
			return
		}
	}
}

func (d *DB) waiting(first *job) []*job {
	batch := []*job{first}
	for len(batch) < batchSize {
		select {
		case next := <-d.jobs:
			batch = append(batch, next)
		default:
			return batch
		}
	}
	return batch
}

// commit makes the changes in one transaction. If one fails, each change gets its own transaction.
func (d *DB) commit(batch []*job) {
	err := d.bolt.Update(func(tx *bbolt.Tx) error {
		for _, j := range batch {
			if err := d.run(tx, j); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil && len(batch) > 1 {
		for i := range batch {
			d.commit(batch[i : i+1])
		}
		return
	}
	d.dirty.Store(true)
	for _, j := range batch {
		j.err = err
		if err == nil {
			for _, next := range j.after {
				next()
			}
		}
		close(j.done)
	}
}

// run makes one change. It returns a panic as the change's error.
func (d *DB) run(tx *bbolt.Tx, j *job) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a change: %v", p)
		}
	}()
	t := &Tx{bolt: tx, db: d, now: time.Now()}
	if err := j.change(t); err != nil {
		return err
	}
	j.after = t.after
	return nil
}

func (d *DB) sync() {
	tick := time.NewTicker(syncEvery)
	defer tick.Stop()
	for {
		select {
		case <-d.stop:
			return
		case <-tick.C:
			if d.dirty.Swap(false) {
				_ = d.bolt.Sync() // the next tick, or Close, tries again
			}
		}
	}
}
