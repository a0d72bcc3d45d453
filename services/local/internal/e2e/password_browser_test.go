package e2e

import (
	"fmt"
	"testing"

	"holdfast.dev/libs/tlstest"

	"holdfast.dev/services/local/internal/parts"
)

// TestForgottenPasswordInABrowser checks that an operator who forgot their password sets a new one in a real browser, with a link that
// reaches a mail server over TLS. It needs a platform of its own, because the shared one sends no mail.
func TestForgottenPasswordInABrowser(t *testing.T) {
	onMachine(t)
	needsBrowser(t)
	port, err := ports.Free(0)
	if err != nil {
		t.Fatal(err)
	}
	authority := tlstest.New(t)
	cert, key := authority.Leaf(t, "mail")
	p := fresh(t, "DATABASE_URL="+shared.env["POSTGRES_URL"], "REDIS_URL="+shared.env["REDIS_URL"], "KAFKA_BROKERS="+shared.env["KAFKA_BROKERS"],
		"HOLDFAST_PREFIX=mail_", "MAIL_URL=smtps://"+parts.Loopback(port), "SSL_CERT_FILE="+authority.CAFile)
	if err := p.up(); err != nil {
		t.Fatal(err)
	}
	p.inABrowser(t, "password.test.mjs", fmt.Sprintf("MAIL_PORT=%d", port), "MAIL_CERT="+cert, "MAIL_KEY="+key)
}
