package platform

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/idemstore"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/service"
)

// ResealSettings are the settings of reseal, which are a part of each service's Config.
type ResealSettings struct {
	WorkerDatabaseURL string `env:"WORKER_DATABASE_URL,required,notEmpty" secret:"url"`      // URL of the database in the role <db>_worker
	Pooler            bool   `env:"DATABASE_POOLER"`                                         // true: WORKER_DATABASE_URL is the address of a pooler in transaction mode
	EncryptionKeys    string `env:"SERVICE_ENCRYPTION_KEYS,required,notEmpty" secret:"true"` // <kid>:<hex of 32 bytes>,…; the first key encrypts
}

// ResealTable seals the secrets of a table under the first key of the box and writes its progress to out: see package reseal.
type ResealTable func(ctx context.Context, db *pg.DB, box *crypt.Box, out io.Writer) error

// ResealCommand returns the command reseal of a service whose table contains secrets.
func ResealCommand(table ResealTable) *cobra.Command {
	return service.Command("reseal", "Re-encrypt stored secrets and responses with the first encryption key; safe to interrupt and repeat.",
		func(ctx context.Context, s ResealSettings) error { return Reseal(ctx, s, table) })
}

// Reseal seals the table and the stored responses. It processes both even if one contains a secret that no key opens.
func Reseal(ctx context.Context, s ResealSettings, table ResealTable) error {
	box, err := crypt.NewBox(s.EncryptionKeys)
	if err != nil {
		return err
	}
	worker, err := pg.Open(ctx, s.WorkerDatabaseURL, pg.Options{MaxConns: 1, Pooler: s.Pooler})
	if err != nil {
		return err
	}
	defer worker.Close()
	return errors.Join(table(ctx, worker, box, os.Stdout), idemstore.Reseal(ctx, worker, box, os.Stdout))
}
