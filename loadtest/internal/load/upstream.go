package load

import (
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

// fixedResponse has the size of a customer. createdResponse has that of a booking.
const fixedResponse = `{"company":"Tanaka Events","created_at":"2026-01-05T09:12:33.154205Z",` +
	`"email":"emi@tanaka.example","first_name":"Emi","id":"cu_01m7zbmmn5exnr5ab2hvbd652e","last_name":"Tanaka",` +
	`"metadata":{"source":"walk-in"},"mode":"test","name":"Emi Tanaka","object":"customer","phone":"+1 212 555 0105",` +
	`"updated_at":"2026-01-05T09:12:33.154205Z","version":1}`

var createdResponse = `{"id":"bk_01m7zbmmn5exnr5ab2hvbd652f","object":"booking","notes":"` +
	strings.Repeat("x", 900) + `"}`

// recordHeader is the header in which a service returns until when a response can be replayed. libs/httpx defines it.
const recordHeader = "X-Internal-Idem-Expires"

// recordTime is how long the record of an Idempotency-Key is valid, so that the gateway caches the response.
const recordTime = time.Minute

// Serve responds to every request with a fixed response, as cheaply as possible, in place of a service: 201 to a POST,
// else 200.
func Serve(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	s := &fasthttp.Server{
		NoDefaultServerHeader: true, NoDefaultDate: true,
		Handler: func(c *fasthttp.RequestCtx) {
			h := &c.Response.Header
			h.SetContentType("application/json")
			h.Set("ETag", `"1"`)
			h.Set("Cache-Control", "no-store")
			if !c.IsPost() {
				c.SetBodyString(fixedResponse)
				return
			}
			h.Set("Location", "/api/v1/bookings/bk_01m7zbmmn5exnr5ab2hvbd652f")
			h.Set(recordHeader, strconv.FormatInt(time.Now().Add(recordTime).Unix(), 10))
			c.SetStatusCode(fasthttp.StatusCreated)
			c.SetBodyString(createdResponse)
		},
	}
	return s.Serve(l)
}
