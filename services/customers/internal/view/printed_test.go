package view_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/money"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/view"
)

var (
	opened = time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC)
	later  = opened.AddDate(0, 0, 14)
)

// harbour is an operator in a country.
func harbour(country string) domain.Invoicing {
	return domain.Invoicing{Name: "Harbour", LegalName: "Harbour Boats", Address: "Pier 4\n10115 Berlin", TaxID: "DE123456789", Country: country}
}

// zoe is a customer with a locale in a country.
func zoe(locale, country string) *domain.Customer {
	c := &domain.Customer{
		FirstName: "Zoë", LastName: new("Weiß"), Email: "zoe@example.com", Company: new("Atelier"), TaxID: new("FR40303265045"),
		BillingAddress: &domain.Address{Line1: new("Rue de l’Église 5"), City: new("Paris"), PostalCode: new("75001"), Country: new("FR")},
	}
	if locale != "" {
		c.Locale = &locale
	}
	if country != "" {
		c.Country = &country
	}
	return c
}

func boat(t testing.TB, taxes ...money.Tax) ([]domain.Line, domain.Totals) {
	t.Helper()
	lines, totals, err := domain.Price([]domain.Line{{Description: "Boat", Quantity: 1200, UnitAmount: 123456, Taxes: taxes}}, domain.NoTerms("EUR"))
	if err != nil {
		t.Fatal(err)
	}
	return lines, totals
}

var vat = money.Tax{Name: "VAT", Rate: 190_000}

// invoice returns an opened invoice of a customer with payments.
func invoice(t testing.TB, c *domain.Customer, info domain.Invoicing, status domain.InvoiceStatus, payments ...domain.Payment) domain.Invoice {
	t.Helper()
	v := domain.Invoice{
		Status: status, Kind: domain.FullInvoice, Number: new("INV-000042"), CreatedAt: opened, OpenedAt: &opened, DueAt: &later,
		Billing: c.Billing(nil, info.Language(c.Locale)), Payments: payments, Notes: new("Thank you."),
	}
	v.Lines, v.Totals = boat(t, vat)
	v.Paid.Currency = "EUR"
	for _, p := range payments {
		if p.ReversedAt == nil {
			v.Paid.Minor += p.Amount.Minor
		}
	}
	return v
}

func paid(method string, minor int64) domain.Payment {
	return domain.Payment{Amount: money.Amount{Minor: minor, Currency: "EUR"}, Method: method, PaidAt: later}
}

func served(first, last int) *domain.Days {
	return &domain.Days{First: civil.Date{Year: 2030, Month: 7, Day: first}, Last: civil.Date{Year: 2030, Month: 7, Day: last}}
}

// printed returns the texts of a document with visible non-breaking spaces, and checks that no text is outside of its page.
func printed(t testing.TB, d view.Document) string {
	t.Helper()
	pdf := render(t, d)
	inside(t, pdf)
	return strings.ReplaceAll(textOf(t, pdf), "\u00a0", "_")
}

// inside checks that no text is outside of the margins of its page.
func inside(t testing.TB, pdf []byte) {
	t.Helper()
	width, height := mediaBox(t, pdf)
	for n, page := range pagesOfTexts(t, pdf) {
		for _, s := range page {
			if s.left < 17.9 || s.right > width-17 || s.y < 9 || s.y > height-17 {
				t.Errorf("page %d of %.0f × %.0f mm: %q from %.1f to %.1f at %.1f mm", n+1, width, height, s.text, s.left, s.right, s.y)
			}
		}
	}
}

// contains checks that texts occur in those of a document as whole lines, or broken at a space.
func contains(t testing.TB, got string, want ...string) {
	t.Helper()
	for _, text := range want {
		if pattern := "(?m)^" + strings.ReplaceAll(regexp.QuoteMeta(text), " ", "[ \n]") + "$"; !regexp.MustCompile(pattern).MatchString(got) {
			t.Errorf("%q is missing in:\n%s", text, got)
		}
	}
}

// TestDocumentsInEachLanguage checks the fixed texts, the dates and the amounts of every type of document in the language of its
// customer.
func TestDocumentsInEachLanguage(t *testing.T) {
	t.Parallel()
	type terms struct{ invoice, quote, note, common []string }
	for locale, want := range map[string]terms{
		"en-GB": {
			invoice: []string{
				"Invoice", "Due date", "15 May 2030", "Service date", "1_July_2030 – 8_July_2030", "Partially paid", "Paid on 15 May 2030 by card",
				"€1,000.00", "Amount due", "Invoice INV-000042", "Notes",
			},
			quote: []string{"Quote", "Valid until", "15_May_2030 13:00_BST", "Event date", "1 July 2030", "Deposit", "Sent", "Terms"},
			note:  []string{"Credit note", "For invoice", "INV-000042", "Invoice date", "Refund", "Reason"},
			common: []string{
				"To", "Date", "1 May 2030", "VAT ID: DE123456789", "VAT ID: FR40303265045", "75001 Paris", "France", "Zoë Weiß", "Description", "Quantity",
				"Unit price", "Discount", "Tax", "Amount", "1,200", "€1,234.56", "€1,481,472.00", "19%", "Subtotal", "19% VAT on €1,481,472.00", "Total", "Page 1 of 1",
			},
		},
		"de": {
			invoice: []string{
				"Rechnung", "Fällig am", "15.05.2030", "Leistungsdatum", "01.07.2030 – 08.07.2030", "Teilweise bezahlt", "Am 15.05.2030 mit Karte bezahlt",
				"1.000,00_€", "Offener Betrag", "Rechnung INV-000042", "Hinweise",
			},
			quote: []string{"Angebot", "Gültig bis", "15.05.2030 13:00_BST", "Termin", "01.07.2030", "Anzahlung", "Versendet", "Bedingungen"},
			note:  []string{"Rechnungskorrektur", "Zu Rechnung", "INV-000042", "Rechnungsdatum", "Erstattung", "Grund"},
			common: []string{
				"An", "Datum", "01.05.2030", "USt-IdNr.: DE123456789", "USt-IdNr.: FR40303265045", "75001 Paris", "Frankreich", "Zoë Weiß", "Beschreibung", "Menge",
				"Einzelpreis", "Rabatt", "Steuer", "Betrag", "1.200", "1.234,56_€", "1.481.472,00_€", "19_%", "Zwischensumme", "19_% VAT auf 1.481.472,00_€",
				"Gesamtbetrag", "Seite 1 von 1",
			},
		},
		"fr": {
			invoice: []string{
				"Facture", "Échéance", "15/05/2030", "Date de la prestation", "01/07/2030 – 08/07/2030", "Partiellement payée", "Payé le 15/05/2030 par carte",
				"1_000,00_€", "Reste à payer", "Facture INV-000042", "Remarques",
			},
			quote: []string{"Devis", "Valable jusqu’au", "15/05/2030 13:00_BST", "Date de l’événement", "01/07/2030", "Acompte", "Envoyé", "Conditions"},
			note:  []string{"Avoir", "Pour la facture", "INV-000042", "Date de la facture", "Remboursement", "Motif"},
			common: []string{
				"À", "Date", "01/05/2030", "N°_de TVA_: DE123456789", "N°_de TVA_: FR40303265045", "75001 Paris", "France", "Zoë Weiß", "Description", "Quantité",
				"Prix unitaire", "Remise", "Taxe", "Montant", "1_200", "1_234,56_€", "1_481_472,00_€", "19_%", "Sous-total", "19_% VAT sur 1_481_472,00_€", "Total",
				"Page 1 sur 1",
			},
		},
	} {
		info, c := harbour("DE"), zoe(locale, "FR")
		v := invoice(t, c, info, domain.InvoicePartiallyPaid, paid("card", 100_000))
		got := printed(t, view.PrintedInvoice(v, nil, info, london(t), served(1, 8)))
		contains(t, got, append(want.invoice, want.common...)...)
		ends := time.Date(2030, 5, 15, 12, 0, 0, 0, time.UTC)
		q := domain.Quote{
			Number: "Q-000001", Status: domain.QuoteSent, CreatedAt: opened, ExpiresAt: &ends, Terms: new("Free of charge."),
			QuoteEvent: domain.QuoteEvent{Day: &served(1, 1).First}, Deposit: money.Amount{Minor: 100, Currency: "EUR"}, Lines: v.Lines, Totals: v.Totals,
		}
		contains(t, printed(t, view.PrintedQuote(q, c, info, london(t))), append(want.quote, want.common...)...)
		n := domain.CreditNote{
			Number: "CN-000001", CreatedAt: opened, Refund: money.Amount{Minor: 100, Currency: "EUR"}, Lines: v.Lines, Totals: v.Totals, Reason: new("Rain."),
		}
		contains(t, printed(t, view.PrintedCreditNote(n, v, info, london(t))), append(want.note, want.common...)...)
	}
}

func london(t testing.TB) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation("Europe/London")
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// TestKindsAndStates checks that each kind and each state has a text in each language.
func TestKindsAndStates(t *testing.T) {
	t.Parallel()
	for _, locale := range domain.Languages {
		info, c := harbour(""), zoe(locale, "")
		titles := map[string]bool{}
		for _, kind := range []domain.InvoiceKind{domain.FullInvoice, domain.DepositInvoice, domain.BalanceInvoice} {
			v := invoice(t, c, info, domain.InvoiceOpen)
			v.Kind = kind
			titles[view.PrintedInvoice(v, nil, info, time.UTC, nil).Title] = true
		}
		states := map[string]bool{}
		for _, status := range []domain.InvoiceStatus{
			domain.InvoiceDraft, domain.InvoiceOpen, domain.InvoicePartiallyPaid, domain.InvoicePaid, domain.InvoiceUncollectible, domain.InvoiceVoid,
			domain.InvoiceCredited,
		} {
			states[view.PrintedInvoice(invoice(t, c, info, status), nil, info, time.UTC, nil).Facts[2].Value] = true
		}
		for _, status := range []domain.QuoteStatus{
			domain.QuoteDraft, domain.QuoteSent, domain.QuoteAccepted, domain.QuoteDeclined, domain.QuoteExpired, domain.QuoteCancelled,
		} {
			states["quote "+view.PrintedQuote(domain.Quote{Status: status}, c, info, time.UTC).Facts[1].Value] = true
		}
		for text := range states {
			if strings.Contains(text, "_") {
				t.Errorf("%s: no text of %q", locale, text)
			}
		}
		if len(titles) != 3 || len(states) != 13 {
			t.Errorf("%s: titles %v, states %v", locale, titles, states)
		}
	}
}

// TestPaymentsOnAnInvoice checks the status, the payments and what is due on an invoice that is unpaid, partly paid, paid, reversed or
// refunded, also by hand.
func TestPaymentsOnAnInvoice(t *testing.T) {
	t.Parallel()
	info, c := harbour("GB"), zoe("", "")
	_, totals := boat(t, vat)
	all, rest := totals.Total.Minor, totals.Total.Minor-2500
	reversed := paid("cash", 700)
	reversed.ReversedAt = &later
	refunded := paid("card", all)
	refunded.Part.Refunded = 1000
	for name, tc := range map[string]struct {
		status   domain.InvoiceStatus
		payments []domain.Payment
		returned domain.Returned
		want     []string // the rows after the total
	}{
		"unpaid":   {domain.InvoiceOpen, nil, domain.Returned{}, []string{"Amount due €1,762,951.68"}},
		"reversed": {domain.InvoiceOpen, []domain.Payment{reversed}, domain.Returned{}, []string{"Amount due €1,762,951.68"}},
		"partly":   {domain.InvoicePartiallyPaid, []domain.Payment{paid("cash", 2500)}, domain.Returned{}, []string{"Paid on 15 May 2030 in cash €25.00", "Amount due €1,762,926.68"}},
		"paid": {
			domain.InvoicePaid,
			[]domain.Payment{paid("bank_transfer", 2000), paid("other", 500), paid("card", rest)},
			domain.Returned{},
			[]string{
				"Paid on 15 May 2030 by bank transfer €20.00", "Paid on 15 May 2030 €5.00", "Paid on 15 May 2030 by card €1,762,926.68", "Amount due €0.00",
			},
		},
		"refunded":         {domain.InvoicePaid, []domain.Payment{refunded}, domain.Returned{}, []string{"Paid on 15 May 2030 by card €1,762,951.68", "Refunded €10.00", "Amount due €0.00"}},
		"refunded by hand": {domain.InvoicePaid, []domain.Payment{paid("cash", all)}, domain.Returned{All: 1500}, []string{"Credited €15.00", "Paid on 15 May 2030 in cash €1,762,951.68", "Refunded €15.00", "Amount due €0.00"}},
		"refunded in both ways": {
			domain.InvoicePaid,
			[]domain.Payment{refunded},
			domain.Returned{All: 2500, Card: 1000},
			[]string{"Credited €25.00", "Paid on 15 May 2030 by card €1,762,951.68", "Refunded €25.00", "Amount due €0.00"},
		},
	} {
		v := invoice(t, c, info, tc.status, tc.payments...)
		v.Returned, v.Credited = tc.returned, tc.returned.All
		d := view.PrintedInvoice(v, nil, info, time.UTC, nil)
		var got []string
		for _, row := range d.After {
			got = append(got, row.Name+" "+row.Value)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s:\n%q, want\n%q", name, got, tc.want)
		}
		contains(t, printed(t, d), tc.want[len(tc.want)-1][len("Amount due "):])
	}
	many := make([]domain.Payment, 300)
	for i := range many {
		many[i] = paid("other", 100)
	}
	d := view.PrintedInvoice(invoice(t, c, info, domain.InvoicePartiallyPaid, many...), nil, info, time.UTC, nil)
	if n := len(d.After); n != 22 || d.After[0] != (view.Fact{Name: "Paid earlier", Value: "€280.00"}) {
		t.Errorf("%d rows, %v", n, d.After)
	}
}

// TestPaper checks that a document is printed on the paper of its operator's country, or else of its customer's, else on A4.
func TestPaper(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		operator, customer string
		letter             bool
	}{
		{"US", "DE", true},
		{"CA", "", true},
		{"MX", "", true},
		{"DE", "US", false},
		{"GB", "", false},
		{"", "US", true},
		{"", "FR", false},
		{"", "", false},
	} {
		info := harbour(tc.operator)
		v := invoice(t, zoe("", tc.customer), info, domain.InvoiceOpen)
		for name, d := range map[string]view.Document{
			"invoice":     view.PrintedInvoice(v, nil, info, time.UTC, nil),
			"quote":       view.PrintedQuote(domain.Quote{Lines: v.Lines, Totals: v.Totals}, zoe("", tc.customer), info, time.UTC),
			"credit note": view.PrintedCreditNote(domain.CreditNote{Lines: v.Lines, Totals: v.Totals}, v, info, time.UTC),
		} {
			pdf := render(t, d)
			inside(t, pdf)
			if width, height := mediaBox(t, pdf); tc.letter != (width > 215.8 && width < 216 && height < 279.5) || !tc.letter && (width > 210.1 || height < 296.9) {
				t.Errorf("%s of %q for %q: %.1f × %.1f mm", name, tc.operator, tc.customer, width, height)
			}
		}
	}
}

// TestReverseCharge checks that a document says so if the customer owes the tax of one of its lines.
func TestReverseCharge(t *testing.T) {
	t.Parallel()
	sentences := map[string]string{
		"en": "Reverse charge: the recipient of the service must account for the VAT.",
		"de": "Steuerschuldnerschaft des Leistungsempfängers (Reverse Charge).",
		"fr": "Autoliquidation_: la TVA est due par le preneur.",
	}
	for _, tc := range []struct {
		name string
		rate money.Rate
		want bool
	}{
		{"Reverse charge", 0, true},
		{"EU VAT (REVERSE-CHARGE)", 0, true},
		{"Steuerschuldnerschaft des Leistungsempfängers", 0, true},
		{"STEUERSCHULDNERSCHAFT DES LEISTUNGSEMPFA\u0308NGERS § 13b", 0, true},
		{"TVA, Autoliquidation", 0, true},
		{"Auto-liquidation", 0, true},
		{"Reverse charge", 190_000, false},
		{"Zero-rated", 0, false},
		{"Charge reversed", 0, false},
	} {
		for locale, sentence := range sentences {
			info, c := harbour(""), zoe(locale, "")
			v := invoice(t, c, info, domain.InvoiceOpen)
			v.Lines, v.Totals = boat(t, money.Tax{Name: tc.name, Rate: tc.rate})
			for kind, d := range map[string]view.Document{
				"invoice":     view.PrintedInvoice(v, nil, info, time.UTC, nil),
				"quote":       view.PrintedQuote(domain.Quote{Lines: v.Lines, Totals: v.Totals}, c, info, time.UTC),
				"credit note": view.PrintedCreditNote(domain.CreditNote{Lines: v.Lines, Totals: v.Totals}, v, info, time.UTC),
			} {
				if got := strings.Contains(printed(t, d), sentence); got != tc.want {
					t.Errorf("%s, %s, %q: printed %v", kind, locale, tc.name, got)
				}
			}
		}
	}
}

// TestBankDetails checks that invoices and quotes print the operator's bank account in the language of the document, and credit notes do not.
func TestBankDetails(t *testing.T) {
	t.Parallel()
	german := domain.BankAccount{Holder: "Hafen GmbH", Number: "DE89370400440532013000", Code: "COBADEFFXXX", Name: "Commerzbank"}
	for _, tc := range []struct {
		locale string
		bank   domain.BankAccount
		want   []string
	}{
		{"en", german, []string{"Bank details", "Account holder: Hafen GmbH", "IBAN: DE89_3704_0044_0532_0130_00", "BIC: COBADEFFXXX", "Bank: Commerzbank"}},
		{"de", german, []string{"Bankverbindung", "Kontoinhaber: Hafen GmbH", "IBAN: DE89_3704_0044_0532_0130_00", "BIC: COBADEFFXXX", "Bank: Commerzbank"}},
		{"fr", german, []string{"Coordonnées bancaires", "Titulaire du compte_: Hafen GmbH", "IBAN_: DE89_3704_0044_0532_0130_00", "BIC_: COBADEFFXXX", "Banque_: Commerzbank"}},
		{"en", domain.BankAccount{Number: "12345678", Code: "20-00-00"}, []string{"Bank details", "Account number: 12345678", "Bank code: 20-00-00"}},
		{"en", domain.BankAccount{}, nil},
	} {
		info, c := harbour(""), zoe(tc.locale, "")
		info.Bank = tc.bank
		v := invoice(t, c, info, domain.InvoiceOpen)
		for kind, d := range map[string]view.Document{
			"invoice": view.PrintedInvoice(v, nil, info, time.UTC, nil),
			"quote":   view.PrintedQuote(domain.Quote{Lines: v.Lines, Totals: v.Totals}, c, info, time.UTC),
		} {
			got := printed(t, d)
			contains(t, got, tc.want...)
			if tc.want == nil && strings.Contains(got, "Bank") {
				t.Errorf("%s: an empty account is printed", kind)
			}
		}
		if got := printed(t, view.PrintedCreditNote(domain.CreditNote{Lines: v.Lines, Totals: v.Totals}, v, info, time.UTC)); strings.Contains(got, "IBAN") {
			t.Error("a credit note prints the account")
		}
	}
}

// TestLargestDocumentOnBothPapers checks that the largest texts of every type of document stay inside their pages.
func TestLargestDocumentOnBothPapers(t *testing.T) {
	t.Parallel()
	wide := strings.Repeat("Wÿ", 100)
	lines := make([]domain.Line, 100)
	for i := range lines {
		lines[i] = domain.Line{
			Description: strings.Repeat(fmt.Sprintf("%d_Wide\u00a0word ", i), 30), Quantity: 10_000, UnitAmount: 40_000, DiscountBps: 1,
			Taxes: []money.Tax{{Name: wide[:50], Rate: money.Rate(999_000 + i)}, {Name: wide[50:98], Rate: money.Rate(i)}, {Name: "x", Rate: 123_456}},
		}
	}
	lines, totals, err := domain.Price(lines, domain.NoTerms("KWD"))
	if err != nil {
		t.Fatal(err)
	}
	for _, country := range []string{"US", "DE", "FR", "CH"} {
		info := domain.Invoicing{LegalName: wide, Address: strings.Repeat(wide+"\n", 2), TaxID: wide[:50], Country: country}
		info.Bank = domain.BankAccount{Holder: wide[:100], Number: strings.Repeat("W", 34), Code: "COBADEFFXXX", Name: wide[:100]}
		c := &domain.Customer{
			FirstName: wide, LastName: new(wide), Company: new(wide), Email: wide, TaxID: new(wide[:100]),
			BillingAddress: &domain.Address{Line1: new(wide), Line2: new(wide), City: new(wide), State: new(wide), PostalCode: new(wide[:20]), Country: new("GS")},
		}
		v := invoice(t, c, info, domain.InvoicePartiallyPaid, paid("bank_transfer", 1))
		v.Lines, v.Totals, v.Notes, v.Number = lines, totals, new(strings.Repeat(wide, 50)), new(wide[:60])
		q := domain.Quote{Number: wide[:60], Lines: lines, Totals: totals, Terms: v.Notes, ExpiresAt: &later}
		n := domain.CreditNote{Number: wide[:60], Lines: lines, Totals: totals, Reason: v.Notes}
		for _, d := range []view.Document{
			view.PrintedInvoice(v, nil, info, time.UTC, served(1, 31)), view.PrintedQuote(q, c, info, time.UTC), view.PrintedCreditNote(n, v, info, time.UTC),
		} {
			pdf := render(t, d)
			inside(t, pdf)
			if n := pagesOf(pdf); n < 10 || n > view.MaxPages {
				t.Errorf("%s: %d pages", country, n)
			}
		}
	}
}
