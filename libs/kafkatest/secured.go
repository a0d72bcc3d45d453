package kafkatest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/tlstest"
)

// The only user of a Secure broker, for SASL PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512.
const (
	User     = "holdfast"
	Password = "a test's password"
)

// Secure is an Apache Kafka for one test. It accepts only TLS connections.
type Secure struct {
	Authority *tlstest.Authority // signs the certificates of the broker and of clients
	SASL      string             // host:port for TLS and SASL
	Mutual    string             // host:port for TLS with a client certificate
}

const (
	secureLimit = time.Minute // for the broker's start
	clusterID   = "aG9sZGZhc3Qtc2VjdXJlMQ"
)

// StartSecure starts the broker and stops it at the end of the test. It skips the test when there is no JDK, or when
// `bin/local` has not yet downloaded the jars.
func StartSecure(t testing.TB) Secure {
	t.Helper()
	java, jars := findJars(t)
	a := tlstest.New(t)
	cert, key := a.Leaf(t, "broker")
	dir := t.TempDir()
	store := filepath.Join(dir, "broker.pem")
	write(t, store, read(t, key)+read(t, cert))
	addr := freeAddresses(t, 4)
	s := Secure{Authority: a, SASL: addr[0], Mutual: addr[1]}
	conf := filepath.Join(dir, "server.properties")
	write(t, conf, fmt.Sprintf(secureProperties, addr[0], addr[1], addr[2], addr[3], filepath.Join(dir, "data"), store, a.CAFile, User, Password))
	args := []string{
		"-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", filepath.Join(jars, "*"),
	}
	format := append(args[:len(args):len(args)], "kafka.tools.StorageTool", "format", "-t", clusterID, "-c", conf)
	for _, mechanism := range []string{"SCRAM-SHA-256", "SCRAM-SHA-512"} {
		format = append(format, "--add-scram", fmt.Sprintf(`%s=[name="%s",password="%s"]`, mechanism, User, Password))
	}
	if out, err := exec.CommandContext(t.Context(), java, format...).CombinedOutput(); err != nil {
		t.Fatalf("formatting Kafka's folder: %v: %s", err, out)
	}
	run(t, java, append(args, "kafka.Kafka", conf), filepath.Join(dir, "log"), addr[0], addr[1])
	return s
}

// secureProperties is a format string for the addresses of the four listeners, the data folder, the PEM files of the
// broker and of the authority, the user and its password.
const secureProperties = `process.roles=broker,controller
node.id=1
controller.quorum.voters=1@%[4]s
controller.listener.names=CONTROLLER
listeners=SASL_SSL://%[1]s,MUTUAL://%[2]s,INSIDE://%[3]s,CONTROLLER://%[4]s
advertised.listeners=SASL_SSL://%[1]s,MUTUAL://%[2]s,INSIDE://%[3]s
listener.security.protocol.map=SASL_SSL:SASL_SSL,MUTUAL:SSL,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=INSIDE
log.dirs=%[5]s
ssl.keystore.type=PEM
ssl.keystore.location=%[6]s
ssl.truststore.type=PEM
ssl.truststore.location=%[7]s
listener.name.mutual.ssl.client.auth=required
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
listener.name.sasl_ssl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_%[8]s="%[9]s";
listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
auto.create.topics.enable=false
default.replication.factor=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
log.index.size.max.bytes=1048576
`

// findJars finds java and the folder where bin/local stores Kafka's jars.
func findJars(t testing.TB) (java, jars string) {
	t.Helper()
	java, err := exec.LookPath("java")
	if err != nil {
		t.Skip("no Kafka with TLS: there is no java")
	}
	places := []string{"/var/lib/holdfast/cache"}
	if home, err := os.UserHomeDir(); err == nil {
		places = append(places, filepath.Join(home, ".cache", "holdfast"))
	}
	for _, place := range places {
		if found, _ := filepath.Glob(filepath.Join(place, "kafka-*")); len(found) > 0 {
			return java, found[len(found)-1]
		}
	}
	t.Skipf("no Kafka with TLS: bin/local has put no jars in %v", places)
	return "", ""
}

// run starts the process, waits until it listens on every address, and stops it when kill is called and at the end of the test.
func run(t testing.TB, path string, args []string, logFile string, addresses ...string) (kill func()) {
	t.Helper()
	log, err := os.Create(logFile)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() // The process has its own descriptor.
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	kill = func() { _ = cmd.Process.Kill(); <-ended }
	t.Cleanup(kill)
	ctx, cancel := context.WithTimeout(t.Context(), secureLimit)
	defer cancel()
	for _, address := range addresses {
		for !listens(ctx, address) {
			select {
			case <-ended:
				t.Fatalf("Kafka has ended: %s", read(t, logFile))
			case <-ctx.Done():
				t.Fatalf("Kafka does not listen: %s", read(t, logFile))
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	return kill
}

func listens(ctx context.Context, address string) bool {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

func freeAddresses(t testing.TB, n int) []string {
	t.Helper()
	out := make([]string, n)
	for i := range out {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		out[i] = l.Addr().String()
	}
	return out
}

func read(t testing.TB, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b)) + "\n"
}

func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
