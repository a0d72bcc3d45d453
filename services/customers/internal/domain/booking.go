package domain

import (
	"encoding/json"
	"fmt"
	"time"

	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/money"
)

// Booking is this service's copy of a booking, a projection of the events of bookings.
type Booking struct {
	ID         BookingID
	Number     string     // "" from the projection, which does not store it
	Package    string     // the name of its package; "" like Number
	Guests     *int       // that the price of its package is for; nil: per booking, or from the projection
	CustomerID CustomerID // zero: none
	ServiceID  ServiceID  // zero: none
	Status     string
	Total      money.Amount  // the gross amount
	Price      *BookingPrice // nil if its taxes are not known, or from the projection, which does not store it
	Days       *Days         // nil from the projection, which does not store them
	Version    int64
}

// BookingPrice is the price of a booking before its taxes were added to it, if they were.
type BookingPrice struct {
	Minor    int64 // in the smallest unit of the currency of the total
	Behavior TaxBehavior
	Taxes    []money.Tax
}

// Days are the first and the last day of a booking, in the operator's time zone. They can be the same.
type Days struct{ First, Last civil.Date }

// String returns a day such as "2030-05-01", or two days such as "2030-05-01 – 2030-05-03".
func (d Days) String() string {
	if d.First == d.Last {
		return d.First.String()
	}
	return d.First.String() + " – " + d.Last.String()
}

// Lost reports whether the booking was canceled or has expired, so that it no longer holds a unit.
func (b Booking) Lost() bool { return b.Status == "cancelled" || b.Status == "expired" }

// Lost is the error for a client whose quote cannot be accepted because the booking that the accept created is lost.
func Lost(b BookingID, status string) error {
	happened := "was cancelled"
	if status == "expired" {
		happened = "has expired"
	}
	return ErrTransition.WithMessage("The booking %s of this quote %s. Create another quote.", b, happened).WithField("status")
}

// CatalogueItem is this service's copy of a service, a unit or a package: the fact that it exists, and what determines taxes.
type CatalogueItem struct {
	ID      string // srv_…, un_… or pkg_…
	Version int64
	Details CatalogueDetails
}

// CatalogueDetails are the details of a service or a package. A unit has none.
type CatalogueDetails struct {
	Service ServiceID    // of a package
	Taxes   *[]money.Tax // default taxes of a service; nil: those of the operator apply
}

// LinkedBooking is a booking to be created exactly once for a quote or a lead.
type LinkedBooking struct {
	Key        string  // the idempotency key, such as "quote:qt_…"
	Quote      QuoteID // zero: for the lead
	Lead       LeadID  // with a quote: the quote's lead
	Body       []byte  // JSON: the body of POST /bookings
	Total      money.Amount
	Deposit    money.Amount   // like Total, only for a quote
	Taxes      []money.TaxRow // in the total, only for a quote
	ValidUntil time.Time      // real time; the request has no effect afterwards
}

// PackagePrice is the price of a package on a day.
type PackagePrice struct {
	Name           string
	Service        ServiceID
	Guests         *int // that the total is for; nil: per booking
	Total, Deposit money.Amount
	Defaults       TaxDefaults // of its service
}

// Invoicing is the operator's data that the tenant's invoices and quotes show.
type Invoicing struct {
	Prefix    string // of the numbers, such as "INV-"
	Year      bool   // whether the year follows the prefix
	Name      string // the operator's name
	LegalName string // "" when none is set
	Address   string
	Country   string // ISO 3166-1 code; "" when none is set
	TaxID     string
	Locale    string // BCP 47; "" for the language of the country
	Bank      BankAccount
	LogoHash  string // of the logo; "" when none is set
	Defaults  TaxDefaults
}

// Logo is the image on the documents of a tenant. The zero Logo is none.
type Logo struct {
	MediaType string // image/png or image/jpeg
	Content   []byte // with 8 bits per channel, not transparent, not interlaced
}

// BankAccount is the account for bank transfers. Empty texts are not shown.
type BankAccount struct{ Holder, Number, Code, Name string }

// NumberPrefix returns the text before the counter in the number of an invoice that is opened now.
func (i Invoicing) NumberPrefix(at DocumentContext) string {
	if !i.Year {
		return i.Prefix
	}
	return i.Prefix + at.Now.In(at.Zone).Format("2006-")
}

// bookingBody is the body of POST /bookings.
type bookingBody struct {
	EventDate  string `json:"event_date"`
	Start      string `json:"event_start_time,omitempty"`
	End        string `json:"event_end_time,omitempty"`
	ServiceID  string `json:"service_id,omitempty"`
	UnitID     string `json:"unit_id,omitempty"`
	PackageID  string `json:"package_id,omitempty"`
	CustomerID string `json:"customer_id"`
	Guests     int    `json:"guest_count"`
}

// Booking returns the request for the booking of a sent quote. The request has no effect after until.
func (q Quote) Booking(until time.Time) (LinkedBooking, error) {
	body := bookingBody{
		ServiceID: q.ServiceID.String(), UnitID: q.UnitID.String(), PackageID: q.PackageID.String(), CustomerID: q.CustomerID.String(),
		Guests: q.Guests,
	}
	switch {
	case q.EventAt != nil:
		body.EventDate = q.EventAt.UTC().Format(time.RFC3339Nano)
	case q.Day != nil:
		body.EventDate = q.Day.String()
	}
	if q.Start != nil {
		body.Start = string(*q.Start)
	}
	if q.End != nil {
		body.End = string(*q.End)
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return LinkedBooking{}, fmt.Errorf("body of the booking: %w", err)
	}
	return LinkedBooking{
		Key: "quote:" + q.ID.String(), Quote: q.ID, Lead: q.LeadID, Body: raw, Total: q.Total, Deposit: q.Deposit, Taxes: q.Breakdown, ValidUntil: until,
	}, nil
}
