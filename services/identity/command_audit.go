package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"holdfast.dev/services/identity/internal/domain"
)

var errBroken = errors.New("the audit log was altered")

func auditCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "audit", Short: "Check the audit log."}
	cmd.AddCommand(auditVerify())
	return cmd
}

func auditVerify() *cobra.Command {
	var tenant string
	cmd := withJSON(&cobra.Command{
		Use: "verify", Short: "Follow the hash chain of each tenant; fails when a record was altered or removed.", Args: cobra.NoArgs,
		RunE: command(func(t tool, _ []string) error {
			tenants, err := auditTenants(t, tenant)
			if err != nil {
				return err
			}
			verdicts, err := t.VerifyAudit(t.cmd.Context(), tenants)
			if err != nil {
				return err
			}
			rows := [][]string{{"TENANT", "RECORDS", "CHAIN"}}
			for _, v := range verdicts {
				state := "holds"
				if v.Broken != "" {
					state, err = "broken: "+v.Broken, errBroken
				}
				rows = append(rows, []string{v.Tenant, fmt.Sprint(v.Records), state})
			}
			return errors.Join(t.print(verdicts, rows...), err)
		}),
	})
	cmd.Flags().StringVar(&tenant, "tenant", "", "slug or id of one tenant; all without it")
	return cmd
}

func auditTenants(t tool, ref string) ([]domain.Tenant, error) {
	if ref == "" {
		return t.Tenants(t.cmd.Context())
	}
	one, err := t.Tenant(t.cmd.Context(), ref)
	return []domain.Tenant{one}, err
}
