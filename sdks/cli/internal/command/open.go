package command

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
)

// consolePages are the pages of the console by the prefix of an ID.
var consolePages = map[string]string{
	"bk": "bookings", "cu": "customers", "ld": "leads", "qt": "quotes", "inv": "invoices", "pi": "payments", "rf": "refunds", "srv": "services",
	"un": "units", "pkg": "packages", "hr": "holiday-rules", "we": "endpoints", "evt": "events", "req": "requests",
}

func (a *App) open() *cobra.Command {
	var show bool
	cmd := &cobra.Command{
		Use: "open [ID]", Short: "Open the console, or the page of an ID, in the browser.", ValidArgsFunction: cobra.NoFileCompletions,
		Long: "Open the page of a booking, customer, lead, quote, invoice, payment intent, refund, service, unit, package, holiday rule, webhook endpoint, event " +
			"or request in the console. Without a browser, or with --url, the address is printed.",
		RunE: func(cmd *cobra.Command, args []string) error {
			page := ""
			if len(args) > 0 {
				prefix, _, _ := strings.Cut(args[0], "_")
				if page = consolePages[prefix]; page == "" {
					return usagef("the console has no page for %q", args[0])
				}
				page = "/" + page + "/" + args[0]
			}
			s, err := a.session(cmd.Context())
			if err != nil {
				return err
			}
			tenant, err := s.Tenant.Get(cmd.Context())
			if err != nil {
				return err
			}
			address := s.Console() + "/" + tenant.Slug + "/" + s.Profile.Mode + page
			if show || !a.Out.Terminal || !hasBrowser() {
				_, err := fmt.Fprintln(a.Out, address)
				return err
			}
			a.note("Opening %s", address)
			openBrowser(address)
			return nil
		},
	}
	cmd.Flags().BoolVar(&show, "url", false, "print the address and do not open the browser")
	return cmd
}

// hasBrowser reports whether this machine can show a page.
func hasBrowser() bool {
	switch runtime.GOOS {
	case "darwin", "windows":
		return true
	}
	return os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != "" || os.Getenv("BROWSER") != ""
}
