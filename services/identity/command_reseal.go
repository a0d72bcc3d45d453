package main

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/idemstore"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/service"

	"holdfast.dev/services/identity/internal/store"
)

// resealSettings are the settings of the command, which are a part of Config.
type resealSettings struct {
	WorkerDatabaseURL string `env:"WORKER_DATABASE_URL,required,notEmpty"`                   // in the role <db>_worker
	EncryptionKeys    string `env:"SERVICE_ENCRYPTION_KEYS,required,notEmpty" secret:"true"` // <kid>:<hex of 32 bytes>,…: the first seals
}

func resealCommand() *cobra.Command {
	return service.Command("reseal", "Seal the second factors and the stored answers under the first encryption key; safe to stop and to repeat.", reseal)
}

func reseal(ctx context.Context, s resealSettings) error {
	box, err := crypt.NewBox(s.EncryptionKeys)
	if err != nil {
		return err
	}
	worker, err := pg.Open(ctx, s.WorkerDatabaseURL, pg.Options{MaxConns: 1})
	if err != nil {
		return err
	}
	defer worker.Close()
	return errors.Join(store.ResealFactors(ctx, worker, box, os.Stdout), idemstore.Reseal(ctx, worker, box, os.Stdout))
}
