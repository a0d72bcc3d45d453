package tools

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// tools returns the definitions as a client receives them.
func tools() []*mcp.Tool {
	var all []*mcp.Tool
	for _, d := range (&toolbox{}).definitions() {
		all = append(all, d.tool())
	}
	return all
}

// TestDefinitionsAreSmall checks that all definitions together have less than 25 KB, because a client sends them with each request to its
// model.
func TestDefinitionsAreSmall(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(mcp.ListToolsResult{Tools: tools()})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d tools, %d bytes", len(tools()), len(text))
	if len(text) > 25_000 {
		t.Errorf("the definitions have %d bytes, more than 25,000", len(text))
	}
}

// TestHints checks what the tools say about their effects.
func TestHints(t *testing.T) {
	t.Parallel()
	destructive := []string{"move_booking", "cancel_booking"}
	adding := []string{
		"create_customer", "hold_slot", "confirm_booking", "convert_lead", "create_quote", "send_quote", "accept_quote", "record_payment",
	}
	for _, tool := range tools() {
		h := tool.Annotations
		wantWrite := slices.Contains(destructive, tool.Name) || slices.Contains(adding, tool.Name)
		if h.ReadOnlyHint == wantWrite || !h.IdempotentHint || h.OpenWorldHint == nil || *h.OpenWorldHint {
			t.Errorf("%s: %+v", tool.Name, h)
		}
		if wantWrite && (h.DestructiveHint == nil || *h.DestructiveHint != slices.Contains(destructive, tool.Name)) {
			t.Errorf("%s: destructiveHint is %v", tool.Name, h.DestructiveHint)
		}
		if required := slices.Contains(required(t, tool), "request_key"); required != wantWrite {
			t.Errorf("%s: request_key required: %t", tool.Name, required)
		}
	}
}

func required(t *testing.T, tool *mcp.Tool) []string {
	t.Helper()
	text, err := json.Marshal(tool.InputSchema)
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Required []string `json:"required"`
	}
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	return s.Required
}

// TestArguments checks that an error names each wrong argument and what is allowed.
func TestArguments(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		tool, arguments string
		want            map[string]string
	}{
		"missing":  {"get_record", `{}`, map[string]string{"id": "is required (text of at most 100 characters)"}},
		"null":     {"get_record", `{"id":null}`, map[string]string{"id": "is required"}},
		"type":     {"get_record", `{"id":7}`, map[string]string{"id": "text of at most 100 characters"}},
		"unknown":  {"get_record", `{"id":"bk_1","name":"x"}`, map[string]string{"name": "is not an argument of the tool; its arguments are id"}},
		"enum":     {"list_catalog", `{"kind":"boats"}`, map[string]string{"kind": "one of services, units, packages"}},
		"bound":    {"list_bookings", `{"limit":51}`, map[string]string{"limit": "an integer from 1 to 50"}},
		"several":  {"list_bookings", `{"limit":0,"status":"x"}`, map[string]string{"limit": "1 to 50", "status": "one of pending"}},
		"boolean":  {"list_invoices", `{"overdue":"yes"}`, map[string]string{"overdue": "true or false"}},
		"nested":   {"create_quote", `{"customer_id":"cu_1","request_key":"k","lines":[{"quantity":1}]}`, map[string]string{"lines": "description"}},
		"no JSON":  {"get_record", `[]`, map[string]string{"arguments": "a JSON object"}},
		"accepted": {"list_bookings", `{"limit":50,"status":null}`, nil},
		"none":     {"get_tenant", ``, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := (&toolbox{}).definitions()
			d := all[slices.IndexFunc(all, func(d definition) bool { return d.name == test.tool })]
			_, problem := newForm(d.input).check(json.RawMessage(test.arguments))
			if problem == nil {
				problem = &failure{}
			}
			if len(problem.Fields) != len(test.want) {
				t.Errorf("fields: %v", slices.Sorted(maps.Keys(problem.Fields)))
			}
			for field, text := range test.want {
				if !strings.Contains(problem.Fields[field], text) {
					t.Errorf("%s: %q has no %q", field, problem.Fields[field], text)
				}
			}
		})
	}
}

// TestPanicsEndTheCall checks that a panic of a tool ends the call, and not the process, which can serve other assistants.
func TestPanicsEndTheCall(t *testing.T) {
	t.Parallel()
	box := &toolbox{running: make(chan struct{}, 1)}
	run := box.handler(read("broken", "", func(context.Context, none) (any, error) { panic("secret") }))
	for range 2 { // the place of the call is free again
		result, err := run(t.Context(), &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{}})
		if err != nil || !result.IsError {
			t.Fatalf("%+v, %v", result, err)
		}
		if text, ok := result.Content[0].(*mcp.TextContent); !ok || !strings.Contains(text.Text, "unexpectedly") || strings.Contains(text.Text, "secret") {
			t.Errorf("%+v", result.Content)
		}
	}
}

// TestRenamedFieldsAreArguments checks that each field that is renamed in errors is the name of an argument.
func TestRenamedFieldsAreArguments(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, d := range (&toolbox{}).definitions() {
		for name := range d.input.Properties {
			names[name] = true
		}
	}
	for field, name := range renamed {
		if !names[name] {
			t.Errorf("%s: no tool has the argument %s", field, name)
		}
	}
}
