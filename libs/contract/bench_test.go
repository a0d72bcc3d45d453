package contract_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"holdfast.dev/libs/contract"
	"holdfast.dev/proto/api"
)

// bookings returns bodies of createBooking: an ordinary one, and one with the maximum metadata and many escapes.
func bookings() map[string][]byte {
	const start = `{"event_date":"2026-05-10","event_start_time":"18:00","event_end_time":"23:30","status":"pending","customer_id":"cu_01h455vb4pex5vsknk084sn02q",` +
		`"service_id":"srv_01h455vb4pex5vsknk084sn02q","unit_id":"un_01h455vb4pex5vsknk084sn02q","guest_count":120,"notes":"Two ramps, one stage.","metadata":{`
	var b strings.Builder
	for i := range 49 {
		fmt.Fprintf(&b, `"key%d":"%s",`, i, strings.Repeat(`caf\u00e9 \"x\" `, 30))
	}
	return map[string][]byte{
		"ordinary": []byte(start + `"order":"17","source":"web"}}`),
		"largest":  []byte(start + b.String() + `"z":"1"}}`),
	}
}

// BenchmarkCanonical measures the processing of a body in the gateway: syntax and fingerprint.
func BenchmarkCanonical(b *testing.B) {
	for name, body := range bookings() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				if _, err := contract.Canonical(body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkBody measures the processing of a body in a service: syntax, validation and decoding.
func BenchmarkBody(b *testing.B) {
	doc, err := os.ReadFile("../../proto/api/openapi.yaml")
	if err != nil {
		b.Fatal(err)
	}
	c, err := contract.Load(doc)
	if err != nil {
		b.Fatal(err)
	}
	op := c.Operation("createBooking")
	for name, body := range bookings() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				parsed, err := op.Parse(body)
				if err != nil {
					b.Fatal(err)
				}
				if op.Ignored(parsed) != nil {
					b.Fatal("unknown fields")
				}
				if err := op.ValidateBody(parsed, false); err != nil {
					b.Fatal(err)
				}
				var v api.BookingCreate
				if err := op.Decode(parsed, &v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
