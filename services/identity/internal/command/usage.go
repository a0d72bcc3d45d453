package command

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/oapi-codegen/nullable"
	"github.com/spf13/cobra"

	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/page"
	"holdfast.dev/proto"
	"holdfast.dev/proto/platformapi"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
	"holdfast.dev/services/identity/internal/view"
)

// usageRows is the number of rows that are read at a time.
const usageRows = 1000

func usageCommand() *cobra.Command {
	var date string
	var csv bool
	cmd := command(spec{
		use: "usage", short: "Show the recorded usage of all tenants on a day.",
		flags: []flag{
			{&date, "day", "the day in UTC, YYYY-MM-DD", required}, {&csv, "csv", "print CSV with the columns of the platform API", optional},
		},
		run: func(ctx context.Context, t tool) error {
			day, err := domain.ParseUsageDay("day", date)
			if err != nil {
				return err
			}
			list, err := t.usage(ctx, day)
			if err != nil {
				return err
			}
			if csv {
				return t.usageCSV(list)
			}
			rows := [][]string{{"TENANT", "MODE", "REQUESTS", "BOOKINGS", "EVENTS", "DELIVERIES", "ROWS", "BYTES", "CHARGED"}}
			for _, u := range list {
				rows = append(rows, usageLine(u))
			}
			return t.print(list, rows...)
		},
	})
	cmd.MarkFlagsMutuallyExclusive("csv", "json")
	return cmd
}

// usage reads all rows of a day.
func (t tool) usage(ctx context.Context, day time.Time) ([]platformapi.Usage, error) {
	all, after := []platformapi.Usage{}, store.UsageRow{}
	for {
		list, more, err := t.UsageOfDay(ctx, day, after, usageRows)
		if err != nil {
			return nil, err
		}
		if all = append(all, view.Usages(list)...); !more {
			return all, nil
		}
		last := list[len(list)-1]
		after = store.UsageRow{TenantID: last.TenantID, Livemode: last.Livemode}
	}
}

func usageLine(u platformapi.Usage) []string {
	requests := u.RequestsRead + u.RequestsWrite + u.RequestsExport + u.RequestsStream
	row := []string{u.TenantID, string(u.Mode)}
	for _, n := range []int64{requests, u.Bookings, u.Events, u.Deliveries} {
		row = append(row, strconv.FormatInt(n, 10))
	}
	for _, n := range []nullable.Nullable[int64]{u.StoredRows, u.StoredBytes} {
		text := "-"
		if !n.IsNull() {
			text = strconv.FormatInt(n.MustGet(), 10)
		}
		row = append(row, text)
	}
	charged := ""
	for _, v := range u.Payments {
		charged += fmt.Sprintf("%d %s ", v.Charged, v.Currency)
	}
	return append(row, charged)
}

// usageCSV prints rows like the platform API.
func (t tool) usageCSV(list []platformapi.Usage) error {
	spec, err := contract.LoadDirect(proto.Platform, service)
	if err != nil {
		return err
	}
	return page.WriteCSV(t.cmd.OutOrStdout(), spec.Operation("listUsage").CSV, list)
}
