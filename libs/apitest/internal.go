package apitest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/forms"
)

// RequiredByPeers sends each call of a document of proto/internal without each of its required parameters and fields in turn,
// including nested ones. Each request must return a 422 for the missing field and leave the database unchanged. ctx contains the
// caller, to which the scopes of the call are added. It returns the number of requests.
func (w *Env) RequiredByPeers(ctx context.Context, engine http.Handler, document []byte) (sent int) {
	w.T.Helper()
	byID, err := forms.Load(document)
	if err != nil {
		w.T.Fatal(err)
	}
	spec, err := contract.LoadInternal(document, w.service)
	if err != nil {
		w.T.Fatal(err)
	}
	before := w.contents(ctx)
	for _, op := range spec.Operations() {
		who := caller.FromContext(ctx)
		who.Scopes = op.Scopes
		target := pathParam.ReplaceAllString(op.Path, "x")
		w.lacking(byID[op.ID], func(missing, query, body string) {
			sent++
			a := w.Send(caller.With(ctx, who), engine, op.Callers[0], op.Method, target+"?"+query, body)
			got := Decode[struct{ Errors map[string][]string }](a).Errors
			if a.Status != http.StatusUnprocessableEntity || len(got) != 1 || strings.Join(got[missing], " ") != "Is required." {
				w.T.Errorf("%s without %s: %d %s", op.ID, missing, a.Status, a.Body)
			}
			if after := w.contents(ctx); !maps.Equal(before, after) {
				w.T.Errorf("%s without %s has changed the database", op.ID, missing)
				before = after
			}
		})
	}
	return sent
}

var pathParam = regexp.MustCompile(`{\w+}`)

// lacking calls each with the query and the body of a request in which one required parameter or field is missing.
func (w *Env) lacking(form forms.Form, each func(missing, query, body string)) {
	w.T.Helper()
	query, object := url.Values{}, map[string]any{}
	for _, f := range form.Query {
		query.Set(f.Name, strings.Trim(fmt.Sprint(sample(f)), "[]"))
	}
	for _, f := range form.Body {
		object[f.Name] = sample(f)
	}
	send := func(missing string) {
		body, err := json.Marshal(object)
		if err != nil {
			w.T.Fatal(err)
		}
		if !form.HasBody {
			body = nil
		}
		each(missing, query.Encode(), string(body))
	}
	for _, f := range form.Query {
		if f.Required {
			value := query.Get(f.Name)
			query.Del(f.Name)
			send(f.Name)
			query.Set(f.Name, value)
		}
	}
	without(form.Body, object, "", send)
}

// without calls each with the name of each required field while that field is removed from the object.
func without(fields []forms.Field, object map[string]any, prefix string, each func(missing string)) {
	for _, f := range fields {
		value := object[f.Name]
		if f.Required {
			delete(object, f.Name)
			each(prefix + f.Name)
			object[f.Name] = value
		}
		switch v := value.(type) {
		case map[string]any:
			without(f.Fields, v, prefix+f.Name+".", each)
		case []any:
			if item, ok := v[0].(map[string]any); ok {
				without(f.Items.Fields, item, prefix+f.Name+".0.", each)
			}
		}
	}
}

// sample returns a value that the contract accepts.
func sample(f forms.Field) any {
	switch f.Kind {
	case "boolean":
		return true
	case "integer":
		return max(f.Min, 1)
	case "array":
		return []any{sample(*f.Items)}
	case "object":
		out := map[string]any{}
		for _, sub := range f.Fields {
			out[sub.Name] = sample(sub)
		}
		return out
	}
	if f.Enum != nil {
		return f.Enum[0]
	}
	texts := map[string]string{"email": "ann@example.com", "date": "2030-05-01", "date-time": "2030-05-01T10:00:00Z", "holdfast-datetime": "2030-05-01"}
	if text, ok := texts[f.Format]; ok {
		return text
	}
	candidates := []string{"x", "1", strings.Repeat("0", 64)}
	return candidates[max(0, slices.IndexFunc(candidates, func(s string) bool { return regexp.MustCompile(f.Pattern).MatchString(s) }))]
}

// contents returns a checksum of the rows of each table.
func (w *Env) contents(ctx context.Context) map[string]string {
	w.T.Helper()
	owner, err := pgx.Connect(ctx, w.DB.OwnerURL)
	if err != nil {
		w.T.Fatal(err)
	}
	defer func() { _ = owner.Close(ctx) }()
	rows, err := owner.Query(ctx, `select format('%I', relname), query_to_xml(format('select md5(string_agg(t::text, '''' order by t::text)) as sum from %I t', relname), true, false, '')::text
		from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`)
	if err != nil {
		w.T.Fatal(err)
	}
	sums := map[string]string{}
	var name, sum string
	if _, err := pgx.ForEachRow(rows, []any{&name, &sum}, func() error { sums[name] = sum; return nil }); err != nil {
		w.T.Fatal(err)
	}
	return sums
}
