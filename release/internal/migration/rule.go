package migration

import (
	"maps"
	"slices"
)

// Rule is the name of a rule.
type Rule string

// The rules. docs/releases.md describes them.
const (
	BulkWrite         Rule = "bulk-write"
	ColumnCheck       Rule = "column-check"
	ColumnNotNull     Rule = "column-not-null"
	ColumnRewrite     Rule = "column-rewrite"
	ColumnType        Rule = "column-type"
	ConstraintIndex   Rule = "constraint-index"
	ConstraintScan    Rule = "constraint-scan"
	DropColumn        Rule = "drop-column"
	DropDefault       Rule = "drop-default"
	DropObject        Rule = "drop-object"
	DropUnique        Rule = "drop-unique"
	IndexLock         Rule = "index-lock"
	IndexTransaction  Rule = "index-transaction"
	LockTimeout       Rule = "lock-timeout"
	NotRepeatable     Rule = "not-repeatable"
	Rename            Rule = "rename"
	Revoke            Rule = "revoke"
	SetNotNull        Rule = "set-not-null"
	TableLock         Rule = "table-lock"
	Unreadable        Rule = "unreadable"
	ValidateUnderLock Rule = "validate-under-lock"
)

// advice says what to do instead.
var advice = map[Rule]string{
	BulkWrite:         "change the rows in batches from a worker of the service",
	ColumnCheck:       "add the column without the check, then add the check as a constraint with NOT VALID and validate it",
	ColumnNotNull:     "give the column a constant default",
	ColumnRewrite:     "add the column without it, then set the default",
	ColumnType:        "add a column with the new type, write both, and drop the old column in a later release",
	ConstraintIndex:   "create the unique index concurrently, then add the constraint with USING INDEX",
	ConstraintScan:    "add the constraint with NOT VALID, and validate it in a file with NO TRANSACTION",
	DropColumn:        "drop the column in the release after the one that stops using it",
	DropDefault:       "drop the default in the release after the one that sets the column",
	DropObject:        "drop it in the release after the one that stops using it",
	DropUnique:        "drop it in the release after the one that stops using it in ON CONFLICT",
	IndexLock:         "use CONCURRENTLY in a file with NO TRANSACTION",
	IndexTransaction:  "begin the file with -- +goose NO TRANSACTION",
	LockTimeout:       "keep the 300ms that the migration's connection sets, or less",
	NotRepeatable:     "use IF NOT EXISTS or OR REPLACE, or drop it first with IF EXISTS",
	Rename:            "add the new name, write both, and drop the old name in a later release",
	Revoke:            "revoke it in the release after the one that stops using it",
	SetNotNull:        "add and validate a check that the column is not null first",
	TableLock:         "nothing can use the table until it is done, so do it outside of an upgrade",
	Unreadable:        "write plain statements, which the linter can read",
	ValidateUnderLock: "validate it in a file with NO TRANSACTION",
}

// Rules returns the names of all rules in alphabetical order.
func Rules() []Rule { return slices.Sorted(maps.Keys(advice)) }
