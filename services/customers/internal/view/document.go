package view

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"holdfast.dev/services/customers/internal/domain"
)

// Document is an invoice, a quote or a credit note as it is printed. Texts can contain line breaks. Empty ones are left out.
type Document struct {
	Language Language
	Letter   bool // US Letter paper instead of A4
	Logo     domain.Logo
	Title    string // such as "Invoice"
	Number   string
	Issued   time.Time
	Facts    []Fact // next to the recipient, such as the due date
	From     []string
	To       []string
	Lines    []domain.Line
	Currency string
	Totals   domain.Totals
	After    []Fact // after the total, such as the amount due
	Texts    []Fact // below the table, such as notes; a name can be empty
}

// Fact is a name and its value.
type Fact struct{ Name, Value string }

// letterCountries contains the countries whose paper size is US Letter.
var letterCountries = map[string]bool{"US": true, "CA": true, "MX": true}

// newDocument returns a document of an operator for a recipient, in their language. The paper is that of the operator's country, because
// the operator prints it, or else that of the recipient's.
func newDocument(operator domain.Invoicing, recipient *domain.Billing, lines []domain.Line, totals domain.Totals) Document {
	if recipient == nil {
		recipient = &domain.Billing{}
	}
	l := NewLanguage(operator.Language(recipient.Locale))
	name := operator.LegalName
	if name == "" {
		name = operator.Name
	}
	country := operator.Country
	if country == "" {
		country = text(recipient.Country)
	}
	d := Document{
		Language: l, Letter: letterCountries[country], Lines: lines, Currency: totals.Total.Currency, Totals: totals,
		From: []string{name, operator.Address, l.taxID(operator.TaxID)},
		To: []string{
			recipient.Name, text(recipient.Company), text(recipient.Address), text(recipient.Email), l.taxID(text(recipient.TaxID)),
		},
	}
	if domain.ReverseCharged(lines) {
		d.Texts = append(d.Texts, Fact{Value: l.texts.T("reverse_charge")})
	}
	return d
}

// fact adds a fact with a value, named by the id of its text.
func (d *Document) fact(id, value string) {
	d.Facts = append(d.Facts, Fact{d.Language.texts.T(id), value})
}

// after adds a row after the total.
func (d *Document) after(id, value string, pairs ...any) {
	d.After = append(d.After, Fact{d.Language.texts.T(id, pairs...), value})
}

// text adds a text of the operator, unless it is nil.
func (d *Document) text(id string, value *string) {
	if value != nil {
		d.Texts = append(d.Texts, Fact{d.Language.texts.T(id), *value})
	}
}

// bank adds the bank account of the operator, if it has one.
func (d *Document) bank(b domain.BankAccount) {
	number, code := "account_number", "bank_code"
	if ibanStart.MatchString(b.Number) {
		number = "iban"
	}
	if bicForm.MatchString(b.Code) {
		code = "bic"
	}
	var lines []string
	for _, part := range []Fact{{"account_holder", b.Holder}, {number, grouped(b.Number, number == "iban")}, {code, b.Code}, {"bank", b.Name}} {
		if part.Value != "" {
			lines = append(lines, d.Language.texts.T(part.Name, "Value", part.Value))
		}
	}
	if len(lines) > 0 {
		d.Texts = append(d.Texts, Fact{d.Language.texts.T("bank_account"), strings.Join(lines, "\n")})
	}
}

var (
	ibanStart = regexp.MustCompile(`^[A-Z]{2}[0-9]{2}`)
	bicForm   = regexp.MustCompile(`^[A-Z]{6}`)
)

// grouped returns an IBAN in groups of four characters, and any other number as it is.
func grouped(number string, iban bool) string {
	if !iban {
		return number
	}
	var groups []string
	for group := range slices.Chunk([]rune(number), 4) {
		groups = append(groups, string(group))
	}
	return strings.Join(groups, nbsp)
}

// taxID returns a tax ID with its name, or "" for none.
func (l Language) taxID(id string) string {
	switch {
	case id == "":
		return ""
	case domain.IsVATNumber(id):
		return l.texts.T("vat_id", "ID", id)
	default:
		return l.texts.T("tax_id", "ID", id)
	}
}
