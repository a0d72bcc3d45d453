package command

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	holdfast "holdfast.dev/sdks/go"

	"holdfast.dev/sdks/cli/internal/operations"
	"holdfast.dev/sdks/cli/internal/profile"
)

// progressPages is the number of pages of 100 rows after which export shows how far it is.
const progressPages = 100

func (a *App) export() *cobra.Command {
	var folder string
	cmd := &cobra.Command{
		Use: "export --folder FOLDER", Short: "Download all lists into a folder, as JSON lines.", ValidArgsFunction: cobra.NoFileCompletions,
		Long: "Download each list of the API for the tenant and mode of the credential: one file per list, such as bookings.ndjson, with one JSON object " +
			"per line. A file appears when its list is complete. If the command is interrupted, run it again: it skips the files that exist. For " +
			"another tenant or mode, or to download everything again, use another folder.",
		Example: "  holdfast export --folder harbor-tours-live",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.session(cmd.Context())
			if err != nil {
				return err
			}
			if err := os.MkdirAll(folder, 0o700); err != nil {
				return err
			}
			return a.exportAll(cmd.Context(), s, folder)
		},
	}
	cmd.Flags().StringVar(&folder, "folder", "", "`folder` for the files; it is created")
	_ = cmd.MarkFlagRequired("folder") // the flag exists
	_ = cmd.MarkFlagDirname("folder")  // the flag exists
	return cmd
}

// exportAll downloads the lists that are not in the folder yet.
func (a *App) exportAll(ctx context.Context, s *profile.Session, folder string) error {
	for _, res := range operations.Resources {
		for _, op := range res.Operations {
			if op.Kind != operations.Page || len(op.PathParams) > 0 {
				continue
			}
			name := filepath.Join(folder, strings.ReplaceAll(strings.Trim(op.Path, "/"), "/", "-")+".ndjson")
			if _, err := os.Lstat(name); err == nil {
				a.note("%s: exists already", name)
				continue
			} else if !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if err := a.exportList(ctx, s, op, name); err != nil {
				a.note("%s: not complete; run the command again to continue with it", name)
				return err
			}
		}
	}
	return nil
}

// exportList writes all rows of a list to a file, which only the user can read. After an error, there is no file.
func (a *App) exportList(ctx context.Context, s *profile.Session, op operations.Operation, name string) error {
	f, err := os.OpenFile(name+".part", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	rows, err := a.exportRows(ctx, s, op, f, name)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	a.note("%s: %d rows", name, rows)
	return nil
}

// exportRows writes the rows of a list, page by page, and returns their number.
func (a *App) exportRows(ctx context.Context, s *profile.Session, op operations.Operation, to *os.File, name string) (rows int, err error) {
	out := bufio.NewWriter(to)
	request := holdfast.Request{Method: http.MethodGet, Path: op.Path, Query: url.Values{"limit": {"100"}}}
	pages := 0
	err = eachPage(ctx, s, request, func(_ []byte, p page) (bool, error) {
		for _, row := range p.Data {
			var line bytes.Buffer
			if err := json.Compact(&line, row); err != nil {
				return false, err
			}
			line.WriteByte('\n')
			if _, err := line.WriteTo(out); err != nil {
				return false, err
			}
		}
		rows += len(p.Data)
		if pages++; pages%progressPages == 0 {
			a.note("%s: %d rows so far", name, rows)
		}
		return true, nil
	})
	return rows, errors.Join(err, out.Flush())
}
