package main

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/patch"
	"holdfast.dev/proto"
	"holdfast.dev/proto/platformapi"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/view"
)

func tenantCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "tenant", Short: "Manage tenants."}
	cmd.AddCommand(tenantCreate(), tenantUpdate(), tenantLimits(), tenantShow(), tenantList(),
		tenantAction(domain.SuspendTenant, "Suspend a tenant: its credentials and operators are rejected, and its webhooks wait."),
		tenantAction(domain.ResumeTenant, "Resume a suspended tenant."),
		tenantAction(domain.CloseTenant, "Close a tenant: its data can be read until it is erased, 30 days later, and its webhooks wait."),
		tenantAction(domain.ReopenTenant, "Reopen a closing tenant whose erasure has not begun."))
	return cmd
}

func tenantCreate() *cobra.Command {
	var slug string
	cmd := withJSON(&cobra.Command{
		Use: "create", Short: "Create a tenant with the default booking policy.", Args: cobra.NoArgs,
		RunE: command(func(t tool, _ []string) error {
			in, err := fromFlags(t.cmd.Flags())
			if err != nil {
				return err
			}
			created, err := t.CreateTenant(t.cmd.Context(), t.by, slug, in)
			if err != nil {
				return err
			}
			return t.print(view.TenantForAdmin(created), tenantHead, tenantRow(created))
		}),
	})
	f := cmd.Flags()
	f.StringVar(&slug, "slug", "", "unique short name: lowercase letters, digits and hyphens")
	f.String("name", "", "name that customers see")
	f.String("timezone", "", "IANA time zone, such as Europe/Berlin")
	f.String("currency", "", "ISO 4217 currency code, such as EUR")
	f.String("country", "", "two-letter ISO 3166-1 country code")
	integrationFlags(f)
	return cmd
}

// integrationFlags adds the flags of the platform's own system.
func integrationFlags(f *pflag.FlagSet) {
	f.String("external-id", "", "unique ID of the tenant in your own system, at most 200 characters; null is none")
	f.String("metadata", "", `JSON such as {"plan":"gold"}, at most 50 keys of 1 to 40 characters with values of at most 500 characters; null is none`)
}

func tenantUpdate() *cobra.Command {
	cmd := withJSON(&cobra.Command{
		Use: "update TENANT", Short: "Update a tenant's settings and booking policy; null clears a setting, and an empty text clears a text on invoices.", Args: cobra.ExactArgs(1),
		RunE: command(func(t tool, args []string) error {
			in, err := fromFlags(t.cmd.Flags())
			if err != nil {
				return err
			}
			old, err := t.Tenant(t.cmd.Context(), args[0])
			if err != nil {
				return err
			}
			updated, published, err := t.UpdateTenant(t.cmd.Context(), t.by, old.ID, in)
			if err != nil {
				return err
			}
			t.late(published)
			return t.print(view.TenantForAdmin(updated), tenantHead, tenantRow(updated))
		}),
	})
	f := cmd.Flags()
	f.String("name", "", "name that customers see")
	f.String("timezone", "", "IANA time zone")
	f.String("currency", "", "ISO 4217 currency code")
	f.String("country", "", "two-letter ISO 3166-1 country code, or null")
	integrationFlags(f)
	f.String("auto-confirm", "", "true or false; null is false")
	f.String("hold-ttl-minutes", "", "number of minutes that a pending booking holds its unit; null is no limit")
	f.String("min-notice-minutes", "", "minimum notice of a booking in minutes; null is no minimum")
	f.String("max-advance-days", "", "how many days in advance a booking can be made; null is no limit")
	f.String("confirm-on-deposit", "", "true or false; null is true")
	f.String("refund-rules", "", `JSON such as [{"hours_before":168,"percent":100},{"hours_before":24,"percent":50}], sorted by hours in descending order; null is no rules`)
	f.String("auto-refund", "", "true or false: refund the amounts in the refund rules automatically; null is false")
	f.String("refund-late-payments", "", "true or false: refund payments for cancelled or expired bookings automatically; null is false")
	f.String("invoice-prefix", "", "prefix of invoice numbers: at most 20 letters, digits, hyphens and slashes; null is INV-")
	f.String("invoice-year", "", "true or false: add the year after the prefix; null is false")
	f.String("legal-name", "", "name on invoices, at most 200 characters")
	f.String("address", "", "address on invoices, at most 500 characters")
	f.String("tax-id", "", "tax number on invoices, at most 50 characters")
	f.String("locale", "", "BCP 47 tag of the language of documents for customers without one, such as de; null is the language of the country")
	f.String("bank-account-holder", "", "holder of the bank account on invoices and quotes, at most 100 characters")
	f.String("bank-account-number", "", "IBAN, or another account number of at most 34 letters, digits, hyphens and slashes")
	f.String("bank-code", "", "BIC, or a number of 3 to 12 digits and hyphens that identifies the bank")
	f.String("bank-name", "", "name of the bank, at most 100 characters")
	f.String("tax-behavior", "", "exclusive or inclusive: whether the prices of new quotes and invoices include taxes; null is exclusive")
	f.String("default-taxes", "", `JSON such as [{"name":"VAT","rate":"19"}], at most 3 different taxes with a name of 1 to 50 characters and a rate in percent from 0 to 100 with at most 4 decimals; null is none`)
	return cmd
}

func tenantAction(action domain.TenantAction, short string) *cobra.Command {
	var reason string
	cmd := withJSON(&cobra.Command{
		Use: string(action) + " TENANT", Short: short, Args: cobra.ExactArgs(1),
		RunE: command(func(t tool, args []string) error {
			found, err := t.Tenant(t.cmd.Context(), args[0])
			if err != nil {
				return err
			}
			changed, published, err := t.ActOnTenant(t.cmd.Context(), t.by, found.ID, action, reason)
			if err != nil {
				return err
			}
			t.late(published)
			return t.print(view.TenantForAdmin(changed), tenantHead, tenantRow(changed))
		}),
	})
	cmd.Flags().StringVar(&reason, "reason", "", "reason in at most 500 characters, which the tenant's operators can read")
	return cmd
}

func tenantShow() *cobra.Command {
	return withJSON(&cobra.Command{
		Use: "show TENANT", Short: "Show a tenant; --json shows all settings.", Args: cobra.ExactArgs(1),
		RunE: command(func(t tool, args []string) error {
			found, err := t.Tenant(t.cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return t.print(view.TenantForAdmin(found), tenantHead, tenantRow(found))
		}),
	})
}

func tenantList() *cobra.Command {
	return withJSON(&cobra.Command{
		Use: "list", Short: "List all tenants.", Args: cobra.NoArgs,
		RunE: command(func(t tool, _ []string) error {
			all, err := t.Tenants(t.cmd.Context())
			if err != nil {
				return err
			}
			out, rows := make([]view.AdminTenant, 0, len(all)), [][]string{tenantHead}
			for _, one := range all {
				out, rows = append(out, view.TenantForAdmin(one)), append(rows, tenantRow(one))
			}
			return t.print(out, rows...)
		}),
	})
}

var tenantHead = []string{"ID", "SLUG", "NAME", "TIMEZONE", "CURRENCY", "STATUS"}

func tenantRow(t domain.Tenant) []string {
	return []string{t.ID.String(), t.Slug, t.Name, t.Timezone, t.Currency, string(t.Status)}
}

// fromFlags reads the given flags.
func fromFlags(f *pflag.FlagSet) (domain.TenantPatch, error) {
	var p domain.TenantPatch
	var wrong []apperr.FieldError
	f.Visit(func(flag *pflag.Flag) {
		v, ok := flag.Value.String(), true
		switch flag.Name {
		case "name":
			p.Name = patch.Value(v)
		case "timezone":
			p.Timezone = patch.Value(v)
		case "currency":
			p.Currency = patch.Value(v)
		case "country":
			p.Country = orNull(v)
		case "external-id":
			p.ExternalID = orNull(v)
		case "metadata":
			p.Metadata, ok = metadata(v)
		default:
			ok = policyFlag(&p, flag.Name, v) && documentFlag(&p, flag.Name, v)
		}
		if !ok {
			wrong = append(wrong, apperr.FieldError{Field: flag.Name, Message: "Must be " + flag.Usage + "."})
		}
	})
	if len(wrong) > 0 {
		return p, apperr.Fields(wrong)
	}
	return p, nil
}

// policyFlag reads a flag of the booking policy. It returns false if its value is invalid.
func policyFlag(p *domain.TenantPatch, name, v string) (ok bool) {
	defaults := domain.DefaultPolicy()
	ok = true
	switch name {
	case "auto-confirm":
		p.AutoConfirm, ok = boolean(v, defaults.AutoConfirm)
	case "confirm-on-deposit":
		p.ConfirmOnDeposit, ok = boolean(v, defaults.ConfirmOnDeposit)
	case "hold-ttl-minutes":
		p.HoldTTLMinutes, ok = number(v)
	case "min-notice-minutes":
		p.MinNoticeMinutes, ok = number(v)
	case "max-advance-days":
		p.MaxAdvanceDays, ok = number(v)
	case "refund-rules":
		p.RefundRules, ok = rules(v)
	case "auto-refund":
		p.AutoRefund, ok = boolean(v, defaults.AutoRefund)
	case "refund-late-payments":
		p.RefundLatePayments, ok = boolean(v, defaults.RefundLatePayments)
	}
	return ok
}

// documentFlag reads a flag of documents. It returns false if its value is invalid.
func documentFlag(p *domain.TenantPatch, name, v string) (ok bool) {
	defaults := domain.DefaultInvoicing()
	ok = true
	switch name {
	case "invoice-prefix":
		p.InvoicePrefix = text(v, defaults.InvoicePrefix)
	case "invoice-year":
		p.InvoiceYear, ok = boolean(v, defaults.InvoiceYear)
	case "legal-name":
		p.LegalName = text(v, "")
	case "address":
		p.Address = text(v, "")
	case "tax-id":
		p.TaxID = text(v, "")
	case "locale":
		p.Locale = orNull(v)
	case "bank-account-holder":
		p.BankAccountHolder = text(v, "")
	case "bank-account-number":
		p.BankAccountNumber = text(v, "")
	case "bank-code":
		p.BankCode = text(v, "")
	case "bank-name":
		p.BankName = text(v, "")
	case "tax-behavior":
		p.TaxBehavior = behavior(v)
	case "default-taxes":
		p.DefaultTaxes, ok = taxes(v)
	}
	return ok
}

// orNull parses a text that can be null.
func orNull(s string) patch.Field[string] {
	if s == "null" {
		return patch.Null[string]()
	}
	return patch.Value(s)
}

// metadata parses metadata within the bounds of the platform API.
func metadata(s string) (patch.Field[json.RawMessage], bool) {
	none := patch.Field[json.RawMessage]{}
	spec, err := contract.LoadDirect(proto.Platform, name)
	if err != nil || !json.Valid([]byte(s)) {
		return none, false
	}
	op := spec.Operation("updateTenant")
	body, err := op.Parse([]byte(`{"metadata":` + s + `}`))
	if err != nil || op.ValidateBody(body, true) != nil {
		return none, false
	}
	var in platformapi.TenantUpdate
	if err := op.Decode(body, &in); err != nil {
		return none, false
	}
	return patch.FromNullable(in.Metadata), true
}

// rules parses a JSON array of refund rules. null means no list.
func rules(s string) (patch.Field[[]domain.RefundRule], bool) {
	var sent []struct {
		HoursBefore *int `json:"hours_before"`
		Percent     *int `json:"percent"`
	}
	d := json.NewDecoder(strings.NewReader(s))
	d.DisallowUnknownFields()
	if err := d.Decode(&sent); err != nil || d.More() {
		return patch.Field[[]domain.RefundRule]{}, false
	}
	if sent == nil {
		return patch.Value[[]domain.RefundRule](nil), true
	}
	out := make([]domain.RefundRule, len(sent))
	for i, r := range sent {
		if r.HoursBefore == nil || r.Percent == nil {
			return patch.Field[[]domain.RefundRule]{}, false
		}
		out[i] = domain.RefundRule{HoursBefore: *r.HoursBefore, Percent: *r.Percent}
	}
	return patch.Value(out), true
}

// behavior parses the behavior of prices, which is checked later. null means the default.
func behavior(s string) patch.Field[domain.TaxBehavior] {
	if s == "null" {
		return patch.Value(domain.DefaultInvoicing().TaxBehavior)
	}
	return patch.Value(domain.TaxBehavior(s))
}

// taxes parses a JSON array of taxes. null means none.
func taxes(s string) (patch.Field[[]money.Tax], bool) {
	var sent []money.TaxInput
	d := json.NewDecoder(strings.NewReader(s))
	d.DisallowUnknownFields()
	if err := d.Decode(&sent); err != nil || d.More() {
		return patch.Field[[]money.Tax]{}, false
	}
	list, err := money.ParseTaxes("default_taxes", sent)
	return patch.Value(list), err == nil
}

// boolean parses true or false. null means the default.
func boolean(s string, reset bool) (patch.Field[bool], bool) {
	switch s {
	case "true", "false":
		return patch.Value(s == "true"), true
	case "null":
		return patch.Value(reset), true
	default:
		return patch.Field[bool]{}, false
	}
}

// text parses a text. null means the default.
func text(s, reset string) patch.Field[string] {
	if s == "null" {
		return patch.Value(reset)
	}
	return patch.Value(s)
}

func number(s string) (patch.Field[int], bool) {
	if s == "null" {
		return patch.Null[int](), true
	}
	n, err := strconv.Atoi(s)
	return patch.Value(n), err == nil
}
