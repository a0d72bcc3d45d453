package stack

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"holdfast.dev/services/local/internal/seed"
)

// greet prints the addresses and commands that a new user needs.
func (p *Platform) greet(ctx context.Context, r seed.Result) {
	public := p.wiring().publicURL()
	kafka := p.brokers[0]
	if p.standIn != "" {
		kafka += "  (embedded, a development default: " + p.standIn + ")"
	}
	p.screen.Print(fmt.Sprintf(`
  Console    %[1]s/admin      (%[6]s, password %[7]s)
  API        %[1]s/api/v1     (also %[1]s/v1)
  Docs       %[1]s/docs%[2]s
  Test key   %[3]s
  Live key   %[4]s
  Kafka      %[5]s
  PostgreSQL, Redis and the other keys: .run/env   Logs: .run/logs/ (on the screen: LOG=all make up)
`, public, docsNote(ctx, public+"/docs/reference"), r.TestKey, r.LiveKey, kafka, seed.OperatorEmail, seed.OperatorPassword(p.state)))
	p.screen.Print(r.FirstCall(public + "/api/v1"))
	p.screen.Print("\n  Ctrl-C or `make down` stops everything.\n")
}

// docsNote returns a note if the API reference is the plain page.
func docsNote(ctx context.Context, address string) string {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return ""
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return ""
	}
	defer func() { _ = resp.Body.Close() }()
	page, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil || bytes.Contains(page, []byte("scalar.js")) {
		return ""
	}
	return "  (without requests from the page: Scalar was not built in, which requires Node.js)"
}
