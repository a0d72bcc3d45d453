package tools

import (
	"context"

	holdfast "holdfast.dev/sdks/go"
)

// serviceView is a service.
type serviceView struct {
	ID              string   `json:"id"`
	Name            string   `json:"name"`
	Description     string   `json:"description,omitempty"`
	DurationMinutes int      `json:"duration_minutes,omitempty"`
	Active          bool     `json:"active"`
	UnitIDs         []string `json:"unit_ids,omitempty"`
}

// unitView is a unit.
type unitView struct {
	ID           string                `json:"id"`
	Name         string                `json:"name"`
	Description  string                `json:"description,omitempty"`
	Status       string                `json:"status"`
	Capacity     int                   `json:"capacity,omitempty"`
	ServiceIDs   []string              `json:"service_ids,omitempty"`
	OpeningHours map[string][][]string `json:"opening_hours,omitempty"` // by weekday; always open if it is missing
}

// packageView is a package.
type packageView struct {
	ID              string   `json:"id"`
	Name            string   `json:"name"`
	Description     string   `json:"description,omitempty"`
	ServiceID       string   `json:"service_id"`
	BasePrice       money    `json:"base_price"`
	Deposit         *money   `json:"deposit,omitempty"`
	DepositBps      int64    `json:"deposit_bps,omitempty"` // 2500 is 25% of the price
	DurationMinutes int      `json:"duration_minutes,omitempty"`
	UnitIDs         []string `json:"unit_ids,omitempty"` // any unit of the service if it is missing
	Visible         bool     `json:"visible"`
	Active          bool     `json:"active"`
}

func serviceOf(s holdfast.Service) serviceView {
	return serviceView{s.ID, cut(s.Name, nameText), cut(value(s.Description), shortText), value(s.DurationMinutes), s.Active, first(s.UnitIDs)}
}

func unitOf(u holdfast.Unit) unitView {
	return unitView{u.ID, cut(u.Name, nameText), cut(value(u.Description), shortText), string(u.Status), value(u.Capacity), first(u.ServiceIDs), u.OpeningHours}
}

func packageOf(p holdfast.Package) packageView {
	r := packageView{
		ID: p.ID, Name: cut(p.Name, nameText), Description: cut(value(p.Description), shortText), ServiceID: p.ServiceID, BasePrice: amount(p.BasePrice),
		DurationMinutes: value(p.DurationMinutes), UnitIDs: first(p.UnitIDs), Visible: p.Visible, Active: p.Active,
	}
	switch p.DepositType {
	case holdfast.DepositTypeNone:
	case holdfast.DepositTypeFlat:
		r.Deposit = &money{p.DepositValue, p.BasePrice.Currency}
	case holdfast.DepositTypePercentage:
		r.DepositBps = p.DepositValue
	}
	return r
}

// catalogFilter are the arguments of list_catalog.
type catalogFilter struct {
	Kind     string `json:"kind" enum:"services,units,packages"`
	Service  string `json:"service_id,omitempty" jsonschema:"only for units and packages"`
	Inactive bool   `json:"include_inactive,omitempty"`
	paging
}

func (t *toolbox) listCatalog(ctx context.Context, in catalogFilter) (any, error) {
	v, err := t.view(ctx)
	if err != nil {
		return nil, err
	}
	active := holdfast.Ptr(true)
	if in.Inactive {
		active = nil
	}
	switch in.Kind {
	case "units":
		return rows(v, in.paging, func(limit int) (*holdfast.Page[holdfast.Unit], error) {
			return t.client.Units.ListPage(ctx, holdfast.UnitsListParams{Limit: limit, Cursor: in.Cursor, Active: active, ServiceID: in.Service})
		}, unitOf)
	case "packages":
		return rows(v, in.paging, func(limit int) (*holdfast.Page[holdfast.Package], error) {
			return t.client.Packages.ListPage(ctx, holdfast.PackagesListParams{Limit: limit, Cursor: in.Cursor, Active: active, ServiceID: in.Service})
		}, packageOf)
	}
	if in.Service != "" {
		return nil, invalid("service_id", "is only for units and packages; get_record shows a service")
	}
	return rows(v, in.paging, func(limit int) (*holdfast.Page[holdfast.Service], error) {
		return t.client.Services.ListPage(ctx, holdfast.ServicesListParams{Limit: limit, Cursor: in.Cursor, Active: active})
	}, serviceOf)
}
