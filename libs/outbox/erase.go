package outbox

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"

	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/pg"
)

// eraseBatch is the number of events in memory at a time.
const eraseBatch = 20

// Erase removes the values that the contract marks as personal from the unpublished events about an object.
func Erase(ctx context.Context, tx pg.Tx, spec *contract.Contract, aggregate string) error {
	type row struct {
		ID      [16]byte
		Seq     int64
		Message []byte
	}
	var last row
	for {
		list, err := pg.Many(ctx, tx, pgx.RowToStructByName[row], `
			select id, seq, message from outbox
			where tenant_id = @tenant and livemode = @live and aggregate_id = @aggregate and seq > @seq order by seq limit @limit for update`,
			pg.Args{"aggregate": aggregate, "seq": last.Seq, "limit": eraseBatch})
		if err != nil {
			return fmt.Errorf("events to erase: %w", err)
		}
		b := &pgx.Batch{}
		for _, last = range list {
			message, err := erased(spec, last.Message)
			if err != nil {
				return err
			}
			b.Queue(`update outbox set message = @message where tenant_id = @tenant and livemode = @live and id = @id`,
				pg.Args{"id": last.ID, "message": message})
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
	if e.Object, e.PreviousAttributes, err = spec.EraseChange(contract.KindOf(e.GetType()), e.GetObject(), e.GetPreviousAttributes()); err != nil {
		return nil, err
	}
	out, err := proto.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encode event: %w", err)
	}
	return out, nil
}
