package migration

import (
	"slices"

	pgquery "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
)

// stable lists functions that PostgreSQL calls once for a new column, not once per row.
var stable = []string{"now", "current_setting", "statement_timestamp", "transaction_timestamp", "to_timestamp", "array", "jsonb_build_object"}

// alterTable checks the parts of ALTER TABLE in their order.
func (c *checker) alterTable(s *pgquery.AlterTableStmt) {
	if !c.exists(s.GetRelation()) {
		return
	}
	name := s.GetRelation().GetRelname()
	for _, node := range s.GetCmds() {
		cmd := node.GetAlterTableCmd()
		if cmd.GetSubtype() == pgquery.AlterTableType_AT_ValidateConstraint {
			c.validate(name, cmd.GetName())
			continue
		}
		c.lock(s.GetRelation())
		c.alter(name, cmd)
	}
}

func (c *checker) alter(table string, cmd *pgquery.AlterTableCmd) {
	switch cmd.GetSubtype() {
	case pgquery.AlterTableType_AT_AddColumn:
		c.addColumn(table, cmd)
	case pgquery.AlterTableType_AT_AddConstraint:
		c.addConstraint(table, cmd.GetDef().GetConstraint())
	case pgquery.AlterTableType_AT_DropConstraint:
		c.dropConstraint(cmd)
	case pgquery.AlterTableType_AT_DropColumn:
		c.report(DropColumn, "the previous version uses %s.%s", table, cmd.GetName())
	case pgquery.AlterTableType_AT_AlterColumnType, pgquery.AlterTableType_AT_SetExpression:
		c.report(ColumnType, "the type of %s.%s changes, and every row is rewritten", table, cmd.GetName())
	case pgquery.AlterTableType_AT_SetNotNull:
		if !c.validated[column{table, cmd.GetName()}] {
			c.report(SetNotNull, "it scans %s under a lock", table)
		}
	case pgquery.AlterTableType_AT_ColumnDefault:
		if cmd.GetDef() == nil {
			c.report(DropDefault, "the previous version leaves out %s.%s when it inserts", table, cmd.GetName())
		}
	case pgquery.AlterTableType_AT_DropIdentity:
		c.report(DropDefault, "the previous version leaves out %s.%s when it inserts", table, cmd.GetName())
	default:
		c.storage(table, cmd)
	}
}

// storage checks the changes that move or scan a table.
func (c *checker) storage(table string, cmd *pgquery.AlterTableCmd) {
	switch cmd.GetSubtype() {
	case pgquery.AlterTableType_AT_SetLogged, pgquery.AlterTableType_AT_SetUnLogged, pgquery.AlterTableType_AT_SetTableSpace,
		pgquery.AlterTableType_AT_SetAccessMethod:
		c.report(TableLock, "every row of %s is rewritten", table)
	case pgquery.AlterTableType_AT_AttachPartition:
		if part := cmd.GetDef().GetPartitionCmd().GetName(); c.exists(part) {
			c.report(TableLock, "%s is scanned under a lock", part.GetRelname())
		}
	case pgquery.AlterTableType_AT_DetachPartition:
		if !cmd.GetDef().GetPartitionCmd().GetConcurrent() {
			c.report(TableLock, "%s is locked: use DETACH PARTITION CONCURRENTLY", table)
		}
	default: // others change only the catalog
	}
}

func (c *checker) addColumn(table string, cmd *pgquery.AlterTableCmd) {
	def := cmd.GetDef().GetColumnDef()
	name := table + "." + def.GetColname()
	if !c.transactional && !cmd.GetMissingOk() {
		c.report(NotRepeatable, "%s exists when the file runs again", name)
	}
	if slices.Contains([]string{"serial", "bigserial", "smallserial", "serial4", "serial8", "serial2"}, lastName(def.GetTypeName().GetNames())) {
		c.report(ColumnRewrite, "%s is a serial, so every row is rewritten", name)
	}
	notNull, hasDefault := false, false
	for _, node := range def.GetConstraints() {
		k := node.GetConstraint()
		switch k.GetContype() {
		case pgquery.ConstrType_CONSTR_NOTNULL, pgquery.ConstrType_CONSTR_PRIMARY:
			notNull = true
		case pgquery.ConstrType_CONSTR_DEFAULT:
			hasDefault = !k.GetRawExpr().GetAConst().GetIsnull()
		case pgquery.ConstrType_CONSTR_CHECK:
			c.report(ColumnCheck, "the check of %s scans the table under a lock", name)
		default: // see columnConstraint
		}
		c.columnConstraint(name, k)
	}
	if notNull && !hasDefault {
		c.report(ColumnNotNull, "the previous version leaves out %s when it inserts", name)
	}
}

// columnConstraint checks what rewrites the table or builds an index for a new column.
func (c *checker) columnConstraint(name string, k *pgquery.Constraint) {
	switch k.GetContype() {
	case pgquery.ConstrType_CONSTR_DEFAULT:
		if call := volatile(k.GetRawExpr()); call != "" {
			c.report(ColumnRewrite, "the default of %s calls %s for every row", name, call)
		}
	case pgquery.ConstrType_CONSTR_IDENTITY, pgquery.ConstrType_CONSTR_GENERATED:
		c.report(ColumnRewrite, "the values of %s are generated, so every row is rewritten", name)
	case pgquery.ConstrType_CONSTR_UNIQUE, pgquery.ConstrType_CONSTR_PRIMARY:
		c.report(ConstraintIndex, "it builds the index of %s under a lock", name)
	case pgquery.ConstrType_CONSTR_FOREIGN:
		c.lockReferenced(k)
	default: // others need no scan
	}
}

// volatile returns the name of a function in an expression that can return another value for each row, or "".
func volatile(expression *pgquery.Node) (name string) {
	walk(expression, func(m proto.Message) {
		if call, ok := m.(*pgquery.FuncCall); ok && !slices.Contains(stable, lastName(call.GetFuncname())) {
			name = lastName(call.GetFuncname())
		}
	})
	return name
}

func (c *checker) addConstraint(table string, k *pgquery.Constraint) {
	c.create(constraint, k.GetConname(), false)
	c.recordUnique(table, k)
	switch k.GetContype() {
	case pgquery.ConstrType_CONSTR_CHECK, pgquery.ConstrType_CONSTR_FOREIGN:
		c.lockReferenced(k)
		if !k.GetSkipValidation() {
			c.report(ConstraintScan, "it scans %s under a lock", table)
		}
	case pgquery.ConstrType_CONSTR_UNIQUE, pgquery.ConstrType_CONSTR_PRIMARY, pgquery.ConstrType_CONSTR_EXCLUSION:
		if k.GetIndexname() == "" {
			c.report(ConstraintIndex, "it builds the index of %s under a lock", table)
		}
	default: // others are parts of columns
	}
}

func (c *checker) dropConstraint(cmd *pgquery.AlterTableCmd) {
	name := cmd.GetName()
	c.dropped[object{constraint, name}] = cmd.GetMissingOk()
	if c.isUnique(name) && !c.created[object{constraint, name}] {
		c.report(DropUnique, "the previous version can need %s", name)
	}
}

func (c *checker) validate(table, name string) {
	if c.locked {
		c.report(ValidateUnderLock, "it scans %s while the transaction holds a lock", table)
	}
	if col, ok := c.checks[[2]string{table, name}]; ok {
		c.validated[col] = true
	}
}

// recordCheck records a check that a column is not null.
func (c *checker) recordCheck(table string, k *pgquery.Constraint) {
	test := k.GetRawExpr().GetNullTest()
	if test.GetNulltesttype() != pgquery.NullTestType_IS_NOT_NULL {
		return
	}
	col := column{table, lastName(test.GetArg().GetColumnRef().GetFields())}
	c.checks[[2]string{table, k.GetConname()}] = col
	if !k.GetSkipValidation() {
		c.validated[col] = true
	}
}
