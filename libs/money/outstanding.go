package money

// Outstanding contains the sums that decide what is still to be paid for something that is sold at one price, in the minor units of
// one currency. Its invoices are those that are open or were paid: no drafts, and none that are void.
type Outstanding struct {
	Gross    int64 // the price, including taxes
	Invoiced int64 // the totals of its invoices
	Dues     int64 // what is due on its invoices
	Placed   int64 // the payments on its invoices, including those that were returned later
	Received int64 // all payments, including those that were returned later
	Returned int64 // what was returned of them
}

// Due returns what is still to be paid, which is never negative: the part of the price that was not invoiced, less money on no invoice,
// plus what is due on the invoices. Money on no invoice first covers what is due on the invoices, unless it was returned: it is about to
// be placed there. A return alone never makes money due again. Only a credit note does, through Dues.
func (o Outstanding) Due() int64 {
	free := o.Received - o.Placed
	placing := max(0, min(free-o.Returned, o.Dues))
	return max(0, o.Gross-o.Invoiced-(free-placing)) + o.Dues - placing
}
