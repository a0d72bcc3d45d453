package command

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/patch"
	"holdfast.dev/proto"
	"holdfast.dev/proto/platformapi"

	"holdfast.dev/services/identity/internal/domain"
)

// field is a flag that changes a setting if it is given.
type field struct {
	name, usage string
	set         func(text string) (ok bool) // false: the text is invalid
}

type fields []field

// flags returns a flag for each field.
func (list fields) flags() []flag {
	out := make([]flag, len(list))
	for i, f := range list {
		out[i] = flag{new(string), f.name, f.usage, optional}
	}
	return out
}

// read sets the given fields, and reports whether there are any.
func (list fields) read(flags *pflag.FlagSet) (given bool, err error) {
	var wrong []apperr.FieldError
	flags.Visit(func(f *pflag.Flag) {
		i := slices.IndexFunc(list, func(one field) bool { return one.name == f.Name })
		if i < 0 {
			return
		}
		if given = true; !list[i].set(f.Value.String()) {
			wrong = append(wrong, apperr.FieldError{Field: f.Name, Message: "Must be " + f.Usage + "."})
		}
	})
	if len(wrong) > 0 {
		return false, apperr.Fields(wrong)
	}
	return given, nil
}

// newTenantFields are the settings of a new tenant.
func newTenantFields(p *domain.TenantPatch) fields {
	return append(fields{
		{"name", "name that customers see", value(&p.Name)},
		{"timezone", "IANA time zone, such as Europe/Berlin", value(&p.Timezone)},
		{"currency", "ISO 4217 currency code, such as EUR", value(&p.Currency)},
		{"country", "two-letter ISO 3166-1 country code", orNull(&p.Country)},
	}, integrationFields(p)...)
}

// integrationFields are the settings of the platform's own system.
func integrationFields(p *domain.TenantPatch) fields {
	return fields{
		{"external-id", "unique ID of the tenant in your own system, at most 200 characters; null is none", orNull(&p.ExternalID)},
		{"metadata", `JSON such as {"plan":"gold"}, at most 50 keys of 1 to 40 characters with values of at most 500 characters; null is none`, metadata(&p.Metadata)},
	}
}

// tenantFields are the settings of a tenant.
func tenantFields(p *domain.TenantPatch) fields {
	policy, invoicing := domain.DefaultPolicy(), domain.DefaultInvoicing()
	return append(fields{
		{"name", "name that customers see", value(&p.Name)},
		{"timezone", "IANA time zone", value(&p.Timezone)},
		{"currency", "ISO 4217 currency code", value(&p.Currency)},
		{"country", "two-letter ISO 3166-1 country code, or null", orNull(&p.Country)},
		{"auto-confirm", "true or false; null is false", boolean(&p.AutoConfirm, policy.AutoConfirm)},
		{"hold-ttl-minutes", "number of minutes that a pending booking holds its unit; null is no limit", number(&p.HoldTTLMinutes)},
		{"min-notice-minutes", "minimum notice of a booking in minutes; null is no minimum", number(&p.MinNoticeMinutes)},
		{"max-advance-days", "how many days in advance a booking can be made; null is no limit", number(&p.MaxAdvanceDays)},
		{"confirm-on-deposit", "true or false; null is true", boolean(&p.ConfirmOnDeposit, policy.ConfirmOnDeposit)},
		{
			"refund-rules", `JSON such as [{"hours_before":168,"percent":100},{"hours_before":24,"percent":50}], sorted by hours in descending order; null is no rules`,
			refundRules(&p.RefundRules),
		},
		{"auto-refund", "true or false: refund the amounts in the refund rules automatically; null is false", boolean(&p.AutoRefund, policy.AutoRefund)},
		{
			"refund-late-payments", "true or false: refund payments for cancelled or expired bookings automatically; null is false",
			boolean(&p.RefundLatePayments, policy.RefundLatePayments),
		},
		{"invoice-prefix", "prefix of invoice numbers: at most 20 letters, digits, hyphens and slashes; null is INV-", orDefault(&p.InvoicePrefix, invoicing.InvoicePrefix)},
		{"invoice-year", "true or false: add the year after the prefix; null is false", boolean(&p.InvoiceYear, invoicing.InvoiceYear)},
		{"legal-name", "name on invoices, at most 200 characters", orDefault(&p.LegalName, "")},
		{"address", "address on invoices, at most 500 characters", orDefault(&p.Address, "")},
		{"tax-id", "tax number on invoices, at most 50 characters", orDefault(&p.TaxID, "")},
		{"locale", "BCP 47 tag of the language of documents for customers without one, such as de; null is the language of the country", orNull(&p.Locale)},
		{"bank-account-holder", "holder of the bank account on invoices and quotes, at most 100 characters", orDefault(&p.BankAccountHolder, "")},
		{"bank-account-number", "IBAN, or another account number of at most 34 letters, digits, hyphens and slashes", orDefault(&p.BankAccountNumber, "")},
		{"bank-code", "BIC, or a number of 3 to 12 digits and hyphens that identifies the bank", orDefault(&p.BankCode, "")},
		{"bank-name", "name of the bank, at most 100 characters", orDefault(&p.BankName, "")},
		{"tax-behavior", "exclusive or inclusive: whether the prices of new quotes and invoices include taxes; null is exclusive", orDefault(&p.TaxBehavior, invoicing.TaxBehavior)},
		{
			"default-taxes", `JSON such as [{"name":"VAT","rate":"19"}], at most 3 different taxes with a name of 1 to 50 characters and ` +
				`a rate in percent from 0 to 100 with at most 4 decimals; null is none`, taxes(&p.DefaultTaxes),
		},
	}, integrationFields(p)...)
}

// value accepts any text.
func value(to *patch.Field[string]) func(string) bool {
	return func(text string) bool {
		*to = patch.Value(text)
		return true
	}
}

// orNull accepts any text. null is null.
func orNull(to *patch.Field[string]) func(string) bool {
	return func(text string) bool {
		if *to = patch.Value(text); text == "null" {
			*to = patch.Null[string]()
		}
		return true
	}
}

// orDefault accepts any text. null is the default.
func orDefault[T ~string](to *patch.Field[T], otherwise T) func(string) bool {
	return func(text string) bool {
		if *to = patch.Value(T(text)); text == "null" {
			*to = patch.Value(otherwise)
		}
		return true
	}
}

// boolean accepts true and false. null is the default.
func boolean(to *patch.Field[bool], otherwise bool) func(string) bool {
	return func(text string) bool {
		if *to = patch.Value(text == "true"); text == "null" {
			*to = patch.Value(otherwise)
		}
		return text == "true" || text == "false" || text == "null"
	}
}

// number accepts a number. null is null.
func number(to *patch.Field[int]) func(string) bool {
	return func(text string) bool {
		if text == "null" {
			*to = patch.Null[int]()
			return true
		}
		n, err := strconv.Atoi(text)
		*to = patch.Value(n)
		return err == nil
	}
}

// metadata accepts JSON within the bounds of the platform API.
func metadata(to *patch.Field[json.RawMessage]) func(string) bool {
	return func(text string) bool {
		spec, err := contract.LoadDirect(proto.Platform, service)
		if err != nil || !json.Valid([]byte(text)) {
			return false
		}
		op := spec.Operation("updateTenant")
		body, err := op.Parse([]byte(`{"metadata":` + text + `}`))
		if err != nil || op.ValidateBody(body, true) != nil {
			return false
		}
		var in platformapi.TenantUpdate
		err = op.Decode(body, &in)
		*to = patch.FromNullable(in.Metadata)
		return err == nil
	}
}

// refundRules accepts a JSON array of refund rules. null is no list.
func refundRules(to *patch.Field[[]domain.RefundRule]) func(string) bool {
	return func(text string) bool {
		var sent []struct {
			HoursBefore *int `json:"hours_before"`
			Percent     *int `json:"percent"`
		}
		if !decode(text, &sent) {
			return false
		}
		var rules []domain.RefundRule
		if sent != nil {
			rules = make([]domain.RefundRule, len(sent))
		}
		for i, r := range sent {
			if r.HoursBefore == nil || r.Percent == nil {
				return false
			}
			rules[i] = domain.RefundRule{HoursBefore: *r.HoursBefore, Percent: *r.Percent}
		}
		*to = patch.Value(rules)
		return true
	}
}

// taxes accepts a JSON array of taxes. null is none.
func taxes(to *patch.Field[[]money.Tax]) func(string) bool {
	return func(text string) bool {
		var sent []money.TaxInput
		if !decode(text, &sent) {
			return false
		}
		list, err := money.ParseTaxes("default_taxes", sent)
		*to = patch.Value(list)
		return err == nil
	}
}

// decode reads one JSON value without unknown fields.
func decode(text string, to any) bool {
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(to) == nil && !d.More()
}
