// Package reseal seals stored secrets again after a rotation of keys, so that the old key can be removed.
package reseal

import (
	"context"
	"errors"
	"fmt"
	"io"

	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/pg"
)

// Column is a column of sealed texts in rows of type R.
type Column[R any] struct {
	Name string
	// Next locks and reads up to limit rows whose text does not begin with head, in the order of their keys. It begins after the
	// row `after`, or with the first row if it is nil.
	Next func(ctx context.Context, tx pg.Tx, head []byte, after *R, limit int) ([]R, error)
	// Sealed returns a row's text, the data that the text is bound to, and a human-readable name of the row.
	Sealed func(r R) (text, aad []byte, name string)
	// Put replaces the texts of rows.
	Put func(ctx context.Context, tx pg.Tx, rows []R, texts [][]byte) error
}

const batch = 100

// ErrLeft reports that some rows are sealed under a key that the box does not have.
var ErrLeft = errors.New("some secrets are left: no key opens them")

// Run seals every text of the column under the box's first key, in small transactions of the worker role, and writes its progress
// to out. It skips texts that are already sealed under that key, so it can be stopped and run again at any time. A text that cannot
// be opened is reported and not changed, and Run returns ErrLeft at the end.
func Run[R any](ctx context.Context, db *pg.DB, box *crypt.Box, column Column[R], out io.Writer) error {
	var after *R
	done, left := 0, 0
	for {
		var rows []R
		var unreadable []string
		err := db.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
			if rows, err = column.Next(ctx, tx, box.Head(), after, batch); err != nil || len(rows) == 0 {
				return err
			}
			unreadable, err = column.renew(ctx, tx, box, rows)
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", column.Name, err)
		}
		done, left = done+len(rows)-len(unreadable), left+len(unreadable)
		for _, name := range unreadable {
			fmt.Fprintf(out, "%s: no key opens %s\n", column.Name, name)
		}
		fmt.Fprintf(out, "%s: %d encrypted again\n", column.Name, done)
		if len(rows) < batch {
			break
		}
		after = &rows[len(rows)-1]
	}
	if left > 0 {
		return fmt.Errorf("%s: %w: %d", column.Name, ErrLeft, left)
	}
	return nil
}

// renew seals rows again and returns the names of the rows that it cannot open.
func (c Column[R]) renew(ctx context.Context, tx pg.Tx, box *crypt.Box, rows []R) (unreadable []string, err error) {
	var fresh []R
	var texts [][]byte
	for _, r := range rows {
		text, aad, name := c.Sealed(r)
		plain, err := box.Open(text, aad)
		if err != nil {
			unreadable = append(unreadable, name)
			continue
		}
		sealed, err := box.Seal(plain, aad)
		if err != nil {
			return nil, err
		}
		fresh, texts = append(fresh, r), append(texts, sealed)
	}
	if len(fresh) == 0 {
		return unreadable, nil
	}
	return unreadable, c.Put(ctx, tx, fresh, texts)
}
