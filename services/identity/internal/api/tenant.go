package api

import (
	"github.com/gin-gonic/gin"
	"github.com/oapi-codegen/nullable"

	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/view"
)

// updateTenant changes the settings of the caller's tenant.
func (a *API) updateTenant(c *gin.Context, by asker) error {
	body, err := httpx.Body[internalapi.TenantPatch](c)
	if err != nil {
		return err
	}
	in, err := fromTenantPatch(body)
	if err != nil {
		return err
	}
	t, _, err := a.App.UpdateTenant(c.Request.Context(), by.origin(), by.Tenant, in)
	if err != nil {
		return err
	}
	return rest.Object(c, view.InternalTenant(t))
}

func fromTenantPatch(b internalapi.TenantPatch) (domain.TenantPatch, error) {
	taxes, err := fromTaxes(b.DefaultTaxes)
	return domain.TenantPatch{
		Name: patch.FromPointer(b.Name), Timezone: patch.FromPointer(b.Timezone), Currency: patch.FromPointer(b.Currency),
		Country: patch.FromNullable(b.Country), AutoConfirm: patch.FromPointer(b.AutoConfirm), ConfirmOnDeposit: patch.FromPointer(b.ConfirmOnDeposit),
		HoldTTLMinutes: patch.FromNullable(b.HoldTTLMinutes), MinNoticeMinutes: patch.FromNullable(b.MinNoticeMinutes),
		MaxAdvanceDays: patch.FromNullable(b.MaxAdvanceDays), RefundRules: fromRules(b.RefundRules),
		AutoRefund: patch.FromPointer(b.AutoRefund), RefundLatePayments: patch.FromPointer(b.RefundLatePayments),
		InvoicePrefix: patch.FromPointer(b.InvoicePrefix), LegalName: patch.FromPointer(b.LegalName), Address: patch.FromPointer(b.Address),
		TaxID: patch.FromPointer(b.TaxID), InvoiceYear: patch.FromPointer(b.InvoiceYear),
		TaxBehavior: patch.FromPointer((*domain.TaxBehavior)(b.TaxBehavior)), DefaultTaxes: taxes,
		Locale: patch.FromNullable(b.Locale), BankAccountHolder: patch.FromPointer(b.BankAccountHolder), BankAccountNumber: patch.FromPointer(b.BankAccountNumber),
		BankCode: patch.FromPointer(b.BankCode), BankName: patch.FromPointer(b.BankName),
	}, err
}

func fromTaxes(list *[]internalapi.TaxInput) (patch.Field[[]money.Tax], error) {
	if list == nil {
		return patch.Field[[]money.Tax]{}, nil
	}
	in := make([]money.TaxInput, len(*list))
	for i, tax := range *list {
		in[i] = money.TaxInput(tax)
	}
	taxes, err := money.ParseTaxes("default_taxes", in)
	return patch.Value(taxes), err
}

// fromRules converts refund rules. null sets no rules, and an empty list means that nothing is refunded.
func fromRules(sent nullable.Nullable[[]internalapi.RefundRule]) patch.Field[[]domain.RefundRule] {
	list, err := sent.Get()
	switch {
	case !sent.IsSpecified():
		return patch.Field[[]domain.RefundRule]{}
	case err != nil:
		return patch.Value[[]domain.RefundRule](nil)
	}
	rules := make([]domain.RefundRule, len(list))
	for i, r := range list {
		rules[i] = domain.RefundRule(r)
	}
	return patch.Value(rules)
}
