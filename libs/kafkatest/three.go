package kafkatest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Three is a cluster of three Apache Kafka brokers that replicates every topic to all of them and acknowledges a message when two
// have it.
type Three struct {
	Brokers []string // host:port
	Kill    func(broker int)
	// Fill makes the disk of the third broker full. It is nil unless the disk is bounded.
	Fill func()
}

// StartThree starts the brokers and stops them at the end of the test. With a bounded disk, the third broker stores its data on a file
// system of its own of diskBytes; 0 is unbounded. It skips the test when there is no JDK, when `bin/local` has not yet downloaded the
// jars, or when a bounded disk is wanted and this user cannot mount one.
func StartThree(t testing.TB, diskBytes int) Three {
	t.Helper()
	java, jars := findJars(t)
	dir := t.TempDir()
	addr := freeAddresses(t, 6)
	var voters []string
	for i := range 3 {
		voters = append(voters, fmt.Sprintf("%d@%s", i+1, addr[3+i]))
	}
	disk := filepath.Join(dir, "3")
	c := Three{Brokers: addr[:3]}
	if diskBytes > 0 {
		mount(t, disk, diskBytes)
		c.Fill = func() { fill(t, filepath.Join(disk, "filler")) }
	}
	kills := make([]func(), 3)
	c.Kill = func(broker int) { kills[broker]() }
	var all sync.WaitGroup
	for i := range 3 {
		all.Go(func() {
			data := filepath.Join(dir, fmt.Sprint(i+1), "data")
			conf := filepath.Join(dir, fmt.Sprintf("server%d.properties", i+1))
			write(t, conf, fmt.Sprintf(threeProperties, i+1, strings.Join(voters, ","), addr[i], addr[3+i], data))
			args := []string{
				"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true",
				"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", filepath.Join(jars, "*"),
			}
			format := append(args[:len(args):len(args)], "kafka.tools.StorageTool", "format", "-t", clusterID, "-c", conf)
			if out, err := exec.CommandContext(t.Context(), java, format...).CombinedOutput(); err != nil {
				t.Errorf("formatting Kafka's folder: %v: %s", err, out)
				return
			}
			kills[i] = run(t, java, append(args, "kafka.Kafka", conf), filepath.Join(dir, fmt.Sprintf("log%d", i+1)), addr[i])
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return c
}

// threeProperties is a format string for the node's id, the controllers, the addresses of the two listeners and the data folder.
const threeProperties = `process.roles=broker,controller
node.id=%[1]d
controller.quorum.voters=%[2]s
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://%[3]s,CONTROLLER://%[4]s
advertised.listeners=PLAINTEXT://%[3]s
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=%[5]s
auto.create.topics.enable=false
default.replication.factor=3
min.insync.replicas=2
offsets.topic.replication.factor=3
offsets.topic.num.partitions=3
unclean.leader.election.enable=false
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
replica.lag.time.max.ms=5000
broker.session.timeout.ms=4000
broker.heartbeat.interval.ms=500
log.index.size.max.bytes=65536
log.preallocate=false
`

// mount mounts a file system in memory.
func mount(t testing.TB, dir string, bytes int) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
		t.Skipf("no disk of its own for a broker: mount: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// fill writes until the disk is full.
func fill(t testing.TB, file string) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, 64<<10)
	for {
		if _, err := f.Write(block); err != nil {
			return
		}
	}
}
