package stack

import (
	"os"
	"path/filepath"
	"strings"

	"holdfast.dev/proto"

	"holdfast.dev/services/local/internal/seed"
)

func (c Checkout) envFile() string { return filepath.Join(c.Run, "env") }

// writeEnv writes .run/env in one step: the file is always complete, and exists only while the platform is healthy.
func (p *Platform) writeEnv(r seed.Result) error {
	return ReplaceFile(p.envFile(), p.publicEnv(r))
}

// publicEnv returns the lines of .run/env. The documentation's commands use their names.
func (p *Platform) publicEnv(r seed.Result) []string {
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
		"MAIL_URL=file://" + filepath.Join(p.Run, "mail"),
		"POSTGRES_URL=" + p.postgresURL,
		"REDIS_URL=" + p.redisURL,
		"KAFKA_BROKERS=" + p.brokers[0],
		"STRIPE_URL=" + p.wiring().stripeURL(),
		"STRIPE_PUBLISHABLE_KEY=" + p.wiring().stripeKey("pk_test"),
	}
	if p.config.Prefix != DefaultPrefix { // the command-line tools need the prefix to find the databases
		lines = append(lines, "HOLDFAST_PREFIX="+p.config.Prefix)
	}
	if p.topicPrefix() != defaultTopicPrefix { // and the topics
		lines = append(lines, "KAFKA_TOPIC_PREFIX="+p.topicPrefix())
	}
	return lines
}

// writeServiceEnvs writes the environment of each service to .run/services/<name>.env, for its command-line tools and
// for debugging.
func (p *Platform) writeServiceEnvs() error {
	dir := filepath.Join(p.Run, "services")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, s := range proto.Services() {
		if err := ReplaceFile(filepath.Join(dir, s.Name+".env"), p.wiring().settings(s)); err != nil {
			return err
		}
		if p.config.SecretFiles {
			if err := writeSecrets(filepath.Join(dir, s.Name), p.wiring().Source().Serving(s)); err != nil {
				return err
			}
		}
	}
	return ReplaceFile(filepath.Join(dir, stripeName+".env"), p.wiring().stripeSettings(p.data))
}

// writeSecrets writes each secret to the file with its name.
func writeSecrets(dir string, secrets map[string]string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, value := range secrets {
		if err := ReplaceFile(filepath.Join(dir, name), []string{value}); err != nil {
			return err
		}
	}
	return nil
}

// ReplaceFile writes the lines to a file in one step. Only this user can read it.
func ReplaceFile(path string, lines []string) error {
	if err := os.WriteFile(path+".new", []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
