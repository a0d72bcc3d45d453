package pg_test

import (
	"testing"

	"holdfast.dev/libs/pg"
)

// The statements of a table name each column and its argument in one order. An id is inserted and never changed.
func TestStatementsFollowFromTheArguments(t *testing.T) {
	t.Parallel()
	c := pg.Args{"name": "N", "id": 7, "capacity": 1}.Columns()
	for got, want := range map[string]string{
		c.Of("u"):              `u.capacity, u.id, u.name`,
		c.Names():              `capacity, id, name`,
		c.Values():             `@capacity, @id, @name`,
		c.Set():                `capacity = @capacity, name = @name`,
		c.Replace():            `capacity = excluded.capacity, name = excluded.name`,
		c.Insert("units", "u"): `insert into units as u (tenant_id, livemode, capacity, id, name) values (@tenant, @live, @capacity, @id, @name)`,
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
