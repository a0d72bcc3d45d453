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
	judged          = 100 // deliveries that determine the health of an endpoint
)

// deliveries returns the newest deliveries of an endpoint, with its health.
func (p *page) deliveries(endpoint string) (templ.Component, error) {
	status, base := p.r.URL.Query().Get("deliveries"), p.workspace.Path("endpoints/"+endpoint)
	out := pages.DeliveriesView{Base: base, Status: status}
	query := url.Values{"limit": {strconv.Itoa(shownDeliveries)}}
	if status != "" {
		query.Set("status", status)
	}
	if cursor := p.r.URL.Query().Get("cursor"); cursor != "" {
		query.Set("cursor", cursor)
	}
	var list domain.List
	err := app.RunConcurrently(
		func() (err error) {
			list, err = p.app.List(p.r.Context(), "listDeliveries", query, endpoint)
			return err
		},
		func() (err error) { out.Health, err = p.health(endpoint); return err },
	)
	if err != nil {
		return nil, err
	}
	values := p.values(nil)
	for _, d := range list.Data {
		attempts := d.Objects("attempts")
		row := pages.DeliveryRow{
			Type: d.Text("event_type"), Href: p.deliveryAddress(d), Attempts: strconv.Itoa(len(attempts)), Status: values.Of(d, "status"), At: values.Of(d, "created_at").Text,
		}
		if n := len(attempts); n > 0 {
			row.Last = p.attemptResponse(attempts[n-1])
		}
		out.Rows = append(out.Rows, row)
	}
	if list.HasMore {
		out.Next = base + "?" + url.Values{"deliveries": {status}, "cursor": {list.NextCursor}}.Encode() + "#deliveries"
	}
	return pages.Deliveries(p.frame(""), out), nil
}

// health reports how many of the newest deliveries failed or are failing.
func (s *session) health(endpoint string) (string, error) {
	list, err := s.app.List(s.r.Context(), "listDeliveries", url.Values{"limit": {strconv.Itoa(judged)}}, endpoint)
	if err != nil || len(list.Data) == 0 {
		return "", err
	}
	failed := 0
	for _, d := range list.Data {
		if status := d.Text("status"); status == "failed" || status == "pending" && len(d.Objects("attempts")) > 0 {
			failed++
		}
	}
	return s.T("health", "Failed", failed, "Count", len(list.Data)), nil
}

// attemptResponse returns a receiver's response to an attempt as text.
func (s *session) attemptResponse(attempt domain.Object) string {
	if code, ok := attempt.Int("status_code"); ok {
		return "HTTP " + strconv.FormatInt(code, 10)
	}
	if text := attempt.Text("error"); text != "" {
		return text
	}
	return s.T("no_answer")
}

// deliveryAddress returns the address of the page of a delivery.
func (s *session) deliveryAddress(d domain.Object) string {
	return s.workspace.Path("endpoints/" + d.Text("endpoint_id") + "/deliveries/" + d.Text("id"))
}

// delivery shows one delivery with its attempts and its content.
func delivery(p *page) error {
	ctx, id := p.r.Context(), p.c.Param("id")
	var endpoint, sent domain.Object
	err := app.RunConcurrently(
		func() (err error) { endpoint, err = p.app.Get(ctx, domain.ResourceNamed("endpoints"), id); return err },
		func() (err error) {
			sent, err = p.app.Do(ctx, domain.Request{Operation: "getSentDelivery", Params: []string{id, p.c.Param("delivery")}})
			return err
		},
	)
	if err != nil {
		return err
	}
	d := sent.Object("delivery")
	values := p.values(nil)
	out := pages.DeliveryView{
		Title: d.Text("event_type"), Endpoint: endpoint.Text("url"), Back: p.workspace.Path("endpoints/" + id),
		Body: p.T("event_gone"), Attempts: p.attempts(sent),
	}
	for _, name := range []string{"status", "failure_reason", "next_attempt_at", "created_at", "id"} {
		if one := values.Of(d, name); one.Kind != view.Nothing {
			out.Values = append(out.Values, one)
		}
	}
	if body := sent.Text("body"); body != "" {
		out.Body = view.IndentedText(body)
		if !sent.Bool("sample") { // a sample cannot be read by its id
			out.Event = p.workspace.Path("events/" + d.Text("event_id"))
		}
	}
	switch status := d.Text("status"); { // as the contract specifies for retryDelivery
	case !p.can("retryDelivery"):
	case endpoint.Text("status") != "enabled":
		out.Why = p.T("only_when", "Status", p.Word("enabled"))
	case status != "delivering":
		out.Retry = p.deliveryAddress(d)
	default:
		out.Why = p.T("only_when", "Status", p.statusTexts([]string{"pending", "failed", "succeeded"}))
	}
	return p.show(http.StatusOK, pages.Delivery(p.frame(""), out))
}

// attempts returns the attempts of a delivery, each with the request and the response.
func (s *session) attempts(sent domain.Object) []pages.AttemptView {
	headers := map[int64]string{}
	for _, request := range sent.Objects("requests") {
		n, _ := request.Int("number")
		for _, h := range request.Objects("headers") {
			headers[n] += h.Text("name") + ": " + h.Text("value") + "\n"
		}
	}
	values := s.values(nil)
	var out []pages.AttemptView
	for _, a := range sent.Object("delivery").Objects("attempts") {
		n, _ := a.Int("number")
		took, _ := a.Int("duration_ms")
		out = append(out, pages.AttemptView{
			Number: strconv.FormatInt(n, 10) + ".", At: values.Of(a, "at").Text, Response: s.attemptResponse(a), Took: strconv.FormatInt(took, 10) + " ms",
			Headers: strings.TrimSpace(headers[n]), Body: a.Text("response_body"),
		})
	}
	return out
}

// sendAgain resends a delivery.
func sendAgain(p *page) error {
	id, one := p.c.Param("id"), p.c.Param("delivery")
	_, err := p.submit(domain.Request{Operation: "retryDelivery", Params: []string{id, one}})
	if err != nil {
		return p.showAgain(err, delivery)
	}
	return p.done("endpoints/"+id+"/deliveries/"+one, "sent_again")
}

// reversalForm is the form that requests confirmation before a manually recorded payment is reversed.
func (f *form) reversalForm() (pages.FormView, error) {
	id := f.c.Param("id")
	r := domain.ResourceNamed("invoices")
	o, err := f.app.Get(f.r.Context(), r, id)
	if err != nil {
		return pages.FormView{}, err
	}
	out := pages.FormView{
		Title: f.T("action_reverse") + ": " + r.TitleOf(o), Action: f.r.URL.EscapedPath() + "?" + f.pageQuery().Encode(), Back: f.workspace.Path("invoices/" + id), Button: f.T("action_reverse"), Danger: true,
		Preview: []string{f.T("preview_invoices_reverse")},
	}
	for _, payment := range o.Objects("payments") {
		if payment.Text("id") == f.r.URL.Query().Get("payment") {
			values := f.values(nil)
			for _, name := range []string{"amount", "method", "paid_at", "reference"} {
				out.Facts = append(out.Facts, values.Of(payment, name))
			}
			return out, nil
		}
	}
	return out, domain.ErrNotFound
}

func reversePage(p *page) error {
	if !p.can("reverseInvoicePayment") {
		return domain.ErrForbidden
	}
	out, err := p.reversalForm()
	if err != nil {
		return err
	}
	return p.showForm(http.StatusOK, out, nil, nil, nil, "")
}

func reverse(p *page) error {
	out, err := p.reversalForm()
	if err != nil {
		return err
	}
	id := p.c.Param("id")
	_, err = p.submit(domain.Request{Operation: "reverseInvoicePayment", Params: []string{id, p.r.URL.Query().Get("payment")}})
	if err != nil {
		return p.refused(err, out, nil)
	}
	return p.done("invoices/"+id, "reverse")
}
