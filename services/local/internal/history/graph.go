package history

import (
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/gonum/graph"
	"gonum.org/v1/gonum/graph/path"
	"gonum.org/v1/gonum/graph/simple"
	"gonum.org/v1/gonum/graph/topo"
)

// dependency is why a transaction is before another one. The first ones are preferred if there are several reasons.
type dependency int

const (
	writeWrite dependency = iota // it wrote the version before
	writeRead                    // it wrote the version that the other one read
	order                        // it ended before the other one began, in one worker; or it is a step of it
	readWrite                    // it read the version before the one that the other one wrote
)

func (d dependency) String() string { return [...]string{"ww", "wr", "order", "rw"}[d] }

// dependencies is the graph of the transactions: those that made changes, and the operations with what they read.
type dependencies struct {
	nodes map[string]int64
	names []string
	edges map[[2]int64]edge
	ops   map[int64]Operation
}

type edge struct {
	dependency
	object string
	note   string // in which properties a change does not follow from the one before it
}

func (g *dependencies) node(name string) int64 {
	n, known := g.nodes[name]
	if !known {
		n = int64(len(g.names))
		g.nodes[name], g.names = n, append(g.names, name)
	}
	return n
}

func (g *dependencies) add(from, to int64, e edge) {
	if from == to {
		return
	}
	if other, known := g.edges[[2]int64{from, to}]; !known || e.dependency < other.dependency {
		g.edges[[2]int64{from, to}] = e
	}
}

// cycles builds the graph and returns the number of its edges and a violation for each of its knots. Objects are linearizable one by one
// (OBJ-1), so that every cycle contradicts a claim: either the one about several objects, or that one.
func (h *histories) cycles() (edges int, found []Violation) {
	g := h.dependencies()
	for _, knot := range topo.TarjanSCC(g.graph(nil, readWrite)) {
		if len(knot) > 1 {
			found = append(found, g.violation(knot))
		}
	}
	return len(g.edges), found
}

func (h *histories) dependencies() *dependencies {
	g := &dependencies{nodes: map[string]int64{}, edges: map[[2]int64]edge{}, ops: map[int64]Operation{}}
	for _, o := range h.sorted() {
		h.writes(g, o)
	}
	last := map[string]int64{} // by worker
	for _, op := range h.ops {
		n := g.node("operation " + op.Key)
		g.ops[n] = op
		own := h.byKey[op.Key]
		if before, any := last[op.Worker]; any {
			g.add(before, n, edge{dependency: order})
			for _, e := range own {
				g.add(before, g.node(e.transaction()), edge{dependency: order})
			}
		}
		last[op.Worker] = n
		if op.Outcome != OK {
			continue
		}
		for _, e := range own {
			g.add(g.node(e.transaction()), n, edge{dependency: order})
		}
		for _, s := range op.Seen {
			h.read(g, n, s)
		}
	}
	return g
}

// writes adds the dependencies between the changes of an object. A change that was decided on an older version than the one before it
// read that version.
func (h *histories) writes(g *dependencies, o *object) {
	for i, e := range o.events {
		n := g.node(e.transaction())
		if e.Precedes != "" {
			g.add(g.node(e.Precedes), n, edge{dependency: order, object: o.id})
		}
		if i == 0 || o.events[i-1].Version != e.Version-1 {
			continue
		}
		before := o.events[i-1]
		g.add(g.node(before.transaction()), n, edge{dependency: writeWrite, object: o.id})
		if e.Before == 0 || before.After == 0 || e.Before == before.After || o.deleted != 0 {
			continue
		}
		g.add(n, g.node(before.transaction()), edge{readWrite, o.id, fmt.Sprint(differing(before.Body, withPrevious(e)))})
	}
}

// read adds the dependencies of an operation that read a version.
func (h *histories) read(g *dependencies, n int64, s State) {
	o := h.objects[s.Object]
	if o == nil {
		return
	}
	if s.Version == 0 && o.deleted != 0 {
		s.Version = o.deleted
	}
	for _, e := range o.events {
		switch e.Version {
		case s.Version:
			g.add(g.node(e.transaction()), n, edge{dependency: writeRead, object: o.id})
		case s.Version + 1:
			g.add(n, g.node(e.transaction()), edge{dependency: readWrite, object: o.id})
		}
	}
}

// graph returns the graph with the given nodes, or all, and the edges up to a dependency.
func (g *dependencies) graph(only []graph.Node, most dependency) *simple.DirectedGraph {
	in := map[int64]bool{}
	for _, n := range only {
		in[n.ID()] = true
	}
	out := simple.NewDirectedGraph()
	for ends, e := range g.edges {
		if e.dependency <= most && (only == nil || in[ends[0]] && in[ends[1]]) {
			out.SetEdge(simple.Edge{F: simple.Node(ends[0]), T: simple.Node(ends[1])})
		}
	}
	return out
}

// violation describes a shortest cycle in a knot, with as few rw edges as possible.
func (g *dependencies) violation(knot []graph.Node) Violation {
	for _, most := range []dependency{writeWrite, writeRead, order} {
		part := g.graph(knot, most)
		for _, inner := range topo.TarjanSCC(part) {
			if len(inner) > 1 {
				cycle := shortest(part, g.graph(inner, most).Edges())
				return g.describe([...]string{"G0: writes in a cycle", "G1c: circular information flow", "G1c: circular information flow in a session"}[most], cycle)
			}
		}
	}
	if cycle := shortest(g.graph(knot, order), g.only(knot, readWrite)); cycle != nil {
		return g.describe(g.single(cycle), cycle)
	}
	all := g.graph(knot, readWrite)
	return g.describe("G2: a cycle with several rw edges", shortest(all, all.Edges()))
}

// only returns the edges of one dependency in a knot.
func (g *dependencies) only(knot []graph.Node, d dependency) graph.Edges {
	in, out := map[int64]bool{}, simple.NewDirectedGraph()
	for _, n := range knot {
		in[n.ID()] = true
	}
	for ends, e := range g.edges {
		if e.dependency == d && in[ends[0]] && in[ends[1]] {
			out.SetEdge(simple.Edge{F: simple.Node(ends[0]), T: simple.Node(ends[1])})
		}
	}
	return out.Edges()
}

// shortest returns the shortest cycle of one of the edges and a path back, or nil if there is none.
func shortest(back graph.Directed, edges graph.Edges) (cycle []int64) {
	for edges.Next() {
		from, to := edges.Edge().From(), edges.Edge().To()
		if back.(graph.Graph).Node(from.ID()) == nil || back.(graph.Graph).Node(to.ID()) == nil {
			continue
		}
		nodes, _ := path.DijkstraFrom(to, back).To(from.ID())
		if len(nodes) == 0 || cycle != nil && len(cycle) <= len(nodes) {
			continue
		}
		cycle = cycle[:0]
		for _, n := range nodes {
			cycle = append(cycle, n.ID())
		}
	}
	return cycle
}

// single names a cycle with one rw edge, which is from its last node to its first one.
func (g *dependencies) single(cycle []int64) string {
	from, to := cycle[len(cycle)-1], cycle[0]
	_, reads := g.ops[from]
	switch {
	case !reads && len(cycle) == 2:
		return "lost update: a change was decided on an older version (G-single)"
	case reads && len(cycle) == 2 && g.edges[[2]int64{to, from}].object != g.edges[[2]int64{from, to}].object:
		return "fractured read: one part of a transaction is visible and another one is not (G-single)"
	}
	return "G-single: a read misses a change that it depends on"
}

func (g *dependencies) describe(kind string, cycle []int64) Violation {
	v := Violation{Claim: "OBJ-1"}
	var steps []string
	objects := map[string]bool{}
	for i, n := range cycle {
		e := g.edges[[2]int64{n, cycle[(i+1)%len(cycle)]}]
		steps = append(steps, fmt.Sprintf("%s –%v %s%s→", g.names[n], e.dependency, e.object, e.note))
		if e.object != "" {
			objects[e.object] = true
		}
		if op, ok := g.ops[n]; ok {
			v.Operations = append(v.Operations, op)
		}
	}
	if slices.ContainsFunc(cycle, func(n int64) bool { return strings.HasPrefix(g.names[n], "bookings qt_") }) || len(objects) > 1 && anyOf(objects, "qt_") {
		v.Claim = "ACCEPT-1"
	}
	v.Text = kind + ": " + strings.Join(steps, " ")
	return v
}

// anyOf reports whether an object has a prefix.
func anyOf(objects map[string]bool, prefix string) bool {
	for id := range objects {
		if strings.HasPrefix(id, prefix) {
			return true
		}
	}
	return false
}
