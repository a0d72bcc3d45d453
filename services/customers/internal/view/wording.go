package view

import "holdfast.dev/libs/civil"

// DepositLine implements domain.Wording.
func (l Language) DepositLine(quote string) string { return l.texts.T("line_deposit", "Quote", quote) }

// BookingLine implements domain.Wording.
func (l Language) BookingLine(booking string) string {
	return l.texts.T("line_booking", "Booking", booking)
}

// CreditLine implements domain.Wording.
func (l Language) CreditLine(invoice string) string {
	return l.texts.T("line_credit", "Invoice", invoice)
}

// DeductionLine implements domain.Wording.
func (l Language) DeductionLine(invoice string, opened civil.Date) string {
	return l.texts.T("line_deduction", "Invoice", invoice, "Date", l.Date(opened))
}
