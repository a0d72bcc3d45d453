package outbox

import (
	"context"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"
)

const columns = `tenant_id, livemode, id, topic, aggregate_id, message, traceparent, created_at`

// partition returns the SQL expression for the partition of a row. Each partition belongs to one class.
func partition(number string) string {
	return `hash + 8 * ((hashtext(aggregate_id) & 2147483647) % (` + number + ` / 8))`
}

// lockBatch locks for the transaction the partitions of the oldest rows that no other relay has locked, and reads their next rows: up
// to batchSize rows with up to limit bytes of messages. The server knows a message's length without reading the message.
//
// Each step reads what was committed after the locks of the step before: a row that another relay has sent meanwhile is not read, and
// the number of partitions cannot change, because Increase and SetRelays hold all classes exclusively.
func lockBatch(ctx context.Context, tx pg.Tx, limit int) ([]row, error) {
	held, err := integers(ctx, tx, `select class from generate_series(0, $1) as class
		where pg_try_advisory_xact_lock_shared(hashtext('outbox'), class)`, classes-1)
	if err != nil || len(held) == 0 {
		return nil, err
	}
	// The first number is that of the partitions, the others are the locked ones.
	led, err := integers(ctx, tx, `
		with relays as materialized (select partitions from outbox_partitions where name = 'relays'),
		waiting as materialized (
			select distinct `+partition("partitions")+` as partition
			from relays, (select hash, aggregate_id from outbox where hash = any($1) order by seq limit $2) oldest)
		select partitions from relays
		union all
		select partition from waiting where pg_try_advisory_xact_lock(hashtext('outbox partition'), partition)`, held, batchSize)
	if err != nil || len(led) < 2 {
		return nil, err
	}
	rows, err := tx.Query(ctx, `
		select `+columns+`, waiting, coalesce(p.partitions, 0) as partitions
		from (select seq, `+columns+`, count(*) over ()::int as waiting, sum(octet_length(message)) over (order by seq) as bytes
			from (select seq, `+columns+` from outbox where hash = any($1) and `+partition("$2::int")+` = any($3) order by seq limit $4) next) sized
		left join outbox_partitions p on p.name = topic
		where bytes <= $5 or bytes = octet_length(message) order by seq`, held, led[0], led[1:], batchSize, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[row])
}

func integers(ctx context.Context, tx pg.Tx, sql string, args ...any) ([]int32, error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int32])
}
