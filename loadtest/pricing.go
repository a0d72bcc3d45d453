package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"holdfast.dev/libs/ids"

	"holdfast.dev/loadtest/internal/load"
	"holdfast.dev/loadtest/internal/report"
)

// The largest catalogue of one answer: every price on every day.
const (
	pricedPackages = 500
	pricedRules    = 200 // all of them apply together
	ownRules       = 12  // rules for some packages only, so that most packages have a different set of rules
	pricedUnits    = 300
	pricedDays     = "from=2040-02-01&to=2040-04-02" // 62 days, with other rules on each
)

// pricing measures the processor time of an answer with the largest number of prices and rules that the caps allow.
func (b *bench) pricing(ctx context.Context, s *shop) error {
	service := ids.New[servicePrefix]()
	if err := s.price(ctx, service.UUID()); err != nil {
		return err
	}
	defer s.unprice(context.WithoutCancel(ctx), service.UUID())
	get := load.Request(http.MethodGet, "/api/v1/availability?"+pricedDays+"&service_id="+service.String(), s.headers(s.key, ""), "")
	target := load.Target{Addr: s.addr, Nth: func(int) []byte { return get }, Status: http.StatusOK}
	if _, err := load.Once(ctx, target); err != nil {
		return err
	}
	before := b.processors()
	sample, err := load.Closed(ctx, target, 1, b.slice())
	if err != nil {
		return err
	}
	used := b.processors().since(before)
	delete(used, "loadtest")
	var all time.Duration
	for _, one := range used {
		all += one
	}
	each := all / time.Duration(max(sample.Requests, 1))
	b.say("pricing: %s of processor time in all, p50 %s", report.Millis(each), report.Millis(sample.Percentile(50)))
	b.table.Add(report.Row{
		Figure: fmt.Sprintf("`GET /availability`, 62 days × %d units, %d packages, %d rules that stack: processor time of all processes", pricedUnits, pricedPackages, pricedRules),
		Ours:   report.Millis(each), Aim: report.Aim{Text: "< 150.00 ms", Value: millis(each), AtMost: 150}, Show: "pricing",
	})
	b.table.Note("prices of the largest catalogue, CPU µs per request: %s", used.per(float64(sample.Requests)))
	return nil
}

// price stores the catalogue under one service.
func (s *shop) price(ctx context.Context, service [16]byte) error {
	for _, sql := range []string{
		`insert into services (tenant_id, livemode, id, name) values ($1, false, $2, 'Priced')`,
		`with u as (insert into units (tenant_id, livemode, id, name)
			select $1, false, gen_random_uuid(), 'Priced ' || n from generate_series(1, ` + fmt.Sprint(pricedUnits) + `) n returning id)
			insert into unit_services (tenant_id, livemode, unit_id, service_id) select $1, false, id, $2 from u`,
		`insert into packages (tenant_id, livemode, id, service_id, name, currency, base_price)
			select $1, false, gen_random_uuid(), $2, 'Priced ' || n, 'USD', 100000 + n from generate_series(1, ` + fmt.Sprint(pricedPackages) + `) n`,
		`with p as (select array_agg(id order by name) ids from packages where service_id = $2)
		insert into holiday_rules (tenant_id, livemode, id, name, date_from, date_to, multiplier_bps, stackable, service_ids, package_ids)
			select $1, false, gen_random_uuid(), 'Priced ' || n, date '2040-02-01', date '2040-04-02' - n % 62,
				case n % 2 when 0 then 20001 else 4999 end, true,
				case when n <= ` + fmt.Sprint(ownRules) + ` then '{}' else array[$2::uuid] end,
				case when n <= ` + fmt.Sprint(ownRules) + ` then (select array_agg(p.ids[1 + (k * (2 * n + 1) + 7 * n) % ` + fmt.Sprint(pricedPackages) + `])
					from generate_series(1, 100) k) else '{}' end
			from p, generate_series(1, ` + fmt.Sprint(pricedRules) + `) n`,
	} {
		if _, err := s.admin.Exec(ctx, sql, s.tenant, service); err != nil {
			return err
		}
	}
	_, err := s.admin.Exec(ctx, `analyze units, unit_services, packages, holiday_rules`)
	return err
}

// unprice removes the catalogue, because the next measurement has its own.
func (s *shop) unprice(ctx context.Context, service [16]byte) {
	for _, sql := range []string{
		`delete from holiday_rules where name like 'Priced %' and tenant_id = $1 and $2::uuid is not null`,
		`delete from packages where tenant_id = $1 and service_id = $2`,
		`delete from unit_services where tenant_id = $1 and service_id = $2`,
		`delete from units where name like 'Priced %' and tenant_id = $1 and $2::uuid is not null`,
		`delete from services where tenant_id = $1 and id = $2`,
	} {
		_, _ = s.admin.Exec(ctx, sql, s.tenant, service)
	}
}
