package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
)

var errBroken = errors.New("the audit log was altered")

func auditCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "audit", Short: "Check the audit log."}
	cmd.AddCommand(auditVerify())
	return cmd
}

func auditVerify() *cobra.Command {
	var tenant, kept string
	cmd := withJSON(&cobra.Command{
		Use: "verify", Short: "Follow the hash chain of each tenant; fails when a record was altered, removed or inserted.", Args: cobra.NoArgs,
		Long: "Follow the hash chain of each tenant and print its head; fails when a record was altered, removed or inserted.\n" +
			"A person who can write the database can replace the whole chain by another one. Keep what --json prints in another\n" +
			"place, and name that file by --kept the next time: the chain must go through the heads that it holds.",
		RunE: command(func(t tool, _ []string) error {
			heads, err := keptHeads(kept)
			if err != nil {
				return err
			}
			tenants, err := auditTenants(t, tenant)
			if err != nil {
				return err
			}
			verdicts, err := t.VerifyAudit(t.cmd.Context(), tenants, heads)
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
		}),
	})
	cmd.Flags().StringVar(&tenant, "tenant", "", "slug or id of one tenant; all without it")
	cmd.Flags().StringVar(&kept, "kept", "", "file with what --json printed at an earlier time")
	return cmd
}

// keptHeads reads what --json has printed, by slug.
func keptHeads(file string) (map[string]domain.KeptHead, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file) //nolint:gosec // the user names it
	if err != nil {
		return nil, err
	}
	var verdicts []app.Verdict
	if err := json.Unmarshal(text, &verdicts); err != nil {
		return nil, fmt.Errorf("--kept: %s is not what --json prints: %w", file, err)
	}
	heads := make(map[string]domain.KeptHead, len(verdicts))
	for _, v := range verdicts {
		heads[v.Tenant] = v.Head
	}
	return heads, nil
}

// missing are the tenants whose head was kept and that do not exist any more.
func missing(found []app.Verdict, kept map[string]domain.KeptHead) []app.Verdict {
	var out []app.Verdict
	for _, slug := range slices.Sorted(maps.Keys(kept)) {
		if !slices.ContainsFunc(found, func(v app.Verdict) bool { return v.Tenant == slug }) {
			out = append(out, app.Verdict{Tenant: slug, Broken: "the tenant is missing"})
		}
	}
	return out
}

func auditTenants(t tool, ref string) ([]domain.Tenant, error) {
	if ref == "" {
		return t.Tenants(t.cmd.Context())
	}
	one, err := t.Tenant(t.cmd.Context(), ref)
	return []domain.Tenant{one}, err
}
