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
)

// RequiredByPeers sends each call of a document of proto/internal without each of its required parameters and fields in turn,
// nested ones too. Each is a 422 on what is missing, and leaves the database as it is. ctx has the caller, who gets the scopes of
// the call. It returns how many requests there were.
func (w *Env) RequiredByPeers(ctx context.Context, engine http.Handler, document []byte) (sent int) {
	w.T.Helper()
	forms, err := contract.Forms(document)
	if err != nil {
		w.T.Fatal(err)
	}
	spec, err := contract.LoadInternal(document, w.service)
	if err != nil {
		w.T.Fatal(err)
	}
	owner := w.Owner()
	before := w.contents(owner)
	for _, op := range spec.Operations() {
		who := caller.FromContext(ctx)
		who.Scopes = op.Scopes
		refused := func(missing, query, body string) {
			w.T.Helper()
			sent++
			target := regexp.MustCompile(`{\w+}`).ReplaceAllString(op.Path, "x")
			a := w.Send(caller.With(ctx, who), engine, op.Callers[0], op.Method, target+"?"+query, body)
			got := Decode[struct{ Errors map[string][]string }](a).Errors
			if a.Status != http.StatusUnprocessableEntity || len(got) != 1 || strings.Join(got[missing], " ") != "Is required." {
				w.T.Errorf("%s without %s: %d %s", op.ID, missing, a.Status, a.Body)
			}
			if after := w.contents(owner); !maps.Equal(before, after) {
				w.T.Errorf("%s without %s has changed %v to %v", op.ID, missing, before, after)
				before = after
			}
		}
		form := forms[op.ID]
		query, body := url.Values{}, map[string]any{}
		for _, f := range form.Query {
			query.Set(f.Name, strings.Trim(fmt.Sprint(sample(f)), "[]"))
		}
		for _, f := range form.Body {
			body[f.Name] = sample(f)
		}
		text := func() string {
			if !form.HasBody {
				return ""
			}
			out, err := json.Marshal(body)
			if err != nil {
				w.T.Fatal(err)
			}
			return string(out)
		}
		for _, f := range form.Query {
			if f.Required {
				value := query.Get(f.Name)
				query.Del(f.Name)
				refused(f.Name, query.Encode(), text())
				query.Set(f.Name, value)
			}
		}
		without(form.Body, body, "", func(missing string) { refused(missing, query.Encode(), text()) })
	}
	return sent
}

// without calls each with the name of each required field, while the object lacks it.
func without(fields []contract.Field, object map[string]any, prefix string, each func(missing string)) {
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

// sample is a value that the contract accepts.
func sample(f contract.Field) any {
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

// contents returns a sum of the rows of each table.
func (w *Env) contents(owner *pgx.Conn) map[string]string {
	w.T.Helper()
	rows, err := owner.Query(w.T.Context(), `select format('%I', relname), query_to_xml(format('select md5(string_agg(t::text, '''' order by t::text)) as sum from %I t', relname), true, false, '')::text
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
