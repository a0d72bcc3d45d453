package kafkax_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/kafkatest"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/secret"
	"holdfast.dev/libs/service"
	"holdfast.dev/libs/tlstest"
)

func secureSettings(t *testing.T, k kafkatest.Secure) kafkax.Settings {
	t.Helper()
	return kafkax.Settings{
		Brokers: []string{k.SASL}, Prefix: kafkatest.Prefix(t), TLS: true, CAFile: k.Authority.CAFile,
		SASLMechanism: "scram-sha-512", SASLUsername: kafkatest.User, SASLPassword: secret.New(kafkatest.Password),
	}
}

func cluster(t *testing.T, s kafkax.Settings) kafkax.Cluster {
	t.Helper()
	c, err := s.Cluster()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Everything that a service does with Kafka works over TLS with SASL, or with a client certificate. A rejected client receives the
// reason.
func TestSecureKafka(t *testing.T) {
	t.Parallel()
	k := kafkatest.StartSecure(t)
	ways := map[string]func(*kafkax.Settings){"mutual": func(s *kafkax.Settings) {
		s.SASLMechanism, s.SASLUsername, s.SASLPassword = "", "", secret.Setting{}
		s.Brokers = []string{k.Mutual}
		s.ClientCertFile, s.ClientKeyFile = k.Authority.Leaf(t, "client")
	}}
	for _, mechanism := range []string{"plain", "scram-sha-256", "scram-sha-512"} {
		ways[mechanism] = func(s *kafkax.Settings) { s.SASLMechanism = mechanism }
	}
	for name, change := range ways {
		t.Run(name, func(t *testing.T) {
			s := secureSettings(t, k)
			change(&s)
			throughKafka(t, s)
		})
	}
	otherCA := tlstest.New(t)
	for name, refused := range map[string]struct {
		change func(*kafkax.Settings)
		want   string // regular expression
	}{
		"wrong password":       {func(s *kafkax.Settings) { s.SASLPassword = secret.New("guessed") }, "SASL Authentication failed"},
		"wrong plain password": {func(s *kafkax.Settings) { s.SASLMechanism, s.SASLPassword = "plain", secret.New("guessed") }, "SASL Authentication failed"},
		"no CA":                {func(s *kafkax.Settings) { s.CAFile = "" }, "certificate signed by unknown authority"},
		"another's CA":         {func(s *kafkax.Settings) { s.CAFile = otherCA.CAFile }, "certificate signed by unknown authority"},
		"no certificate": {func(s *kafkax.Settings) {
			s.Brokers, s.SASLMechanism, s.SASLUsername, s.SASLPassword = []string{k.Mutual}, "", "", secret.Setting{}
		}, "tls: (bad certificate|certificate required)"}, // the alert depends on the version of Java
	} {
		t.Run(name, func(t *testing.T) {
			s := secureSettings(t, k)
			refused.change(&s)
			refusedFor(t, cluster(t, s), refused.want)
		})
	}
}

// refusedFor polls for the reason, because a connection that exceeds its limit on a loaded machine reports another one.
func refusedFor(t *testing.T, c kafkax.Cluster, want string) {
	t.Helper()
	reason := regexp.MustCompile(want)
	for end := time.Now().Add(patience); ; {
		err := kafkax.EnsureTopics(t.Context(), c, []kafkax.Topic{{Name: "things"}})
		switch {
		case err != nil && reason.MatchString(err.Error()):
			return
		case err == nil, time.Now().After(end):
			t.Fatalf("%v, want %q", err, want)
		}
	}
}

// throughKafka creates topics, writes, consumes, dead-letters and redrives.
func throughKafka(t *testing.T, settings kafkax.Settings) {
	t.Helper()
	letters := []kafkax.Topic{{Name: kafkax.DeadLetterTopic("readers")}}
	if err := kafkax.MakeTopics(t.Context(), settings, letters); err != nil { // waits for a broker that starts slowly
		t.Fatal(err)
	}
	s := prepareOn(t, cluster(t, settings))
	var got, tries seen
	s.consume(t, func(_ context.Context, m kafkax.Message) error {
		if string(m.Value) == "bad" && tries.add("bad") <= 4 {
			return kafkax.Poison(errors.New("cannot be decoded"))
		}
		got.add(string(m.Value))
		return nil
	})
	s.produce(t, thing("a", "bad"), thing("a", "good"))
	eventually(t, "the good one", func() bool { return got.count("good") == 1 })
	if n, err := kafkax.Redrive(t.Context(), settings, "readers", 0, kafkax.DefaultBatchBytes); n != 1 || err != nil {
		t.Fatalf("redrive sent %d: %v", n, err)
	}
	eventually(t, "the bad one is good now", func() bool { return got.count("bad") == 1 })
}

func TestSettingsStopTheStartInOneLine(t *testing.T) {
	t.Parallel()
	a := tlstest.New(t)
	cert, key := a.Leaf(t, "client")
	_, otherKey := a.Leaf(t, "other")
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct {
		s    kafkax.Settings
		want string
	}{
		{kafkax.Settings{SASLMechanism: "gssapi", SASLUsername: "u", SASLPassword: secret.New("hunter2")}, `KAFKA_SASL_MECHANISM must be plain, scram-sha-256 or scram-sha-512, not "gssapi"`},
		{kafkax.Settings{SASLMechanism: "plain", SASLPassword: secret.New("hunter2")}, "KAFKA_SASL_MECHANISM needs KAFKA_SASL_USERNAME"},
		{kafkax.Settings{SASLMechanism: "plain", SASLUsername: "u"}, "KAFKA_SASL_MECHANISM needs KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD"},
		{kafkax.Settings{SASLUsername: "u", SASLPassword: secret.New("hunter2")}, "without KAFKA_SASL_MECHANISM"},
		{kafkax.Settings{TLS: true, ClientCertFile: cert}, "KAFKA_CLIENT_CERT_FILE is set without KAFKA_CLIENT_KEY_FILE"},
		{kafkax.Settings{TLS: true, ClientKeyFile: key}, "KAFKA_CLIENT_KEY_FILE is set without KAFKA_CLIENT_CERT_FILE"},
		{kafkax.Settings{TLS: true, ClientCertFile: cert, ClientKeyFile: otherKey}, "KAFKA_CLIENT_CERT_FILE and KAFKA_CLIENT_KEY_FILE"},
		{kafkax.Settings{TLS: true, CAFile: "/nowhere.pem"}, "KAFKA_CA_FILE: open /nowhere.pem"},
		{kafkax.Settings{TLS: true, CAFile: empty}, "holds no certificate"},
		{kafkax.Settings{CAFile: a.CAFile}, "KAFKA_TLS=true"},
	} {
		_, err := one.s.Cluster()
		if err == nil || !strings.Contains(err.Error(), one.want) {
			t.Errorf("%v, want %q", err, one.want)
		} else if text := err.Error(); strings.Contains(text, "\n") || strings.Contains(text, "hunter2") {
			t.Errorf("more than one line, or the password: %s", text)
		}
	}
	if _, err := (kafkax.Settings{SASLMechanism: "plain", SASLUsername: "u", SASLPassword: secret.New("p")}).Cluster(); err != nil {
		t.Errorf("SASL without TLS: %v", err)
	}
}

func TestSettingsComeFromTheEnvironment(t *testing.T) {
	for name, value := range map[string]string{
		"KAFKA_BROKERS": "a:1,b:2", "KAFKA_TLS": "true", "KAFKA_SASL_MECHANISM": "plain",
		"KAFKA_SASL_USERNAME": "u", "KAFKA_SASL_PASSWORD": "hunter2",
	} {
		t.Setenv(name, value)
	}
	var cfg struct{ Kafka kafkax.Settings }
	if err := service.Load(&cfg); err != nil {
		t.Fatal(err)
	}
	c := cluster(t, cfg.Kafka)
	if len(c.Brokers) != 2 || c.Prefix != "holdfast." || c.TLS == nil || c.SASL == nil || c.SASL.Name() != "PLAIN" {
		t.Errorf("%+v", c)
	}
	if text := service.Describe(cfg).String(); strings.Contains(text, "hunter2") || !strings.Contains(text, "KAFKA_SASL_USERNAME=u") {
		t.Errorf("the start line: %s", text)
	}
}
