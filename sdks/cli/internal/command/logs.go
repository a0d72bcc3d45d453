package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/spf13/cobra"

	holdfast "holdfast.dev/sdks/go"

	"holdfast.dev/sdks/cli/internal/follow"
	"holdfast.dev/sdks/cli/internal/operations"
	"holdfast.dev/sdks/cli/internal/output"
	"holdfast.dev/sdks/cli/internal/profile"
)

// The times and sizes of logs tail.
const (
	tailPause   = 2 * time.Second  // between requests
	tailOverlap = 30 * time.Second // a request can appear in the log after newer ones
	tailPages   = 10               // pages of 100 rows that are read at a time
)

// logsPath is the path of the list of request logs.
const logsPath = "/request-logs"

func (a *App) logs() *cobra.Command {
	cmd := &cobra.Command{Use: "logs", Short: "Follow the log of requests."}
	cmd.AddCommand(a.tail())
	return cmd
}

func (a *App) tail() *cobra.Command {
	c := &call{app: a}
	var since time.Duration
	cmd := &cobra.Command{
		Use: "tail", Short: "Show requests to the API as they are logged.", ValidArgsFunction: cobra.NoFileCompletions,
		Long: "Show requests to the API of the tenant and mode as they are logged: every write, every response of 400 or more, and a sample of the " +
			"successful reads. A request appears within seconds. Press Ctrl-C to stop. holdfast request-logs list searches in the last 7 days.",
		Example: "  holdfast logs tail --status 4xx\n  holdfast logs tail --method POST --route /bookings -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.check(); err != nil {
				return err
			}
			s, err := a.session(cmd.Context())
			if err != nil {
				return err
			}
			t := &tail{call: c, session: s, from: time.Now().Add(-since), seen: map[string]time.Time{}}
			return t.follow(cmd.Context())
		},
	}
	cmd.Flags().SortFlags = false
	for _, p := range logFilters() {
		c.query = append(c.query, addInput(cmd, p))
	}
	cmd.Flags().DurationVar(&since, "since", 0, "begin with the requests of this `duration`, such as 10m (default from now on)")
	cmd.Flags().StringVarP(&c.format, "output", "o", "", "format: table, json (default table on a terminal, otherwise json)")
	cmd.Flags().StringVar(&c.filter, "jq", "", "jq `filter` for the JSON of each request")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{formatTable, formatJSON}, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	return cmd
}

// logFilters returns the filters that the list of request logs has, except those for pages and times.
func logFilters() []operations.Param {
	var all []operations.Param
	for _, res := range operations.Resources {
		for _, op := range res.Operations {
			if op.Path == logsPath {
				all = append(all, op.QueryParams...)
			}
		}
	}
	return slices.DeleteFunc(all, func(p operations.Param) bool {
		return slices.Contains([]string{"limit", "cursor", "created_after", "created_before"}, p.Name)
	})
}

// tail shows the rows of the list that are new.
type tail struct {
	call    *call
	session *profile.Session
	from    time.Time            // rows before this time are not shown
	seen    map[string]time.Time // the rows shown within the overlap, by ID
}

// logRow is what tail needs of a request log.
type logRow struct {
	ID         string    `json:"id"`
	Status     int       `json:"status"`
	Method     string    `json:"method"`
	Route      string    `json:"route"`
	Path       string    `json:"path"`
	Code       string    `json:"code"`
	DurationMS float64   `json:"duration_ms"`
	CreatedAt  time.Time `json:"created_at"`

	text json.RawMessage
}

// follow runs until ctx ends, or until the platform returns an error that a retry cannot resolve.
func (t *tail) follow(ctx context.Context) error {
	for {
		err := t.poll(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if refused := (*holdfast.Error)(nil); errors.As(err, &refused) && follow.Refused(refused) {
			return err
		}
		if err != nil {
			t.call.app.note("%s; again in %v", message(err), tailPause)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(tailPause):
		}
	}
}

// poll shows the rows that were not shown yet, oldest first.
func (t *tail) poll(ctx context.Context) error {
	rows, err := t.read(ctx)
	if err != nil {
		return err
	}
	for _, row := range slices.Backward(rows) {
		if _, shown := t.seen[row.ID]; shown || row.Route == logsPath && row.Status < http.StatusBadRequest { // the requests of this command
			continue
		}
		t.seen[row.ID] = row.CreatedAt
		if err := t.write(ctx, row); err != nil {
			return err
		}
		if overlap := row.CreatedAt.Add(-tailOverlap); overlap.After(t.from) {
			t.from = overlap
		}
	}
	maps.DeleteFunc(t.seen, func(_ string, at time.Time) bool { return at.Before(t.from) })
	return nil
}

// read returns the rows since t.from, newest first.
func (t *tail) read(ctx context.Context) ([]logRow, error) {
	q := query(t.call.query)
	q.Set("limit", "100")
	q.Set("created_after", t.from.UTC().Format(time.RFC3339Nano))
	var all []logRow
	pages := 0
	err := eachPage(ctx, t.session, holdfast.Request{Method: http.MethodGet, Path: logsPath, Query: q}, func(_ []byte, p page) (bool, error) {
		for _, text := range p.Data {
			row := logRow{text: text}
			if err := json.Unmarshal(text, &row); err != nil {
				return false, fmt.Errorf("the row is not a request log: %w", err)
			}
			all = append(all, row)
		}
		if pages++; pages == tailPages && p.HasMore {
			t.call.app.note("More than %d requests are new: older ones are not shown.", tailPages*100)
		}
		return pages < tailPages, nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// write shows a row.
func (t *tail) write(ctx context.Context, row logRow) error {
	out := t.call.app.Out
	switch {
	case t.call.jq != nil:
		return t.call.jq.Write(ctx, out, row.text)
	case t.call.format == formatJSON:
		var text bytes.Buffer
		if err := json.Compact(&text, row.text); err != nil {
			return err
		}
		return out.Text(text.String() + "\n")
	}
	status := fmt.Sprint(row.Status)
	if row.Status >= http.StatusBadRequest {
		status = out.Style(output.Red, status)
	}
	line := fmt.Sprintf("  %-6s  %s  %.0f ms  %s", row.Method, row.Path, row.DurationMS, row.ID)
	if row.Code != "" {
		line += "  " + row.Code
	}
	_, err := fmt.Fprintf(out, "%s  %s%s\n", row.CreatedAt.UTC().Format(time.RFC3339), status, output.Visible(line))
	return err
}
