// Command local-kafka is the embedded Kafka-protocol broker of the development stack: one broker on a loopback port that stores
// its topics in a folder. It replaces Apache Kafka if no JDK is installed. It is not used in production.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// retentionMS is one week, the maximum: the platform's inbox rows must be stored longer than messages.
const retentionMS = "604800000"

// commit is set by the linker, as in the Makefile.
var commit string

func main() {
	port := flag.Int("port", 0, "loopback port to listen on")
	data := flag.String("data", "", "folder that stores topics, offsets and groups")
	version := flag.Bool("version", false, "print the version")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: local-kafka -port PORT -data FOLDER: an embedded Kafka-protocol broker for development")
		flag.PrintDefaults()
	}
	flag.Parse()
	switch {
	case *version:
		fmt.Println("local-kafka dev (commit " + cmp.Or(commit, "unknown") + ", " + runtime.Version() + ")")
		return
	case flag.NFlag() == 0:
		flag.Usage()
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *port, *data, time.Minute); err != nil {
		fmt.Fprintln(os.Stderr, "local-kafka:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends, then writes everything to data and returns. Every trimEvery it deletes messages past their
// retention.
func run(ctx context.Context, port int, data string, trimEvery time.Duration) error {
	if port == 0 || data == "" {
		return fmt.Errorf("-port and -data are required")
	}
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(1),
		kfake.Ports(port),
		kfake.ClusterID("holdfast-local"),
		kfake.DataDir(data),
		kfake.DefaultNumPartitions(12),
		kfake.GroupMinSessionTimeout(time.Second),
		kfake.BrokerConfigs(map[string]string{"log.retention.ms": retentionMS}),
		kfake.WithLogger(kfake.BasicLogger(os.Stderr, kfake.LogLevelWarn)),
	)
	if err != nil {
		return err
	}
	defer cluster.Close()
	fmt.Fprintln(os.Stderr, "listening on", cluster.ListenAddrs()[0])
	watch, err := watchMembers(cluster)
	if err != nil {
		return err
	}
	defer watch.close()
	look := time.NewTicker(watchEvery)
	defer look.Stop()
	trim := time.NewTicker(trimEvery)
	defer trim.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-trim.C:
			cluster.ApplyRetention()
		case <-look.C:
			watch.look(ctx)
		}
	}
}
