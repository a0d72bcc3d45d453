package pg_test

import (
	"context"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
)

type order struct{ ID, Lines int }

// A row that is read after a wait for its lock shows what the transaction before it wrote to other tables too.
func TestALockedRowIsReadAfterTheLock(t *testing.T) {
	t.Parallel()
	orders := pg.NewTable("orders", "o", errNoHall, func(o *order) pg.Fields {
		return pg.Fields{Fixed: pg.F{"id", &o.ID}, Read: pg.F{
			"(select count(*) from lines l where l.tenant_id = o.tenant_id and l.livemode = o.livemode and l.order_id = o.id) as lines", &o.Lines,
		}}
	})
	db, ctx := pgtest.New(t, fstest.MapFS{"00001_orders.sql": {Data: []byte(`-- +goose Up
create table orders (tenant_id uuid, livemode boolean, id int, version bigint not null default 1, primary key (tenant_id, livemode, id));
create table lines (tenant_id uuid, livemode boolean, order_id int);
grant select, insert, update on orders, lines to public;
`)}}), pgtest.Ctx(t, caller.Test)
	insert := func(sql string) {
		if err := db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
			_, err := tx.Exec(ctx, sql, pg.Args{})
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	insert(`insert into orders (tenant_id, livemode, id) values (@tenant, @live, 1)`)
	var got order
	second := make(chan error, 1)
	err := db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		if _, err := orders.Get(ctx, tx, 1, "for update"); err != nil {
			return err
		}
		go func() {
			second <- db.App.Tx(context.WithoutCancel(ctx), func(ctx context.Context, tx pg.Tx) (err error) {
				got, err = orders.Get(ctx, tx, 1, "for update")
				return err
			})
		}()
		for waits := 0; waits == 0; time.Sleep(time.Millisecond) {
			var err error
			if waits, err = pg.One(ctx, tx, pgx.RowTo[int], errNoHall, `select count(*)::int from pg_locks l join pg_stat_activity a using (pid)
				where not l.granted and a.datname = current_database()`, pg.Args{}); err != nil {
				return err
			}
		}
		for _, sql := range []string{
			`insert into lines (tenant_id, livemode, order_id) values (@tenant, @live, 1)`,
			`update orders o set version = o.version + 1 where o.tenant_id = @tenant and o.livemode = @live and o.id = 1`,
		} {
			if _, err := tx.Exec(ctx, sql, pg.Args{}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-second; err != nil || got.Lines != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}
