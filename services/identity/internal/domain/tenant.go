package domain

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/bojanz/currency"
	"golang.org/x/text/language"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/oneline"
	"holdfast.dev/libs/patch"
)

// Errors about tenants.
var (
	ErrTenantNotFound = apperr.New(apperr.NotFound, "tenant_not_found", "Tenant not found.")
	ErrSlugTaken      = apperr.New(apperr.Conflict, "slug_taken", "Another tenant already uses this slug.")

	ErrExternalIDTaken = apperr.New(apperr.Conflict, "external_id_taken", "Another tenant already uses this external_id.")
)

// Tenant is one business, whose data no other tenant can see. It exists in both modes.
type Tenant struct {
	ID       ids.Tenant `db:"tenant_id"`
	Slug     string     // one DNS label, unique across all tenants
	Name     string
	Timezone string  // IANA name
	Currency string  // ISO 4217, upper case
	Country  *string // ISO 3166-1 alpha-2, upper case
	Policy
	Invoicing
	Limits
	Clock *time.Time // frozen time of test mode; nil: real time
	State
	ExternalID *string         // of the tenant in the platform's own system, unique across all tenants
	Metadata   json.RawMessage // of the platform: compact JSON in the order sent, an object or an array of strings; nil when empty

	Version   int64 // incremented by each change; also the policy version of callers
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Policy contains a tenant's rules for bookings. A nil number disables its check.
type Policy struct {
	AutoConfirm      bool
	HoldTTLMinutes   *int
	MinNoticeMinutes *int
	MaxAdvanceDays   *int
	ConfirmOnDeposit bool
	// RefundRules specify what is refunded after a cancellation, in descending order of hours. nil sets no rules, and an empty list
	// refunds nothing.
	RefundRules        []RefundRule
	AutoRefund         bool // refund automatically according to the rules
	RefundLatePayments bool
}

// RefundRule is the share that is refunded after a cancellation at least the given number of hours before the start.
type RefundRule struct {
	HoursBefore int `json:"hours_before"`
	Percent     int `json:"percent"`
}

// DefaultPolicy returns the policy of a new tenant.
func DefaultPolicy() Policy { return Policy{ConfirmOnDeposit: true} }

// TenantPatch contains the fields of an update. An absent field does not change.
type TenantPatch struct {
	Name, Timezone, Currency                         patch.Field[string] // never null
	Country                                          patch.Field[string]
	AutoConfirm, ConfirmOnDeposit                    patch.Field[bool] // never null
	HoldTTLMinutes, MinNoticeMinutes, MaxAdvanceDays patch.Field[int]
	RefundRules                                      patch.Field[[]RefundRule] // a nil list sets no rules
	AutoRefund, RefundLatePayments                   patch.Field[bool]         // never null
	InvoicePrefix, LegalName, Address, TaxID         patch.Field[string]       // never null; empty clears
	InvoiceYear                                      patch.Field[bool]         // never null
	TaxBehavior                                      patch.Field[TaxBehavior]  // never null
	DefaultTaxes                                     patch.Field[[]money.Tax]  // never null; an empty list clears
	Locale                                           patch.Field[string]
	BankAccountHolder, BankAccountNumber             patch.Field[string] // never null; empty clears
	BankCode, BankName                               patch.Field[string] // never null; empty clears
	ExternalID                                       patch.Field[string]
	Metadata                                         patch.Field[json.RawMessage]
}

// Apply returns the tenant with the given fields. Call Check on the result.
func (t Tenant) Apply(p TenantPatch) Tenant {
	p.Name.Set(&t.Name)
	p.Timezone.Set(&t.Timezone)
	p.Currency.Set(&t.Currency)
	p.Country.SetNullable(&t.Country)
	p.AutoConfirm.Set(&t.AutoConfirm)
	p.ConfirmOnDeposit.Set(&t.ConfirmOnDeposit)
	p.HoldTTLMinutes.SetNullable(&t.HoldTTLMinutes)
	p.MinNoticeMinutes.SetNullable(&t.MinNoticeMinutes)
	p.MaxAdvanceDays.SetNullable(&t.MaxAdvanceDays)
	p.RefundRules.Set(&t.RefundRules)
	p.AutoRefund.Set(&t.AutoRefund)
	p.RefundLatePayments.Set(&t.RefundLatePayments)
	p.InvoicePrefix.Set(&t.InvoicePrefix)
	p.InvoiceYear.Set(&t.InvoiceYear)
	p.LegalName.Set(&t.LegalName)
	p.Address.Set(&t.Address)
	p.TaxID.Set(&t.TaxID)
	p.TaxBehavior.Set(&t.TaxBehavior)
	p.DefaultTaxes.Set(&t.DefaultTaxes)
	p.Locale.SetNullable(&t.Locale)
	p.applyBank(&t.BankAccount)
	p.ExternalID.SetNullable(&t.ExternalID)
	patch.SetMetadata(p.Metadata, &t.Metadata)
	t.Currency = strings.ToUpper(t.Currency)
	if t.Country != nil {
		t.Country = new(strings.ToUpper(*t.Country))
	}
	return t
}

// WithLogo returns the tenant with another logo.
func (t Tenant) WithLogo(l Logo) Tenant {
	if l.Hash != t.LogoHash {
		t.LogoHash, t.NewLogo = l.Hash, l.Content
	}
	return t
}

// Equal reports whether the two are equal.
func (t Tenant) Equal(other Tenant) bool {
	if !t.sameClock(other) {
		return false
	}
	other.Clock = t.Clock // the same time can be in another zone
	return reflect.DeepEqual(t, other)
}

// The limits of a policy's numbers.
const (
	MaxHoldMinutes   = 43_200    // 30 days, as for the hold of one booking
	MaxNoticeMinutes = 5_256_000 // 10 years
	MaxAdvanceDays   = 36_500    // 100 years
	MaxRefundRules   = 10
	MaxRefundHours   = 87_600 // 10 years
)

// MaxExternalID is the maximum length of a tenant's external id, in characters.
const MaxExternalID = 200

// The limits of texts on invoices, in characters.
const (
	MaxLegalName = 200
	MaxAddress   = 500
	MaxTaxID     = 50
	MaxTaxName   = 50
	MaxTaxes     = 3
)

// prefixForm is the form of an invoice number's prefix.
var prefixForm = regexp.MustCompile(`^[A-Za-z0-9/-]{0,20}$`)

var slugForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// Check returns a 422 with every invalid field, or nil.
func (t Tenant) Check() error {
	var wrong []apperr.FieldError
	want := func(ok bool, field, message string) {
		if !ok {
			wrong = append(wrong, apperr.FieldError{Field: field, Message: message})
		}
	}
	want(slugForm.MatchString(t.Slug), "slug", "Must be 1 to 63 lowercase letters, digits and hyphens. It must not start or end with a hyphen.")
	want(isName(t.Name, 1), "name", "Must be one visible line of 1 to 200 characters.")
	want(isTimezone(t.Timezone), "timezone", "Must be an IANA time zone, such as Europe/Berlin.")
	want(len(t.Currency) == 3 && currency.IsValid(t.Currency), "currency", "Must be an ISO 4217 currency, such as EUR.")
	want(t.Country == nil || isCountry(*t.Country), "country", "Must be an ISO 3166-1 country of two letters, such as DE.")
	want(t.ExternalID == nil || isLine(*t.ExternalID, 1, MaxExternalID), "external_id", "Must be one visible line of 1 to 200 characters, or null.")
	want(within(t.HoldTTLMinutes, 1, MaxHoldMinutes), "hold_ttl_minutes", "Must be 1 to 43200, or null.")
	want(within(t.MinNoticeMinutes, 0, MaxNoticeMinutes), "min_notice_minutes", "Must be 0 to 5256000, or null.")
	want(within(t.MaxAdvanceDays, 0, MaxAdvanceDays), "max_advance_days", "Must be 0 to 36500, or null.")
	want(areRules(t.RefundRules), "refund_rules", "Must be at most 10 rules of hours_before from 0 to 87600 and percent from 0 to 100, the most hours first, or null.")
	want(prefixForm.MatchString(t.InvoicePrefix), "invoice_prefix", "Must be at most 20 letters, digits, hyphens and slashes.")
	want(isLine(t.LegalName, 0, MaxLegalName), "legal_name", "Must be one visible line of at most 200 characters.")
	want(isText(t.Address, 0, MaxAddress), "address", "Must be at most 500 characters.")
	want(isLine(t.TaxID, 0, MaxTaxID), "tax_id", "Must be one visible line of at most 50 characters.")
	want(t.TaxBehavior == TaxExclusive || t.TaxBehavior == TaxInclusive, "tax_behavior", "Must be exclusive or inclusive.")
	want(areTaxes(t.DefaultTaxes), "default_taxes", "Must be at most 3 taxes with a visible name of 1 to 50 characters in one line and a rate, none of them twice.")
	want(t.Locale == nil || isLocale(*t.Locale), "locale", "Must be a BCP 47 language tag such as en, de or fr-CA, or null.")
	checkBank(t.BankAccount, want)
	if len(wrong) > 0 {
		return apperr.Fields(wrong)
	}
	return nil
}

// isLocale reports whether a text is a known language tag of at most 35 characters.
func isLocale(s string) bool {
	_, err := language.Parse(s)
	return err == nil && len(s) <= 35
}

// areTaxes reports whether the taxes are within their bounds and differ. Their rates were checked when they were parsed.
func areTaxes(taxes []money.Tax) bool {
	for i, tax := range taxes {
		if !isLine(tax.Name, 1, MaxTaxName) || slices.Contains(taxes[:i], tax) {
			return false
		}
	}
	return len(taxes) <= MaxTaxes
}

// areRules reports whether the rules are within their bounds and in descending order of hours.
func areRules(rules []RefundRule) bool {
	before := MaxRefundHours + 1
	for _, r := range rules {
		if r.HoursBefore < 0 || r.HoursBefore >= before || r.Percent < 0 || r.Percent > 100 {
			return false
		}
		before = r.HoursBefore
	}
	return len(rules) <= MaxRefundRules
}

func within(n *int, low, high int) bool { return n == nil || *n >= low && *n <= high }

func isName(s string, low int) bool { return isLine(s, low, 200) }

func isLine(s string, low, high int) bool { return isText(s, low, high) && oneline.Check(s) == nil }

func isText(s string, low, high int) bool {
	n := utf8.RuneCountInString(s)
	return n >= low && n <= high && utf8.ValidString(s) && !strings.ContainsRune(s, 0)
}

// isTimezone reports whether a name is an IANA name. LoadLocation also accepts "", which means UTC, and "Local", the zone of this
// machine.
func isTimezone(s string) bool {
	if s == "" || s == "Local" {
		return false
	}
	_, err := time.LoadLocation(s)
	return err == nil
}

func isCountry(s string) bool {
	_, ok := currency.ForCountryCode(s)
	return ok
}
