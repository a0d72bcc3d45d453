package api

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/a-h/templ"

	"holdfast.dev/services/console/internal/domain"
	"holdfast.dev/services/console/internal/pages"
	"holdfast.dev/services/console/internal/view"
)

const (
	shownDeliveries = 25
	judged          = 100 // deliveries by which the health of an endpoint is told
	searched        = 500 // deliveries among which one is looked for: there is no call for a single one
)

// deliveries are the newest deliveries of an endpoint, with its health.
func (v *visit) deliveries(endpoint string) (templ.Component, error) {
	status, base := v.r.URL.Query().Get("deliveries"), v.w.Path("endpoints/"+endpoint)
	out := pages.DeliveriesView{Base: base, Status: status}
	query := url.Values{"limit": {strconv.Itoa(shownDeliveries)}}
	if status != "" {
		query.Set("status", status)
	}
	if cursor := v.r.URL.Query().Get("cursor"); cursor != "" {
		query.Set("cursor", cursor)
	}
	list, err := v.app.List(v.r.Context(), "listDeliveries", query, endpoint)
	if err != nil {
		return nil, err
	}
	values := v.values(nil)
	for _, d := range list.Data {
		attempts := d.Objects("attempts")
		row := pages.DeliveryRow{
			Type: d.Text("event_type"), Href: base + "/deliveries/" + d.Text("id"), Attempts: strconv.Itoa(len(attempts)), Status: values.Of(d, "status"), At: values.Of(d, "created_at").Text,
		}
		if n := len(attempts); n > 0 {
			row.Last = v.answer(attempts[n-1])
		}
		out.Rows = append(out.Rows, row)
	}
	if list.HasMore {
		out.Next = base + "?" + url.Values{"deliveries": {status}, "cursor": {list.NextCursor}}.Encode() + "#deliveries"
	}
	if out.Health, err = v.health(endpoint); err != nil {
		return nil, err
	}
	return pages.Deliveries(v.frame(""), out), nil
}

// health says how many of the newest deliveries have failed, or failed so far.
func (v *visit) health(endpoint string) (string, error) {
	list, err := v.app.List(v.r.Context(), "listDeliveries", url.Values{"limit": {strconv.Itoa(judged)}}, endpoint)
	if err != nil || len(list.Data) == 0 {
		return "", err
	}
	failed := 0
	for _, d := range list.Data {
		if status := d.Text("status"); status == "failed" || status == "pending" && len(d.Objects("attempts")) > 0 {
			failed++
		}
	}
	return v.T("health", "Failed", failed, "Count", len(list.Data)), nil
}

// answer is what a receiver has answered to an attempt, in words.
func (v *visit) answer(attempt domain.Object) string {
	if code, ok := attempt.Int("status_code"); ok {
		return "HTTP " + strconv.FormatInt(code, 10)
	}
	if text := attempt.Text("error"); text != "" {
		return text
	}
	return v.T("no_answer")
}

// find looks for a delivery among the newest of its endpoint.
func (v *visit) find(endpoint, id string) (domain.Object, error) {
	rows, err := v.app.All(v.r.Context(), "listDeliveries", nil, searched, endpoint)
	if err != nil {
		return nil, err
	}
	for _, d := range rows {
		if d.Text("id") == id {
			return d, nil
		}
	}
	return nil, domain.ErrNotFound
}

// delivery shows one delivery with its attempts, and what was sent.
func delivery(v *visit) error {
	ctx, id := v.r.Context(), v.c.Param("id")
	endpoint, err := v.app.Get(ctx, domain.ResourceNamed("endpoints"), id)
	if err != nil {
		return err
	}
	d, err := v.find(id, v.c.Param("delivery"))
	if err != nil {
		return err
	}
	values := v.values(nil)
	address := v.w.Path("endpoints/" + id)
	out := pages.DeliveryView{
		Title: d.Text("event_type"), Endpoint: endpoint.Text("url"), Back: address, Event: v.w.Path("events/" + d.Text("event_id")),
	}
	for _, name := range []string{"status", "failure_reason", "next_attempt_at", "created_at", "id"} {
		if one := values.Of(d, name); one.Kind != view.Nothing {
			out.Values = append(out.Values, one)
		}
	}
	for _, a := range d.Objects("attempts") {
		number, _ := a.Int("number")
		took, _ := a.Int("duration_ms")
		out.Attempts = append(out.Attempts, pages.AttemptView{
			Number: strconv.FormatInt(number, 10) + ".", At: values.Of(a, "at").Text, Answer: v.answer(a), Took: strconv.FormatInt(took, 10) + " ms", Body: a.Text("response_body"),
		})
	}
	if event, err := v.app.Get(ctx, domain.ResourceNamed("events"), d.Text("event_id")); err == nil {
		out.Body = view.Indented(map[string]any(event))
	} else {
		out.Body = v.T("event_gone")
	}
	switch status := d.Text("status"); { // as retryDelivery of the contract says
	case !v.may("retryDelivery"):
	case endpoint.Text("status") != "enabled":
		out.Why = v.T("only_when", "Status", v.Word("enabled"))
	case status != "delivering":
		out.Retry = address + "/deliveries/" + d.Text("id")
	default:
		out.Why = v.T("only_when", "Status", v.statusWords([]string{"pending", "failed", "succeeded"}))
	}
	return v.show(http.StatusOK, pages.Delivery(v.frame(""), out))
}

// sendAgain sends a delivery again.
func sendAgain(v *visit) error {
	id, delivery := v.c.Param("id"), v.c.Param("delivery")
	_, err := v.app.Do(v.r.Context(), domain.Request{Operation: "retryDelivery", Params: []string{id, delivery}, Key: v.form.Get("once")})
	if err != nil {
		return err
	}
	return v.done("endpoints/"+id+"/deliveries/"+delivery, "sent_again")
}

// reverse asks before a payment that was recorded by hand is reversed, and reverses it.
func reverseForm(v *visit) (pages.FormView, error) {
	id := v.c.Param("id")
	r := domain.ResourceNamed("invoices")
	o, err := v.app.Get(v.r.Context(), r, id)
	if err != nil {
		return pages.FormView{}, err
	}
	out := pages.FormView{
		Title: v.T("action_reverse") + ": " + r.TitleOf(o), Action: v.address(), Back: v.w.Path("invoices/" + id), Button: v.T("action_reverse"), Danger: true,
		Preview: []string{v.T("preview_invoices_reverse")},
	}
	for _, p := range o.Objects("payments") {
		if p.Text("id") == v.r.URL.Query().Get("payment") {
			values := v.values(nil)
			for _, name := range []string{"amount", "method", "paid_at", "reference"} {
				out.Facts = append(out.Facts, values.Of(p, name))
			}
			return out, nil
		}
	}
	return out, domain.ErrNotFound
}

func reversePage(v *visit) error {
	if !v.may("reverseInvoicePayment") {
		return domain.ErrForbidden
	}
	out, err := reverseForm(v)
	if err != nil {
		return err
	}
	return v.ask(http.StatusOK, out, nil, nil, nil, "")
}

func reverse(v *visit) error {
	out, err := reverseForm(v)
	if err != nil {
		return err
	}
	id := v.c.Param("id")
	_, err = v.app.Do(v.r.Context(), domain.Request{Operation: "reverseInvoicePayment", Params: []string{id, v.r.URL.Query().Get("payment")}, Key: v.form.Get("once")})
	if err != nil {
		return v.refused(err, out, nil)
	}
	return v.done("invoices/"+id, "reverse")
}
