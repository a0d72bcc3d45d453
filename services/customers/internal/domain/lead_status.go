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

// LeadAction moves a lead from one state to another.
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

// Next returns the state after the action. It returns false if the state does not allow the action.
func (s LeadStatus) Next(a LeadAction) (LeadStatus, bool) {
	to, ok := leadTransitions[s][a]
	return to, ok
}

// Final reports whether no action leads out of the state.
func (s LeadStatus) Final() bool { return len(leadTransitions[s]) == 0 }

// leadActionFor maps a new value of the field status to the action that reaches it. Only convert reaches LeadConverted, and no
// action reaches LeadNew.
var leadActionFor = map[LeadStatus]LeadAction{
	LeadContacted: ContactLead, LeadQualified: QualifyLead, LeadQuoted: QuoteLead, LeadLost: LoseLead,
}
