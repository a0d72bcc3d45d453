package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
	"holdfast.dev/services/customers/migrations"
)

func tx[T any](t *testing.T, db *pg.DB, ctx context.Context, fn func(ctx context.Context, tx pg.Tx) (T, error)) T {
	t.Helper()
	var out T
	err := db.Tx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
		out, err = fn(ctx, tx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func insert(t *testing.T, db *pg.DB, ctx context.Context, c domain.Customer) domain.Customer {
	t.Helper()
	c.ID = ids.New[ids.CustomerPrefix]()
	return tx(t, db, ctx, func(ctx context.Context, tx pg.Tx) (domain.Customer, error) { return store.InsertCustomer(ctx, tx, c) })
}

func ann() domain.Customer {
	return domain.Customer{
		FirstName: "Ann", LastName: new("Lee"), Email: "Ann@B.co", Phone: new("1"), Company: new("Acme"),
		Metadata: json.RawMessage(`{"b":"<1>","a":"2","b":"3"}`),
	}
}

func TestCustomerComesBackAsWritten(t *testing.T) {
	t.Parallel()
	db, ctx := pgtest.New(t, migrations.FS).App, pgtest.Ctx(t, caller.Test)
	c := insert(t, db, ctx, ann())
	if c.Version != 1 || c.CreatedAt.IsZero() || !c.UpdatedAt.Equal(c.CreatedAt) {
		t.Errorf("got %+v", c)
	}
	check := func(want domain.Customer) {
		t.Helper()
		got, err := store.Customer(ctx, db.Read(ctx), want.ID)
		if err != nil {
			t.Fatal(err)
		}
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(want)
		if string(a) != string(b) || string(got.Metadata) != string(want.Metadata) {
			t.Errorf("got  %s\nwant %s", a, b)
		}
	}
	check(c)
	c.LastName, c.Metadata, c.Email = nil, nil, "x@y.zz"
	changed := tx(t, db, ctx, func(ctx context.Context, tx pg.Tx) (domain.Customer, error) {
		if _, err := store.CustomerForUpdate(ctx, tx, c.ID); err != nil {
			return c, err
		}
		return store.UpdateCustomer(ctx, tx, c)
	})
	if changed.Version != 2 || !changed.CreatedAt.Equal(c.CreatedAt) || !changed.UpdatedAt.After(c.UpdatedAt) {
		t.Errorf("got %+v", changed)
	}
	check(changed)
}

func TestMissingCustomer(t *testing.T) {
	t.Parallel()
	db, ctx := pgtest.New(t, migrations.FS).App, pgtest.Ctx(t, caller.Live)
	c := insert(t, db, ctx, ann())
	for _, tc := range []struct {
		ctx  context.Context
		want error
	}{
		{pg.OtherMode(ctx), apperr.ErrMode}, {pgtest.Ctx(t, caller.Live), domain.ErrCustomerNotFound}, {pgtest.Ctx(t, caller.Test), domain.ErrCustomerNotFound},
	} {
		if _, err := store.Customer(tc.ctx, db.Read(tc.ctx), c.ID); !errors.Is(err, domain.ErrCustomerNotFound) {
			t.Errorf("read: %v", err)
		}
		err := pg.NotFoundOrOtherMode(tc.ctx, db, func(ctx context.Context, q pg.Q) error {
			_, err := store.Customer(ctx, q, c.ID)
			return err
		})
		if !errors.Is(err, tc.want) {
			t.Errorf("got %v, want %v", err, tc.want)
		}
	}
}

func TestErasedCustomerIsGone(t *testing.T) {
	t.Parallel()
	db, ctx := pgtest.New(t, migrations.FS).App, pgtest.Ctx(t, caller.Test)
	c := insert(t, db, ctx, ann())
	erased := tx(t, db, ctx, func(ctx context.Context, tx pg.Tx) (domain.Customer, error) {
		return store.EraseCustomer(ctx, tx, c.ID)
	})
	if erased.Version != 2 || erased.ErasedAt == nil || erased.CreatedAt != c.CreatedAt {
		t.Errorf("erased %+v", erased)
	}
	if _, err := store.Customer(ctx, db.Read(ctx), c.ID); !errors.Is(err, domain.ErrCustomerNotFound) {
		t.Errorf("read: %v", err)
	}
	list, err := store.CustomersByID(ctx, db.Read(ctx), []domain.CustomerID{c.ID})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("by id: %v %v", list, err)
	}
	list, err = store.Customers(ctx, db.Read(ctx), store.CustomerFilter{}, page.Request{Limit: 10})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("list: %v %v", list, err)
	}
}

func TestErrorsHaveAStatusOfTheirOwn(t *testing.T) {
	t.Parallel()
	if e := apperr.As(domain.ErrCustomerNotFound); e.Kind != apperr.NotFound || e.Code != "customer_not_found" {
		t.Errorf("got %+v", e)
	}
}
