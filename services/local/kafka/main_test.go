package main

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// broker starts a broker on a free port with a data folder. The broker runs until stop is called.
func broker(t *testing.T, data string) (client *kgo.Client, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().(*net.TCPAddr)
	_ = l.Close()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx, address.Port, data, 20*time.Millisecond) }()
	client, err = kgo.NewClient(kgo.SeedBrokers(address.String()))
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); client.Ping(t.Context()) != nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the broker does not listen")
		}
	}
	return client, func() {
		client.Close()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func create(t *testing.T, client *kgo.Client, topic, retention string) {
	t.Helper()
	requested := kmsg.NewCreateTopicsRequestTopic()
	requested.Topic, requested.NumPartitions, requested.ReplicationFactor = topic, 1, 1
	setting := kmsg.NewCreateTopicsRequestTopicConfig()
	setting.Name, setting.Value = "retention.ms", &retention
	requested.Configs = append(requested.Configs, setting)
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Topics = append(req.Topics, requested)
	res, err := req.RequestWith(t.Context(), client)
	if err == nil {
		err = kerr.ErrorForCode(res.Topics[0].ErrorCode)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte("v")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// bound returns the partition's first offset (-2) or the one after its last (-1).
func bound(t *testing.T, client *kgo.Client, topic string, which int64) int64 {
	t.Helper()
	req := kmsg.NewPtrListOffsetsRequest()
	part := kmsg.NewListOffsetsRequestTopicPartition()
	part.Timestamp = which
	of := kmsg.NewListOffsetsRequestTopic()
	of.Topic, of.Partitions = topic, append(of.Partitions, part)
	req.Topics = append(req.Topics, of)
	res, err := req.RequestWith(t.Context(), client)
	if err == nil {
		err = kerr.ErrorForCode(res.Topics[0].Partitions[0].ErrorCode)
	}
	if err != nil {
		t.Fatal(err)
	}
	return res.Topics[0].Partitions[0].Offset
}

func TestTopicsOutliveTheProcessAndRetentionHolds(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	client, stop := broker(t, data)
	create(t, client, "kept", "60000")
	create(t, client, "short", "1")
	for end := time.Now().Add(20 * time.Second); bound(t, client, "short", -2) != 1; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("retention is not applied")
		}
	}
	stop()
	client, stop = broker(t, data)
	defer stop()
	if first, next := bound(t, client, "kept", -2), bound(t, client, "kept", -1); first != 0 || next != 1 {
		t.Errorf("after a restart the topic holds offsets %d to %d", first, next)
	}
}

func TestFlagsAreNeeded(t *testing.T) {
	t.Parallel()
	if err := run(t.Context(), 0, t.TempDir(), time.Second); err == nil {
		t.Error("it runs without a port")
	}
	if err := run(t.Context(), 1, "", time.Second); err == nil {
		t.Error("it runs without a folder")
	}
}
