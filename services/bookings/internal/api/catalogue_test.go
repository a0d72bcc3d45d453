package api_test

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/store"
)

type amount struct {
	Amount   int64
	Currency string
}

// taxRow is a row of tax_breakdown as a client reads it.
type taxRow struct {
	Name, Rate string
	Taxable    amount `json:"taxable_amount"`
	Tax        amount `json:"tax_amount"`
}

// policy is a booking policy as a client reads it.
type policy struct {
	AutoConfirm      bool `json:"auto_confirm"`
	HoldTTLMinutes   *int `json:"hold_ttl_minutes"`
	MinNoticeMinutes *int `json:"min_notice_minutes"`
	MaxAdvanceDays   *int `json:"max_advance_days"`
	ConfirmOnDeposit bool `json:"confirm_on_deposit"`
	RefundRules      []struct {
		HoursBefore int `json:"hours_before"`
		Percent     int
	} `json:"refund_rules"`
	AutoRefund         bool `json:"auto_refund"`
	RefundLatePayments bool `json:"refund_late_payments"`
}

// booking is the response body as a client reads it.
type booking struct {
	ID              string
	Number          string
	Status          string
	PaymentStatus   string `json:"payment_status"`
	Mode            string
	Version         int64
	CustomerID      *string `json:"customer_id"`
	LeadID          *string `json:"lead_id"`
	QuoteID         *string `json:"quote_id"`
	ServiceID       *string `json:"service_id"`
	UnitID          *string `json:"unit_id"`
	PackageID       *string `json:"package_id"`
	PackageSnapshot *struct {
		Pricing    string
		GuestCount *int `json:"guest_count"`
		Name       string
		Holiday    *struct {
			ID, Name      string
			MultiplierBps int64 `json:"multiplier_bps"`
		}
	} `json:"package_snapshot"`
	EventType         *string    `json:"event_type"`
	EventDate         time.Time  `json:"event_date"`
	EventLocalDate    string     `json:"event_local_date"`
	EventLocalEndDate string     `json:"event_local_end_date"`
	EventStartTime    *string    `json:"event_start_time"`
	EventEndTime      *string    `json:"event_end_time"`
	StartsAt          *time.Time `json:"starts_at"`
	EndsAt            *time.Time `json:"ends_at"`
	Timezone          string
	GuestCount        *int `json:"guest_count"`
	Exclusive         bool
	Notes             *string
	TotalAmount       amount     `json:"total_amount"`
	TaxBehavior       *string    `json:"tax_behavior"`
	TaxBreakdown      []taxRow   `json:"tax_breakdown"`
	TaxAmount         amount     `json:"tax_amount"`
	GrossAmount       amount     `json:"gross_amount"`
	DepositAmount     amount     `json:"deposit_amount"`
	AmountPaid        amount     `json:"amount_paid"`
	AmountDue         amount     `json:"amount_due"`
	InvoiceIDs        []string   `json:"invoice_ids"`
	HoldExpiresAt     *time.Time `json:"hold_expires_at"`
	Cancellation      *struct {
		Reason          *string
		CancelledAt     time.Time `json:"cancelled_at"`
		Policy          *policy
		RefundAmountDue *amount `json:"refund_amount_due"`
	}
	Metadata    json.RawMessage
	UpdatedAt   time.Time  `json:"updated_at"`
	CreatedAt   time.Time  `json:"created_at"`
	ConfirmedAt *time.Time `json:"confirmed_at"`
	CancelledAt *time.Time `json:"cancelled_at"`
	CompletedAt *time.Time `json:"completed_at"`
	Customer    json.RawMessage
}

// shop is the catalogue that most tests use. It has a tour of 2 h with buffers of 15 and 30 minutes on two boats, a rental without
// a duration on a third boat, and a unit and a service without links.
type shop struct {
	tour, rental, idle    domain.ServiceID
	ada, bee, cat         domain.UnitID
	docked, sold          domain.UnitID
	flat, share, plain    domain.PackageID
	gone, hidden, onlyAda domain.PackageID
	yen                   domain.PackageID
}

func id[P ids.Prefix]() ids.ID[P] { return ids.New[P]() }

func (w *world) shop(ctx context.Context) shop {
	w.T.Helper()
	s := shop{
		tour: id[domain.ServicePrefix](), rental: id[domain.ServicePrefix](), idle: id[domain.ServicePrefix](),
		ada: id[domain.UnitPrefix](), bee: id[domain.UnitPrefix](), cat: id[domain.UnitPrefix](),
		docked: id[domain.UnitPrefix](), sold: id[domain.UnitPrefix](),
		flat: id[domain.PackagePrefix](), share: id[domain.PackagePrefix](), plain: id[domain.PackagePrefix](),
		gone: id[domain.PackagePrefix](), hidden: id[domain.PackagePrefix](), onlyAda: id[domain.PackagePrefix](), yen: id[domain.PackagePrefix](),
	}
	usd := func(n int64) money.Amount { return money.Amount{Minor: n, Currency: "USD"} }
	tours := []domain.ServiceID{s.tour}
	w.insert(ctx, store.Catalogue{
		Services: []domain.Service{
			{ID: s.tour, Name: "Tour", DurationMinutes: new(120), BufferBeforeMinutes: 15, BufferAfterMinutes: 30, Active: true},
			{ID: s.rental, Name: "Rental", Active: true},
			{ID: s.idle, Name: "Idle"},
		},
		Units: []domain.Unit{
			{ID: s.ada, Name: "Ada", Status: domain.UnitActive, Capacity: new(10), ServiceIDs: tours},
			{ID: s.bee, Name: "Bee", Status: domain.UnitActive, ServiceIDs: tours},
			{ID: s.cat, Name: "Cat", Status: domain.UnitActive, ServiceIDs: []domain.ServiceID{s.rental}},
			{ID: s.docked, Name: "Docked", Status: domain.UnitMaintenance, ServiceIDs: tours},
			{ID: s.sold, Name: "Sold", Status: domain.UnitRetired, ServiceIDs: tours, OpeningHours: domain.OpeningHours{time.Monday: {{Open: "09:00", Close: "17:00"}}, time.Sunday: {}}},
		},
		Packages: []domain.Package{
			{ID: s.flat, ServiceID: s.tour, Visible: true, Active: true, Terms: domain.Terms{Name: "Flat", BasePrice: usd(19999), DepositType: domain.DepositFlat, DepositValue: 5000}},
			{ID: s.share, ServiceID: s.tour, Visible: true, Active: true, Terms: domain.Terms{Name: "Share", BasePrice: usd(1001), DepositType: domain.DepositPercentage, DepositValue: 5000, DurationMinutes: new(60)}},
			{ID: s.plain, ServiceID: s.rental, Visible: true, Active: true, Terms: domain.Terms{Name: "Plain", BasePrice: usd(12345), DepositType: domain.DepositNone}},
			{ID: s.gone, ServiceID: s.tour, Visible: true, Terms: domain.Terms{Name: "Gone", BasePrice: usd(1), DepositType: domain.DepositNone}},
			{ID: s.hidden, ServiceID: s.tour, Active: true, Terms: domain.Terms{Name: "Hidden", BasePrice: usd(1), DepositType: domain.DepositNone}},
			{ID: s.onlyAda, ServiceID: s.tour, Visible: true, Active: true, UnitIDs: []domain.UnitID{s.ada}, Terms: domain.Terms{Name: "Only Ada", BasePrice: usd(100), DepositType: domain.DepositNone}},
			{ID: s.yen, ServiceID: s.rental, Visible: true, Active: true, Terms: domain.Terms{Name: "Yen", BasePrice: money.Amount{Minor: 250, Currency: "JPY"}, DepositType: domain.DepositNone}},
		},
		Rules: []domain.HolidayRule{
			{ID: id[domain.HolidayPrefix](), Name: "July", From: civil.Date{Year: 2030, Month: 7, Day: 1}, To: civil.Date{Year: 2030, Month: 7, Day: 31}, Recurrence: domain.Once, MultiplierBps: 11500, Active: true},
			{ID: id[domain.HolidayPrefix](), Name: "New Year", From: civil.Date{Year: 2020, Month: 12, Day: 30}, To: civil.Date{Year: 2021, Month: 1, Day: 2}, Recurrence: domain.Yearly, MultiplierBps: 10100, Active: true},
		},
	})
	return s
}

func (w *world) insert(ctx context.Context, c store.Catalogue) {
	w.T.Helper()
	for i := range c.Units {
		c.Units[i].BookingMode = cmp.Or(c.Units[i].BookingMode, domain.ExclusiveMode)
	}
	for i := range c.Packages {
		c.Packages[i].Pricing = cmp.Or(c.Packages[i].Pricing, domain.PerBooking)
	}
	err := w.DB.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		_, err := store.InsertCatalogue(ctx, tx, c)
		return err
	})
	if err != nil {
		w.T.Fatal(err)
	}
}

// customer creates a customer that the customers service knows, but this service does not know yet.
func (w *world) customer(ctx context.Context) string {
	return w.customers.Add(caller.FromContext(ctx), "Ann Smith").String()
}
