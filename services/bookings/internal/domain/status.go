package domain

import "time"

// Status is the state of a booking.
type Status string

// The states of a booking. Cancelled and Expired are final.
const (
	Pending   Status = "pending"
	Confirmed Status = "confirmed"
	Expired   Status = "expired"
	Cancelled Status = "cancelled"
	Completed Status = "completed"
	NoShow    Status = "no_show"
)

// Action moves a booking from one state to another.
type Action string

// The actions on a booking. No client can expire one.
const (
	Confirm    Action = "confirm"
	Cancel     Action = "cancel"
	Expire     Action = "expire"
	Complete   Action = "complete"
	MarkNoShow Action = "mark_no_show"
)

var transitions = map[Status]map[Action]Status{
	Pending:   {Confirm: Confirmed, Expire: Expired, Cancel: Cancelled},
	Confirmed: {Complete: Completed, MarkNoShow: NoShow, Cancel: Cancelled},
	Completed: {MarkNoShow: NoShow},
	NoShow:    {Complete: Completed},
	Cancelled: {},
	Expired:   {},
}

// Next returns the state after the action. It returns false if the state does not allow the action.
func (s Status) Next(a Action) (Status, bool) {
	to, ok := transitions[s][a]
	return to, ok
}

// Final reports whether no action leads out of the state.
func (s Status) Final() bool { return len(transitions[s]) == 0 }

// Holds reports whether a booking in this state blocks its unit for others.
func (s Status) Holds() bool { return s == Pending || s == Confirmed }

// actionFor maps a state to the action by which a client reaches it. Expired and Pending have none.
var actionFor = map[Status]Action{Confirmed: Confirm, Cancelled: Cancel, Completed: Complete, NoShow: MarkNoShow}

// correctionPeriod is the time after its end in which a booking can still change between completed and no_show.
const correctionPeriod = 7 * 24 * time.Hour
