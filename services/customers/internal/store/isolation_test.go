package store_test

import (
	"context"
	"testing"

	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/customers/migrations"
)

func TestIsolation(t *testing.T) {
	t.Parallel()
	pgtest.Isolation(t, migrations.FS, []pgtest.Row{
		{"customers", "id, first_name, email, email_lower, version, created_at, updated_at", "gen_random_uuid(), 'a', 'b', 'b', 1, now(), now()"},
		{"customer_words", "word, customer_id", "'w', gen_random_uuid()"},
		{"customer_metadata", "key, value, customer_id", "'k', 'v', gen_random_uuid()"},
	})
}

func TestWorkerSeesOnlyWhatItServes(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS).Worker
	for _, table := range []string{"customers", "customer_words", "customer_metadata"} {
		err := db.SystemTx(t.Context(), func(ctx context.Context, tx pg.Tx) error {
			_, err := tx.Exec(ctx, `select from `+table)
			return err
		})
		if pg.Code(err) != "42501" {
			t.Errorf("%s: %v", table, err)
		}
	}
}
