package e2e

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/libs/tlstest"
	"holdfast.dev/proto"
)

// exposed returns the labels of each metric that the processes of services expose, by name, with those that the chart's ServiceMonitors
// attach.
func exposed(t *testing.T, services ...string) map[string]map[string]bool {
	t.Helper()
	all := map[string]map[string]bool{}
	for _, service := range services {
		for _, text := range shared.metrics(t, service) {
			for _, m := range sample.FindAllStringSubmatch(text, -1) {
				if all[m[1]] == nil {
					all[m[1]] = map[string]bool{"part_of": true, "namespace": true, "release": true, "service": true, "instance": true, "pod": true}
				}
				for _, label := range labelName.FindAllStringSubmatch(m[2], -1) {
					all[m[1]][label[1]] = true
				}
			}
		}
	}
	return all
}

var (
	labelName = regexp.MustCompile(`([a-zA-Z_]\w*)(?:=~|!~|!=|=)"(?:[^"\\]|\\.)*"`)
	selector  = regexp.MustCompile(`\b([a-zA-Z_:][\w:]*)\{([^}]*)\}`)
	ofService = regexp.MustCompile(`\bservice="([a-z]+)"`)
)

// expressions returns the expressions of all rules by the alert or the record, and the names of the records.
func expressions(t *testing.T) (exprs map[string]string, records map[string]bool) {
	t.Helper()
	exprs, records = map[string]string{}, map[string]bool{}
	for _, template := range []string{"monitoring.yaml", "slo.yaml"} {
		var spec struct {
			Groups []struct {
				Rules []struct{ Alert, Record, Expr string }
			}
		}
		if err := yaml.Unmarshal(rules(t, template), &spec); err != nil {
			t.Fatal(err)
		}
		for _, group := range spec.Groups {
			for _, r := range group.Rules {
				exprs[r.Alert+r.Record] += "\n" + r.Expr
				records[r.Record] = true
			}
		}
	}
	return exprs, records
}

// ofFiles are the metrics that a process has only if its settings name files. TestMetricsOfFiles checks them.
var ofFiles = map[string][]string{
	"tls_certificate_expiration_timestamp_seconds": {"kind", "setting"}, "secret_file_invalid": {"setting"},
}

// ofKubernetes reports whether a metric is that of a cluster or of Prometheus.
func ofKubernetes(metric string) bool {
	return metric == "up" || strings.HasPrefix(metric, "kube_") || strings.HasPrefix(metric, "container_") || strings.HasPrefix(metric, "kubelet_")
}

// TestAlertsNameMetrics checks that the processes expose each metric that an alert or an objective reads, with each label in its selector.
// An alert on another name would never fire.
func TestAlertsNameMetrics(t *testing.T) {
	needTools(t)
	useEachService(t)
	exprs, records := expressions(t)
	if len(exprs) < 40 {
		t.Fatalf("%d rules", len(exprs))
	}
	all, seen := exposed(t, proto.ServiceNames()...), map[string]bool{}
	for _, rule := range slices.Sorted(maps.Keys(exprs)) {
		for _, m := range selector.FindAllStringSubmatch(exprs[rule], -1) {
			if ofKubernetes(m[1]) || records[m[1]] {
				continue
			}
			seen[m[1]] = true
			labels := all[m[1]]
			if s := ofService.FindStringSubmatch(m[2]); s != nil {
				labels = exposed(t, s[1])[m[1]]
			}
			if of := ofFiles[m[1]]; of != nil && labels == nil {
				labels = map[string]bool{"part_of": true, "namespace": true, "release": true}
				for _, label := range of {
					labels[label] = true
				}
			}
			if labels == nil {
				t.Errorf("%s reads %s, which no process exposes", rule, m[0])
			}
			for _, label := range labelName.FindAllStringSubmatch(m[2], -1) {
				if labels != nil && !labels[label[1]] {
					t.Errorf("%s reads %s, which has no label %s, but %v", rule, m[1], label[1], slices.Sorted(maps.Keys(labels)))
				}
			}
		}
	}
	if len(seen) < 30 {
		t.Errorf("the rules read only %v", slices.Sorted(maps.Keys(seen)))
	}
}

// TestMetricsOfEachService checks that each process exposes its build, and each one with a database the use of its pools and the waits
// for connections.
func TestMetricsOfEachService(t *testing.T) {
	useEachService(t)
	for _, s := range proto.Services() {
		want := []string{`holdfast_build_info{`}
		for _, pool := range []string{"app", "worker"} {
			for _, state := range []string{"acquired", "idle", "constructing"} {
				want = append(want, fmt.Sprintf(`postgres_pool_connections{pool=%q,state=%q}`, pool, state))
			}
			for _, metric := range []string{"max_connections", "waiting", "waits_total", "wait_seconds_total", "canceled_total"} {
				want = append(want, fmt.Sprintf(`postgres_pool_%s{pool=%q}`, metric, pool))
			}
		}
		texts := shared.metrics(t, s.Name)
		if !strings.Contains(strings.Join(texts, "\n"), "\nhttp_request_duration_seconds_count{") { // a new pod has no requests yet
			t.Errorf("%s exposes no requests", s.Name)
		}
		for _, text := range texts {
			for _, series := range want {
				if has := strings.Contains(text, "\n"+series); has != (s.Database || !strings.HasPrefix(series, "postgres_")) {
					t.Errorf("%s exposes %s: %v", s.Name, series, has)
				}
			}
		}
	}
}

// TestMetricsOfFiles checks that each process whose settings name a certificate exposes when it expires, and whether the files of its
// secrets are valid.
func TestMetricsOfFiles(t *testing.T) {
	onMachine(t)
	t.Parallel()
	authority := tlstest.New(t)
	p := fresh(t, "DATABASE_URL="+trusting(t, shared.env["POSTGRES_URL"], authority.CAFile), "REDIS_URL="+shared.env["REDIS_URL"],
		"KAFKA_BROKERS="+shared.env["KAFKA_BROKERS"], "HOLDFAST_PREFIX=files_", "POOLER=0", "SECRET_FILES=true")
	if err := p.up(); err != nil {
		t.Fatal(err)
	}
	for _, s := range proto.Services() {
		text := p.metrics(t, s.Name)[0]
		for _, setting := range s.Secrets() {
			if want := fmt.Sprintf("\nsecret_file_invalid{setting=%q} 0\n", setting); !strings.Contains(text, want) {
				t.Errorf("%s does not expose %s", s.Name, want)
			}
		}
		for _, setting := range []string{"DATABASE_URL", "WORKER_DATABASE_URL"} {
			want := fmt.Sprintf("\ntls_certificate_expiration_timestamp_seconds{kind=\"ca\",setting=%q} %v\n", setting, float64(authority.Expires().Unix()))
			if strings.Contains(text, want) != s.Database {
				t.Errorf("%s exposes %s: %v", s.Name, want, !s.Database)
			}
		}
	}
	p.down()
	p.stopped(t)
}

// trusting returns the URL of PostgreSQL with a file of certificate authorities, which a connection without TLS does not use.
func trusting(t *testing.T, server, file string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("sslmode", "disable")
	query.Set("sslrootcert", file)
	u.RawQuery = query.Encode()
	return u.String()
}
