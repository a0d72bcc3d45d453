package apitest

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/forms"
	"holdfast.dev/proto"
)

// OneLine checks each one-line text of the operations that create a resource. It sends each text as an invisible text, with a line
// break, and with a bidirectional control. Each request must return a 422 for the field. It returns the number of texts.
func (w *Env) OneLine(ctx context.Context, engine http.Handler) (texts int) {
	w.T.Helper()
	byID, err := forms.Load(proto.OpenAPI)
	if err != nil {
		w.T.Fatal(err)
	}
	spec, err := contract.Public()
	if err != nil {
		w.T.Fatal(err)
	}
	for _, op := range spec.For(w.service) {
		form := byID[op.ID]
		if form.Method != http.MethodPost || strings.Contains(form.Path, "{") {
			continue
		}
		for _, f := range form.Body {
			if f.Format != "one-line" {
				continue
			}
			texts++
			for bad, want := range map[string]string{
				" \u3164\u200b": "Must contain a visible character.",
				"Ana\nMaria":    "Must not contain a line break.",
				"Ana\u2029":     "Must not contain a line break.",
				"\u202eanA":     "Must not contain a bidirectional control character.",
				"\u2067Ana":     "Must not contain a bidirectional control character.",
			} {
				a := w.Send(ctx, engine, "gateway", form.Method, "/api/v1"+form.Path, fmt.Sprintf(`{%q:%s}`, f.Name, Text(bad)))
				if fields := Decode[struct{ Errors map[string][]string }](a).Errors; a.Status != http.StatusUnprocessableEntity || strings.Join(fields[f.Name], " ") != want {
					w.T.Errorf("%s: %s %q: %d %s", op.ID, f.Name, bad, a.Status, a.Body)
				}
			}
		}
	}
	return texts
}
