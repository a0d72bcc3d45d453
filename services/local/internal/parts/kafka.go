package parts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"

	"holdfast.dev/services/local/internal/supervise"
)

// The two brokers that can be started.
const (
	Apache   = "apache"
	Embedded = "embedded"
)

// Kafka configures a broker.
type Kafka struct {
	Kind       string // Apache or Embedded
	Name       string // process name and folder
	Port       int
	Controller int    // second port, Apache only
	Jars       string // folder of jars, Apache only
	Java       string // the java command, Apache only
	FullJIT    bool   // the JVM uses all its compilers, Apache only; false: only the first one, for a quick start
	Embedded   string // path of local-kafka, Embedded only
}

// StartKafka starts the broker and returns when it responds.
func (h *Host) StartKafka(ctx context.Context, k Kafka) error {
	spec, err := h.embeddedSpec(k)
	if k.Kind == Apache {
		spec, err = h.apacheSpec(ctx, k)
	}
	if err != nil {
		return err
	}
	if err := h.Group.Start(spec); err != nil {
		return err
	}
	return h.await(ctx, k.Name, k.ready)
}

var errNoEmbedded = errors.New("bin/local-kafka is missing: run `make bin/local-kafka`")

// embeddedSpec runs our own broker as the current user, because its executable can be in a folder that the servers' user cannot
// read.
func (h *Host) embeddedSpec(k Kafka) (supervise.Spec, error) {
	if _, err := os.Stat(k.Embedded); err != nil {
		return supervise.Spec{}, errNoEmbedded
	}
	dir := filepath.Join(h.Dir, k.Name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return supervise.Spec{}, err
	}
	return supervise.Spec{
		Name: k.Name, Path: k.Embedded, Args: []string{"-port", strconv.Itoa(k.Port), "-data", dir},
		Env: h.environment(dir), Dir: dir, Log: h.Log(k.Name),
	}, nil
}

func (h *Host) apacheSpec(ctx context.Context, k Kafka) (supervise.Spec, error) {
	dir, err := h.folder(k.Name)
	if err != nil {
		return supervise.Spec{}, err
	}
	conf, data := filepath.Join(dir, "server.properties"), filepath.Join(dir, "data")
	if err := h.write(conf, k.properties(data)); err != nil {
		return supervise.Spec{}, err
	}
	java := []string{
		"-Xmx512m", "-XX:+UseSerialGC", "-Djava.awt.headless=true",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", filepath.Join(k.Jars, "*"),
	}
	if !k.FullJIT {
		java = append([]string{"-XX:TieredStopAtLevel=1"}, java...)
	}
	if _, err := os.Stat(filepath.Join(data, "meta.properties")); err != nil {
		format := append(java[:len(java):len(java)], "kafka.tools.StorageTool", "format", "-t", clusterID, "-c", conf)
		if err := h.run(ctx, dir, k.Java, format...); err != nil {
			return supervise.Spec{}, fmt.Errorf("formatting Kafka's folder: %w", err)
		}
	}
	return supervise.Spec{
		Name: k.Name, Path: k.Java, Args: append(java, "kafka.Kafka", conf),
		Env: h.environment(dir), Dir: dir, User: h.User, Log: h.Log(k.Name),
	}, nil
}

// clusterID is an arbitrary id of 16 bytes in base64, because each private broker is alone in its cluster.
const clusterID = "aG9sZGZhc3QtbG9jYWwtMQ"

// properties configures one node that is both broker and controller. Only services create topics, with partitions and retention,
// so a wrong name never creates one. After a kill, the broker can register again only after its old session timed out.
func (k Kafka) properties(data string) string {
	broker, controller := Loopback(k.Port), Loopback(k.Controller)
	return fmt.Sprintf(`process.roles=broker,controller
node.id=1
controller.quorum.voters=1@%[2]s
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://%[1]s,CONTROLLER://%[2]s
advertised.listeners=PLAINTEXT://%[1]s
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=%[3]s
auto.create.topics.enable=false
num.partitions=12
default.replication.factor=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
log.retention.hours=168
log.index.size.max.bytes=1048576
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=3000
`, broker, controller, data)
}

// ready requests the list of brokers. A broker that listens but is not yet usable is missing from its own response.
func (k Kafka) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	brokers, err := kafkaBrokers(ctx, Loopback(k.Port))
	if err == nil && len(brokers) == 0 {
		err = errors.New("the broker is not registered yet")
	}
	return err
}

// kafkaBrokers returns the brokers that a broker knows.
func kafkaBrokers(ctx context.Context, address string) ([]kafka.Broker, error) {
	conn, err := kafka.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if end, limited := ctx.Deadline(); limited {
		if err := conn.SetDeadline(end); err != nil {
			return nil, err
		}
	}
	return conn.Brokers()
}
