package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
	"holdfast.dev/services/identity/internal/view"
)

var errBroken = errors.New("the audit log was changed")

func auditCommand() *cobra.Command {
	return group("audit", "Read and verify the audit log.", auditList(), auditVerify())
}

func auditVerify() *cobra.Command {
	var tenant, headsFile string
	return command(spec{
		use: "verify", short: "Verify the hash chain of each tenant; fails if a record was changed, deleted or inserted.",
		long: "Verify the hash chain of each tenant and print its head; fails if a record was changed, deleted or inserted.\n" +
			"A person with write access to the database can replace the whole chain. Store the output of --json in another place,\n" +
			"and pass that file with --kept next time: the chain must contain the heads in it.",
		flags: []flag{
			{&tenant, "tenant", "slug or id of a tenant (default all tenants)", optional},
			{&headsFile, "kept", "file with earlier output of --json", optional},
		},
		run: func(ctx context.Context, t tool) error {
			heads, err := readHeads(headsFile)
			if err != nil {
				return err
			}
			tenants, err := auditTenants(ctx, t, tenant)
			if err != nil {
				return err
			}
			verdicts, err := t.VerifyAudit(ctx, tenants, heads)
			if err != nil {
				return err
			}
			if tenant == "" {
				verdicts = append(verdicts, missing(verdicts, heads)...)
			}
			rows := [][]string{{"TENANT", "RECORDS", "HEAD", "CHAIN"}}
			for _, v := range verdicts {
				state := "holds"
				if v.Broken != "" {
					state, err = "broken: "+v.Broken, errBroken
				}
				rows = append(rows, []string{v.Tenant, fmt.Sprint(v.Records), v.Head.Hash, state})
			}
			return errors.Join(t.print(verdicts, rows...), err)
		},
	})
}

func auditList() *cobra.Command {
	var object, from, to string
	limit := 100
	return command(spec{
		use: "list", short: "List the audit records of a tenant, newest first.",
		long: "List the audit records of a tenant in order of arrival, newest first. Changes in customers and bookings show the names of\n" +
			"the changed fields, but never their values. With --json, each line is a record.",
		flags: []flag{
			tenantFlag("slug or id"),
			{&object, "object", "id of the changed object, such as bk_…", optional},
			{&from, "from", "only changes at or after this time, RFC 3339", optional},
			{&to, "to", "only changes before this time, RFC 3339", optional},
			{&limit, "limit", "maximum number of records", optional},
		},
		run: func(ctx context.Context, t tool) error {
			f := store.AuditFilter{Tenant: t.tenant.ID, Object: object}
			if err := cmp.Or(auditTime("from", from, &f.From), auditTime("to", to, &f.To)); err != nil {
				return err
			}
			if !t.json {
				if err := t.print(nil, []string{"NUMBER  AT  MODE  ACTOR  ACTION  OBJECT  SOURCE  AFTER"}); err != nil {
					return err
				}
			}
			return t.ListAudit(ctx, f, limit, t.printRecords)
		},
	})
}

// auditTime reads a time. "" is none.
func auditTime(flag, text string, to *time.Time) (err error) {
	if text == "" {
		return nil
	}
	if *to, err = time.Parse(time.RFC3339, text); err != nil {
		return fmt.Errorf("--%s: must be a time such as 2026-07-01T00:00:00Z", flag)
	}
	return nil
}

// printRecords prints one line per record.
func (t tool) printRecords(records []domain.Record) error {
	for _, r := range records {
		v := view.AuditRecord(r)
		line := strings.Join([]string{
			fmt.Sprint(v.Sequence), v.At.Format(time.RFC3339Nano), v.Mode, v.Actor, v.Action, v.Object, v.Source, string(v.After),
		}, "  ")
		if err := t.print(v, []string{line}); err != nil {
			return err
		}
	}
	return nil
}

// readHeads reads the output of --json, by slug.
func readHeads(file string) (map[string]domain.PrintedHead, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var verdicts []app.Verdict
	if err := json.Unmarshal(text, &verdicts); err != nil {
		return nil, fmt.Errorf("--kept: %s is not output of --json: %w", file, err)
	}
	heads := make(map[string]domain.PrintedHead, len(verdicts))
	for _, v := range verdicts {
		heads[v.Tenant] = v.Head
	}
	return heads, nil
}

// missing returns the tenants whose head was saved but that no longer exist.
func missing(found []app.Verdict, saved map[string]domain.PrintedHead) []app.Verdict {
	var out []app.Verdict
	for _, slug := range slices.Sorted(maps.Keys(saved)) {
		if !slices.ContainsFunc(found, func(v app.Verdict) bool { return v.Tenant == slug }) {
			out = append(out, app.Verdict{Tenant: slug, Broken: "the tenant is missing"})
		}
	}
	return out
}

func auditTenants(ctx context.Context, t tool, ref string) ([]domain.Tenant, error) {
	if ref == "" {
		return t.Tenants(ctx)
	}
	one, err := t.Tenant(ctx, ref)
	return []domain.Tenant{one}, err
}
