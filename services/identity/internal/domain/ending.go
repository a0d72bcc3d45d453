package domain

import "time"

// Ending is what is still to end of an operator that was disabled or erased, or that has proven its address.
type Ending struct {
	OperatorID OperatorID
	Reason     RevokeReason // why its grants end: Disabled or Proven
	Erase      bool         // its memberships and what is held of it as a person end too
	Actor      string
	Source     string
	NotedAt    time.Time // grants that were given until then end
}

// By says who has asked for it.
func (e Ending) By() Origin { return Origin{e.Actor, e.Source} }
