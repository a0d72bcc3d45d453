package domain

// LeadStatus is the state of a lead.
type LeadStatus string

// The states of a lead; LeadConverted is final.
const (
	LeadNew       LeadStatus = "new"
	LeadContacted LeadStatus = "contacted"
	LeadQualified LeadStatus = "qualified"
	LeadQuoted    LeadStatus = "quoted"
	LeadConverted LeadStatus = "converted"
	LeadLost      LeadStatus = "lost"
)

// LeadAction is what moves a lead from one state to another.
type LeadAction string

// The actions on a lead.
const (
	ContactLead LeadAction = "contact"
	QualifyLead LeadAction = "qualify"
	QuoteLead   LeadAction = "quote"
	ConvertLead LeadAction = "convert"
	LoseLead    LeadAction = "lose"
)

var leadTransitions = map[LeadStatus]map[LeadAction]LeadStatus{
	LeadNew: {
		ContactLead: LeadContacted, QualifyLead: LeadQualified, QuoteLead: LeadQuoted, ConvertLead: LeadConverted, LoseLead: LeadLost,
	},
	LeadContacted: {QualifyLead: LeadQualified, QuoteLead: LeadQuoted, ConvertLead: LeadConverted, LoseLead: LeadLost},
	LeadQualified: {QuoteLead: LeadQuoted, ConvertLead: LeadConverted, LoseLead: LeadLost},
	LeadQuoted:    {ConvertLead: LeadConverted, LoseLead: LeadLost},
	LeadLost:      {ContactLead: LeadContacted},
	LeadConverted: {},
}

// Next returns the state after the action; false when the state does not allow it.
func (s LeadStatus) Next(a LeadAction) (LeadStatus, bool) {
	to, ok := leadTransitions[s][a]
	return to, ok
}

// Final reports whether no action leads out of the state.
func (s LeadStatus) Final() bool { return len(leadTransitions[s]) == 0 }

// leadActionFor is the action by which a change of the field status reaches a state. Only convert reaches LeadConverted, and
// LeadNew is never reached again.
var leadActionFor = map[LeadStatus]LeadAction{
	LeadContacted: ContactLead, LeadQualified: QualifyLead, LeadQuoted: QuoteLead, LeadLost: LoseLead,
}
