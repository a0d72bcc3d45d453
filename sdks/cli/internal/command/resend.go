package command

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	holdfast "holdfast.dev/sdks/go"

	"holdfast.dev/sdks/cli/internal/follow"
)

func (a *App) resend() *cobra.Command {
	var to target
	var endpoint string
	var yes bool
	cmd := &cobra.Command{
		Use: "resend EVENT-ID", Short: "Send an event again, to a webhook endpoint or to a receiver on this machine.", ValidArgsFunction: cobra.NoFileCompletions,
		Long: "Send an event again. With --endpoint, the platform delivers the event to the endpoint now, like `holdfast events resend`. " +
			"With --forward-to, this command reads the event and POSTs it once, with the headers of a delivery.",
		Example: "  holdfast resend evt_… --endpoint we_…\n  holdfast resend evt_… --forward-to http://localhost:3000/hooks",
		RunE: func(cmd *cobra.Command, args []string) error {
			receiver, err := to.receiver()
			if err != nil {
				return err
			}
			s, err := a.session(cmd.Context())
			if err != nil {
				return err
			}
			text, err := s.Do(cmd.Context(), holdfast.Request{Method: http.MethodGet, Path: "/events/" + url.PathEscape(args[0])})
			if err != nil {
				return err
			}
			e := follow.Event{ID: args[0], Body: text}
			var head struct {
				Type string `json:"type"`
			}
			if err := json.Unmarshal(text, &head); err != nil {
				return fmt.Errorf("the response is not an event: %w", err)
			}
			e.Type = head.Type
			if receiver != nil {
				a.note("signed with %s", receiver.Secret)
				return a.Out.Text(eventLine(e) + "  " + attempt(cmd.Context(), receiver, e) + "\n")
			}
			if err := a.confirm(cmd.Context(), s, "Sending "+e.ID+" to "+endpoint+" again", yes); err != nil {
				return err
			}
			delivery, err := s.Events.Resend(cmd.Context(), e.ID, holdfast.EventResend{EndpointID: endpoint})
			if err != nil {
				return err
			}
			return a.Out.Text(eventLine(e) + "  " + delivery.ID + "  " + string(delivery.Status) + "\n")
		},
	}
	to.flags(cmd)
	cmd.Flags().StringVar(&endpoint, "endpoint", "", "`ID` of the webhook endpoint, we_…")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask for confirmation in live mode")
	cmd.MarkFlagsMutuallyExclusive("endpoint", "forward-to")
	cmd.MarkFlagsOneRequired("endpoint", "forward-to")
	return cmd
}
