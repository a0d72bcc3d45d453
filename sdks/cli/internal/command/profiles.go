package command

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"holdfast.dev/sdks/cli/internal/output"
	"holdfast.dev/sdks/cli/internal/profile"
)

func (a *App) profiles() *cobra.Command {
	cmd := &cobra.Command{Use: "profiles", Short: "List, choose and remove profiles."}
	cmd.AddCommand(
		&cobra.Command{
			Use: "list", Short: "List the profiles.",
			RunE: func(*cobra.Command, []string) error { return a.listProfiles() },
		},
		&cobra.Command{
			Use: "use NAME", Short: "Choose the profile that commands use.", ValidArgsFunction: a.completeProfiles,
			RunE: func(_ *cobra.Command, args []string) error {
				folder, err := profile.Find()
				if err != nil {
					return err
				}
				return folder.Update(func(config *profile.Config) error {
					name, _, err := config.Named(args[0])
					config.Current = name
					return err
				})
			},
		},
		&cobra.Command{
			Use: "remove NAME", Short: "Remove a profile and its credential.", ValidArgsFunction: a.completeProfiles,
			RunE: func(cmd *cobra.Command, args []string) error {
				folder, err := profile.Find()
				if err != nil {
					return err
				}
				return a.remove(cmd.Context(), folder, args[0])
			},
		},
	)
	return cmd
}

func (a *App) listProfiles() error {
	folder, err := profile.Find()
	if err != nil {
		return err
	}
	config, err := folder.Read()
	if err != nil {
		return err
	}
	var rows []json.RawMessage
	for _, name := range slices.Sorted(maps.Keys(config.Profiles)) {
		p := config.Profiles[name]
		row, err := json.Marshal(map[string]any{
			"name": name, "current": name == config.Current, "mode": p.Mode, "tenant": p.Tenant, "address": profile.Origin(p.BaseURL), "credential": p.Type + " in " + p.Store,
		})
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		a.note("There are no profiles: run `holdfast login`.")
		return nil
	}
	return output.NewTable(a.Out, nil, []string{"name", "current", "mode", "tenant", "address", "credential"}).Rows(rows)
}

// completeProfiles completes the names of profiles.
func (a *App) completeProfiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	folder, err := profile.Find()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	config, err := folder.Read()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return slices.Sorted(maps.Keys(config.Profiles)), cobra.ShellCompDirectiveNoFileComp
}
