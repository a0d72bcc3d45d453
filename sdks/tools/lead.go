package tools

import (
	"context"

	holdfast "holdfast.dev/sdks/go"
)

// leadView is a lead.
type leadView struct {
	ID         string   `json:"id"`
	Status     string   `json:"status"`
	Name       string   `json:"name"`
	Email      string   `json:"email,omitempty"`
	Phone      string   `json:"phone,omitempty"`
	Company    string   `json:"company,omitempty"`
	Source     string   `json:"source,omitempty"`
	EventType  string   `json:"event_type,omitempty"`
	Date       string   `json:"date,omitempty"`
	GuestCount int      `json:"guest_count,omitempty"`
	Budget     *money   `json:"budget,omitempty"`
	Message    string   `json:"message,omitempty"`
	ServiceID  string   `json:"service_id,omitempty"`
	UnitID     string   `json:"unit_id,omitempty"`
	PackageID  string   `json:"package_id,omitempty"`
	CustomerID string   `json:"customer_id,omitempty"`
	BookingID  string   `json:"booking_id,omitempty"`
	QuoteIDs   []string `json:"quote_ids,omitempty"`
	LostReason string   `json:"lost_reason,omitempty"`
	Version    int64    `json:"version"`
	CreatedAt  *moment  `json:"created_at"`
}

// lead returns a lead with texts of at most length characters.
func (v view) lead(l holdfast.Lead, length int) leadView {
	r := leadView{
		ID: l.ID, Status: string(l.Status), Name: l.FirstName, Email: cut(value(l.Email), nameText), Phone: cut(value(l.Phone), nameText), Company: cut(value(l.Company), nameText),
		Source: cut(value(l.Source), nameText), EventType: cut(value(l.EventType), nameText), Date: value(l.EventLocalDate), GuestCount: value(l.GuestCount),
		Message: cut(value(l.Message), length), ServiceID: value(l.ServiceID), UnitID: value(l.UnitID), PackageID: value(l.PackageID),
		CustomerID: value(l.CustomerID), BookingID: value(l.ConvertedBookingID), QuoteIDs: first(l.QuoteIDs), LostReason: cut(value(l.LostReason), length),
		Version: l.Version, CreatedAt: v.at(&l.CreatedAt),
	}
	if l.LastName != nil {
		r.Name += " " + *l.LastName
	}
	r.Name = cut(r.Name, nameText)
	if l.Budget != nil {
		r.Budget = &money{l.Budget.Amount, l.Budget.Currency}
	}
	return r
}

// leadFilter are the arguments of find_leads.
type leadFilter struct {
	Query    string `json:"query,omitempty" jsonschema:"starts of words of the name, email address or company, or a phone number" max:"200"`
	Status   string `json:"status,omitempty" enum:"new,contacted,qualified,quoted,converted,lost"`
	Customer string `json:"customer_id,omitempty"`
	paging
}

func (t *toolbox) findLeads(ctx context.Context, in leadFilter) (any, error) {
	v, err := t.view(ctx)
	if err != nil {
		return nil, err
	}
	params := holdfast.LeadsListParams{Cursor: in.Cursor, Q: in.Query, Status: one[holdfast.LeadStatus](in.Status), CustomerID: in.Customer}
	return rows(v, in.paging, func(limit int) (*holdfast.Page[holdfast.Lead], error) {
		params.Limit = limit
		return t.client.Leads.ListPage(ctx, params)
	}, func(l holdfast.Lead) leadView { return v.lead(l, shortText) })
}

// conversion are the arguments of convert_lead.
type conversion struct {
	Lead     string `json:"lead_id"`
	Customer string `json:"customer_id,omitempty" jsonschema:"default: the customer with the lead's email address, else with its phone number, else a new one"`
	versioned
	repeatable
}

func (t *toolbox) convertLead(ctx context.Context, in conversion, options ...holdfast.Option) (any, error) {
	v, err := t.view(ctx)
	if err != nil {
		return nil, err
	}
	l, err := t.client.Leads.Convert(ctx, in.Lead, holdfast.LeadConvert{CustomerID: optional(in.Customer)}, in.options(options)...)
	if err != nil {
		return nil, err
	}
	return v.one(v.lead(*l, longText)), nil
}
