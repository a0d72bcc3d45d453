package main

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/patch"
	"holdfast.dev/proto"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/view"
)

func tenantLimits() *cobra.Command {
	var tenant string
	cmd := withJSON(&cobra.Command{
		Use: "limits", Short: "Set a tenant's rate limits and caps, or show them if no limit is given; null sets the default.", Args: cobra.NoArgs,
		RunE: command(func(t tool, _ []string) error {
			in, change, err := limitFlags(t.cmd.Flags())
			if err != nil {
				return err
			}
			found, err := t.Tenant(t.cmd.Context(), tenant)
			if err != nil {
				return err
			}
			if change {
				var published bool
				if found, published, err = t.SetLimits(t.cmd.Context(), t.by, found.ID, in); err != nil {
					return err
				}
				t.late(published)
			}
			return t.print(view.TenantLimits(found.Limits), limitRows(found.Limits)...)
		}),
	})
	f := cmd.Flags()
	f.StringVar(&tenant, "tenant", "", "the tenant's ID (tn_…) or slug")
	f.String("requests-per-minute", "", "number of requests of all credentials in any 60 seconds, in each mode; null is the default")
	f.String("credential-requests-per-minute", "", "number of requests of each credential in any 60 seconds; null is the default")
	f.StringArray("cap", nil, "name=number, such as units=3000, or name=null for the default; repeat the flag for several caps")
	f.Bool("reset", false, "set the defaults of all limits that no other flag sets")
	_ = cmd.MarkFlagRequired("tenant")
	return cmd
}

// limitFlags reads the given flags, and reports whether they change a limit.
func limitFlags(f *pflag.FlagSet) (in domain.LimitsPatch, change bool, err error) {
	var wrong []apperr.FieldError
	reject := func(flag *pflag.Flag) {
		wrong = append(wrong, apperr.FieldError{Field: flag.Name, Message: "Must be " + flag.Usage + "."})
	}
	f.Visit(func(flag *pflag.Flag) {
		ok := true
		switch flag.Name {
		case "requests-per-minute":
			in.RequestsPerMinute, ok = number(flag.Value.String())
		case "credential-requests-per-minute":
			in.CredentialRequestsPerMinute, ok = number(flag.Value.String())
		case "cap":
			list, _ := f.GetStringArray("cap") // the flag exists
			in.Caps, ok = caps(list)
		case "reset":
			in.Reset, _ = f.GetBool("reset") // the flag exists
		default:
			return
		}
		if change = true; !ok {
			reject(flag)
		}
	})
	if len(wrong) > 0 {
		return in, false, apperr.Fields(wrong)
	}
	return in, change, nil
}

// caps parses pairs of a name and a number or null. SetLimits checks the names and numbers.
func caps(list []string) (map[string]patch.Field[int], bool) {
	out := make(map[string]patch.Field[int], len(list))
	for _, one := range list {
		name, value, found := strings.Cut(one, "=")
		most, ok := number(value)
		if _, twice := out[name]; !found || !ok || twice {
			return nil, false
		}
		out[name] = most
	}
	return out, true
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
