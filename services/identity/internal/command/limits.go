package command

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"holdfast.dev/libs/patch"
	"holdfast.dev/proto"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/view"
)

func tenantLimits() *cobra.Command {
	var in domain.LimitsPatch
	var pairs []string
	rates := fields{
		{"requests-per-minute", "number of requests of all credentials in any 60 seconds, in each mode; null is the default", number(&in.RequestsPerMinute)},
		{"credential-requests-per-minute", "number of requests of each credential in any 60 seconds; null is the default", number(&in.CredentialRequestsPerMinute)},
	}
	all := append(fields{
		{"cap", "", func(string) bool { return caps(pairs, &in) }},
		{"reset", "", func(string) bool { return true }},
	}, rates...)
	return command(spec{
		use: "limits", short: "Set a tenant's rate limits and caps, or show them if no limit is given; null sets the default.",
		flags: append(rates.flags(), tenantFlag("the tenant's ID (tn_…) or slug"),
			flag{&pairs, "cap", "name=number, such as units=3000, or name=null for the default; repeat the flag for several caps", optional},
			flag{&in.Reset, "reset", "set the defaults of all limits that no other flag sets", optional}),
		run: func(ctx context.Context, t tool) error {
			change, err := all.read(t.cmd.Flags())
			if err != nil {
				return err
			}
			if change {
				var published bool
				if t.tenant, published, err = t.SetLimits(ctx, t.by, t.tenant.ID, in); t.late(published, err) != nil {
					return err
				}
			}
			return t.print(view.TenantLimits(t.tenant.Limits), limitRows(t.tenant.Limits)...)
		},
	})
}

// caps parses pairs of a name and a number or null. SetLimits checks the names and numbers.
func caps(pairs []string, in *domain.LimitsPatch) bool {
	in.Caps = make(map[string]patch.Field[int], len(pairs))
	for _, one := range pairs {
		name, text, found := strings.Cut(one, "=")
		var most patch.Field[int]
		if _, twice := in.Caps[name]; !found || twice || !number(&most)(text) {
			return false
		}
		in.Caps[name] = most
	}
	return true
}

// limitRows is a table of all limits. A limit without a value of its own has the default, which the gateway knows for rates.
func limitRows(l domain.Limits) [][]string {
	show := func(n *int, otherwise string) string {
		if n == nil {
			return otherwise
		}
		return strconv.Itoa(*n)
	}
	rows := [][]string{
		{"LIMIT", "VALUE"},
		{"requests per minute", show(l.RequestsPerMinute, "default")},
		{"requests per minute of a credential", show(l.CredentialRequestsPerMinute, "default")},
	}
	for _, c := range proto.Caps {
		value := strconv.Itoa(c.Default) + " (default)"
		if most, own := l.Caps[c.Name]; own {
			value = strconv.Itoa(most)
		}
		rows = append(rows, []string{c.Name, value})
	}
	return rows
}
