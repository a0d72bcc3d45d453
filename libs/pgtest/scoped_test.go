package pgtest

import "testing"

func TestScopedCountsTables(t *testing.T) {
	t.Parallel()
	tables := []scopedTable{{"units", true}, {"bookings", true}, {"tenants", false}}
	for sql, want := range map[string]bool{
		`begin`:                               true,
		`select 1 from pg_class`:              true,
		`select from units u where u.id = $1`: false,
		`select from units u where u.tenant_id = $1 and u.id = $2`:                                                   false,
		`select from units u where u.tenant_id = $1 and u.livemode = $2 and u.id = $3`:                               true,
		`select from units u join bookings b on b.unit_id = u.id where u.tenant_id = $1 and u.livemode = $2`:         false,
		`insert into units (tenant_id, livemode, id) values ($1, $2, $3) on conflict do update set id = excluded.id`: true,
		"update\n\tbookings set notes = '' where id = $1":                                                            false,
		`delete from bookings where tenant_id = @tenant and livemode = @live`:                                        true,
		`select tenant_id, livemode, id from units`:                                                                  false,
		`select tenant_id, livemode, id from units where tenant_id = @tenant and livemode = @live`:                   true,
		`update units set notes = '' where id = @id returning tenant_id, livemode`:                                   false,
		`select count(*) from units where tenant_id = @tenant and livemode = @live`:                                  true,
		`with gone as (delete from units where tenant_id = @tenant and livemode = @live returning id)
			insert into bookings (tenant_id, livemode, id) select @tenant, @live, id from gone`: true,
		`select tenant_id, slug from tenants where slug = @slug`:                                   false,
		`select tenant_id, slug from tenants where tenant_id = @tenant`:                            true,
		`select from units u join tenants t on t.tenant_id = u.tenant_id where u.livemode = @live`: true,
		`select from units u join tenants t on t.tenant_id = @tenant where u.tenant_id = @tenant`:  false,
	} {
		if got := scoped(sql, tables); got != want {
			t.Errorf("%s: %v", sql, got)
		}
	}
}
