package model

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "rewrite the files in testdata")

// kinds are the kinds of responses as the golden file shows them.
var kinds = map[Kind]string{Plain: "plain", Page: "page", Raw: "raw", Stream: "stream"}

// line describes an operation in the golden file.
func line(res Resource, op Operation) string {
	marks := []string{kinds[op.Kind]}
	for mark, set := range map[string]bool{"key": op.Idempotent, "strict": op.Strict, "if-match": op.Conditional, "public": op.Public} {
		if set {
			marks = append(marks, mark)
		}
	}
	slices.Sort(marks[1:])
	var params []string
	for _, list := range [][]Param{op.PathParams, op.QueryParams, op.HeaderParams} {
		for _, p := range list {
			params = append(params, p.Name)
		}
	}
	response := op.Response
	if op.Item != "" {
		response = strings.TrimPrefix(response+" of "+op.Item, " of ")
	}
	return strings.Join(strings.Fields(fmt.Sprintf("%s.%s: %s %s [%s] (%s) %s -> %s %s",
		res.Name.Camel(), op.Name.Camel(), op.Method, op.Path, strings.Join(marks, " "), strings.Join(params, ", "), op.Request, op.MediaType, response)), " ")
}

// TestOperations compares the operations with a golden file, because a new name of a method breaks the programs of others.
func TestOperations(t *testing.T) {
	t.Parallel()
	m, err := Read()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, res := range m.Resources {
		fmt.Fprintf(&text, "# %s: %s\n", res.Name, res.Object)
		for _, op := range res.Operations {
			text.WriteString(line(res, op) + "\n")
		}
	}
	compare(t, "testdata/operations.txt", text.String())
}

// compare compares a text with a golden file.
func compare(t *testing.T, golden, text string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(golden, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("it differs from %s. If that is intended, run the test with -update:\n%s", golden, text)
	}
}

// TestFields compares the fields of bodies and the columns of tables with a golden file, because a new name of a flag breaks scripts.
func TestFields(t *testing.T) {
	t.Parallel()
	m, err := Read()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, res := range m.Resources {
		for _, op := range res.Operations {
			if op.Fields == nil && op.Columns == nil {
				continue
			}
			fmt.Fprintf(&text, "# %s.%s: %s\n", res.Name.Camel(), op.Name.Camel(), strings.Join(op.Columns, " "))
			for _, f := range op.Fields {
				if f.Description == "" {
					t.Errorf("%s: the field %s has no description", op.ID, f.Path)
				}
				text.WriteString(f.Path + ": " + f.Type)
				for mark, set := range map[string]bool{"[]": f.Array, " map": f.Map} {
					if set {
						text.WriteString(mark)
					}
				}
				if f.Required {
					text.WriteString(", required")
				}
				if f.Nullable {
					text.WriteString(", nullable")
				}
				text.WriteString(strings.TrimRight(" "+strings.Join(f.Values, "|"), " ") + "\n")
			}
		}
	}
	compare(t, "testdata/fields.txt", text.String())
}

// TestDetails checks what the golden file does not show.
func TestDetails(t *testing.T) {
	t.Parallel()
	m, err := Read()
	if err != nil {
		t.Fatal(err)
	}
	params := map[string]Param{}
	for _, res := range m.Resources {
		if res.Description == "" {
			t.Errorf("%s has no description", res.Name)
		}
		for _, op := range res.Operations {
			if op.Summary == "" || op.Description == "" || len(op.ErrorCodes) == 0 || (op.Request == "") != (op.RequestExample == "") {
				t.Errorf("%s: %+v", op.ID, op)
			}
			for _, p := range op.QueryParams {
				params[res.Name.Snake()+"."+op.Name.Snake()+"."+p.Name] = p
			}
		}
	}
	for name, want := range map[string]Param{
		"bookings.list.status":          {Name: "status", Array: true, Type: "string", Schema: "BookingFilterStatus", Values: []string{"pending", "confirmed", "expired", "cancelled", "canceled", "completed", "no_show"}},
		"bookings.list.metadata":        {Name: "metadata", Map: true, Type: "string"},
		"bookings.list.limit":           {Name: "limit", Type: "integer"},
		"bookings.list.event_date_from": {Name: "event_date_from", Type: "string", Format: "date"},
		"availability.list.from":        {Name: "from", Type: "string", Format: "date", Required: true},
		"units.list.active":             {Name: "active", Type: "boolean"},
	} {
		got := params[name]
		if got.Description == "" || got.Example == nil {
			t.Errorf("%s: no description or example: %+v", name, got)
		}
		got.Description, got.Example = "", nil
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

// TestErrorsAndEvents checks the codes and the event types.
func TestErrorsAndEvents(t *testing.T) {
	t.Parallel()
	m, err := Read()
	if err != nil {
		t.Fatal(err)
	}
	statuses := map[string]int{}
	for _, e := range m.Errors {
		statuses[e.Code] = e.Status
		if strings.HasPrefix(e.Cause, "Internal calls only") {
			t.Errorf("no client gets %s", e.Code)
		}
	}
	for code, want := range map[string]int{"slot_unavailable": 409, "rate_limited": 429, "booking_not_found": 404, "idempotency_in_progress": 409, "operator_not_found": 0} {
		if statuses[code] != want {
			t.Errorf("%s has the status %d, want %d", code, statuses[code], want)
		}
	}
	if len(m.Events) != 13 {
		t.Errorf("%d event types", len(m.Events))
	}
	for _, e := range m.Events {
		if e.Schema == "" || e.Object == "" || e.Scope == "" || e.Description == "" {
			t.Errorf("%+v", e)
		}
	}
}

// TestNames checks how names are written.
func TestNames(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"paymentIntents", "PaymentIntents", "payment_intents", "payment-intents", "payment intents"} {
		n := Split(text)
		got := []string{n.Camel(), n.Pascal(), n.Snake(), n.Kebab(), n.String(), n.Singular().Camel()}
		if strings.Join(got, " ") != "paymentIntents PaymentIntents payment_intents payment-intents payment intents paymentIntent" {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// TestTwoOperationsWithOneName checks that names must be unique.
func TestTwoOperationsWithOneName(t *testing.T) {
	t.Parallel()
	var doc yaml.Node
	const text = `paths:
  /things/{id}:
    get: { operationId: getThing }
  /things/{id}/part:
    get: { operationId: getThings }
`
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	if _, err := read(doc.Content[0], doc.Content[0]); err == nil || !strings.Contains(err.Error(), "two operations get") {
		t.Error(err)
	}
}
