package domain

import "strings"

// QuoteStatus is the state of a quote.
type QuoteStatus string

// The states of a quote; all but draft and sent are final.
const (
	QuoteDraft     QuoteStatus = "draft"
	QuoteSent      QuoteStatus = "sent"
	QuoteAccepted  QuoteStatus = "accepted"
	QuoteDeclined  QuoteStatus = "declined"
	QuoteExpired   QuoteStatus = "expired"
	QuoteCancelled QuoteStatus = "cancelled"
)

// QuoteAction moves a quote from one state to another.
type QuoteAction string

// The actions on a quote. No client can expire one.
const (
	SendQuote    QuoteAction = "send"
	AcceptQuote  QuoteAction = "accept"
	DeclineQuote QuoteAction = "decline"
	ExpireQuote  QuoteAction = "expire"
	CancelQuote  QuoteAction = "cancel"
)

var quoteTransitions = map[QuoteStatus]map[QuoteAction]QuoteStatus{
	QuoteDraft:     {SendQuote: QuoteSent, CancelQuote: QuoteCancelled},
	QuoteSent:      {AcceptQuote: QuoteAccepted, DeclineQuote: QuoteDeclined, ExpireQuote: QuoteExpired, CancelQuote: QuoteCancelled},
	QuoteAccepted:  {},
	QuoteDeclined:  {},
	QuoteExpired:   {},
	QuoteCancelled: {},
}

// Next returns the state after the action, or an error if the state does not allow it.
func (s QuoteStatus) Next(a QuoteAction) (QuoteStatus, error) {
	if to, ok := quoteTransitions[s][a]; ok {
		return to, nil
	}
	return s, ErrTransition.WithMessage("A quote that is %s does not allow this. Possible actions: %s.", s, s.actions()).WithField("status")
}

// Final reports whether no action leads out of the state.
func (s QuoteStatus) Final() bool { return len(quoteTransitions[s]) == 0 }

// actions lists what a client can do in the state.
func (s QuoteStatus) actions() string {
	var out []string
	for _, a := range []QuoteAction{SendQuote, AcceptQuote, DeclineQuote, CancelQuote} {
		if _, ok := quoteTransitions[s][a]; ok {
			out = append(out, string(a))
		}
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}
