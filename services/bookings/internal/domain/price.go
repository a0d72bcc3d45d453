package domain

import (
	"slices"

	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/money"
)

// MaxAmount is the largest amount that the contract allows in a response, in minor units.
const MaxAmount = 99_999_999_999

// Price is the price of a booking, with the terms that it is based on. Gross, Deposit and Taxes are set by Taxed.
type Price struct {
	Total, Gross, Deposit money.Amount
	Taxes                 Taxes
	Snapshot              Snapshot
}

// TaxDefaults are the taxes of a service, and whether its prices include them.
type TaxDefaults struct {
	Behavior money.TaxBehavior
	Taxes    []money.Tax
}

// Of returns the defaults of a service. Its own taxes precede those of the operator. Nil is no service.
func (d TaxDefaults) Of(s *Service) TaxDefaults {
	if s != nil && s.DefaultTaxes != nil {
		d.Taxes = *s.DefaultTaxes
	}
	return d
}

// Taxes contains the taxes of a booking, as of the time when it was priced.
type Taxes struct {
	Behavior money.TaxBehavior `json:"behavior"` // whether the total includes the taxes
	Rows     []money.TaxRow    `json:"rows"`     // by name and rate
}

// Snapshot contains the package and the deciding holiday rule as of the time when the booking was priced.
type Snapshot struct {
	Terms
	PackageID PackageID        `json:"package_id"`
	Guests    *int             `json:"guests"`  // that the price is for; nil: per booking
	Holiday   *HolidaySnapshot `json:"holiday"` // nil: no rule applied
}

// HolidaySnapshot is the rule that decided. For stacked rules, it is the first rule with the combined factor.
type HolidaySnapshot struct {
	ID            HolidayID `json:"id"`
	Name          string    `json:"name"`
	MultiplierBps int64     `json:"multiplier_bps"`
}

// Quote prices the package for a number of guests on the operator-local day of the event. A price per booking is the same for any
// number. If every matching rule is stackable, their factors are
// multiplied and the result is rounded once. Otherwise only the deciding rule applies. Tariff does the same for many packages and
// days.
func Quote(p Package, rules []HolidayRule, day civil.Date, guests int, taxes TaxDefaults) (Price, error) {
	price, err := adjustmentBy(Matching(rules, p, day)).price(p, guests)
	if err != nil {
		return Price{}, err
	}
	return price.Taxed(taxes)
}

// Taxed returns the price with its taxes, the gross amount, and the deposit. The taxes are those of a document with one line,
// and the gross amount is rounded like its total.
func (p Price) Taxed(by TaxDefaults) (Price, error) {
	taxes, err := money.Taxes([]money.TaxLine{{Minor: p.Total.Minor, Taxes: by.Taxes}}, by.Behavior == money.TaxInclusive, p.Total.Currency)
	if err != nil {
		return Price{}, ErrPriceTooHigh
	}
	p.Taxes = Taxes{Behavior: by.Behavior, Rows: taxes.Rows}
	p.Gross, err = by.Behavior.Gross(p.Total, taxes.Total()).Rounded()
	if err != nil || p.Gross.Minor > MaxAmount {
		return Price{}, ErrPriceTooHigh
	}
	p.Deposit = deposit(p.Snapshot.Terms, p.Gross)
	return p, nil
}

// adjustment is the effect of a set of holiday rules on any price.
type adjustment struct {
	factor  money.Factor
	holiday *HolidaySnapshot // nil: no rule applies
	err     error            // the factor itself is above the largest amount
}

// adjustmentBy returns the adjustment by rules, which are in deciding order.
func adjustmentBy(matching []HolidayRule) adjustment {
	if len(matching) == 0 {
		return adjustment{factor: money.Product()}
	}
	first := matching[0]
	factors := []int64{first.MultiplierBps}
	if allStackable(matching) {
		factors = factors[:0]
		for _, r := range matching {
			factors = append(factors, r.MultiplierBps)
		}
	}
	return adjusted(first, money.Product(factors...))
}

// adjusted returns the adjustment by a factor. first is the rule that decided.
func adjusted(first HolidayRule, factor money.Factor) adjustment {
	combined, err := (money.Amount{Minor: money.Whole}).Times(factor)
	if err != nil {
		return adjustment{err: ErrPriceTooHigh}
	}
	return adjustment{factor: factor, holiday: &HolidaySnapshot{ID: first.ID, Name: first.Name, MultiplierBps: combined.Minor}}
}

func (a adjustment) price(p Package, guests int) (Price, error) {
	if a.err != nil {
		return Price{}, a.err
	}
	price := Price{Snapshot: Snapshot{Terms: p.Terms, PackageID: p.ID, Holiday: a.holiday}}
	factor := a.factor
	if p.Pricing == PerGuest {
		price.Snapshot.Guests = &guests
		factor = factor.And(money.Product(int64(guests) * money.Whole))
	}
	var err error
	if price.Total, err = p.BasePrice.Times(factor); err != nil || price.Total.Minor > MaxAmount {
		return Price{}, ErrPriceTooHigh
	}
	return price, nil
}

func allStackable(rules []HolidayRule) bool {
	for _, r := range rules {
		if !r.Stackable {
			return false
		}
	}
	return true
}

// Tariff prices many packages on many days, each as Quote does. Its rules are in deciding order, so a set of rules is a few bits,
// and the effect of each set on a price is computed once.
type Tariff struct {
	rules     []HolidayRule
	all       RuleSet // rules for every package
	byService map[ServiceID]RuleSet
	byPackage map[PackageID]RuleSet
	parts     map[string]part       // by the set of rules
	known     map[string]adjustment // by the set of rules
}

// RuleSet is a subset of a tariff's rules, with one bit per rule.
type RuleSet []byte

func (s RuleSet) add(i int) { s[i/8] |= 1 << (i % 8) }

func (s RuleSet) has(i int) bool { return s[i/8]&(1<<(i%8)) != 0 }

// Both returns the rules that are in s and in other.
func (s RuleSet) Both(other RuleSet) RuleSet {
	both := make(RuleSet, len(s))
	for i := range other {
		both[i] = s[i] & other[i]
	}
	return both
}

// Concerning contains the rules for one package. Many packages share the rules for all packages and for their service, so the
// effect of these rules is computed once.
type Concerning [3]RuleSet

// NewTariff accepts the rules in any order.
func NewTariff(rules []HolidayRule) *Tariff {
	t := &Tariff{
		rules:     slices.DeleteFunc(slices.Clone(rules), func(r HolidayRule) bool { return !r.Active }),
		byService: map[ServiceID]RuleSet{}, byPackage: map[PackageID]RuleSet{},
		parts: map[string]part{}, known: map[string]adjustment{},
	}
	slices.SortFunc(t.rules, deciding)
	t.all = t.none()
	for i, r := range t.rules {
		switch r.narrowness() {
		case byPackage:
			index(t, t.byPackage, r.PackageIDs, i)
		case byService:
			index(t, t.byService, r.ServiceIDs, i)
		default:
			t.all.add(i)
		}
	}
	return t
}

func (t *Tariff) none() RuleSet { return make(RuleSet, (len(t.rules)+7)/8) }

func index[K comparable](t *Tariff, sets map[K]RuleSet, keys []K, i int) {
	for _, key := range keys {
		if sets[key] == nil {
			sets[key] = t.none()
		}
		sets[key].add(i)
	}
}

// On returns the rules that apply on the day.
func (t *Tariff) On(d civil.Date) RuleSet {
	set := t.none()
	for i := range t.rules {
		if t.rules[i].Covers(d) {
			set.add(i)
		}
	}
	return set
}

// For returns the rules that concern the package.
func (t *Tariff) For(p Package) Concerning {
	return Concerning{t.all, t.byService[p.ServiceID], t.byPackage[p.ID]}
}

// Quote prices the package for one guest by the rules that apply on a day and concern the package: those of On and of For. Taxes are
// not computed.
func (t *Tariff) Quote(p Package, on RuleSet, concerning Concerning) (Price, error) {
	var key []byte
	var sets Concerning
	for i, c := range concerning {
		sets[i] = on.Both(c)
		key = append(key, sets[i]...)
	}
	a, known := t.known[string(key)]
	if !known {
		a = t.adjustment(sets)
		t.known[string(key)] = a
	}
	return a.price(p, 1)
}

func (t *Tariff) adjustment(sets Concerning) adjustment {
	sum := t.part(sets[0])
	for _, set := range sets[1:] {
		sum = sum.with(t.part(set))
	}
	if sum.rules == 0 {
		return adjustment{factor: sum.factor}
	}
	first := t.rules[sum.first]
	if !sum.stackable {
		return adjusted(first, money.Product(first.MultiplierBps))
	}
	return adjusted(first, sum.factor)
}

// part is the combined effect of some of the rules, provided that all of them are stackable.
type part struct {
	rules     int // number of rules
	first     int // the deciding one
	stackable bool
	factor    money.Factor
}

func (t *Tariff) part(set RuleSet) part {
	if p, known := t.parts[string(set)]; known {
		return p
	}
	p := part{stackable: true}
	var factors []int64
	for i, r := range t.rules {
		if !set.has(i) {
			continue
		}
		if p.rules++; p.rules == 1 {
			p.first = i
		}
		p.stackable = p.stackable && r.Stackable
		factors = append(factors, r.MultiplierBps)
	}
	if !p.stackable {
		factors = nil
	}
	p.factor = money.Product(factors...)
	t.parts[string(set)] = p
	return p
}

func (p part) with(q part) part {
	switch {
	case q.rules == 0:
		return p
	case p.rules == 0:
		return q
	case !p.stackable || !q.stackable:
		return part{rules: p.rules + q.rules, first: min(p.first, q.first)}
	}
	return part{rules: p.rules + q.rules, first: min(p.first, q.first), stackable: true, factor: p.factor.And(q.factor)}
}

// deposit derives the deposit from the gross amount. It is between zero and the gross amount.
func deposit(t Terms, gross money.Amount) money.Amount {
	part := money.Amount{Currency: gross.Currency}
	var err error
	switch t.DepositType {
	case DepositNone:
	case DepositFlat:
		part.Minor = t.DepositValue
		part, err = part.Rounded()
	case DepositPercentage:
		part, err = gross.MulBps(t.DepositValue)
	}
	if err != nil { // above the largest amount
		return gross
	}
	part.Minor = max(0, min(part.Minor, gross.Minor))
	return part
}

// PaymentStatus is derived from the amounts of a booking.
type PaymentStatus string

// The payment states.
const (
	Unpaid            PaymentStatus = "unpaid"
	DepositPaid       PaymentStatus = "deposit_paid"
	PartiallyPaid     PaymentStatus = "partially_paid"
	Paid              PaymentStatus = "paid"
	Overpaid          PaymentStatus = "overpaid"
	Credited          PaymentStatus = "credited"
	PartiallyRefunded PaymentStatus = "partially_refunded"
	Refunded          PaymentStatus = "refunded"
)

// Amounts contains the money of a booking, all in one currency.
type Amounts struct {
	Total, Gross, Deposit, Paid, Refunded money.Amount
	Invoices                              InvoiceSums
}

// InvoiceSums adds up the invoices of a booking in its currency, without drafts and void ones, in minor units.
type InvoiceSums struct {
	Invoiced    int64 // their totals
	Dues        int64 // what is due on them
	Placed      int64 // the payments on them, including refunded ones
	Credited    int64 // their credit notes
	DepositPaid bool  // whether there is a deposit invoice, and nothing is due on any
}

// NoMoney returns the amounts of an unpriced, unpaid booking.
func NoMoney(currency string) Amounts {
	none := money.Amount{Currency: currency}
	return Amounts{Total: none, Gross: none, Deposit: none, Paid: none, Refunded: none}
}

// Due returns the amount still to be paid, which is never negative. A refunded amount does not become due again, unless a credit note
// refunds it and its invoice is due.
func (a Amounts) Due() money.Amount {
	due := money.Outstanding{
		Gross: a.Gross.Minor, Invoiced: a.Invoices.Invoiced, Dues: a.Invoices.Dues, Placed: a.Invoices.Placed,
		Received: a.Paid.Minor, Returned: a.Refunded.Minor,
	}.Due()
	return money.Amount{Minor: due, Currency: a.Total.Currency}
}

// Status derives the payment state. Any payment pays an unpriced booking in full.
func (a Amounts) Status() PaymentStatus {
	paid, owed, settled := a.Paid.Minor, max(a.Gross.Minor, a.Invoices.Invoiced), a.Due().Minor == 0
	switch {
	case a.Refunded.Minor > 0 && a.Refunded.Minor >= paid:
		return Refunded
	case a.Refunded.Minor > 0:
		return PartiallyRefunded
	case settled && paid > owed && owed > 0:
		return Overpaid
	case settled && paid > 0:
		return Paid
	case settled && a.Invoices.Credited > 0:
		return Credited
	case a.depositPaid():
		return DepositPaid
	case paid > 0:
		return PartiallyPaid
	default:
		return Unpaid
	}
}

// depositPaid reports whether nothing is due on the deposit invoices, or the payments reach the deposit.
func (a Amounts) depositPaid() bool {
	return a.Invoices.DepositPaid || a.Deposit.Minor > 0 && a.Paid.Minor >= a.Deposit.Minor
}

// Reprice applies a new snapshot of the price: the package's current terms, the holiday rules of the event's day, and the current
// default taxes. It has no effect on a booking that has no package or is in a final state. Repriceable returns the error of a final
// state.
func (b Booking) Reprice(refs Refs) (Booking, error) {
	if err := b.retainsPrice(); err != nil {
		return Booking{}, err
	}
	if b.PackageID.IsZero() || b.Status.Final() {
		return b, nil
	}
	err := b.reprice(refs)
	return b, err
}

// retainsPrice returns the error of a new price for the booking of a quote, which keeps the quote's.
func (b Booking) retainsPrice() error {
	if b.QuoteID.IsZero() {
		return nil
	}
	return field("quote_id", "The booking has the price of quote %s, which cannot be recalculated.", b.QuoteID)
}

// Repriceable returns ErrTransition for a booking in a final state.
func (b Booking) Repriceable() error {
	if b.Status.Final() {
		return ErrTransition.WithMessage("A booking that is %s cannot be repriced.", b.Status).WithField("status")
	}
	return nil
}
