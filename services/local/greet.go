package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"holdfast.dev/proto"

	"holdfast.dev/services/local/internal/seed"
)

// seed fills the running platform through its own tools and its public API.
func (p *platform) seed(ctx context.Context) (seed.Result, error) {
	tool := func(ctx context.Context, name string, args ...string) ([]byte, error) {
		s, ok := proto.ServiceNamed(name)
		if !ok {
			return nil, fmt.Errorf("%s is not a service of proto/services.yaml", name)
		}
		out, err := p.tool(ctx, s, args...)
		if err != nil {
			err = fmt.Errorf("bin/%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
		}
		return out, err
	}
	s := seed.Seeder{Base: p.wiring().publicURL() + "/api/v1", Tool: tool, State: p.state}
	r, err := s.Run(ctx)
	if err != nil {
		return r, fmt.Errorf("seeding: %w", err)
	}
	p.screen.say("tenants demo and other are seeded")
	return r, nil
}

func (p *platform) envFile() string { return filepath.Join(p.run, "env") }

// writeEnv writes .run/env in one step: the file is always complete, and exists only while the platform is healthy.
func (p *platform) writeEnv(r seed.Result) error {
	return replaceFile(p.envFile(), p.publicEnv(r))
}

// publicEnv returns the lines of .run/env. The documentation's commands use their names.
func (p *platform) publicEnv(r seed.Result) []string {
	public := p.wiring().publicURL()
	lines := []string{
		"BASE_URL=" + public + "/api/v1",
		"LEGACY_BASE_URL=" + public + "/v1",
		"AUTH_URL=" + public,
		"DEMO_TEST_KEY=" + r.TestKey,
		"DEMO_LIVE_KEY=" + r.LiveKey,
		"OTHER_TEST_KEY=" + r.OtherKey,
		"HOLDFAST_BASE_URL=" + public + "/api/v1", // for bin/holdfast and the SDKs
		"HOLDFAST_API_KEY=" + r.TestKey,
		"OPERATOR_EMAIL=" + seed.OperatorEmail,
		"OPERATOR_PASSWORD=" + seed.OperatorPassword(p.state),
		"OAUTH_CLIENT_ID=" + seed.ClientID(p.state),
		"OAUTH_REDIRECT_URI=" + seed.RedirectURI,
		"MAIL_URL=file://" + filepath.Join(p.run, "mail"),
		"POSTGRES_URL=" + p.postgresURL,
		"REDIS_URL=" + p.redisURL,
		"KAFKA_BROKERS=" + p.brokers[0],
		"STRIPE_URL=" + p.wiring().stripeURL(),
		"STRIPE_PUBLISHABLE_KEY=" + p.wiring().stripeKey("pk_test"),
	}
	if p.config.Prefix != defaultPrefix { // the command-line tools need the prefix to find the databases
		lines = append(lines, "HOLDFAST_PREFIX="+p.config.Prefix)
	}
	if p.topicPrefix() != defaultTopicPrefix { // and the topics
		lines = append(lines, "KAFKA_TOPIC_PREFIX="+p.topicPrefix())
	}
	return lines
}

// writeServiceEnvs writes the environment of each service to .run/services/<name>.env, for its command-line tools and
// for debugging.
func (p *platform) writeServiceEnvs() error {
	dir := filepath.Join(p.run, "services")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, s := range proto.Services() {
		if err := replaceFile(filepath.Join(dir, s.Name+".env"), p.wiring().settings(s)); err != nil {
			return err
		}
		if p.config.SecretFiles {
			if err := writeSecrets(filepath.Join(dir, s.Name), p.wiring().source().Serving(s)); err != nil {
				return err
			}
		}
	}
	return replaceFile(filepath.Join(dir, stripeName+".env"), p.wiring().stripeSettings(p.data))
}

// writeSecrets writes each secret to the file with its name.
func writeSecrets(dir string, secrets map[string]string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, value := range secrets {
		if err := replaceFile(filepath.Join(dir, name), []string{value}); err != nil {
			return err
		}
	}
	return nil
}

func replaceFile(path string, lines []string) error {
	if err := os.WriteFile(path+".new", []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// greet prints the addresses and commands that a new user needs.
func (p *platform) greet(ctx context.Context, r seed.Result) {
	public := p.wiring().publicURL()
	kafka := p.brokers[0]
	if p.standIn != "" {
		kafka += "  (embedded, a development default: " + p.standIn + ")"
	}
	p.screen.print(fmt.Sprintf(`
  Console    %[1]s/admin      (%[6]s, password %[7]s)
  API        %[1]s/api/v1     (also %[1]s/v1)
  Docs       %[1]s/docs%[2]s
  Test key   %[3]s
  Live key   %[4]s
  Kafka      %[5]s
  PostgreSQL, Redis and the other keys: .run/env   Logs: .run/logs/ (on the screen: LOG=all make up)
`, public, docsNote(ctx, public+"/docs/reference"), r.TestKey, r.LiveKey, kafka, seed.OperatorEmail, seed.OperatorPassword(p.state)))
	p.screen.print(firstCall(public+"/api/v1", r))
	p.screen.print("\n  Ctrl-C or `make down` stops everything.\n")
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

// firstCall returns a command that creates a customer and a booking with a deposit for the customer. If it is run twice, the
// second booking is refused with 409.
func firstCall(base string, r seed.Result) string {
	headers := fmt.Sprintf(`-H 'Authorization: Bearer %s' -H 'Content-Type: application/json'`, r.TestKey)
	customer := fmt.Sprintf(`curl -sS %s/customers %s -d '{"first_name":"Grace","email":"grace@example.com"}'`, base, headers)
	if r.Booking == nil {
		return customer
	}
	end := ""
	if r.Booking.End != "" {
		end = fmt.Sprintf(`,"event_end_time":%q`, r.Booking.End)
	}
	return fmt.Sprintf(`curl -sS %s/bookings %s -d '{"customer_id":"'$(%s | grep -o 'cu_[a-z0-9]*' | head -1)'","package_id":%q,"unit_id":%q,"event_date":%q,"event_start_time":%q%s}'`,
		base, headers, customer, r.Booking.PackageID, r.Booking.UnitID, r.Booking.Date, r.Booking.Start, end)
}
