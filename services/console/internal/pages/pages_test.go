package pages

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"holdfast.dev/libs/forms"
	"holdfast.dev/proto"

	"holdfast.dev/services/console/internal/domain"
)

// texts returns the texts of a language, with the plural forms of a text joined.
func texts(t *testing.T, lang string) map[string]string {
	t.Helper()
	raw, err := locales.ReadFile("locales/" + lang + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for id, v := range all {
		switch text := v.(type) {
		case string:
			out[id] = text
		case map[string]any:
			one, _ := text["one"].(string)
			other, _ := text["other"].(string)
			if one == "" || other == "" {
				t.Errorf("%s: %s has not both forms", lang, id)
			}
			out[id] = one + other
		}
	}
	return out
}

// needed returns the ids of texts that the pages use: ids in the sources and ids that the code builds from tables.
func needed(t *testing.T) map[string]bool {
	t.Helper()
	used := map[string]bool{}
	add := func(ids ...string) {
		for _, id := range ids {
			used[id] = true
		}
	}
	call := regexp.MustCompile(`\b[Tt]\("([a-z0-9_]+)"[,)]|Find\("([a-z0-9_]+)"\)|\b(?:Label|label)\("([a-z0-9_]+)"\)|\bWord\("([a-z0-9_]+)"\)`)
	for _, pattern := range []string{"*.templ", "*.go", "../api/*.go", "../view/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%v: %v", files, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_templ.go") || strings.HasSuffix(name, "_test.go") {
				continue
			}
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range call.FindAllStringSubmatch(string(text), -1) {
				switch {
				case m[3] != "":
					add("field_" + m[3])
				case m[4] != "":
					add("word_" + m[4])
				default:
					add(m[1] + m[2])
				}
			}
		}
	}
	for i := range 12 {
		add("month_"+strconv.Itoa(i+1), "mon_"+strconv.Itoa(i+1))
	}
	for i := range 7 {
		add("wd_"+strconv.Itoa(i), "weekday_"+strconv.Itoa(i))
	}
	add("theme_auto", "theme_light", "theme_dark", "role_owner", "role_admin", "role_staff", "role_viewer", "nav_side", "nav_menu", "group_business", "group_catalogue", "group_developers")
	resources(t, add)
	for _, name := range extra {
		add(name)
	}
	return used
}

// extra are ids that the code builds from parts that are in no table.
var extra = []string{
	"page_today", "page_calendar", "span_day", "span_week", "span_month", "chart_revenue", "chart_occupancy",
	"today_arrivals", "today_departures", "today_holds", "today_unpaid", "today_overdue", "today_owed", "today_leads", "today_failing", "today_failed",
	"none_arrivals", "none_departures", "none_holds", "none_unpaid", "none_overdue", "none_leads", "none_failing", "none_failed",
	"step_service", "step_unit", "step_package", "step_booking", "done_saved", "done_deleted", "done_moved",
	"field_description", "field_quantity", "field_unit_amount", "field_discount_amount", "field_taxes", "field_tax", "field_rate", "field_taxable_amount", "field_tax_amount", "field_amount", "field_paid_at", "field_method", "field_reference", "field_state",
	"page_keys", "page_quickstart", "field_scopes", "field_last_used_at", "word_active", "done_revoke", "action_reverse", "section_delivery", "group_settings",
	"page_business", "page_policy", "page_sessions", "field_name", "field_timezone", "field_country", "field_currency", "field_legal_name", "field_address", "field_tax_id",
	"field_bank_account_holder", "field_bank_account_number", "field_bank_code", "field_bank_name", "field_locale", "field_logo",
	"address_line1", "address_line2", "address_city", "address_state", "address_postal_code", "address_country",
	"field_invoice_prefix", "field_invoice_year", "field_tax_behavior", "field_default_taxes", "field_auto_confirm", "field_confirm_on_deposit", "field_hold_ttl_minutes", "field_min_notice_minutes",
	"field_max_advance_days", "field_refund_rules", "field_hours_before", "field_percent", "field_auto_refund", "field_refund_late_payments",
	"field_endpoint_id", "field_publishable_key", "field_secret_key", "field_webhook_secret", "field_webhook_url", "field_provider", "field_account", "done_connected", "done_disconnected",
	"done_invited_none", "done_invited_mailed", "problem_invited_failed", "problem_not_kept", "problem_logo_unchanged", "done_view_saved", "done_view_deleted", "done_clock_moved", "done_clock_real", "clock_hour", "clock_day", "clock_week",
	"overlap_0", "overlap_3600", "overlap_86400", "overlap_604800", "secret_members",
	"word_available", "word_limited", "word_sold_out", "word_closed", "word_held", "word_booked", "word_blocked", "why_booked", "why_held", "why_closed", "why_maintenance", "why_retired", "why_notice", "why_advance", "why_dst_gap", "why_not_a_slot", "why_closure",
}

// resources adds the ids that the code builds from the table of resources and from the contract.
func resources(t *testing.T, add func(ids ...string)) {
	t.Helper()
	byID, err := forms.Load(proto.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range [][]byte{proto.InternalIdentity, proto.InternalPayments} {
		internal, err := forms.Load(doc)
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(byID, internal)
	}
	addEnum := func(f forms.Field) {
		if len(f.Enum) > 0 && strings.Contains(f.Enum[len(f.Enum)-1], ".") { // types of events are shown unchanged
			return
		}
		for _, one := range f.Enum {
			if one != "canceled" || !slices.Contains(f.Enum, "cancelled") {
				add("word_" + one)
			}
		}
	}
	for _, r := range domain.Resources {
		add("page_"+r.Name, "empty_"+r.Name)
		fields := slices.Concat(r.Columns, r.Filters, r.New, r.Edit)
		for _, s := range r.Sections {
			add("section_" + s.Name)
			fields = append(fields, s.Fields...)
		}
		if r.New != nil {
			add("new_" + r.Name)
		}
		for _, a := range r.Actions {
			add("action_" + a.Name)
			if !a.Page {
				add("preview_"+r.Name+"_"+a.Name, "done_"+a.Name)
			}
			fields = append(fields, a.Fields...)
			for _, s := range a.From {
				add("word_" + s)
			}
		}
		for _, name := range fields {
			add("field_" + name)
			for _, op := range []string{r.List, r.Create, r.Update} {
				addEnum(byID[op].Field(name))
				if p := byID[op].Param(name); p.Items != nil {
					addEnum(*p.Items)
				} else {
					addEnum(p)
				}
			}
		}
		for _, a := range r.Actions {
			for _, name := range a.Fields {
				addEnum(byID[a.Operation].Field(name))
			}
		}
	}
}

// optional are prefixes of ids that exist only for some values.
var optional = []string{"hint_", "empty_", "preview_", "word_", "error_", "message_", "done_", "field_", "failure_"}

var placeholder = regexp.MustCompile(`{{\.\w+}}`)

func languages(t *testing.T) []string {
	t.Helper()
	w, err := NewMessages()
	if err != nil {
		t.Fatal(err)
	}
	return w.Languages()
}

// TestTextsOfAllLanguages checks that each language has exactly the required texts, with the same placeholders.
func TestTextsOfAllLanguages(t *testing.T) {
	t.Parallel()
	english, used := texts(t, "en"), needed(t)
	for id := range used {
		if english[id] == "" {
			t.Errorf("%q has no text", id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(english)) {
		if !used[id] && !slices.ContainsFunc(optional, func(p string) bool { return strings.HasPrefix(id, p) }) {
			t.Errorf("%q is used nowhere", id)
		}
	}
	for _, l := range languages(t) {
		own := texts(t, l)
		for id, text := range english {
			want, got := placeholder.FindAllString(text, -1), placeholder.FindAllString(own[id], -1)
			slices.Sort(want)
			slices.Sort(got)
			if own[id] == "" || !slices.Equal(slices.Compact(want), slices.Compact(got)) || len(text) > 1 && strings.HasSuffix(text, ".") && !strings.HasSuffix(own[id], ".") {
				t.Errorf("%s: %s: %q", l, id, own[id])
			}
		}
		if len(own) != len(english) {
			t.Errorf("%s has %d texts, English %d", l, len(own), len(english))
		}
	}
}

// TestTranslate checks that the API's message about an invalid value is shown in German, in its most specific form. A message
// without a German translation stays unchanged.
func TestTranslate(t *testing.T) {
	t.Parallel()
	w, err := NewMessages()
	if err != nil {
		t.Fatal(err)
	}
	german, english := w.For("de", ""), w.For("en", "")
	for said, want := range map[string]string{
		"Is required.":                                   "Dieses Feld ist erforderlich.",
		"Must be at most 200 characters.":                "Darf höchstens 200 Zeichen haben.",
		"Must be at most 12.":                            "Darf höchstens 12 sein.",
		"Must be at most 4, the unit's capacity.":        "Die Einheit fasst höchstens 4 Personen.",
		"Must be one of: owner, admin.":                  "Muss einer dieser Werte sein: owner, admin.",
		"kim@example.com is already a member, as staff.": "kim@example.com ist bereits Mitglied, als staff.",
		"Something new.":                                 "Something new.",
	} {
		if got := Translate(german, said); got != want {
			t.Errorf("%q: %q, want %q", said, got, want)
		}
		if got := Translate(english, said); got != said {
			t.Errorf("%q: %q", said, got)
		}
	}
}
