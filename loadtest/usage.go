package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"holdfast.dev/proto"

	"holdfast.dev/loadtest/internal/report"
	"holdfast.dev/loadtest/internal/stack"
)

// usage is the processor time by process. The time of PostgreSQL's server processes is listed separately for each
// service whose database they serve.
type usage map[string]time.Duration

// postgres is the name of PostgreSQL's processes that serve no database, and of those that have ended.
const postgres = "postgres"

// ofService returns the name of the server processes of PostgreSQL that serve the database of a service.
func ofService(name string) string { return postgres + " of " + name }

// added returns the name of a process that the benchmark adds to the platform, such as another gateway.
func added(name string) string { return "+" + name }

func (u usage) plus(more usage) usage {
	sum := maps.Clone(more)
	for name, used := range u {
		sum[name] += used
	}
	return sum
}

func (u usage) since(before usage) usage {
	rest := usage{}
	for name, used := range u {
		rest[name] = used - before[name]
	}
	return rest
}

// times returns a multiple.
func (u usage) times(factor float64) usage {
	product := usage{}
	for name, used := range u {
		product[name] = time.Duration(float64(used) * factor)
	}
	return product
}

// per formats the microseconds per request, the largest first, without those that round to zero.
func (u usage) per(requests float64) string {
	names := slices.SortedFunc(maps.Keys(u), func(a, b string) int { return int(u[b] - u[a]) })
	var parts []string
	for _, name := range names {
		if micros := report.Ratio(float64(u[name].Microseconds()), requests); micros >= 0.5 {
			parts = append(parts, fmt.Sprintf("%s %.0f", name, micros))
		}
	}
	return strings.Join(parts, ", ")
}

// platform returns the time of all processes of the platform, except some. The load generator, the simulation of
// Stripe, and the added processes do not belong to the platform.
func (u usage) platform(except ...string) time.Duration {
	var sum time.Duration
	for name, used := range u {
		if !slices.Contains(append(except, "loadtest", "stripe"), name) && !strings.HasPrefix(name, added("")) {
			sum += used
		}
	}
	return sum
}

// readers are the services that process the events of bookings.
func readers() []string {
	var all []string
	for _, s := range proto.Services() {
		if slices.Contains(s.Reads, "bookings") {
			all = append(all, s.Name)
		}
	}
	return all
}

// afterCommit returns the time that bookings' events cost after their transaction: Kafka, and the services that read
// them with their databases. It excludes the relay of bookings, which is part of that service.
func (u usage) afterCommit() time.Duration {
	sum := u["kafka"] + u["kafka-embedded"]
	for _, name := range readers() {
		sum += u[name] + u[ofService(name)]
	}
	return sum
}

// perRequest returns a time per request in milliseconds.
func perRequest(used time.Duration, requests int) report.Quantity {
	return report.Quantity{Value: report.Ratio(float64(used.Microseconds())/1000, float64(requests)), Unit: "ms"}
}

// processors returns the processor time of all processes so far.
func (b *bench) processors() usage {
	all := usage{}
	measure := func(name string, pid int, time func(int) (time.Duration, error)) {
		if used, err := time(pid); err == nil { // else it has just ended
			all[name] = used
		}
	}
	own, others := b.platform.PIDs()
	for name, pid := range own {
		if name == "local" { // its children are counted separately
			measure(name, pid, stack.Own)
		} else {
			measure(name, pid, stack.CPU)
		}
	}
	for name, pid := range others {
		measure(added(name), pid, stack.CPU)
	}
	measure("loadtest", os.Getpid(), stack.Own)
	databases := map[string]string{} // the service of each database
	for _, name := range proto.ServiceNames() {
		databases[stack.DatabasePrefix+name] = name
	}
	servers, _ := stack.ByDatabase(
		own[postgres], slices.Collect(maps.Keys(databases)),
	) // after an error, they are listed as a whole
	for database, used := range servers {
		all[ofService(databases[database])] += used
		all[postgres] -= used
	}
	return all
}

const (
	calmTime = 10 * time.Second // after the start, which leaves statistics to collect and code to compile
	idleTime = 20 * time.Second
)

// idle measures the processor time of the platform without requests. Kafka's JVM is listed in the note only.
func (f *figure) idle() {
	f.check(f.platform.Drain(f.ctx))
	f.pause(calmTime)
	before := f.processors()
	f.pause(idleTime)
	used := f.processors().since(before)
	f.add(report.Row{
		Figure: "idle platform besides Kafka: CPU time of all processes",
		Value: report.Quantity{
			Value: used.platform("kafka", "kafka-embedded").Seconds() / idleTime.Seconds(), Unit: "cores",
		},
		Target: report.Target{Most: 0.1},
	})
	f.table.Note("idle platform, CPU µs per second: %s", used.per(idleTime.Seconds()))
}

// held returns how many bytes a process uses in its heap and its stacks after a garbage collection, according to its
// own metrics. The rest of its memory is reserved for later use.
func (f *figure) held(addr string) (sum float64) {
	_, err := get(f.ctx, "http://"+addr+"/debug/pprof/heap?gc=1")
	f.check(err)
	text, err := get(f.ctx, "http://"+addr+"/metrics")
	f.check(err)
	for line := range strings.Lines(string(text)) {
		for _, name := range []string{"go_memstats_heap_alloc_bytes", "go_memstats_stack_inuse_bytes"} {
			var bytes float64
			_, _ = fmt.Sscanf(line, name+" %g", &bytes)
			sum += bytes
		}
	}
	if sum == 0 {
		f.check(fmt.Errorf("%w: %s has no figures of its memory", errResult, addr))
	}
	return sum
}
