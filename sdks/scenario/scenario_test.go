package scenario_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/sdks/scenario"
	"holdfast.dev/sdks/scenario/proxy"
)

// runners are the commands that run the scenario with each SDK, by language. The path of the scenario is the last argument.
var runners = map[string]struct {
	folder  string
	command []string
}{
	"go":           {".", []string{"go", "run", "./runner"}},
	"python":       {".", []string{"../../.ci/sdk-python", "scenario"}},
	"python-async": {".", []string{"../../.ci/sdk-python", "scenario", "--async"}},
	"typescript":   {".", []string{"../../.ci/sdk-typescript", "scenario"}},
}

// longest is the time after which a runner is stopped.
const longest = 3 * time.Minute

// TestUnits runs the unit tests of the SDKs that are not Go modules. It precedes TestScenario, because both build the TypeScript SDK.
func TestUnits(t *testing.T) {
	for _, language := range []string{"python", "typescript"} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), longest)
			defer cancel()
			out, err := exec.CommandContext(ctx, "../../.ci/sdk-"+language, "test").CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			t.Logf("%s", out)
		})
	}
}

// TestScenario runs the scenario with each SDK, and counts what the platform stored.
func TestScenario(t *testing.T) {
	for language := range runners {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			s, err := scenario.Read("scenario.json")
			if err != nil {
				t.Fatal(err)
			}
			var faults []string
			for _, step := range s.Steps {
				faults = append(faults, step.Requests...)
			}
			p, err := proxy.Start(shared.baseURL, faults)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			name := language + "-" + strings.ToLower(rand.Text()[:8])
			checkResults(t, s, runSDK(t, language, name, p.URL))
			checkRequests(t, s, p.Requests())
			checkStored(t, s, name)
		})
	}
}

// runSDK runs the runner of a language, and returns its results.
func runSDK(t *testing.T, language, name, baseURL string) []scenario.Result {
	t.Helper()
	path, err := filepath.Abs("scenario.json")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	r := runners[language]
	cmd := exec.CommandContext(ctx, r.command[0], append(slices.Clone(r.command[1:]), path)...)
	cmd.Dir = r.folder
	cmd.Env = append(os.Environ(), "HOLDFAST_BASE_URL="+baseURL, "HOLDFAST_API_KEY="+shared.key, "SCENARIO_RUN="+name)
	cmd.WaitDelay = time.Second
	var out, failure bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &failure
	if err := cmd.Run(); err != nil {
		t.Errorf("the runner: %v\n%s\n%s", err, out.String(), failure.String())
	}
	var results []scenario.Result
	for line := range strings.Lines(out.String()) {
		var result scenario.Result
		if err := json.Unmarshal([]byte(line), &result); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		results = append(results, result)
	}
	return results
}

// checkResults checks what the SDK returned.
func checkResults(t *testing.T, s *scenario.Scenario, results []scenario.Result) {
	t.Helper()
	if len(results) != len(s.Steps) {
		t.Fatalf("%d results of %d steps", len(results), len(s.Steps))
	}
	for i, step := range s.Steps {
		got, want := results[i], step.Expect
		if got.Step != step.Name || got.Code != want.Code || got.Param != want.Param {
			t.Errorf("%s: %+v, want the code %q of %q", step.Name, got, want.Code, want.Param)
		}
		if want.Replayed != nil && got.Replayed != *want.Replayed {
			t.Errorf("%s: replayed is %v", step.Name, got.Replayed)
		}
		for field, value := range want.Object {
			if fmt.Sprint(got.Object[field]) != fmt.Sprint(value) {
				t.Errorf("%s: %s is %v, want %v", step.Name, field, got.Object[field], value)
			}
		}
		if n := len(slices.Compact(slices.Sorted(slices.Values(got.Rows)))); want.Rows > 0 && (n != want.Rows || n != len(got.Rows)) {
			t.Errorf("%s: %d different rows of %d, want %d: %v", step.Name, n, len(got.Rows), want.Rows, got.Rows)
		}
		if got.Seconds < want.MinSeconds {
			t.Errorf("%s: it took %.1f s, want at least %.1f s", step.Name, got.Seconds, want.MinSeconds)
		}
	}
}

// checkRequests checks that the SDK sent as many requests as the scenario has, that all attempts of a write have one key, and that each
// write has its own.
func checkRequests(t *testing.T, s *scenario.Scenario, requests []proxy.Request) {
	t.Helper()
	owners := map[string]string{}
	for _, step := range s.Steps {
		n := min(len(step.Requests), len(requests))
		if n < len(step.Requests) {
			t.Errorf("%s: %d requests, want %v", step.Name, n, step.Requests)
		}
		for _, r := range requests[:n] {
			if write := r.Method != "GET"; write != (r.Key != "") || r.Key != requests[0].Key || r.Path != requests[0].Path {
				t.Errorf("%s: %+v after %+v", step.Name, r, requests[0])
			}
		}
		if key := requests[0].Key; key != "" && step.Key == "" {
			if other := owners[key]; other != "" {
				t.Errorf("%s and %s have one key", other, step.Name)
			}
			owners[key] = step.Name
		}
		requests = requests[n:]
	}
	if len(requests) > 0 {
		t.Errorf("%d more requests: %+v", len(requests), requests)
	}
}

// checkStored counts the objects of a run.
func checkStored(t *testing.T, s *scenario.Scenario, name string) {
	t.Helper()
	units := shared.list(t.Context(), t, "/units", url.Values{})
	units = slices.DeleteFunc(units, func(u map[string]any) bool { return u["name"] != "Unit of "+name })
	if len(units) == 0 {
		t.Fatal("no unit")
	}
	id, _ := units[0]["id"].(string)
	bookings := shared.list(t.Context(), t, "/bookings", url.Values{"unit_id": {id}})
	days := map[any]int{}
	for _, b := range bookings {
		if days[b["event_local_date"]]++; days[b["event_local_date"]] > 1 {
			t.Errorf("two bookings on %v", b["event_local_date"])
		}
	}
	got := map[string]int{
		"units": len(units), "bookings": len(bookings),
		"customers": len(shared.list(t.Context(), t, "/customers", url.Values{"metadata[run]": {name}})),
	}
	for resource, want := range s.Then {
		if got[resource] != want {
			t.Errorf("the platform has %d %s, want %d", got[resource], resource, want)
		}
	}
}
