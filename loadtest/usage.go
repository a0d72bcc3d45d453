package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"holdfast.dev/proto"

	"holdfast.dev/loadtest/internal/report"
	"holdfast.dev/loadtest/internal/stack"
)

// usage is the processor time by process. The time of PostgreSQL's server processes is listed separately for each service whose
// database they serve.
type usage map[string]time.Duration

// postgres is the name of PostgreSQL's processes that serve no database, and of those that have ended.
const postgres = "postgres"

// ofService returns the name of the server processes of PostgreSQL that serve the database of a service.
func ofService(name string) string { return postgres + " of " + name }

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

// foreign are the processes that do not belong to the platform: the load generator, and the simulation of Stripe.
var foreign = []string{"loadtest", "stripe"}

// platform returns the time of all processes of the platform, except some.
func (u usage) platform(except ...string) time.Duration {
	var sum time.Duration
	for name, used := range u {
		if !slices.Contains(foreign, name) && !slices.Contains(except, name) {
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

// afterCommit returns the time that bookings' events cost after their transaction: Kafka, and the services that read them with their
// databases. It excludes the relay of bookings, which is part of that service.
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

// processors returns the processor time of the platform's processes and of this one so far.
func (b *bench) processors() usage {
	all := usage{}
	files, _ := filepath.Glob(filepath.Join(b.platform.Dir, ".run", "pids", "*"))
	for _, file := range files {
		name := filepath.Base(file)
		pid, err := b.platform.PID(name)
		if err != nil {
			continue // it was just restarted
		}
		measure := stack.CPU // with its children: PostgreSQL's server processes
		if name == "local" {
			measure = stack.Own // its children are counted separately
		}
		used, err := measure(pid)
		if err != nil {
			continue
		}
		if all[name] = used; name == postgres {
			splitPostgres(all, pid)
		}
	}
	for name, pid := range b.platform.PooledPIDs(pooledService) {
		if used, err := stack.CPU(pid); err == nil {
			all[name] = used
		}
	}
	if own, err := stack.Own(os.Getpid()); err == nil {
		all["loadtest"] = own
	}
	return all
}

// splitPostgres lists the time of the server processes by service.
func splitPostgres(all usage, pid int) {
	databases := map[string]string{} // the service of each database
	for _, name := range proto.ServiceNames() {
		databases[stack.DatabasePrefix+name] = name
	}
	used, err := stack.ByDatabase(pid, slices.Collect(maps.Keys(databases)))
	if err != nil {
		return // it is listed as a whole
	}
	for database, one := range used {
		all[ofService(databases[database])] += one
		all[postgres] -= one
	}
}

// restTime is how long the idle platform is measured before each slice.
const restTime = time.Second

// account calls slice and adds the processor time of everything that it causes. It begins and ends when no event is waiting, because
// some services collect events for up to a second. The time that the idle platform needs during the last wait is subtracted.
func (b *bench) account(ctx context.Context, used *usage, slice func() error) error {
	if err := b.platform.Drain(ctx); err != nil {
		return err
	}
	resting := b.processors()
	if err := pause(ctx, restTime); err != nil {
		return err
	}
	before := b.processors()
	if err := slice(); err != nil {
		return err
	}
	end := time.Now()
	if err := b.platform.Drain(ctx); err != nil {
		return err
	}
	idle := before.since(resting).times(time.Since(end).Seconds() / restTime.Seconds())
	*used = used.plus(b.processors().since(before).since(idle))
	return nil
}
