package service

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"holdfast.dev/libs/command"
	"holdfast.dev/libs/secret"
	"holdfast.dev/libs/tlstest"
)

type tlsConfig struct {
	Kafka struct {
		CAFile         string `env:"TEST_KAFKA_CA_FILE"`
		ClientCertFile string `env:"TEST_KAFKA_CLIENT_CERT_FILE"`
		ClientKeyFile  string `env:"TEST_KAFKA_CLIENT_KEY_FILE"`
	}
	URL   secret.Setting `env:"TEST_DATABASE_URL" secret:"url"`
	Pairs secret.Setting `env:"TEST_WORKER_DATABASE_URL" secret:"url"`
	Plain string         `env:"TEST_REDIS_CA_FILE"` // not set
}

// metrics returns the text of GET /metrics.
func metrics(t *testing.T, rt *Runtime) string {
	t.Helper()
	status, body, err := get(base(t, rt) + "/metrics")
	if err != nil || status != http.StatusOK {
		t.Fatal(status, err)
	}
	return body
}

// seconds returns a time as Prometheus writes it.
func seconds(t time.Time) string { return strconv.FormatFloat(float64(t.Unix()), 'g', -1, 64) }

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func serveMetrics(rt *Runtime) {
	rt.server("metrics", loopback, rt.Common.HTTP, promhttp.HandlerFor(rt.Metrics, promhttp.HandlerOpts{}), nil)
}

func TestBuildIsAMetric(t *testing.T) {
	t.Parallel()
	rt, _, _ := running(t, serveMetrics)
	b := command.CurrentBuild()
	want := fmt.Sprintf(`holdfast_build_info{goversion=%q,revision=%q,version=%q} 1`, runtime.Version(), b.Commit, b.Version)
	if got := metrics(t, rt); !strings.Contains(got, want) {
		t.Errorf("no %s in\n%s", want, got)
	}
}

// The metrics show when the certificates expire that are in the files now.
func TestCertificatesAreMetrics(t *testing.T) {
	t.Parallel()
	a, dir := tlstest.New(t), t.TempDir()
	cert, key := a.Leaf(t, "client")
	ca := write(t, filepath.Join(dir, "ca.pem"), read(t, a.CAFile))
	var cfg tlsConfig
	cfg.Kafka.CAFile, cfg.Kafka.ClientCertFile, cfg.Kafka.ClientKeyFile = ca, cert, key
	cfg.URL = secret.New("postgres://u@h/db?sslmode=verify-full&sslrootcert=" + url.QueryEscape(ca) + "&sslcert=" + url.QueryEscape(cert))
	cfg.Pairs = secret.New("host=h sslmode=verify-full sslrootcert='" + ca + "'")
	rt, _, _ := running(t, func(rt *Runtime) {
		rt.Register(newCertificates(&rt.Common, &cfg))
		serveMetrics(rt)
	})
	series := func(setting, kind string, end any) string {
		return fmt.Sprintf("tls_certificate_expiration_timestamp_seconds{kind=%q,setting=%q} %v\n", kind, setting, end)
	}
	shown := func(want ...string) {
		t.Helper()
		got := metrics(t, rt)
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("no %s in\n%s", w, got)
			}
		}
		if n := strings.Count(got, "\ntls_certificate_expiration_timestamp_seconds{"); n != 5 {
			t.Errorf("%d certificates, want 5", n)
		}
	}
	end := seconds(a.Expires())
	shown(series("TEST_KAFKA_CA_FILE", "ca", end), series("TEST_KAFKA_CLIENT_CERT_FILE", "client", end),
		series("TEST_DATABASE_URL", "ca", end), series("TEST_DATABASE_URL", "client", end), series("TEST_WORKER_DATABASE_URL", "ca", end))
	later := tlstest.NewFor(t, 48*time.Hour)
	write(t, ca, read(t, later.CAFile))
	shown(series("TEST_KAFKA_CA_FILE", "ca", seconds(later.Expires())), series("TEST_KAFKA_CLIENT_CERT_FILE", "client", end))
	write(t, ca, "no certificate")
	shown(series("TEST_KAFKA_CA_FILE", "ca", 0))
}
