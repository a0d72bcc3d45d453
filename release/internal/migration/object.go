package migration

import (
	"strings"

	pgquery "github.com/pganalyze/pg_query_go/v6"
)

// createTable records a table with its constraints. A partition locks its parent only briefly.
func (c *checker) createTable(s *pgquery.CreateStmt) {
	name := s.GetRelation().GetRelname()
	c.create(table, name, s.GetIfNotExists())
	for _, element := range s.GetTableElts() {
		constraints := element.GetColumnDef().GetConstraints()
		if k := element.GetConstraint(); k != nil {
			c.recordUnique(name, k)
			c.lockReferenced(k)
		}
		for _, k := range constraints {
			c.lockReferenced(k.GetConstraint())
		}
	}
}

// lockReferenced records the lock of the table that a foreign key refers to.
func (c *checker) lockReferenced(k *pgquery.Constraint) {
	if k.GetContype() == pgquery.ConstrType_CONSTR_FOREIGN {
		c.lock(k.GetPktable())
	}
}

// recordUnique records a named unique constraint. PostgreSQL's names for others end in _key and _pkey.
func (c *checker) recordUnique(table string, k *pgquery.Constraint) {
	switch k.GetContype() {
	case pgquery.ConstrType_CONSTR_UNIQUE, pgquery.ConstrType_CONSTR_PRIMARY, pgquery.ConstrType_CONSTR_EXCLUSION:
		c.unique[k.GetConname()] = true
	case pgquery.ConstrType_CONSTR_CHECK:
		c.recordCheck(table, k)
	default: // others matter to no rule
	}
}

// isUnique reports whether ON CONFLICT can refer to the index or constraint.
func (c *checker) isUnique(name string) bool {
	return c.unique[name] || strings.HasSuffix(name, "_pkey") || strings.HasSuffix(name, "_key")
}

func (c *checker) createIndex(s *pgquery.IndexStmt) {
	if s.GetUnique() {
		c.unique[s.GetIdxname()] = true
	}
	if s.GetConcurrent() {
		if c.transactional {
			c.report(IndexTransaction, "PostgreSQL creates no index concurrently in a transaction")
		}
		// IF NOT EXISTS would leave the invalid index of an interrupted attempt.
		c.create(index, s.GetIdxname(), false)
		return
	}
	if c.exists(s.GetRelation()) {
		c.report(IndexLock, "it blocks writes of %s while it builds %s", s.GetRelation().GetRelname(), s.GetIdxname())
	}
	c.create(index, s.GetIdxname(), s.GetIfNotExists())
}

func (c *checker) drop(s *pgquery.DropStmt) {
	for _, o := range s.GetObjects() {
		name := droppedName(o)
		switch s.GetRemoveType() {
		case pgquery.ObjectType_OBJECT_INDEX:
			c.dropIndex(s, name)
		case pgquery.ObjectType_OBJECT_TRIGGER:
			c.dropped[object{trigger, name}] = s.GetMissingOk()
		case pgquery.ObjectType_OBJECT_POLICY:
			c.dropped[object{policy, name}] = s.GetMissingOk()
		case pgquery.ObjectType_OBJECT_FUNCTION:
			c.dropOther(function, name)
		default:
			c.dropOther(table, name)
		}
	}
}

func (c *checker) dropIndex(s *pgquery.DropStmt, name string) {
	again := s.GetMissingOk() && !c.unique[name] // most often the remains of an earlier attempt, which follows at once
	switch {
	case c.created[object{index, name}]:
		return
	case !s.GetConcurrent():
		c.report(IndexLock, "it locks the table of %s until the transaction ends", name)
	case c.transactional:
		c.report(IndexTransaction, "PostgreSQL drops no index concurrently in a transaction")
	}
	if !again && c.isUnique(name) {
		c.report(DropUnique, "the previous version can need %s", name)
	}
	c.dropped[object{index, name}] = s.GetMissingOk()
}

func (c *checker) dropOther(k kind, name string) {
	if !c.created[object{k, name}] {
		c.report(DropObject, "the previous version can use %s", name)
	}
}

// droppedName returns the name of an object that DROP names, without schema, table and arguments.
func droppedName(o *pgquery.Node) string {
	if list := o.GetList(); list != nil {
		return lastName(list.GetItems())
	}
	if f := o.GetObjectWithArgs(); f != nil {
		return lastName(f.GetObjname())
	}
	if t := o.GetTypeName(); t != nil {
		return lastName(t.GetNames())
	}
	return o.GetString_().GetSval()
}
