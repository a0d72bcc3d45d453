package domain

import "time"

// DifferenceKind is in what the gateway and this platform differ.
type DifferenceKind string

// The kinds of differences; "" is none.
const (
	DifferentIntent  DifferenceKind = "intent"  // the state or an amount of an intent
	DifferentRefund  DifferenceKind = "refund"  // the state of a refund
	DifferentDispute DifferenceKind = "dispute" // the state of a dispute
	DifferentLedger  DifferenceKind = "ledger"  // a movement that is not written
	DifferentUnknown DifferenceKind = "unknown" // the gateway has what no row here is of
)

// DifferenceKinds are all of them.
var DifferenceKinds = []DifferenceKind{DifferentIntent, DifferentRefund, DifferentDispute, DifferentLedger, DifferentUnknown}

// Stage is what of an account is compared, one after the other.
type Stage string

// The stages of a comparison.
const (
	StageIntents  Stage = "intents"
	StageRefunds  Stage = "refunds"
	StageDisputes Stage = "disputes"
)

const (
	compared         = 3 * 24 * time.Hour   // the age of the intents and refunds that are compared
	comparedDisputes = 120 * 24 * time.Hour // of disputes, which last for months
)

// Since is the creation of the oldest object that a stage of a run compares.
func (s Stage) Since(started time.Time) time.Time {
	if s == StageDisputes {
		return started.Add(-comparedDisputes)
	}
	return started.Add(-compared)
}

// Next is the stage that follows; "" when the run has ended.
func (s Stage) Next() Stage {
	switch s {
	case StageIntents:
		return StageRefunds
	case StageRefunds:
		return StageDisputes
	default:
		return ""
	}
}

// Listed is an object of the gateway as a list tells it. Two are equal where the gateway tells the same.
type Listed struct {
	ID                 string // pi_…, re_… or dp_…
	Intent             GatewayID
	Tenant             string // of its metadata: whose it is; "" when no tenant's of this platform
	Row                string // our id of the intent or the allocation, from its metadata
	Status             string
	Received, Refunded int64
	FailedCharge       string
	Movements          string // txn_…, separated by commas
}

// ListPage is a page of a list.
type ListPage struct {
	Items []Listed
	Last  string // the id behind which the next page begins; "" when the page is empty
	More  bool
}

// Known is what is known here of a listed object.
type Known struct {
	Intent           Intent // by the gateway's id; zero when there is none
	RowStatus        Status // of the intent by the id of its row; "" when there is none
	PartStatus       RefundStatus
	PartGatewayID    string
	DisputeStatus    DisputeStatus
	MissingMovements int
	Due              bool // an event says that the intent is about to be read
	Elsewhere        bool // the intent is of another connection to the same account, which compares it
}

// Compare tells in what a listed object differs from what is known; "" where it does not, or where it is not of the tenant, or where
// a worker will read it soon.
func (s Stage) Compare(l Listed, k Known, tenant string) DifferenceKind {
	own := l.Tenant == tenant && l.Row != ""
	var kind DifferenceKind
	switch {
	case k.Due, k.Elsewhere:
		return ""
	case s == StageIntents && own:
		kind = compareIntent(l, k)
	case s == StageRefunds && own:
		kind = compareRefund(l, k)
	case s == StageDisputes && !k.Intent.ID.IsZero() && k.DisputeStatus != DisputeStatus(l.Status):
		kind = DifferentDispute
	}
	if kind == "" && !k.Intent.ID.IsZero() && k.MissingMovements > 0 {
		return DifferentLedger
	}
	return kind
}

func compareIntent(l Listed, k Known) DifferenceKind {
	p := k.Intent
	switch {
	case p.ID.IsZero() && k.RowStatus == Creating: // the completer asks for it
		return ""
	case p.ID.IsZero() && k.RowStatus == Refused:
		return DifferentIntent
	case p.ID.IsZero():
		return DifferentUnknown
	case string(p.Status) != l.Status, p.Received != l.Received, p.Refunded != l.Refunded, l.FailedCharge != "" && l.FailedCharge != p.FailedCharge:
		return DifferentIntent
	default:
		return ""
	}
}

func compareRefund(l Listed, k Known) DifferenceKind {
	switch {
	case k.PartStatus == RefundCreating: // the completer asks for it
		return ""
	case k.PartStatus == "" || k.PartGatewayID != "" && k.PartGatewayID != l.ID:
		return DifferentUnknown
	case string(k.PartStatus) != l.Status:
		return DifferentRefund
	default:
		return ""
	}
}

// Reconciliation is how far the comparison of an account has come.
type Reconciliation struct {
	AccountID AccountID
	Tries     int
	Stage     Stage
	Cursor    string
	StartedAt *time.Time
}
