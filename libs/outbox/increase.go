package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/pg"
)

const (
	quietLimit = time.Minute // until no relay sends; a relay sends for 20 s at most
	drainPoll  = 250 * time.Millisecond
)

var (
	// ErrBacklog reports that consumers did not handle all messages in time. Nothing was changed.
	ErrBacklog = errors.New("not all messages are handled: repeat the command when the lag is lower, or wait longer with --wait")
	// ErrFewer reports a number of partitions below the present one.
	ErrFewer = errors.New("the number of partitions cannot be reduced")
)

// Increase specifies the increase of a topic's partitions.
type Increase struct {
	DB         *pg.DB // role of the owner of the outbox that is published to the topic
	Cluster    kafkax.Cluster
	Topic      string
	Groups     []string // consumer groups of the topic
	Partitions int
	Wait       time.Duration // for the groups to handle what is in the topic
	Log        *slog.Logger
}

// Run increases the partitions of a topic and keeps the order per key. Events wait in the outbox meanwhile, none is lost. It can be
// repeated after an interruption at any point:
//
//  1. It fixes the number of partitions that relays distribute keys over to the present one.
//  2. It adds partitions to the topic. No relay uses them.
//  3. It stops the relays, waits until the groups have handled all messages, and raises the number of step 1. If they do not in time,
//     it changes nothing and returns ErrBacklog.
//
// A key that moves to another partition has no unhandled message in its old one.
func (i Increase) Run(ctx context.Context) error {
	fixed, err := i.fix(ctx)
	if err != nil {
		return fmt.Errorf("increase topic %s: %w", i.Topic, err)
	}
	if err := kafkax.AddPartitions(ctx, i.Cluster, i.Topic, i.Partitions); err != nil {
		return err
	}
	if fixed == i.Partitions {
		return nil
	}
	start := time.Now()
	err = quiet(ctx, i.DB, func(ctx context.Context, tx pg.Tx) error {
		if err := i.drained(ctx, tx); err != nil {
			return err
		}
		return put(ctx, tx, i.Topic, i.Partitions)
	})
	if err != nil {
		return fmt.Errorf("increase topic %s: %w", i.Topic, err)
	}
	i.Log.InfoContext(ctx, "partitions increased", slog.String("topic", i.Topic), slog.Int("from", fixed), slog.Int("to", i.Partitions),
		slog.Duration("relays_waited", time.Since(start)))
	return nil
}

// fix stores and returns the number of partitions that relays use now.
func (i Increase) fix(ctx context.Context) (fixed int, err error) {
	err = quiet(ctx, i.DB, func(ctx context.Context, tx pg.Tx) error {
		stored, err := integers(ctx, tx, `select partitions from outbox_partitions where name = $1`, i.Topic)
		switch {
		case err != nil:
			return err
		case len(stored) > 0:
			fixed = int(stored[0])
		default:
			if fixed, err = kafkax.Partitions(ctx, i.Cluster, i.Topic); err != nil {
				return err
			}
			if err = put(ctx, tx, i.Topic, fixed); err != nil {
				return err
			}
		}
		if i.Partitions < fixed {
			return fmt.Errorf("%w: %d are in use, %d wanted", ErrFewer, fixed, i.Partitions)
		}
		return nil
	})
	return fixed, err
}

// drained returns when the groups have handled all messages of the topic. The queries keep the transaction from its time-out.
func (i Increase) drained(ctx context.Context, tx pg.Tx) error {
	for limit := time.Now().Add(i.Wait); ; {
		left, err := kafkax.Backlogs(ctx, i.Cluster, i.Topic, i.Groups)
		if err != nil || len(left) == 0 {
			return err
		}
		if time.Now().After(limit) {
			return fmt.Errorf("%w: %s", ErrBacklog, describe(left))
		}
		if _, err := integers(ctx, tx, `select 1`); err != nil {
			return err
		}
		sleep(ctx, drainPoll)
	}
}

func describe(left []kafkax.Backlog) string {
	list := make([]string, len(left))
	for n, b := range left {
		list[n] = fmt.Sprintf("group %s has %d", b.Group, b.Messages)
	}
	return strings.Join(list, ", ")
}

// SetRelays sets the number of partitions of the relays of an outbox: a multiple of 8 up to kafkax.MaxPartitions. Rows may wait in the
// outbox. The number can also be reduced.
func SetRelays(ctx context.Context, db *pg.DB, partitions int) error {
	if partitions < classes || partitions > kafkax.MaxPartitions || partitions%classes != 0 {
		return fmt.Errorf("relay partitions must be a multiple of %d from %d to %d, not %d", classes, classes, kafkax.MaxPartitions, partitions)
	}
	return quiet(ctx, db, func(ctx context.Context, tx pg.Tx) error { return put(ctx, tx, "relays", partitions) })
}

func put(ctx context.Context, tx pg.Tx, name string, partitions int) error {
	_, err := tx.Exec(ctx, `insert into outbox_partitions values ($1, $2) on conflict (name) do update set partitions = excluded.partitions`,
		name, partitions)
	return err
}

// quiet runs change in a transaction during which no relay sends. Relays that try meanwhile find nothing to do.
func quiet(ctx context.Context, db *pg.DB, change func(ctx context.Context, tx pg.Tx) error) error {
	return db.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		if _, err := tx.Exec(ctx, `select set_config('lock_timeout', $1, true)`, fmt.Sprint(quietLimit.Milliseconds())); err != nil {
			return err
		}
		if _, err := integers(ctx, tx, `select class from generate_series(0, $1) as class,
			lateral (select pg_advisory_xact_lock(hashtext('outbox'), class)) locked`, classes-1); err != nil {
			return fmt.Errorf("wait for the relays: %w", err)
		}
		return change(ctx, tx)
	})
}
