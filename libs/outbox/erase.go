package outbox

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"

	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/pg"
)

// eraseBatch is how many events are in memory at a time.
const eraseBatch = 20

// Erase takes what the contract marks as a person's out of the events about an object that are not published yet.
func Erase(ctx context.Context, tx pg.Tx, spec *contract.Contract, aggregate string) error {
	type row struct {
		ID      [16]byte
		Seq     int64
		Message []byte
	}
	var last row
	for {
		rows, err := tx.Query(ctx, `select id, seq, message from outbox where aggregate_id = $1 and seq > $2 order by seq limit $3 for update`,
			aggregate, last.Seq, eraseBatch)
		if err != nil {
			return fmt.Errorf("events to erase: %w", err)
		}
		list, err := pgx.CollectRows(rows, pgx.RowToStructByName[row])
		if err != nil {
			return fmt.Errorf("events to erase: %w", err)
		}
		b := &pgx.Batch{}
		for _, last = range list {
			message, err := erased(spec, last.Message)
			if err != nil {
				return err
			}
			b.Queue(`update outbox set message = $2 where id = $1`, last.ID, message)
		}
		if len(list) > 0 {
			if err := tx.SendBatch(ctx, b).Close(); err != nil {
				return fmt.Errorf("erase events: %w", err)
			}
		}
		if len(list) < eraseBatch {
			return nil
		}
	}
}

func erased(spec *contract.Contract, message []byte) ([]byte, error) {
	e, err := Decode(message)
	if err != nil {
		return nil, err
	}
	kind, _, _ := strings.Cut(e.GetType(), ".") // of the object, in the contract
	if e.Object, e.PreviousAttributes, err = spec.EraseChange(kind, e.GetObject(), e.GetPreviousAttributes()); err != nil {
		return nil, err
	}
	out, err := proto.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encode event: %w", err)
	}
	return out, nil
}
