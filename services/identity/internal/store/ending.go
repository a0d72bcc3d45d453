package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
)

const endingColumns = `operator_id, reason, erase, actor, source, noted_at`

// PutEnding records what must end for an operator. It becomes due for a worker at the given time. A recorded erasure remains an
// erasure.
func PutEnding(ctx context.Context, tx pg.Tx, e domain.Ending, due time.Time) (domain.Ending, error) {
	return pg.One(ctx, tx, pgx.RowToStructByName[domain.Ending], pgx.ErrNoRows, `
		insert into operator_endings as e (operator_id, reason, erase, actor, source, noted_at, due_at) values ($1, $2, $3, $4, $5, $6, $7)
		on conflict (operator_id, reason) do update set erase = e.erase or excluded.erase, actor = excluded.actor, source = excluded.source,
			noted_at = excluded.noted_at, due_at = excluded.due_at
		returning `+endingColumns, e.OperatorID, e.Reason, e.Erase, e.Actor, e.Source, e.NotedAt, due)
}

// TakeEndings claims up to limit due endings until the given time, of one operator or, if operator is nil, of all. The endings of
// one operator are claimed even before they are due.
func TakeEndings(ctx context.Context, tx pg.Tx, operator *domain.OperatorID, now, until time.Time, limit int) ([]domain.Ending, error) {
	return pg.Many(ctx, tx, pgx.RowToStructByName[domain.Ending], `
		update operator_endings e set due_at = $3 from (
			select operator_id, reason from operator_endings where operator_id = $1 or $1::uuid is null and due_at <= $2
			order by due_at limit $4 for update skip locked) t
		where e.operator_id = t.operator_id and e.reason = t.reason
		returning e.operator_id, e.reason, e.erase, e.actor, e.source, e.noted_at`, operator, now, until, limit)
}

// DeleteEnding deletes a completed ending, unless it was recorded again.
func DeleteEnding(ctx context.Context, tx pg.Tx, e domain.Ending) error {
	return pg.Exec(ctx, tx, "delete an ending", `delete from operator_endings where operator_id = $1 and reason = $2 and noted_at = $3 and erase = $4`, e.OperatorID, e.Reason, e.NotedAt, e.Erase)
}
