#!/bin/sh
# Formats the folder at the first start and then runs Kafka, with broker and controller in one process (KRaft). Works in the
# public apache/kafka and in any image with Java 17 and Kafka's jars in /opt/kafka/libs.
set -euf # no globbing: java itself expands the star in its class path
java="java -Xmx512m -XX:+UseSerialGC -Djava.awt.headless=true -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp /opt/kafka/libs/*"
cat > /tmp/server.properties <<'SETTINGS'
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:9093
controller.listener.names=CONTROLLER
listeners=CLIENTS://:9092,FORWARDED://127.0.0.1:19092,CONTROLLER://127.0.0.1:9093
advertised.listeners=CLIENTS://holdfast-kafka:9092,FORWARDED://127.0.0.1:19092
listener.security.protocol.map=CLIENTS:PLAINTEXT,FORWARDED:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=FORWARDED
log.dirs=/data/kafka
auto.create.topics.enable=false
num.partitions=48
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
SETTINGS
[ -f /data/kafka/meta.properties ] || $java kafka.tools.StorageTool format -t aG9sZGZhc3Qta2luZC0wMQ -c /tmp/server.properties
exec $java kafka.Kafka /tmp/server.properties
