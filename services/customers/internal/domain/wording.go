package domain

import "holdfast.dev/libs/civil"

// Wording contains the descriptions of the lines that the platform writes, in the language of a document.
type Wording interface {
	DepositLine(quote string) string
	BookingLine(booking string) string
	CreditLine(invoice string) string
	// DeductionLine names an earlier invoice and the day on which it was opened.
	DeductionLine(invoice string, opened civil.Date) string
}
