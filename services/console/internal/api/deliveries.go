package api

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"holdfast.dev/services/console/internal/app"
	"holdfast.dev/services/console/internal/domain"
	"holdfast.dev/services/console/internal/pages"
	"holdfast.dev/services/console/internal/view"
)

const (
	shownDeliveries = 25
	judged          = 100 // deliveries by which the health of an endpoint is told
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
	var list domain.List
	err := app.Together(
		func() (err error) {
			list, err = v.app.List(v.r.Context(), "listDeliveries", query, endpoint)
			return err
		},
		func() (err error) { out.Health, err = v.health(endpoint); return err },
	)
	if err != nil {
		return nil, err
	}
	values := v.values(nil)
	for _, d := range list.Data {
		attempts := d.Objects("attempts")
		row := pages.DeliveryRow{
			Type: d.Text("event_type"), Href: v.deliveryAddress(d), Attempts: strconv.Itoa(len(attempts)), Status: values.Of(d, "status"), At: values.Of(d, "created_at").Text,
		}
		if n := len(attempts); n > 0 {
			row.Last = v.answer(attempts[n-1])
		}
		out.Rows = append(out.Rows, row)
	}
	if list.HasMore {
		out.Next = base + "?" + url.Values{"deliveries": {status}, "cursor": {list.NextCursor}}.Encode() + "#deliveries"
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

// deliveryAddress is that of the page of a delivery.
func (v *visit) deliveryAddress(d domain.Object) string {
	return v.w.Path("endpoints/" + d.Text("endpoint_id") + "/deliveries/" + d.Text("id"))
}

// delivery shows one delivery with its attempts, and what was sent.
func delivery(v *visit) error {
	ctx, id := v.r.Context(), v.c.Param("id")
	var endpoint, sent domain.Object
	err := app.Together(
		func() (err error) { endpoint, err = v.app.Get(ctx, domain.ResourceNamed("endpoints"), id); return err },
		func() (err error) {
			sent, err = v.app.Do(ctx, domain.Request{Operation: "getSentDelivery", Params: []string{id, v.c.Param("delivery")}})
			return err
		},
	)
	if err != nil {
		return err
	}
	d := sent.Object("delivery")
	values := v.values(nil)
	out := pages.DeliveryView{
		Title: d.Text("event_type"), Endpoint: endpoint.Text("url"), Back: v.w.Path("endpoints/" + id),
		Body: v.T("event_gone"), Attempts: v.attempts(sent),
	}
	for _, name := range []string{"status", "failure_reason", "next_attempt_at", "created_at", "id"} {
		if one := values.Of(d, name); one.Kind != view.Nothing {
			out.Values = append(out.Values, one)
		}
	}
	if body := sent.Text("body"); body != "" {
		out.Body = view.IndentedText(body)
		if !sent.Bool("sample") { // which cannot be read by its id
			out.Event = v.w.Path("events/" + d.Text("event_id"))
		}
	}
	switch status := d.Text("status"); { // as retryDelivery of the contract says
	case !v.may("retryDelivery"):
	case endpoint.Text("status") != "enabled":
		out.Why = v.T("only_when", "Status", v.Word("enabled"))
	case status != "delivering":
		out.Retry = v.deliveryAddress(d)
	default:
		out.Why = v.T("only_when", "Status", v.statusWords([]string{"pending", "failed", "succeeded"}))
	}
	return v.show(http.StatusOK, pages.Delivery(v.frame(""), out))
}

// attempts are the attempts of a delivery: what each has sent, and what came back.
func (v *visit) attempts(sent domain.Object) []pages.AttemptView {
	headers := map[int64]string{}
	for _, request := range sent.Objects("requests") {
		n, _ := request.Int("number")
		for _, h := range request.Objects("headers") {
			headers[n] += h.Text("name") + ": " + h.Text("value") + "\n"
		}
	}
	values := v.values(nil)
	var out []pages.AttemptView
	for _, a := range sent.Object("delivery").Objects("attempts") {
		n, _ := a.Int("number")
		took, _ := a.Int("duration_ms")
		out = append(out, pages.AttemptView{
			Number: strconv.FormatInt(n, 10) + ".", At: values.Of(a, "at").Text, Answer: v.answer(a), Took: strconv.FormatInt(took, 10) + " ms",
			Headers: strings.TrimSpace(headers[n]), Body: a.Text("response_body"),
		})
	}
	return out
}

// sendAgain sends a delivery again.
func sendAgain(v *visit) error {
	id, one := v.c.Param("id"), v.c.Param("delivery")
	_, err := v.submit(domain.Request{Operation: "retryDelivery", Params: []string{id, one}})
	if err != nil {
		return v.again(err, delivery)
	}
	return v.done("endpoints/"+id+"/deliveries/"+one, "sent_again")
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
		Title: v.T("action_reverse") + ": " + r.TitleOf(o), Action: v.r.URL.EscapedPath() + "?" + v.query().Encode(), Back: v.w.Path("invoices/" + id), Button: v.T("action_reverse"), Danger: true,
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
	_, err = v.submit(domain.Request{Operation: "reverseInvoicePayment", Params: []string{id, v.r.URL.Query().Get("payment")}})
	if err != nil {
		return v.refused(err, out, nil)
	}
	return v.done("invoices/"+id, "reverse")
}
