package keyset

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/proto"
)

const (
	scramRounds = 4096 // as PostgreSQL uses
	saltBytes   = 16
)

// Passwords returns SQL that gives the logins in the URLs of a set their passwords. It contains verifiers for SCRAM-SHA-256 and not the
// passwords, so that neither the log of the server nor that of psql contains one.
func (s Set) Passwords() (string, error) {
	var b strings.Builder
	for _, service := range proto.Services() {
		if !service.Database {
			continue
		}
		for _, at := range []struct{ secret, setting string }{
			{service.Name + migration, "MIGRATE_DATABASE_URL"}, {service.Name, "DATABASE_URL"}, {service.Name, "WORKER_DATABASE_URL"},
		} {
			u, err := url.Parse(s[at.secret][at.setting])
			if err != nil || u.User == nil {
				return "", fmt.Errorf("%s of %s is not a URL with a user", at.setting, at.secret)
			}
			password, _ := u.User.Password()
			verifier, err := scram(password)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(&b, "alter role %s password '%s';\n", pgx.Identifier{u.User.Username()}.Sanitize(), verifier)
		}
	}
	return b.String(), nil
}

// scram returns the verifier of a password in the form that PostgreSQL stores (RFC 5802).
func scram(password string) (string, error) {
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt) // never fails
	salted, err := pbkdf2.Key(sha256.New, password, salt, scramRounds, sha256.Size)
	if err != nil {
		return "", fmt.Errorf("verifier of a password: %w", err)
	}
	sum := func(text string) []byte {
		h := hmac.New(sha256.New, salted)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	stored := sha256.Sum256(sum("Client Key"))
	text := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", scramRounds, text(salt), text(stored[:]), text(sum("Server Key"))), nil
}
