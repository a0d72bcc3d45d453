package domain

// InvoiceStatus is the state of an invoice.
type InvoiceStatus string

// The states of an invoice; void is final.
const (
	InvoiceDraft         InvoiceStatus = "draft"
	InvoiceOpen          InvoiceStatus = "open"
	InvoicePartiallyPaid InvoiceStatus = "partially_paid"
	InvoicePaid          InvoiceStatus = "paid"
	InvoiceUncollectible InvoiceStatus = "uncollectible"
	InvoiceVoid          InvoiceStatus = "void"
	InvoiceCredited      InvoiceStatus = "credited"
)

// InvoiceAction moves an invoice from one state to another.
type InvoiceAction string

// The actions on an invoice. A payment is named after what it pays: a part or all of the amount due. A reversal is named after what
// it reverses: a part or all of the paid amount, or, on an invoice with credit notes, what was paid in excess. A credit is named after
// what it leaves: a part of the total, nothing of the total, or a rest that is paid.
const (
	OpenInvoice       InvoiceAction = "open"
	OpenFreeInvoice   InvoiceAction = "open_nothing_due"
	PayPart           InvoiceAction = "pay_part"
	PayAll            InvoiceAction = "pay_all"
	ReversePart       InvoiceAction = "reverse_part"
	ReverseAll        InvoiceAction = "reverse_all"
	ReverseExcess     InvoiceAction = "reverse_excess"
	ReverseCredited   InvoiceAction = "reverse_credited"
	CreditPart        InvoiceAction = "credit_part"
	CreditAll         InvoiceAction = "credit_all"
	CreditRest        InvoiceAction = "credit_rest"
	MarkUncollectible InvoiceAction = "mark_uncollectible"
	VoidUnpaidInvoice InvoiceAction = "void"
)

var invoiceTransitions = map[InvoiceStatus]map[InvoiceAction]InvoiceStatus{
	InvoiceDraft: {OpenInvoice: InvoiceOpen, OpenFreeInvoice: InvoicePaid},
	InvoiceOpen: {
		PayPart: InvoicePartiallyPaid, PayAll: InvoicePaid, MarkUncollectible: InvoiceUncollectible, VoidUnpaidInvoice: InvoiceVoid,
		CreditPart: InvoiceOpen, CreditAll: InvoiceCredited,
	},
	InvoicePartiallyPaid: {
		PayPart: InvoicePartiallyPaid, PayAll: InvoicePaid, ReversePart: InvoicePartiallyPaid, ReverseAll: InvoiceOpen,
		MarkUncollectible: InvoiceUncollectible, CreditPart: InvoicePartiallyPaid, CreditAll: InvoiceCredited, CreditRest: InvoicePaid,
	},
	InvoicePaid: {
		ReversePart: InvoicePartiallyPaid, ReverseAll: InvoiceOpen, ReverseExcess: InvoicePaid, ReverseCredited: InvoiceCredited,
		CreditPart: InvoicePaid,
	},
	InvoiceUncollectible: {
		PayPart: InvoiceUncollectible, PayAll: InvoicePaid, ReversePart: InvoiceUncollectible, ReverseAll: InvoiceUncollectible, VoidUnpaidInvoice: InvoiceVoid,
		CreditPart: InvoiceUncollectible, CreditAll: InvoiceCredited, CreditRest: InvoicePaid,
	},
	InvoiceVoid: {},
	InvoiceCredited: {
		ReversePart: InvoicePartiallyPaid, ReverseAll: InvoiceOpen, ReverseExcess: InvoiceCredited, ReverseCredited: InvoiceCredited,
	},
}

// Next returns the state after the action. It returns false if the state does not allow the action.
func (s InvoiceStatus) Next(a InvoiceAction) (InvoiceStatus, bool) {
	to, ok := invoiceTransitions[s][a]
	return to, ok
}

// Awaits reports whether money of the booking is allocated to an invoice in this state.
func (s InvoiceStatus) Awaits() bool {
	return s == InvoiceOpen || s == InvoicePartiallyPaid || s == InvoiceUncollectible
}

// Owes reports whether an invoice in this state can be overdue.
func (s InvoiceStatus) Owes() bool { return s == InvoiceOpen || s == InvoicePartiallyPaid }

// move sets the state after the action, or returns an error if the state does not allow the requested action.
func (v *Invoice) move(a InvoiceAction, verb string) error {
	next, ok := v.Status.Next(a)
	if !ok {
		return ErrTransition.WithMessage("An invoice that is %s cannot be %s.", v.Status, verb).WithField("status")
	}
	v.Status = next
	return nil
}
