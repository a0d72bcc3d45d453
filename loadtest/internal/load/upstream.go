package load

import (
	"net"

	"github.com/valyala/fasthttp"
)

// fixedResponse has the size of a customer.
const fixedResponse = `{"company":"Tanaka Events","created_at":"2026-01-05T09:12:33.154205Z","email":"emi@tanaka.example",` +
	`"first_name":"Emi","id":"cu_01m7zbmmn5exnr5ab2hvbd652e","last_name":"Tanaka","metadata":{"source":"walk-in"},"mode":"test",` +
	`"name":"Emi Tanaka","object":"customer","phone":"+1 212 555 0105","updated_at":"2026-01-05T09:12:33.154205Z","version":1}`

// Serve responds to every request with the fixed response, as cheaply as possible, in place of the customers service.
func Serve(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	s := &fasthttp.Server{
		NoDefaultServerHeader: true, NoDefaultDate: true,
		Handler: func(c *fasthttp.RequestCtx) {
			c.Response.Header.SetContentType("application/json")
			c.Response.Header.Set("ETag", `"1"`)
			c.Response.Header.Set("Cache-Control", "no-store")
			c.SetBodyString(fixedResponse)
		},
	}
	return s.Serve(l)
}
