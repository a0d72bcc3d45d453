package pg_test

import (
	"context"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
)

func TestArgsNameTheCallersTenantAndMode(t *testing.T) {
	t.Parallel()
	ctx := pgtest.Ctx(t, caller.Live)
	for range 2 { // parsed, and read from the cache
		sql, args, err := pg.Args{"id": 7, "unused": 1}.RewriteQuery(ctx, nil, `select '@x' from t where tenant_id = @tenant and livemode = @live and id = @id or id > @id`, nil)
		if err != nil || sql != `select '@x' from t where tenant_id = $1 and livemode = $2 and id = $3 or id > $3` {
			t.Errorf("%q: %v", sql, err)
		}
		if want := []any{caller.FromContext(ctx).Tenant, true, 7}; !slices.Equal(args, want) {
			t.Errorf("got %v, want %v", args, want)
		}
	}
}

func TestArgsThatAreMissingAreAnError(t *testing.T) {
	t.Parallel()
	ctx := pgtest.Ctx(t, caller.Test)
	const sql = `select @known_name, @missing_name`
	if _, _, err := (pg.Args{"known_name": 1}).RewriteQuery(ctx, nil, sql, nil); err == nil {
		t.Error("no error")
	}
	if _, _, err := (pg.Args{"known_name": 1, "missing_name": 2}).RewriteQuery(ctx, nil, sql, nil); err != nil {
		t.Error(err)
	}
	if _, _, err := (pg.Args{"known_name": 1}).RewriteQuery(ctx, nil, sql, nil); err == nil {
		t.Error("no error once the statement is stored")
	}
	if _, _, err := (pg.Args{}).RewriteQuery(context.Background(), nil, `select @tenant`, nil); err == nil {
		t.Error("no error without a caller")
	}
}

// The pairs of an object are written along with its resource. An array and an absent value have no pairs.
func TestMetadataPairs(t *testing.T) {
	t.Parallel()
	db, ctx := pgtest.New(t, fstest.MapFS{"00001_pairs.sql": {Data: []byte(`-- +goose Up
create table pairs (tenant_id uuid, livemode boolean, key text, value text, owner_id int);
grant select, insert, delete on pairs to public;
`)}}), pgtest.Ctx(t, caller.Test)
	table := pg.MetadataTable{Name: "pairs", Owner: "owner_id"}
	for metadata, want := range map[string][]string{`{"a":"3","b":"2"}`: {"a=3", "b=2"}, `["a"]`: nil, ``: nil, `{}`: nil} {
		err := db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
			b := &pgx.Batch{}
			table.QueueDelete(b, 1)
			table.QueueInsert(b, 1, []byte(metadata))
			return tx.SendBatch(ctx, b).Close()
		})
		if err != nil {
			t.Fatal(err)
		}
		got, err := pg.Many(ctx, db.App.Read(ctx), pgx.RowTo[string], `select key || '=' || value from pairs where tenant_id = @tenant and livemode = @live order by key`, pg.Args{})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v, %v", metadata, got, want, err)
		}
	}
}
