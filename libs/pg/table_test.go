package pg_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
)

type hall struct {
	ID        int
	Name      string
	Note      *string
	Floor     int // 0: unknown
	Tags      []string
	Price     money.Amount
	Deposit   money.Amount
	Day       civil.Date
	Closed    *civil.Date
	Loc       *time.Location
	Sizes     *[]int
	Rates     map[string]int
	Metadata  json.RawMessage
	Doubled   int
	Version   int64
	CreatedAt time.Time
	UpdatedAt time.Time
	Stars     string
}

var (
	errNoHall = errors.New("no hall")
	halls     = pg.NewTable("halls", "h", errNoHall, hallFields)
)

func hallFields(h *hall) pg.Fields {
	return pg.Fields{
		Fixed: pg.F{"id", &h.ID, "timezone", civil.ZoneOf(&h.Loc)},
		Values: pg.F{
			"name", &h.Name, "note", &h.Note, "floor", pg.Null(&h.Floor), "tags", pg.Array(&h.Tags), "currency", money.CurrencyOf(&h.Price, &h.Deposit),
			"price", &h.Price.Minor, "deposit", &h.Deposit.Minor, "day", &h.Day, "closed", &h.Closed, "sizes", &h.Sizes, "rates", pg.JSON(&h.Rates), "metadata", pg.Raw(&h.Metadata),
		},
		Written: pg.F{"name_length", len(h.Name)},
		Read: pg.F{
			"version", &h.Version, "created_at", &h.CreatedAt, "updated_at", &h.UpdatedAt, "h.price * 2 as doubled", &h.Doubled,
		},
		Done: func() error {
			if h.Name == "broken" {
				return errors.ErrUnsupported
			}
			h.Stars += "*"
			return nil
		},
	}
}

// A statement names each column once, in the order of the fields.
func TestStatementsFollowFromTheFields(t *testing.T) {
	t.Parallel()
	units := pg.NewTable("units", "u", nil, func(h *hall) pg.Fields {
		return pg.Fields{Fixed: pg.F{"id", &h.ID}, Values: pg.F{"name", &h.Name}, Written: pg.F{"size", 1}, Read: pg.F{"version", &h.Version, "count(*) as n", &h.Doubled}}
	})
	const own = `where u.tenant_id = @tenant and u.livemode = @live and `
	for got, want := range map[string]string{
		units.Columns:                  `u.id, u.name, u.version, count(*) as n`,
		units.Own:                      units.Select + own,
		units.Insert("at", "now()"):    `insert into units as u (tenant_id, livemode, id, name, size, at) values (@tenant, @live, @id, @name, @size, now())`,
		units.UpdateWith("at = now()"): `update units u set name = @name, size = @size, at = now() ` + own + `u.id = @id`,
		units.PutNewer():               units.Insert() + ` on conflict (tenant_id, livemode, id) do update set name = excluded.name, size = excluded.size where u.version < excluded.version`,
		units.Put():                    units.Insert() + ` on conflict (tenant_id, livemode, id) do update set name = excluded.name, size = excluded.size, version = u.version + 1, updated_at = clock_timestamp()`,
		units.Update[:len(units.Update)-len(units.Stamp)]: units.UpdateWith(`version = u.version + 1, updated_at = clock_timestamp()`),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// What was written is read again, and no value of one row shows in another one.
func TestTableRoundTrip(t *testing.T) {
	t.Parallel()
	db, ctx := pgtest.New(t, fstest.MapFS{"00001_halls.sql": {Data: []byte(`-- +goose Up
create table halls (tenant_id uuid, livemode boolean, id int, timezone text not null, name text not null, note text, floor int, tags text[] not null,
	currency text not null, price bigint not null, deposit bigint not null, day date not null, closed date, sizes json, rates json, metadata json, name_length int not null,
	version bigint not null default 1, created_at timestamptz not null, updated_at timestamptz not null, primary key (tenant_id, livemode, id));
grant select, insert, update on halls to public;
`)}}), pgtest.Ctx(t, caller.Test)
	berlin, err := civil.Location("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	full := hall{
		ID: 1, Name: "Great", Note: new("near"), Floor: 3, Tags: []string{"a"}, Price: money.Amount{Minor: 7, Currency: "EUR"},
		Deposit: money.Amount{Minor: 2, Currency: "EUR"}, Day: civil.Date{Year: 2031, Month: 2, Day: 3}, Closed: &civil.Date{Year: 2032, Month: 1, Day: 1},
		Loc: berlin, Sizes: &[]int{1, 2}, Rates: map[string]int{"x": 1}, Metadata: json.RawMessage(`{"b": 1, "a": 2}`),
	}
	empty := hall{
		ID: 2, Price: money.Amount{Currency: "USD"}, Deposit: money.Amount{Currency: "USD"}, Loc: time.UTC, Day: full.Day, Metadata: json.RawMessage{},
	}
	broken := empty
	broken.ID, broken.Name = 3, "broken"
	var updated int64
	err = db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		b := &pgx.Batch{}
		for _, h := range []hall{full, empty, broken} {
			b.Queue(halls.InsertNow(""), halls.Args(h))
		}
		changed := full
		changed.Name = "Greater"
		var created, changedAt time.Time
		b.Queue(halls.Update, halls.Args(changed)).QueryRow(pg.Into(&updated, &created, &changedAt))
		return pg.Send(ctx, tx, b, "write halls")
	})
	if err != nil || updated != 2 {
		t.Fatal(updated, err)
	}
	q := db.App.Read(ctx)
	for range 2 {
		list, err := halls.Many(ctx, q, `h.id < 3 order by h.id`, pg.Args{})
		if err != nil || len(list) != 2 {
			t.Fatal(list, err)
		}
		if !list[1].CreatedAt.Equal(list[1].UpdatedAt) {
			t.Errorf("created at %s, updated at %s", list[1].CreatedAt, list[1].UpdatedAt)
		}
		for i, want := range []hall{full, empty} {
			got := list[i]
			want.CreatedAt, want.UpdatedAt, want.Version, want.Stars, want.Doubled = got.CreatedAt, got.UpdatedAt, got.Version, "*", int(want.Price.Minor)*2
			if want.Tags == nil {
				want.Tags, want.Metadata = []string{}, nil
			} else {
				want.Name = "Greater"
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		}
	}
	nulls, err := pg.One(ctx, q, pgx.RowTo[int], errNoHall, `select num_nulls(note, floor, closed, sizes, rates, metadata) from halls where tenant_id = @tenant and livemode = @live and id = 2`, pg.Args{})
	if err != nil || nulls != 6 {
		t.Errorf("%d of 6 columns are null: %v", nulls, err)
	}
	if _, err := halls.Get(ctx, q, 3, ""); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a row that cannot be completed: %v", err)
	}
	if _, err := halls.Get(ctx, q, 4, ""); !errors.Is(err, errNoHall) {
		t.Errorf("a row that does not exist: %v", err)
	}
}
