package domain_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/patch"

	"holdfast.dev/services/webhooks/internal/domain"
)

var (
	fine   = domain.Outcome{OK: true}
	failed = domain.Outcome{}
	gone   = domain.Outcome{Gone: true}
)

func enabled(failures int) domain.Endpoint {
	return domain.Endpoint{URL: "https://a.example", Status: domain.Enabled, ConsecutiveFailures: failures, Version: 3}
}

func disabled(failures int, why domain.Reason) domain.Endpoint {
	e := enabled(failures)
	e.Status, e.DisabledReason = domain.Disabled, &why
	return e
}

func TestEndpointAfter(t *testing.T) {
	t.Parallel()
	times := func(o domain.Outcome, n int) []domain.Outcome { return slices.Repeat([]domain.Outcome{o}, n) }
	for _, tc := range []struct {
		name     string
		from     domain.Endpoint
		outcomes []domain.Outcome
		want     domain.Endpoint
	}{
		{"nothing", enabled(4), nil, enabled(4)},
		{"a success", enabled(0), times(fine, 1), enabled(0)},
		{"a failure", enabled(0), times(failed, 1), enabled(1)},
		{"19 failures", enabled(0), times(failed, 19), enabled(19)},
		{"20 failures", enabled(0), times(failed, 20), disabled(20, domain.Failures)},
		{"the 20th", enabled(19), times(failed, 1), disabled(20, domain.Failures)},
		{"more than 20 at once", enabled(0), times(failed, 30), disabled(20, domain.Failures)},
		{"more than 20 before", enabled(25), times(failed, 1), disabled(26, domain.Failures)},
		{"a success resets", enabled(19), times(fine, 1), enabled(0)},
		{"19, a success, 19", enabled(0), slices.Concat(times(failed, 19), times(fine, 1), times(failed, 19)), enabled(19)},
		{"a success after it is disabled", enabled(0), append(times(failed, 20), fine), disabled(20, domain.Failures)},
		{"410", enabled(0), times(gone, 1), disabled(1, domain.Gone)},
		{"410 as the 20th", enabled(19), times(gone, 1), disabled(20, domain.Gone)},
		{"410 after a success", enabled(7), []domain.Outcome{fine, gone}, disabled(1, domain.Gone)},
		{"a success after 410", enabled(0), []domain.Outcome{gone, fine}, disabled(1, domain.Gone)},
		{"disabled, a success", disabled(20, domain.Failures), times(fine, 1), disabled(20, domain.Failures)},
		{"disabled, a failure", disabled(3, domain.Requested), times(failed, 1), disabled(3, domain.Requested)},
		{"disabled, 410", disabled(3, domain.Requested), times(gone, 1), disabled(3, domain.Requested)},
	} {
		before := tc.from
		if got := tc.from.After(tc.outcomes...); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %+v, want %+v", tc.name, got, tc.want)
		}
		if !reflect.DeepEqual(before, tc.from) {
			t.Errorf("%s: the one before was changed", tc.name)
		}
	}
}

// The count is the number of failures since the last success, however the outcomes are batched. It does not change after the
// endpoint is disabled.
func TestEndpointCountsFailuresSinceTheLastSuccess(t *testing.T) {
	t.Parallel()
	outcome := rapid.SampledFrom(append(slices.Repeat([]domain.Outcome{failed}, 20), fine, gone))
	rapid.Check(t, func(t *rapid.T) {
		outcomes := rapid.SliceOfN(outcome, 0, 80).Draw(t, "outcomes")
		count, status, reason := 0, domain.Enabled, domain.Reason("")
		for _, o := range outcomes {
			if status == domain.Disabled {
				break
			}
			count++
			if o.OK {
				count = 0
			}
			if count == 20 {
				status, reason = domain.Disabled, domain.Failures
			}
			if o.Gone {
				status, reason = domain.Disabled, domain.Gone
			}
		}
		cut := rapid.IntRange(0, len(outcomes)).Draw(t, "cut")
		got := enabled(0).After(outcomes[:cut]...).After(outcomes[cut:]...)
		if got.ConsecutiveFailures != count || got.Status != status || (got.DisabledReason == nil) != (reason == "") || reason != "" && *got.DisabledReason != reason {
			t.Fatalf("%d %s %v, want %d %s %q", got.ConsecutiveFailures, got.Status, got.DisabledReason, count, status, reason)
		}
	})
}

func TestEndpointSwitchedTo(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		from domain.Endpoint
		to   domain.Status
		want domain.Endpoint
	}{
		{"enabled again", enabled(7), domain.Enabled, enabled(7)},
		{"disabled", enabled(7), domain.Disabled, disabled(7, domain.Requested)},
		{"disabled twice: the reason stays", disabled(20, domain.Failures), domain.Disabled, disabled(20, domain.Failures)},
		{"enabled after failures", disabled(20, domain.Failures), domain.Enabled, enabled(0)},
		{"enabled after 410", disabled(1, domain.Gone), domain.Enabled, enabled(0)},
		{"enabled after a request", disabled(5, domain.Requested), domain.Enabled, enabled(0)},
	} {
		if got := tc.from.SwitchedTo(tc.to); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %+v, want %+v", tc.name, got, tc.want)
		}
	}
}

func TestEndpointWarnsOnceOnTheWayUp(t *testing.T) {
	t.Parallel()
	warnings := func(e domain.Endpoint, n int) (domain.Endpoint, []int) {
		var at []int
		for range n {
			before := e
			if e = e.After(failed); before.Warns(failed) {
				at = append(at, e.ConsecutiveFailures)
			}
		}
		return e, at
	}
	e, first := warnings(enabled(0), 15)
	reset := e.After(fine)
	_, second := warnings(reset, 30)
	if !slices.Equal(first, []int{10}) || !slices.Equal(second, []int{10}) || e.Warns(fine) {
		t.Errorf("warned at %v, after a success at %v, of the success %v", first, second, e.Warns(fine))
	}
	on := enabled(0).After(slices.Repeat([]domain.Outcome{failed}, 20)...)
	if _, third := warnings(on.SwitchedTo(domain.Enabled), 12); !slices.Equal(third, []int{10}) {
		t.Errorf("after it was enabled again: warned at %v", third)
	}
	again := append([]domain.Outcome{fine}, slices.Repeat([]domain.Outcome{failed}, 10)...)
	if !enabled(15).Warns(again...) {
		t.Error("a success and ten failures of one batch do not warn")
	}
	if batch := enabled(8).After(failed, failed, failed, failed); !enabled(8).Warns(failed, failed, failed, failed) || batch.Warns(failed) {
		t.Error("a batch over the tenth does not warn once")
	}
}

func TestEndpointSubscribes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		types []string
		of    string
		want  bool
	}{
		{nil, "booking.created", false},
		{[]string{"*"}, "booking.created", true},
		{[]string{"*"}, "", true},
		{[]string{"booking.created"}, "booking.created", true},
		{[]string{"booking.created"}, "booking.updated", false},
		{[]string{"booking.created"}, "booking", false},
		{[]string{"booking.*"}, "booking.created", false},
		{[]string{"lead.created", "invoice.paid"}, "invoice.paid", true},
	} {
		if got := (domain.Endpoint{EventTypes: tc.types}).Subscribes(tc.of); got != tc.want {
			t.Errorf("%v of %q: %v", tc.types, tc.of, got)
		}
	}
}

func TestEndpointPatchCheck(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		types []string
		ok    bool
	}{
		{nil, true},
		{[]string{"*"}, true},
		{[]string{"booking.created"}, true},
		{[]string{"booking.created", "lead.created"}, true},
		{[]string{"*", "booking.created"}, false},
		{[]string{"booking.created", "*"}, false},
		{[]string{"*", "*"}, false},
	} {
		p := domain.EndpointPatch{EventTypes: patch.Value(tc.types)}
		_, applied := enabled(0).Apply(p)
		for _, err := range []error{p.Check(), applied} {
			var e *apperr.Error
			if tc.ok && err != nil || !tc.ok && !errors.As(err, &e) {
				t.Errorf("%v: %v", tc.types, err)
			}
		}
	}
}

func TestEndpointApply(t *testing.T) {
	t.Parallel()
	before := enabled(7)
	before.Description, before.EventTypes, before.MaxInFlight, before.MaxPerSecond = new("old"), []string{"*"}, 1, 2
	all := before
	all.URL, all.Description, all.EventTypes, all.MaxInFlight, all.MaxPerSecond = "https://b.example", nil, []string{"lead.created"}, 3, 4
	all.Status, all.DisabledReason = domain.Disabled, new(domain.Requested)
	for name, tc := range map[string]struct {
		patch     domain.EndpointPatch
		want      domain.Endpoint
		discloses []string
	}{
		"nothing": {domain.EndpointPatch{}, before, nil},
		"the same": {domain.EndpointPatch{
			URL: patch.Value(before.URL), Status: patch.Value(domain.Enabled), EventTypes: patch.Value([]string{"*"}), MaxInFlight: patch.Value(1),
		}, before, nil},
		"all": {domain.EndpointPatch{
			URL: patch.Value("https://b.example"), Description: patch.Null[string](), EventTypes: patch.Value([]string{"lead.created"}),
			Status: patch.Value(domain.Disabled), MaxInFlight: patch.Value(3), MaxPerSecond: patch.Value(4),
		}, all, []string{"*", "lead.created"}},
	} {
		got, err := before.Apply(tc.patch)
		if err != nil || !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %+v, want %+v, %v", name, got, tc.want, err)
		}
		if types := tc.patch.Discloses(before); !slices.Equal(types, tc.discloses) {
			t.Errorf("%s discloses %v, want %v", name, types, tc.discloses)
		}
	}
	for name, p := range map[string]domain.EndpointPatch{
		"URL": {URL: patch.Value("https://b.example")}, "status": {Status: patch.Value(domain.Disabled)},
	} {
		if types := p.Discloses(before); !slices.Equal(types, []string{"*", "*"}) {
			t.Errorf("another %s discloses %v", name, types)
		}
	}
}
