package command

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	holdfast "holdfast.dev/sdks/go"

	"holdfast.dev/sdks/cli/internal/profile"
)

// statusDocument is the output of status.
type statusDocument struct {
	Profile    string   `json:"profile"` // "" if the credential is from the environment
	Address    string   `json:"address"`
	Platform   string   `json:"platform"`
	Tenant     string   `json:"tenant"`
	Mode       string   `json:"mode"`
	Credential string   `json:"credential"`
	Type       string   `json:"type"`
	Store      string   `json:"store"`
	Scopes     []string `json:"scopes"`
	RateLimit  struct {
		Limit         int `json:"limit"`
		WindowSeconds int `json:"window_seconds"`
		Remaining     int `json:"remaining"`
	} `json:"rate_limit"`
}

func (a *App) status() *cobra.Command {
	c := &call{app: a}
	cmd := &cobra.Command{
		Use: "status", Short: "Show the credential, the address, the mode, the request limit, and whether the platform responds.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.check(); err != nil {
				return err
			}
			ctx := cmd.Context()
			s, err := a.session(ctx)
			if err != nil {
				return err
			}
			begin := time.Now()
			var response holdfast.Response
			me, err := s.Me.Get(ctx, holdfast.WithResponse(&response))
			if err != nil {
				return err
			}
			took := time.Since(begin)
			tenant, err := s.Tenant.Get(ctx)
			if err != nil {
				return err
			}
			d := statusDocument{
				Profile: s.Name, Address: profile.Origin(s.Profile.BaseURL), Platform: "responds in " + took.Round(time.Millisecond).String(),
				Tenant: tenant.Name, Mode: string(me.Mode), Credential: me.ID, Type: string(me.Type), Store: s.Profile.Store, Scopes: me.Scopes,
			}
			if s.Name == "" {
				d.Store = "environment"
			}
			d.RateLimit.Limit, d.RateLimit.WindowSeconds = me.RateLimit.Limit, me.RateLimit.WindowSeconds
			d.RateLimit.Remaining, _ = strconv.Atoi(response.Header.Get("RateLimit-Remaining"))
			text, err := json.Marshal(d)
			if err != nil {
				return err
			}
			return c.write(ctx, text)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&c.format, "output", "o", "", "format: table, json, yaml (default table on a terminal, otherwise json)")
	f.StringVar(&c.filter, "jq", "", "jq `filter` for the JSON output")
	return cmd
}
