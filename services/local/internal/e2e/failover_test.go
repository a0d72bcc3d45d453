package e2e

import (
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/kafkatest"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/libs/redistest"
)

// failure is what fails while the platform is under load.
type failure struct {
	what string
	// fail makes a server fail. It fails the test unless the server really failed.
	fail func(t *testing.T, p *platform)
	// recovered waits for what recovers later than requests do; nil: nothing does.
	recovered func(t *testing.T, p *platform)
}

// TestFailover makes one server of each datastore fail while the operators of two tenants book and, for one, invoice and pay, and repeat
// each request until it is acknowledged. No process of the platform is restarted. Each acknowledged write exists once, no slot is given
// twice, nothing is charged twice, and each event arrives in order and is delivered.
func TestFailover(t *testing.T) {
	onMachine(t)
	if os.Getenv("TEST_FAILOVER") == "" {
		t.Skip("several servers of each datastore take longer than a test may: run `make failover`")
	}
	for name, start := range map[string]func(t *testing.T) (settings []string, failures []failure){
		"PostgreSQL":     failingPostgres,
		"Redis Sentinel": failingSentinel,
		"Redis Cluster":  failingCluster,
		"Kafka":          failingBroker,
		"Kafka's disk":   failingDisk,
	} {
		t.Run(name, func(t *testing.T) {
			settings, failures := start(t)
			p, err := newPlatform(settings...)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(p.remove)
			if err := p.up(); err != nil {
				t.Fatal(err)
			}
			l := newFailoverLoad(t, p)
			stop := l.start(t)
			for _, f := range failures {
				l.until(t, l.sold()+5)
				begin, before := time.Now(), l.sold()
				f.fail(t, p)
				l.until(t, before+20)
				t.Logf("%s: 20 more sales after %v; the longest time without an acknowledged request was %v, and until one was acknowledged %v",
					f.what, time.Since(begin).Round(time.Millisecond), l.pause(begin).Round(time.Millisecond), l.slowest(begin).Round(time.Millisecond))
				if f.recovered != nil {
					f.recovered(t, p)
				}
			}
			stop()
			l.check(t)
		})
	}
}

// failingPostgres kills the primary while commits wait for the synchronous standby, and promotes the standby.
func failingPostgres(t *testing.T) ([]string, []failure) {
	pair := pgtest.StartPair(t, true)
	return []string{"DATABASE_URL=" + pair.URL, "KAFKA=embedded"}, []failure{{
		what: "the primary is killed, and the standby promoted",
		fail: func(t *testing.T, p *platform) {
			pair.Delay()
			await(t, "commits that wait for the standby", func() bool {
				return p.rows(t, "bookings", `select count(*)::text from pg_stat_activity where wait_event = 'SyncRep'`)[0] != "0"
			})
			pair.Kill()
			pair.Promote()
		},
	}}
}

const redisTimeout = "REDIS_TIMEOUT=500ms" // a loaded machine's pauses are shorter

// failingSentinel kills one of three Sentinels, the first in the address, and then the master.
func failingSentinel(t *testing.T) ([]string, []failure) {
	address, killSentinel, killMaster := redistest.ThreeSentinels(t)
	settings := []string{"REDIS_URL=" + address, "REDIS_SENTINEL_PASSWORD=" + redistest.SentinelPassword, redisTimeout, "KAFKA=embedded"}
	return settings, []failure{
		{what: "a Sentinel is killed", fail: func(*testing.T, *platform) { killSentinel() }},
		{
			what:      "the master is killed",
			fail:      func(t *testing.T, p *platform) { killMaster(); p.awaitRedis(t, "1") },
			recovered: func(t *testing.T, p *platform) { p.awaitRedis(t, "0") },
		},
	}
}

// failingCluster makes the master of a Cluster silent that has the slot of the demo tenant.
func failingCluster(t *testing.T) ([]string, []failure) {
	address, stop := redistest.StoppableCluster(t)
	var resume func()
	return []string{"REDIS_URL=" + address, redisTimeout, "KAFKA=embedded"}, []failure{{
		what: "a master is silent",
		fail: func(t *testing.T, p *platform) {
			tenant := read[struct {
				Tenant string `json:"tenant_id"`
			}](t, p.as(t, "DEMO_TEST_KEY"), "/me").Tenant
			resume = stop(tenant)
			p.awaitRedis(t, "1")
		},
		recovered: func(t *testing.T, p *platform) { resume(); p.awaitRedis(t, "0") },
	}}
}

// awaitRedis waits until the gateway's metric shows that a master is down, or that none is.
func (p *platform) awaitRedis(t *testing.T, down string) {
	t.Helper()
	await(t, "gateway_redis_away is "+down, func() bool {
		return strings.Contains(p.metrics(t, "gateway")[0], "\ngateway_redis_away "+down+"\n")
	})
}

// failingBroker kills one of three brokers.
func failingBroker(t *testing.T) ([]string, []failure) {
	kafka := kafkatest.StartThree(t, 0)
	return brokers(kafka), []failure{{what: "a broker is killed", fail: func(t *testing.T, _ *platform) { kafka.Kill(2); awaitDead(t, kafka) }}}
}

// failingDisk fills the disk of one of three brokers.
func failingDisk(t *testing.T) ([]string, []failure) {
	kafka := kafkatest.StartThree(t, 64<<20)
	return brokers(kafka), []failure{{what: "a broker's disk is full", fail: func(t *testing.T, _ *platform) { kafka.Fill(); awaitDead(t, kafka) }}}
}

// brokers returns the platform's settings. Fewer partitions than the default need less of a small disk.
func brokers(kafka kafkatest.Three) []string {
	return []string{"KAFKA_BROKERS=" + strings.Join(kafka.Brokers, ","), "KAFKA_PARTITIONS=6"}
}

// awaitDead waits until the third broker no longer listens.
func awaitDead(t *testing.T, kafka kafkatest.Three) {
	t.Helper()
	patient(t, "the broker has stopped", func() bool {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", kafka.Brokers[2])
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
}
