package command

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"holdfast.dev/libs/keyset"
)

func keysCommand() *cobra.Command {
	cmd := group("keys", "Create, check and rotate the Secrets of all services.", keysInit(), keysCheck(), keysRotate(), keysPasswords())
	cmd.PersistentFlags().String("release", "holdfast", "name of the release, with which the names of the Secrets begin")
	return cmd
}

func releaseOf(cmd *cobra.Command) string {
	release, _ := cmd.Flags().GetString("release") // the flag exists
	return release
}

// randomKeys returns a function that returns a random key for each name.
func randomKeys() func(name string) string {
	keys := map[string]string{}
	return func(name string) string {
		if keys[name] == "" {
			key := make([]byte, 32)
			_, _ = rand.Read(key) // never fails
			keys[name] = hex.EncodeToString(key)
		}
		return keys[name]
	}
}

func keysInit() *cobra.Command {
	var dir string
	var asYAML bool
	source := keyset.Source{Key: randomKeys()}
	cmd := &cobra.Command{
		Use: "init", Short: "Create all Secrets with new keys and passwords, in a new folder or as YAML.", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if source.Server == "" || source.Redis == "" {
				return errors.New("set POSTGRES_URL and REDIS_URL, or --postgres-url and --redis-url, to the addresses that the services use")
			}
			set, err := source.New()
			if err != nil {
				return err
			}
			if err := check(set); err != nil { // for example a URL of Redis that is no URL
				return err
			}
			if asYAML {
				text, err := keyset.NewManifest(set, releaseOf(cmd)).Text()
				if err != nil {
					return err
				}
				_, err = cmd.OutOrStdout().Write(text)
				return err
			}
			if err := set.Create(dir, releaseOf(cmd)); err != nil {
				return err
			}
			return say(cmd, "%s in %s. Store a copy of SERVICE_ENCRYPTION_KEYS in another place: no backup of a database contains them.\n", summary(), dir)
		},
	}
	f := cmd.Flags()
	f.StringVar(&dir, "out", "", "the new folder: one folder for each Secret, with one file for each setting")
	f.BoolVar(&asYAML, "yaml", false, "print the Secrets as YAML for kubectl instead")
	f.StringVar(&source.Server, "postgres-url", os.Getenv("POSTGRES_URL"), "URL of PostgreSQL; the user and the database are replaced")
	f.StringVar(&source.ServingURL, "pooler-url", "", "URL of the pooler for DATABASE_URL and WORKER_DATABASE_URL, if there is one")
	f.StringVar(&source.Redis, "redis-url", os.Getenv("REDIS_URL"), "URL of Redis, with its password")
	f.StringVar(&source.Prefix, "prefix", "holdfast_", "prefix of the names of databases and roles")
	for _, secret := range []string{"postgres-url", "redis-url"} {
		f.Lookup(secret).DefValue = "" // help does not show a password
	}
	cmd.MarkFlagsOneRequired("out", "yaml")
	cmd.MarkFlagsMutuallyExclusive("out", "yaml")
	return cmd
}

func keysCheck() *cobra.Command {
	return stored(&cobra.Command{
		Use: "check", Short: "Check that all Secrets are complete and that services accept each other's keys.", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			files, err := openSecrets(cmd)
			if err == nil {
				err = check(files.set)
			}
			if err != nil {
				return err
			}
			return say(cmd, "%s agree.\n", summary())
		},
	})
}

func keysRotate() *cobra.Command {
	var resealed bool
	cmd := stored(&cobra.Command{
		Use: "rotate NAME", Short: "Do the next of the three steps that replace a key.", Args: cobra.ExactArgs(1),
		Long: "Do the next of the three steps that replace a key: accept a new key too, use it, and remove the old one. Between the steps, every pod " +
			"must have the changed Secrets.\n\nNAME is CALLER/TARGET for the key between two services, SERVICE/CURSOR_KEYS, SERVICE/SERVICE_ENCRYPTION_KEYS, " +
			"or callers for the keys of all pairs.",
		RunE: func(cmd *cobra.Command, args []string) error {
			rotations, err := keyset.RotationsOf(args[0])
			if err != nil {
				return err
			}
			files, err := openSecrets(cmd)
			if err == nil {
				err = check(files.set)
			}
			if err != nil {
				return err
			}
			if next, err := files.set.Next(rotations[0]); err == nil && next == 3 && rotations[0].Encrypts() && !resealed {
				return fmt.Errorf("the last step removes the old key, and data that is encrypted with it can then not be read: encrypt the stored data of %s again "+
					"(docs/operations/secure.md), then repeat the command with --resealed", rotations[0].Owner())
			}
			step, err := files.set.Rotate(rotations)
			if err != nil {
				return err
			}
			if err := files.save(step.Changes); err != nil {
				return err
			}
			return sayStep(cmd, step)
		},
	})
	cmd.Flags().BoolVar(&resealed, "resealed", false, "no stored data is encrypted with the old key any more; the last step of SERVICE_ENCRYPTION_KEYS requires this")
	return cmd
}

func keysPasswords() *cobra.Command {
	return stored(&cobra.Command{
		Use: "passwords", Short: "Print the SQL that gives each role of the databases the password in its URL, without the passwords themselves.", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			files, err := openSecrets(cmd)
			if err != nil {
				return err
			}
			sql, err := files.set.Passwords()
			if err != nil {
				return err
			}
			_, err = io.WriteString(cmd.OutOrStdout(), sql)
			return err
		},
	})
}

// stored adds the flags that name where the Secrets are.
func stored(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().String("dir", "", "the folder that `keys init` created")
	cmd.Flags().String("yaml", "", "a file with the Secrets as YAML, also as kubectl prints them; - is the standard input")
	cmd.MarkFlagsOneRequired("dir", "yaml")
	cmd.MarkFlagsMutuallyExclusive("dir", "yaml")
	return cmd
}

// secretFiles are the Secrets in a folder or in a file.
type secretFiles struct {
	set  keyset.Set
	save func([]keyset.Change) error
}

func openSecrets(cmd *cobra.Command) (secretFiles, error) {
	dir, _ := cmd.Flags().GetString("dir")
	path, _ := cmd.Flags().GetString("yaml")
	release := releaseOf(cmd)
	if dir != "" {
		set, err := keyset.OpenFolder(dir, release)
		return secretFiles{set, func(changes []keyset.Change) error { return keyset.SaveFolder(dir, release, changes) }}, err
	}
	var text []byte
	var err error
	if path == "-" {
		text, err = io.ReadAll(cmd.InOrStdin())
	} else {
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return secretFiles{}, err
	}
	manifest, err := keyset.ParseManifest(text, release)
	if err != nil {
		return secretFiles{}, fmt.Errorf("%s %w", path, err)
	}
	set, err := manifest.Set()
	return secretFiles{set, func(changes []keyset.Change) error {
		if path == "-" {
			return errors.New("the changed Secrets have no file: use --yaml with a file, or --dir")
		}
		manifest.Apply(changes)
		text, err := manifest.Text()
		if err != nil {
			return err
		}
		return keyset.Replace(path, text)
	}}, err
}

func summary() string {
	return fmt.Sprintf("%d Secrets and %d pairs of services", len(keyset.Names()), len(keyset.Pairs()))
}

// check returns the problems of the Secrets as one error.
func check(set keyset.Set) error {
	var lines []string
	for _, p := range set.Check() {
		lines = append(lines, p.String())
	}
	if lines == nil {
		return nil
	}
	return errors.New(strings.Join(lines, "\n"))
}

// stepTexts describe the steps of a rotation.
var stepTexts = map[int]string{
	1: "Both keys are accepted; the old one is in use.",
	2: "The new key is in use; the old one is still accepted.",
	3: "The old key is removed. The rotation is complete.",
}

func sayStep(cmd *cobra.Command, step keyset.Step) error {
	var changed, restart []string
	for _, c := range step.Changes {
		secret := keyset.SecretName(releaseOf(cmd), c.Secret)
		changed = append(changed, secret+": "+c.Setting)
		restart = append(restart, "deployment/"+secret)
	}
	next := "Then run the same command again for the next step."
	if step.Number == 3 {
		next = ""
	}
	slices.Sort(restart)
	return say(cmd, "Step %d of 3. %s\nChanged:\n  %s\nApply the Secrets, and run kubectl rollout restart %s (with secrets in files, wait for the reload in every pod). %s\n",
		step.Number, stepTexts[step.Number], strings.Join(changed, "\n  "), strings.Join(slices.Compact(restart), " "), next)
}

func say(cmd *cobra.Command, text string, args ...any) error {
	_, err := fmt.Fprintf(cmd.OutOrStdout(), text, args...)
	return err
}
