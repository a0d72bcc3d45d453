package domain

import (
	"slices"

	"holdfast.dev/libs/ids"
)

// FairShare divides the free concurrency among queues, one attempt at a time, round-robin over the tenants, and within a tenant
// over its queues in their order. A tenant with many endpoints or a long queue therefore gets no more than others. The set refused
// contains the queues that get less than their allowance because of a limit of their tenant or speed.
func FairShare(queues []EndpointQueue, allowances []Allowance, concurrency *Budget) (shares []int, refused map[EndpointKey]bool) {
	shares, refused = make([]int, len(queues)), map[EndpointKey]bool{}
	roundRobin(len(queues), func(i int) ids.Tenant { return queues[i].Key.Tenant }, func(i int) (again bool) {
		if shares[i] == allowances[i].Max || concurrency.Free() <= 0 {
			return false
		}
		if !concurrency.TryAcquire(queues[i].Key.Tenant, queues[i].Speed, 1) {
			refused[queues[i].Key] = true
			return false
		}
		shares[i]++
		return true
	})
	return shares, refused
}

// Candidate is a due delivery that can be claimed.
type Candidate struct {
	Queue int // the index of its queue
	Bytes int // the size of its body
}

// SelectByBytes selects the candidates whose bodies fit into the free bytes, round-robin like FairShare, up to batch bytes in
// total. The first body can be larger. Candidates are in the order of their queue. This order is preserved: a small body does not
// overtake a large one. The set refused contains the queues whose next body does not fit into the bytes of their tenant or speed.
func SelectByBytes(queues []EndpointQueue, candidates []Candidate, bytes *Budget, batch int) (selected []int, refused map[EndpointKey]bool) {
	waiting := make([][]int, len(queues))
	for i, c := range candidates {
		waiting[c.Queue] = append(waiting[c.Queue], i)
	}
	refused, sum, full := map[EndpointKey]bool{}, 0, false
	roundRobin(len(queues), func(i int) ids.Tenant { return queues[i].Key.Tenant }, func(i int) (again bool) {
		if len(waiting[i]) == 0 || full {
			return false
		}
		next := waiting[i][0]
		n := candidates[next].Bytes
		if full = !within(sum, n, batch); full {
			return false
		}
		if !bytes.TryAcquire(queues[i].Key.Tenant, queues[i].Speed, n) {
			refused[queues[i].Key] = true
			return false
		}
		waiting[i], sum, selected = waiting[i][1:], sum+n, append(selected, next)
		return true
	})
	return selected, refused
}

// roundRobin calls visit for n items: one item of each tenant per round, the items of a tenant in rotation. An item is excluded
// from later rounds if its visit returns false.
func roundRobin(n int, tenant func(int) ids.Tenant, visit func(int) (again bool)) {
	var tenants []ids.Tenant
	waiting := map[ids.Tenant][]int{}
	for i := range n {
		t := tenant(i)
		if waiting[t] == nil {
			tenants = append(tenants, t)
		}
		waiting[t] = append(waiting[t], i)
	}
	for len(tenants) > 0 {
		tenants = slices.DeleteFunc(tenants, func(t ids.Tenant) bool {
			items := waiting[t]
			for len(items) > 0 {
				i := items[0]
				items = items[1:]
				if visit(i) {
					items = append(items, i)
					break
				}
			}
			waiting[t] = items
			return len(items) == 0
		})
	}
}
