package migration

import (
	"slices"
	"strconv"
	"strings"
	"time"

	pgquery "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// maxLockTimeout is what libs/pg sets for the connection of migrations.
const maxLockTimeout = 300 * time.Millisecond

// statement checks one statement.
func (c *checker) statement(node *pgquery.Node) {
	switch s := node.GetNode().(type) {
	case *pgquery.Node_AlterTableStmt:
		c.alterTable(s.AlterTableStmt)
	case *pgquery.Node_CreateStmt:
		c.createTable(s.CreateStmt)
	case *pgquery.Node_IndexStmt:
		c.createIndex(s.IndexStmt)
	case *pgquery.Node_DropStmt:
		c.drop(s.DropStmt)
	case *pgquery.Node_RenameStmt:
		c.rename(s.RenameStmt)
	case *pgquery.Node_AlterEnumStmt:
		if old := s.AlterEnumStmt.GetOldVal(); old != "" {
			c.report(Rename, "the previous version uses the value %s", old)
		}
	case *pgquery.Node_GrantStmt:
		c.revoke(s.GrantStmt)
	case *pgquery.Node_InsertStmt, *pgquery.Node_UpdateStmt, *pgquery.Node_DeleteStmt, *pgquery.Node_SelectStmt, *pgquery.Node_MergeStmt:
		c.write(node)
	case *pgquery.Node_VariableSetStmt:
		c.set(s.VariableSetStmt)
	case *pgquery.Node_DoStmt, *pgquery.Node_CallStmt:
		c.report(Unreadable, "it runs a program")
	default:
		c.object(node)
		c.wholeTable(node)
	}
}

// object checks the statements that create functions, triggers, policies and views.
func (c *checker) object(node *pgquery.Node) {
	switch s := node.GetNode().(type) {
	case *pgquery.Node_CreateFunctionStmt:
		c.create(function, lastName(s.CreateFunctionStmt.GetFuncname()), s.CreateFunctionStmt.GetReplace())
	case *pgquery.Node_CreateTrigStmt:
		c.create(trigger, s.CreateTrigStmt.GetTrigname(), s.CreateTrigStmt.GetReplace())
		c.lock(s.CreateTrigStmt.GetRelation())
	case *pgquery.Node_CreatePolicyStmt:
		c.create(policy, s.CreatePolicyStmt.GetPolicyName(), false)
		c.lock(s.CreatePolicyStmt.GetTable())
	case *pgquery.Node_ViewStmt:
		c.create(table, s.ViewStmt.GetView().GetRelname(), s.ViewStmt.GetReplace())
	}
}

// wholeTable checks the statements that lock a table while they process it.
func (c *checker) wholeTable(node *pgquery.Node) {
	switch s := node.GetNode().(type) {
	case *pgquery.Node_LockStmt:
		c.report(TableLock, "LOCK")
	case *pgquery.Node_TruncateStmt:
		for _, r := range s.TruncateStmt.GetRelations() {
			if c.exists(r.GetRangeVar()) {
				c.report(TableLock, "TRUNCATE of %s", r.GetRangeVar().GetRelname())
			}
		}
	case *pgquery.Node_ClusterStmt:
		c.report(TableLock, "CLUSTER")
	case *pgquery.Node_VacuumStmt:
		for _, o := range s.VacuumStmt.GetOptions() {
			if o.GetDefElem().GetDefname() == "full" {
				c.report(TableLock, "VACUUM FULL")
			}
		}
	case *pgquery.Node_RefreshMatViewStmt:
		if !s.RefreshMatViewStmt.GetConcurrent() {
			c.report(TableLock, "REFRESH without CONCURRENTLY")
		}
	case *pgquery.Node_ReindexStmt:
		for _, o := range s.ReindexStmt.GetParams() {
			if o.GetDefElem().GetDefname() == "concurrently" {
				return
			}
		}
		c.report(IndexLock, "REINDEX blocks writes")
	}
}

// lock records that the statement locks a table until the transaction ends.
func (c *checker) lock(relation *pgquery.RangeVar) {
	c.locked = c.locked || c.transactional && c.exists(relation)
}

// write checks a statement that reads or changes rows, and the calls in it.
func (c *checker) write(node *pgquery.Node) {
	insert := node.GetInsertStmt()
	if from := insert.GetSelectStmt().GetSelectStmt().GetFromClause(); c.locked && len(from) > 0 {
		c.report(BulkWrite, "it copies rows while the transaction locks a table")
	}
	walk(node, func(m proto.Message) {
		switch s := m.(type) {
		case *pgquery.UpdateStmt:
			c.change(s.GetRelation())
		case *pgquery.DeleteStmt:
			c.change(s.GetRelation())
		case *pgquery.MergeStmt:
			c.change(s.GetRelation())
		case *pgquery.FuncCall:
			if args := s.GetArgs(); lastName(s.GetFuncname()) == "set_config" && len(args) > 1 {
				c.setTimeout(args[0].GetAConst().GetSval().GetSval(), args[1].GetAConst())
			}
		}
	})
}

// change checks that the changed rows belong to a table of the file.
func (c *checker) change(target *pgquery.RangeVar) {
	if c.exists(target) {
		c.report(BulkWrite, "the rows of %s stay locked until all are changed", target.GetRelname())
	}
}

func (c *checker) set(s *pgquery.VariableSetStmt) {
	if s.GetKind() != pgquery.VariableSetKind_VAR_SET_VALUE || len(s.GetArgs()) == 0 {
		return // back to the value of the connection
	}
	c.setTimeout(s.GetName(), s.GetArgs()[0].GetAConst())
}

func (c *checker) setTimeout(name string, value *pgquery.A_Const) {
	if !strings.EqualFold(name, "lock_timeout") {
		return
	}
	text := value.GetSval().GetSval()
	if number, ok := value.GetVal().(*pgquery.A_Const_Ival); ok {
		text = strconv.Itoa(int(number.Ival.GetIval()))
	}
	if _, err := strconv.Atoi(text); err == nil {
		text += "ms"
	}
	if d, err := time.ParseDuration(strings.ReplaceAll(text, " ", "")); err != nil || d <= 0 || d > maxLockTimeout {
		c.report(LockTimeout, "lock_timeout is %s", text)
	}
}

func (c *checker) rename(s *pgquery.RenameStmt) {
	unused := []pgquery.ObjectType{pgquery.ObjectType_OBJECT_INDEX, pgquery.ObjectType_OBJECT_TRIGGER, pgquery.ObjectType_OBJECT_POLICY}
	if slices.Contains(unused, s.GetRenameType()) || s.GetRelation() != nil && !c.exists(s.GetRelation()) {
		return
	}
	c.report(Rename, "the previous version uses the old name of what becomes %s", s.GetNewname())
}

// revoke checks that rights are only taken from what the file creates.
func (c *checker) revoke(s *pgquery.GrantStmt) {
	if s.GetIsGrant() {
		return
	}
	for _, o := range s.GetObjects() {
		name := object{function, lastName(o.GetObjectWithArgs().GetObjname())}
		if r := o.GetRangeVar(); r != nil {
			name = object{table, r.GetRelname()}
		}
		if !c.created[name] {
			c.report(Revoke, "the previous version can use its rights on %s", name.name)
		}
	}
}

// lastName returns the name of an object without its schema.
func lastName(names []*pgquery.Node) string {
	if len(names) == 0 {
		return ""
	}
	return names[len(names)-1].GetString_().GetSval()
}

// walk calls visit for a message and all messages in it.
func walk(m proto.Message, visit func(proto.Message)) {
	visit(m)
	m.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.Kind() != protoreflect.MessageKind:
		case field.IsList():
			for i := range value.List().Len() {
				walk(value.List().Get(i).Message().Interface(), visit)
			}
		default:
			walk(value.Message().Interface(), visit)
		}
		return true
	})
}
