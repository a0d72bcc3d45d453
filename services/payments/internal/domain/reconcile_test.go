package domain_test

import (
	"testing"
	"time"

	"holdfast.dev/libs/ids"

	"holdfast.dev/services/payments/internal/domain"
)

// TestStagesOfARun checks that a run goes through all stages if open objects were last compared a day ago, and otherwise through
// the first four.
func TestStagesOfARun(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	before := func(d time.Duration) *time.Time {
		at := now.Add(-d)
		return &at
	}
	for name, c := range map[string]struct {
		opened *time.Time
		stages int
	}{
		"never before": {nil, 7}, "a day ago": {before(24 * time.Hour), 7}, "almost a day ago": {before(24*time.Hour - time.Second), 4},
	} {
		r, n := domain.Reconciliation{Stage: domain.FirstStage, StartedAt: &now, OpenedAt: c.opened, Cursor: "x"}, 0
		for ; r.Stage != "" && n < 10; n++ {
			r = r.Advance()
			if r.Stage != "" && (r.OpenedAt != c.opened || r.Cursor != "" || r.EventsUntil != &now) {
				t.Errorf("%s: %+v before the end", name, r)
			}
		}
		if opened := r.OpenedAt == &now; n != c.stages || opened != (c.stages == 7) {
			t.Errorf("%s: %d stages, opened at %v", name, n, r.OpenedAt)
		}
	}
	r := domain.Reconciliation{Stage: domain.StageIntents, StartedAt: &now}
	if r = r.Advance(); r.EventsUntil != nil {
		t.Errorf("events until %v after intents", r.EventsUntil)
	}
}

// TestSinceOfAStage checks that events are listed from those that were read before, with an overlap, but not beyond what the
// gateway stores.
func TestSinceOfAStage(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	now := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	hour, month := now.Add(-time.Hour), now.Add(-31*day)
	for _, c := range []struct {
		stage domain.Stage
		until *time.Time
		want  time.Duration
	}{
		{domain.StageEvents, nil, 29 * day},
		{domain.StageEvents, &month, 29 * day},
		{domain.StageEvents, &hour, time.Hour + 10*time.Minute},
		{domain.StageIntents, &hour, 3 * day},
		{domain.StageRefunds, &hour, 3 * day},
		{domain.StageDisputes, &hour, 120 * day},
		{domain.StageOpenDisputes, &hour, 120 * day},
	} {
		r := domain.Reconciliation{Stage: c.stage, StartedAt: &now, EventsUntil: c.until}
		if got := now.Sub(r.Since()); got != c.want {
			t.Errorf("%s since %v: %v, want %v", c.stage, c.until, got, c.want)
		}
	}
}

func TestEventsStateOfARun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		before       domain.EventsState
		signed       bool
		seen, missed int
		want         domain.EventsState
	}{
		{domain.EventsOK, false, 1, 1, domain.EventsMissing},
		{domain.EventsMissing, true, 0, 1, domain.EventsOK},
		{domain.EventsOK, true, 1, 1, domain.EventsLate},
		{domain.EventsLate, true, 1, 0, domain.EventsOK},
		{domain.EventsLate, true, 0, 0, domain.EventsLate},
		{domain.EventsOK, true, 0, 0, domain.EventsOK},
	} {
		r := domain.Reconciliation{EventsSeen: c.seen, EventsMissed: c.missed}
		if got := r.Events(c.before, c.signed); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	own := domain.Listed{ID: "x_1", Intent: "pi_1", Tenant: "mine", Row: "row", Status: "succeeded", Received: 5, Refunded: 3}
	with := func(change func(*domain.Listed)) domain.Listed {
		l := own
		change(&l)
		return l
	}
	foreign := with(func(l *domain.Listed) { l.Tenant = "other" })
	unnamed := with(func(l *domain.Listed) { l.Row = "" })
	p := domain.Intent{ID: ids.New[domain.IntentPrefix](), Status: domain.Succeeded, Received: 5, Refunded: 3, FailedCharge: "ch_1"}
	for name, c := range map[string]struct {
		stage  domain.Stage
		listed domain.Listed
		known  domain.Known
		want   domain.DifferenceKind
	}{
		"intent: the same":               {domain.StageIntents, own, domain.Known{Intent: p}, ""},
		"intent: of another tenant":      {domain.StageIntents, foreign, domain.Known{}, ""},
		"intent: without a row":          {domain.StageIntents, unnamed, domain.Known{}, ""},
		"intent: unknown":                {domain.StageIntents, own, domain.Known{}, domain.DifferentUnknown},
		"intent: being created":          {domain.StageIntents, own, domain.Known{RowStatus: domain.Creating}, ""},
		"intent: refused":                {domain.StageIntents, own, domain.Known{RowStatus: domain.Refused}, domain.DifferentIntent},
		"intent: soon read":              {domain.StageIntents, with(func(l *domain.Listed) { l.Received = 6 }), domain.Known{Intent: p, Due: true}, ""},
		"intent: unknown, has events":    {domain.StageIntents, own, domain.Known{Due: true}, domain.DifferentUnknown},
		"intent: refused, has events":    {domain.StageIntents, own, domain.Known{RowStatus: domain.Refused, Due: true}, domain.DifferentIntent},
		"intent: elsewhere":              {domain.StageIntents, own, domain.Known{Elsewhere: true}, ""},
		"intent: another state":          {domain.StageIntents, with(func(l *domain.Listed) { l.Status = "canceled" }), domain.Known{Intent: p}, domain.DifferentIntent},
		"intent: more received":          {domain.StageIntents, with(func(l *domain.Listed) { l.Received = 6 }), domain.Known{Intent: p}, domain.DifferentIntent},
		"intent: more refunded":          {domain.StageIntents, with(func(l *domain.Listed) { l.Refunded = 4 }), domain.Known{Intent: p}, domain.DifferentIntent},
		"intent: the same failed charge": {domain.StageIntents, with(func(l *domain.Listed) { l.FailedCharge = "ch_1" }), domain.Known{Intent: p}, ""},
		"intent: another failed charge":  {domain.StageIntents, with(func(l *domain.Listed) { l.FailedCharge = "ch_2" }), domain.Known{Intent: p}, domain.DifferentIntent},
		"intent: a movement is missing":  {domain.StageOpenIntents, own, domain.Known{Intent: p, MissingMovements: 1}, domain.DifferentLedger},
		"movements of an unknown intent": {domain.StageRefunds, foreign, domain.Known{MissingMovements: 1}, ""},
		"refund: the same":               {domain.StageRefunds, own, domain.Known{PartStatus: "succeeded", PartGatewayID: "x_1"}, ""},
		"refund: of another tenant":      {domain.StageRefunds, foreign, domain.Known{}, ""},
		"refund: being created":          {domain.StageRefunds, own, domain.Known{PartStatus: domain.RefundCreating, PartGatewayID: "x_2"}, ""},
		"refund: unknown":                {domain.StageRefunds, own, domain.Known{}, domain.DifferentUnknown},
		"refund: of another id":          {domain.StageRefunds, own, domain.Known{PartStatus: "succeeded", PartGatewayID: "x_2"}, domain.DifferentUnknown},
		"refund: refused":                {domain.StageRefunds, own, domain.Known{PartStatus: domain.RefundRefused}, domain.DifferentRefund},
		"dispute: the same":              {domain.StageDisputes, own, domain.Known{Intent: p, DisputeStatus: "succeeded"}, ""},
		"dispute: another state":         {domain.StageDisputes, foreign, domain.Known{Intent: p, DisputeStatus: "lost"}, domain.DifferentDispute},
		"dispute: of an unknown intent":  {domain.StageDisputes, own, domain.Known{DisputeStatus: "lost"}, ""},
		"event: missed":                  {domain.StageEvents, unnamed, domain.Known{Intent: p, Due: true}, domain.DifferentEvent},
		"event: received":                {domain.StageEvents, unnamed, domain.Known{Intent: p, Received: true}, ""},
		"event: of an unknown intent":    {domain.StageEvents, unnamed, domain.Known{}, ""},
		"event: of no intent":            {domain.StageEvents, with(func(l *domain.Listed) { l.Row, l.Intent = "", "" }), domain.Known{Intent: p}, ""},
		"event: creation":                {domain.StageEvents, own, domain.Known{Intent: p}, ""},
		"event: creation when refused":   {domain.StageEvents, own, domain.Known{RowStatus: domain.Refused}, domain.DifferentIntent},
		"event: refused and known":       {domain.StageEvents, own, domain.Known{Intent: p, RowStatus: domain.Refused}, ""},
		"event: refused, of another":     {domain.StageEvents, foreign, domain.Known{RowStatus: domain.Refused}, ""},
	} {
		if got := c.stage.Compare(c.listed, c.known, "mine"); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
